"""A person's own table as the data of a regression: what is read, what is refused, whose law it is, when it is gone."""

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.choices import make_target
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.file_format import Format
from sgmcmc_lab.samplers.files import FileError
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets import own
from sgmcmc_lab.samplers.targets.linear_table import TableLinear
from sgmcmc_lab.samplers.targets.logistic_table import TableLogistic
from sgmcmc_lab.samplers.targets.own import keep
from sgmcmc_lab.samplers.targets.posterior import TypedPosterior
from tests.helpers.cases import for_each


def csv(rows, names="a,b,y", end="\n", delimiter=","):
    return end.join([names, *(",".join(map(str, row)) for row in rows)]).replace(",", delimiter).encode()


ROWS = [(k, k * k % 7, 0.5 * k - k * k % 5) for k in range(12)]
KINDS = [(k, k * k % 7, "yes" if k * 5 % 3 else "no") for k in range(12)]
GOOD = csv(ROWS)


@for_each(
    "content",
    [
        GOOD,
        csv(ROWS, delimiter=";"),
        csv(ROWS, delimiter="\t"),
        csv(ROWS, end="\r\n"),
        b"\xef\xbb\xbf" + GOOD + b"\n\n",
        GOOD.replace(b"a,b", b'"a"," b "'),
    ],
    ids=["commas", "semicolons", "tabs", "crlf", "bom", "quotes"],
)
def test_a_table_is_what_the_file_says(content):
    table = keep(TableLinear.read({"mine.csv": content}))
    assert (table.names, table.answer, table.kinds) == (("a", "b"), "y", None)
    np.testing.assert_array_equal(np.column_stack([table.x, table.y]), ROWS)


@for_each("words", [("no", "yes"), ("0", "1"), ("-1", "4.5")])
def test_kinds_are_two_numbers_or_words_the_first_in_order_minus_one(words):
    rows = [(a, b, words[c == "yes"]) for a, b, c in KINDS]
    table = keep(TableLogistic.read({"mine.csv": csv(rows)}))
    assert table.kinds == words
    np.testing.assert_array_equal(table.y, [1 if c == "yes" else -1 for *_, c in KINDS])


def changed(row, column, text, names="a,b,y"):
    rows = [list(each) for each in ROWS]
    rows[row][column] = text
    return csv(rows, names)


BAD = {
    "a word": (changed(3, 1, "four"), ["mine.csv, line 5", "'four'", "the column 'b'", "a number"]),
    "an underscore": (changed(11, 2, "1_000"), ["line 13", "'1_000'", "the column 'y'", "a number"]),
    "Arabic digits": (changed(11, 2, "١٢"), ["line 13", "'١٢'", "the column 'y'", "a number"]),
    "most missing": (
        csv([(a, b, y if a > 9 else "NA") for a, b, y in ROWS]),
        ["2 rows of data", "and 10 rows with a missing value left out", "3 or more"],
    ),
    "infinite": (changed(1, 0, "1e999"), ["line 3", "'1e999'", "1,000,000,000"]),
    "large": (changed(1, 0, "2e9"), ["line 3", "1,000,000,000"]),
    "a field too many": (GOOD + b"\n1,2,3,4", ["line 14", "4 fields", "3 names"]),
    "a field too few": (GOOD + b"\n1,2", ["line 14", "2 fields"]),
    "an empty name": (csv(ROWS, "a,,y"), ["line 1", "no name for column 2"]),
    "a name twice": (csv(ROWS, "a,a,y"), ["line 1", "'a' twice"]),
    "one column": (b"y\n" + b"\n".join(b"%d" % k for k in range(20)), ["line 1", "1 column:", "2 to 99"]),
    "many columns": (b",".join(b"c%d" % k for k in range(100)), ["line 1", "100 columns"]),
    "few rows": (csv(ROWS[:2]), ["has 2 rows", "3 or more"]),
    "no rows": (b"a,b,y\n", ["has 0 rows"]),
    "nothing at all": (b"", ["line 1", "0 columns"]),
    "nothing that explains": (
        csv([(1, 2, y) for *_, y in ROWS]),
        ["no column beside", "'y'", "2 columns with one value"],
    ),
    "a wrong byte in UTF-8": (GOOD.replace(b"a,b", "éñü,b".encode() + b"\xe9"), ["line 1", "UTF-8"]),
    "too many numbers": (b"a,y\n" + b"1,2\n3,4\n" * 50_001, ["line 100002", "200,000 numbers"]),
    "too many bytes": (b"a,y\n" + b" " * own.MAX_BYTES, ["5,000,004 bytes"]),
}


def of_r(end="", quote='"'):
    """A file as R writes it: with the names of the rows."""
    rows = [f"{quote}{k + 1}{quote},{a},{b},{y}" for k, (a, b, y) in enumerate(ROWS)]
    return ("\n".join([f"{end}{quote}a{quote},{quote}b{quote},{quote}y{quote}", *rows])).encode()


WORDS = [(f"2020-01-{k + 10}", "man" if k % 2 else "woman", "abc"[k % 3], 7, *ROWS[k]) for k in range(12)]
NAMES = "day,sex,group,site,a,b,y"
PEOPLES = {
    "write.csv of R": (of_r('"",'), "names of the rows left out"),
    "to_csv of pandas": (of_r(",", ""), "names of the rows left out"),
    "write.table of R": (of_r().replace(b",", b" "), "names of the rows left out"),
    "a title of the rows' names": (of_r('" ",'), "names of the rows left out"),
    "the end of a DOS file": (GOOD + b"\n\x1a", ""),
    "the end of a DOS file in quotes": (csv(ROWS).rstrip().rpartition(b",")[0] + b',"%g\x1a"\n' % ROWS[-1][-1], ""),
    "a missing value in a column of words": (
        csv([(w, *row) for w, row in zip(["", *"abcdefghijk"], ROWS, strict=True)], "note,a,b,y"),
        "1 column of words or dates left out: note",
    ),
    "an empty column": (csv([("", *row) for row in ROWS], "note,a,b,y"), "1 column of words or dates left out: note"),
    "a column with few values": (
        csv([(k if k < 3 else "NA", *row) for k, row in enumerate(ROWS)], "c,a,b,y"),
        "1 column without most values left out: c",
    ),
    "one value": (csv([(7, *row) for row in ROWS], "site,a,b,y"), "1 column with one value left out: site"),
    "one value last": (csv([(*row, 7) for row in ROWS], "a,b,y,site"), "1 column with one value left out: site"),
}


@for_each("kind", PEOPLES)
def test_files_as_people_have_them(kind):
    """Fails where the names of rows, or a column that no regression can use, refuse a file, or are not said."""
    content, said = PEOPLES[kind]
    table = TableLinear.read({"mine.csv": content})
    assert (table.names, table.answer) == (("a", "b"), "y")
    np.testing.assert_array_equal(np.column_stack([table.x, table.y]), ROWS)
    assert said in table.taken.sentence


def test_two_words_are_0_and_1_and_other_words_are_left_out():
    table = TableLinear.read({"mine.csv": csv(WORDS, NAMES)})
    assert (table.names, table.answer) == (("sex=woman", "a", "b"), "y")
    np.testing.assert_array_equal(table.x[:, 0], [1, 0] * 6)
    assert (
        "2 columns of words or dates left out: day, group; 1 column with one value left out: site"
        in table.taken.sentence
    )
    assert "sex read as 1 for 'woman' and 0 for 'man'" in table.taken.sentence
    typed = TypedPosterior.read({"mine.csv": csv([(row[1], row[0]) for row in WORDS], "sex,day")})
    assert (typed.names, typed.answer) == ((), "sex=woman")
    np.testing.assert_array_equal(typed.y, [1, 0] * 6)


def test_a_few_words_have_a_column_each():
    """With enough rows; each but the first, for a regression, whose intercept has it, and each for a formula."""
    many = [*WORDS, *WORDS]
    table = TableLinear.read({"mine.csv": csv(many, NAMES)})
    assert (table.names, table.answer) == (("sex=woman", "group=b", "group=c", "a", "b"), "y")
    np.testing.assert_array_equal(table.x[:, 1:3], [[k % 3 == 1, k % 3 == 2] for k in range(12)] * 2)
    assert "group read as 2 columns of 0 and 1, all 0 for 'a'" in table.taken.sentence
    typed = TypedPosterior.read({"mine.csv": csv(many, NAMES)})
    assert typed.names == ("sex=woman", "group=a", "group=b", "group=c", "a", "b")
    assert "group read as 3 columns of 0 and 1." in typed.taken.sentence


def test_words_with_one_beginning_have_a_column_each():
    """Fails where a title, which has 30 characters, stands for two words."""
    words = [f"a very long word that ends in {end}" for end in "xyz"]
    many = [(words[k % 3], *ROWS[k % 12]) for k in range(24)]
    typed = TypedPosterior.read({"mine.csv": csv(many, "group,a,b,y")})
    assert len(typed.names) == 5 and len(set(typed.names[:3])) == 1
    np.testing.assert_array_equal(typed.x[:, :3], [np.arange(3) == k % 3 for k in range(24)])


def test_words_that_others_explain_have_no_columns():
    """Fails where a second name of the groups makes a table of full rank one that is refused."""
    twice = [(*row[:3], row[2] * 2, *row[4:]) for row in (*WORDS, *WORDS)]
    table = keep(TableLinear.read({"mine.csv": csv(twice, NAMES)}))
    assert table.names == ("sex=woman", "a", "b")
    assert "columns of words or dates left out: day, group, site" in table.taken.sentence
    TableLinear(table=table.key)


def test_a_chosen_answer_stays_the_answer():
    """The column is counted behind the names of the rows, in a file that is read again with the same choice."""
    table = TableLinear.read({"mine.csv": of_r('"",')}, Format(column="a"))
    again = TableLinear.read({"mine.csv": of_r('"",')}, table.taken.format)
    assert (table.answer, again.answer, table.taken.format.column) == ("a", "a", "1")


def test_a_chosen_answer_that_never_changes_is_refused():
    with pytest.raises(FileError, match="'y': there is nothing to explain"):
        TableLinear.read({"mine.csv": csv([(a, b, 2) for a, b, _ in ROWS])}, Format(column="y"))


def test_one_column_is_enough_for_a_typed_posterior():
    table = TypedPosterior.read({"mine.csv": b"y\n" + b"\n".join(b"%d" % k for k in range(8))})
    assert (table.names, table.answer, table.x.shape) == ((), "y", (8, 0))


CASES = Path(__file__).parents[4] / "shared" / "cases"


@for_each("name", ["r_write_csv.csv", "r_write_table.txt"])
def test_small_files_that_failed(name):
    if not CASES.is_dir():
        pytest.skip("the cases are not here")
    table = TableLinear.read({name: (CASES / name).read_bytes()})
    assert (table.names, table.answer) == (("x",), "y")


@for_each("kind", BAD)
def test_what_is_wrong_is_a_sentence_with_line_and_column(kind):
    content, parts = BAD[kind]
    with pytest.raises(FileError) as raised:
        keep(TableLinear.read({"folder/mine.csv": content}))
    assert all(part in str(raised.value) for part in parts), raised.value


@pytest.mark.parametrize(("answers", "part"), [("a", "1 different value"), ("abc", "3 different values")])
def test_kinds_are_two(answers, part):
    rows = [(a, b, answers[k % len(answers)]) for k, (a, b, _) in enumerate(ROWS)]
    with pytest.raises(FileError, match=part):
        keep(TableLogistic.read({"mine.csv": csv(rows)}))


@pytest.mark.parametrize("standardise", [True, False])
def test_columns_that_no_law_tells_apart_are_refused(standardise):
    rows = [(a, 2 * a + 1, y) for a, _, y in ROWS]
    table = keep(TableLinear.read({"mine.csv": csv(rows)}))
    with pytest.raises(SpecError, match="one column is nearly the sum of others"):
        TableLinear(table=table.key, standardise=standardise)
    # Planted fault of the check: columns that only look alike.
    rows = [(a, 2 * a + b, y) for a, b, y in ROWS]
    assert TableLinear(table=keep(TableLinear.read({"mine.csv": csv(rows)})).key, standardise=standardise).dim == 4


@pytest.mark.slow
def test_a_table_is_there_while_somebody_holds_it_and_so_is_what_was_made_of_it():
    table = keep(TableLinear.read({"mine.csv": GOOD}))
    assert keep(TableLinear.read({"other name.csv": csv(ROWS, delimiter=";")})) is table
    assert keep(TableLinear.read({"mine.csv": changed(3, 1, 99)})).key != table.key
    assert keep(TableLinear.read({"mine.csv": csv(ROWS, "a,c,y")})).key != table.key
    experiment = Experiment.of("linear_table", {"sgld": {}}, target_params={"table": table.key})
    again = Experiment.from_json(experiment.to_json())
    assert again == experiment
    assert again.make_target() is experiment.make_target()
    assert Experiment.from_query(experiment.to_query(), experiment) == (experiment, [])
    target = weakref.ref(experiment.make_target())
    for tau in range(1, 3 * own.MAX_TARGETS):
        Experiment.of("linear_table", {"sgld": {}}, target_params={"table": table.key, "prior_sd": tau}).make_target()
    assert len(table._targets) <= own.MAX_TARGETS
    key = table.key
    del table
    gc.collect()
    assert own.held(key) is None
    assert target() is None
    with pytest.raises(SpecError, match=r"somebody's own file.*bring the file again"):
        make_target(experiment.target)
    shown, messages = Experiment.from_query(experiment.to_query(), experiment)
    assert len(messages) == 1
    assert "somebody's own file" in messages[0]
    assert shown.make_target().contents.answer == "progress"


def test_a_table_of_another_kind_is_refused():
    table = keep(TableLogistic.read({"mine.csv": csv(KINDS)}))
    with pytest.raises(SpecError, match="bring the file again"):
        TableLinear(table=table.key)
    for wrong in ("own_", "own_" + "g" * 16, table.key + "0", "iris"):
        with pytest.raises(SpecError, match="allowed is one of diabetes, or a file of your own"):
            TableLinear(table=wrong)


# --- laws ---------------------------------------------------------------------------------------------------------


def quadrature(target, k, x):
    """The CDF of coordinate k of three at x, from U alone on a grid in its own directions."""
    mean, sd = (
        np.array([f(column) for column in target.columns]) for f in (lambda c: c.mean, lambda c: np.sqrt(c.variance))
    )
    sides = [np.linspace(m - 9 * s, m + 9 * s, 181) for m, s in zip(mean, sd, strict=True)]
    theta = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 3)
    energy = np.empty(len(theta))
    target.potential(theta, energy, target.packed())
    density = np.exp(energy.min() - energy).reshape([181] * 3)
    marginal = density.sum(axis=tuple(j for j in range(3) if j != k))
    cdf = np.concatenate([[0.0], np.cumsum((marginal[1:] + marginal[:-1]) / 2)])
    return (
        np.interp(x, sides[k], cdf / cdf[-1]),
        density.sum() * np.prod([side[1] - side[0] for side in sides]),
        energy.min(),
    )


@pytest.mark.slow
@pytest.mark.parametrize("prior_sd", [0.3, 10.0])
@pytest.mark.parametrize("standardise", [True, False])
def test_the_law_of_a_linear_regression_is_what_quadrature_finds(prior_sd, standardise):
    """Within .001 of every marginal, and of 1 in the whole mass. Planted fault: a rate of 1/σ² that is a fifth off."""
    table = keep(TableLinear.read({"mine.csv": csv([(a, y) for a, _, y in ROWS], "a,y")}))
    target = TableLinear(table=table.key, prior_sd=prior_sd, standardise=standardise)
    for k, column in enumerate(target.columns):
        x = np.linspace(*column.axis, 41)
        found, mass, lowest = quadrature(target, k, x)
        assert np.abs(column.cdf(x) - found).max() < 1e-3
        assert column.mean == pytest.approx(np.interp(0.5, found, x), abs=0.2 * np.sqrt(column.variance))
        # The normalised density against e^{−U}.
        assert np.exp(target.log_density(target.mode[None])[0]) * mass == pytest.approx(
            np.exp(lowest - energy_at(target, target.mode)), rel=1e-3
        )
    mean, covariance, shape, rate = target._answers
    target.__dict__["_answers"] = mean, covariance, shape, 1.2 * rate
    del target.__dict__["columns"]
    assert np.abs(target.columns[2].cdf(x) - found).max() > 0.05


def energy_at(target, theta):
    out = np.empty(1)
    target.potential(theta[None], out, target.packed())
    return out[0]


@pytest.mark.slow
def test_the_mode_is_where_the_slope_is_nothing():
    for target in (
        TableLinear(),
        TableLinear(standardise=False, prior_sd=100.0),
        TableLogistic(),
        TableLogistic(standardise=False),
    ):
        near = target.mode + 1e-3 * np.array([np.sqrt(1 / max(target.first_steps.other, 1e-9))])
        assert np.abs(target.gradient_at(target.mode[None])).max() < 1e-3 * np.abs(target.gradient_at(near[None])).max()


def test_rows_of_a_logistic_regression_are_the_tables():
    table = keep(TableLogistic.read({"mine.csv": csv(KINDS)}))
    target = TableLogistic(table=table.key)
    x = np.array([row[:2] for row in KINDS], dtype=float)
    x = np.column_stack([np.ones(12), (x - x.mean(axis=0)) / x.std(axis=0)])
    s = np.array([1 if row[2] == "yes" else -1 for row in KINDS])
    theta = np.array([[0.3, -0.7, 0.2]])
    expected = -np.log(special.expit(s * (x @ theta[0]))).sum() + (theta**2).sum() / 18
    assert energy_at(target, theta[0]) == pytest.approx(expected)
    assert target.column_names == ("θ₁ intercept", "θ₂ a", "θ₃ b")
    assert "y is yes in 8 (s = 1) and no in 4" in target.facts()["Data"]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["linear_table", "logistic_table"])
@pytest.mark.parametrize("sampler", ["sgld", "sghmc", "baoab", "msgnht"])
def test_with_first_steps_and_minibatches_the_start_leads_to_the_law(target, sampler):
    """After 20,000 steps each coordinate's mean square about its mean is within a factor of 4 of its variance, with a
    minibatch of ten. Planted fault: a thousand times the step."""
    assert max(squares(target, sampler, 1)) < 4
    assert min(squares(target, sampler, 1)) > 0.25
    if (target, sampler) == ("linear_table", "sgld"):
        assert min(squares(target, sampler, 1000)) > 4


def squares(target, sampler, factor):
    first = RunSpec.of(target, sampler, "minibatch").sampler.values()["step_size"]
    run = Run(RunSpec.of(target, sampler, "minibatch", n_chains=4, sampler_params={"step_size": factor * first}))
    run.advance(20_000)
    found = []
    for _ in range(200):
        run.advance(100)
        found.append(run.position.copy())
    mean, variance = np.array([(column.mean, column.variance) for column in run.target.columns]).T
    return ((np.array(found) - mean) ** 2).mean(axis=(0, 1)) / variance


def test_an_own_table_has_no_source_of_its_data():
    """Fails where the card of somebody's own table says that the data are another's."""
    assert "data of Efron" in TableLinear().source and "data of Anderson" in TableLogistic().source
    linear, logistic = keep(TableLinear.read({"mine.csv": GOOD})), keep(TableLogistic.read({"mine.csv": csv(KINDS)}))
    assert TableLinear(table=linear.key).source == "The normal–inverse-gamma posterior"
    assert TableLogistic(table=logistic.key).source == "Welling & Teh 2011, section 5.2"
