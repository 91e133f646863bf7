"""Files that a command writes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sgmcmc_lab.samplers.parameters import SpecError


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """A file beside the one that is asked for, renamed at the end, so that there is never half a file.

    Raises :class:`SpecError` where it cannot be written.
    """
    part = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield part
        part.replace(path)
    except OSError as error:
        raise SpecError("out", str(path), f"it cannot be written: {(error.strerror or str(error)).lower()}") from None
    finally:
        part.unlink(missing_ok=True)
