"""Files of the person's own, and the kinds that models and targets take. They end with the session."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sgmcmc_lab.samplers.file_format import GUESSED, Format, Taken
from sgmcmc_lab.samplers.files import Tell, untold
from sgmcmc_lab.samplers.models import MODELS, Model
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.linear_table import TableLinear
from sgmcmc_lab.samplers.targets.logistic_table import TableLogistic
from sgmcmc_lab.samplers.targets.own import OfTable, keep
from sgmcmc_lab.samplers.targets.posterior import TypedPosterior


@dataclass(frozen=True)
class Kind:
    """The kind of files that a model or a target takes."""

    model: type[Model | OfTable]
    label: str
    several: bool
    """Whether several files make one data set."""
    help: str


class Upload:
    """Files that a person brought, how they are to be read, and what was read from them. Nothing else holds them."""

    def __init__(self, kind: Kind, files: Mapping[str, bytes], form: Format = GUESSED):
        self.kind, self.files, self.form = kind, files, form
        self.name = next(iter(files)) if len(files) == 1 else f"{len(files)} files"
        self.taken: Taken | None = None
        """The format of the files, once they have been read."""
        self.failed = False
        """Whether they were read, and something was wrong with them."""
        self._data: Any = None

    @property
    def read(self) -> bool:
        """Whether the files have been read, and were good."""
        return self._data is not None

    def changed(self, field: str, value: str) -> "Upload":
        """The same files, read with another choice. Raises :class:`~samplers.parameters.SpecError`."""
        return Upload(self.kind, self.files, replace(self.form, **{field: value}))

    def data(self, tell: Tell = untold) -> Any:
        """The data for the model or the target; the first call reads the files.

        Raises :class:`~samplers.files.FileError`.
        """
        if self._data is None:
            model = self.kind.model
            try:
                found = (
                    model.read(self.files, self.form)
                    if issubclass(model, OfTable)
                    else model.read(self.files, tell, self.form)
                )
            except SpecError:
                self.failed = True
                raise
            # A table is shared by all who brought the same numbers, and each took them for something else.
            self.taken = found.taken
            self._data = keep(found) if issubclass(model, OfTable) else found
        return self._data


_PRIVACY = "The page says how the file was read, and lets you change it. Nothing is kept after this page is closed, and nobody else sees it."
_TEXTS = "One text file with a document on each line, or several of one document each; a table (.csv, .tsv) with a column of texts; or an .ldac file together with its vocabulary"
_TABLE = (
    "A table (CSV). The last suitable column, unless you choose another, is {}. In a column of two words one counts as 1; row names and other columns of words are left out. At most 99 columns and 200,000 numbers in all. "
    + _PRIVACY
)
KINDS = {
    "topics": Kind(MODELS["topics"], "Your own documents", True, f"{_TEXTS}. At most 30 MB. {_PRIVACY}"),
    "network": Kind(
        MODELS["network"], "Your own network", False,
        f"A table (.csv, .tsv, .txt, .edges) with a row for each edge and its two ends in two columns, or an adjacency matrix; or GraphML. At most 5,000 nodes and 100,000 edges. {_PRIVACY}",
    ),
    "clusters": Kind(
        MODELS["clusters"], "Your own points", False,
        f"A table (CSV) of numbers; one column may hold words, the group that each point is known to belong to. At most 20,000 points. {_PRIVACY}",
    ),
    "sphere_clusters": Kind(
        MODELS["sphere_clusters"], "Your own points", False,
        f"A table (CSV) of numbers, of which each row is a direction, such as the vector of a word; it is scaled to length 1. One column may hold words, the group that each point is known to belong to. At most 99 columns and 500,000 numbers. {_PRIVACY}",
    ),
    "mixture": Kind(
        MODELS["mixture"], "Your own documents", True,
        f"{_TEXTS}; or visits of web pages as .data and .test, as the anonymous Microsoft web data has them, also as .gz. At most 30 MB. {_PRIVACY}",
    ),
    "spherical": Kind(
        MODELS["spherical"], "Your own documents", True,
        f"{_TEXTS}. At most 30 MB, and documents times words kept at most 6 million. {_PRIVACY}",
    ),
    "sparse": Kind(MODELS["sparse"], "Your own table", False, _TABLE.format("y, a number; there are four others at least")),
    "factors": Kind(
        MODELS["factors"], "Your own rows", False,
        f"A table (CSV) of numbers, 2 to 99 columns of them; one column of words is left out. At most 20,000 rows and 5 MB. {_PRIVACY}",
    ),
    TableLinear.key: Kind(TableLinear, "Your own table", False, _TABLE.format("y, a number")),
    TypedPosterior.key: Kind(TypedPosterior, "Your own table", False, _TABLE.format("a number, as all are; each goes into the formulas by its title")),
    TableLogistic.key: Kind(TableLogistic, "Your own table", False, _TABLE.format("one of two numbers or words")),
}  # fmt: skip
"""By the key of the model or the target."""
