r"""Lessons: prose, a running experiment, and claims that a test proves. A lesson is one file of data, never code.

How to write one
----------------
A lesson is a Markdown file, ``lessons/course/03-step-size.md``. Its key is the name without the number
(``step-size``); the number is its place in the course. A teacher's own lessons are files of the same kind in a folder
of their own, which the environment variable ``SGMCMC_LESSONS`` or the option ``--folder`` names; they load
beside the course. A broken file is reported with its line, and the others load::

    +++
    title = "Step size and bias"
    minutes = 15
    summary = "An unadjusted chain has a biased stationary distribution, and the step says by how much."
    needs = ["langevin"]             # keys of lessons that come before; may be left out
    +++

    ## The first step's title

    Markdown. Formulas stand in double dollars, also in a line: $$U(\theta)$$. No HTML, no pictures; links to web pages.

    ```toml
    experiment = "target=gaussian&lane=sgld(step_size:0.5)~full&seed=1&n_chains=64&n_steps=20000"
    views = ["state", "marginal"]
    ```

A step is a line ``## Title``, a text, and at its end at most one ``toml`` block. Fields that a block leaves
out (the experiment, views, controls, page, lengths) remain as in the step before. All fields of a block:

``experiment``
    A link's query as above (of the page's *Copy the link*; run lengths may be added), or a table::

        [experiment]
        target = "gaussian(sd:1)"
        lanes = [
          "sgld(step_size:0.5)~full",
          { preset = "gsgrhmc(shift:1.5)", params = { step_size = 0.01 }, gradient = "full" },
        ]
        seed = 1
        n_chains = 64
        n_steps = 20000
        burn_in = 200
        start = [3.0]

    A lane is ``sampler(name:value;name:value)~gradient(…)``, with ``~polynomial(exponent:0.33;offset:1)`` behind it for
    step sizes that fall; or a table with ``sampler``, ``gradient`` and ``schedule``, each as text or as ``{key,
    params}``; or a table with a named ``preset`` of the recipe and ``params`` of the recipe sampler beside it.

    All chains begin at ``start``, one number for each coordinate; without it where the target has them begin. Those
    whose sampler goes on with a momentum begin with ``momentum``, in the same form; without it with the sampler's own.

    On a model of data the lanes are its methods, ``"lda_scir(step_size:1)"``, and ``n_steps`` beside the experiment
    (not in it) is how many steps each of them makes, or a list with a number for each.
``change``
    In place of these: what is other than in the step before. ``change.n_steps = 500``, ``change.target = "gamma"``,
    ``change.lane1.sampler.step_size = 0.1``, ``change.lane2 = "sghmc(…)~full"`` (may be a lane more), ``change.lanes
    = […]``. Such *addresses* name a value everywhere: ``lane1.sampler.step_size``, ``sampler.step_size`` (of every
    lane), ``lane1.gradient.batch_size``, ``lane1.schedule.exponent``, ``target.sd``, ``n_chains``.
``quick``
    The reduced length that the test suite runs: ``quick = { n_steps = 4000, burn_in = 200, n_chains = 16, seeds = 1
    }``; of a sweep also ``grid``, with fewer values of some axes. Without it the suite runs the full length. After a
    ``change`` it goes on as in the step before; a new experiment has its own.
``seeds``
    How many seeds a full run takes, counted on from the experiment's own; 1 if left out. ``quick.seeds`` likewise.
    With several, the measured number is their mean.
a number in the text
    ``{= 1/(1 - step_size/2) =}`` in a text or in ``watch`` is the formula's value at the step's settings, and follows
    the controls on the page. It names the numbers of the target and of a lane, with the lane's number where it is not
    the first that has it: ``step_size2``. The grammar is that of :mod:`samplers.expressions`.
``views``, ``page``, ``controls``
    Keys of views; ``page = { coordinate = 5, axis = "gradients", speed = 50 }``, or ``slow = 3`` for a step in its
    parts, one in so many seconds, from 1 to 8; and the addresses that the student may turn, or the words target,
    sampler, gradient, lanes, seed, n_chains, speed. An empty list leaves nothing to turn.
``names``
    What the step calls its lanes, one text for each: ``names = ["with Γ", "without Γ"]``.
``question``
    Answered before running: ``ask``, ``options`` (2 to 6), ``answer`` (the number of the right one, from 1), ``why``.
    A wrong option is a table, ``{ text = "…", reply = "…" }``: the reply is one sentence for a student who chose it,
    and says what is measured instead. ``by`` is by what the answer is right: ``"measure"`` if left out, else
    ``"definition"`` or ``"calculation"``, which the page says after ``why``.
``watch``
    One sentence: where to look, and what is to be seen there.
``claim``
    ``[[claim]]``, any number up to 20. ``says`` is a sentence that the check mark stands beside. ``measure`` is one
    of :mod:`lessons.measures`, ``"probability(column:5;high:1e-8)"``; ``lane`` its lane (1 if left out). With
    ``against`` another lane, the number is their ratio, or with ``quantity = "difference"`` their difference; with
    ``quantity = "bias"`` or ``"relative_bias"`` what is above the target's value. Then either ``equals`` a number,
    or ``"exact"``, together with ``tolerance`` (absolute), ``relative`` (of the expected number) or ``errors``
    (standard errors; several may be given, and the widest counts); or ``above``, ``below`` or both, and ``errors`` if
    it must be so by so many standard errors. ``quick = { tolerance = 0.1 }`` replaces what is other at reduced
    length: bounds or margins, each as a whole. ``paper`` sets the number of a figure beside ours: ``{ figure, kind,
    number, ours, reason }``. ``kind`` is ``"printed"``, ``"formula"``, ``"figure"`` (read off it) or ``"simulated"``
    with the paper's settings, then with ``by``: who did, and how often. ``ours`` is what a full run gave, which every
    full run checks; ``reason`` says why the two differ and is needed where they do by more than the margin.
    ``supports = ["answer"]``, ``["watch"]`` or both: the claim proves the marked answer, or what the watch sentence
    says.
``check``
    ``[[check]]``, up to 20: a claim that students do not see, of the marked answer or the watch sentence. It has the
    fields of a claim, and ``supports`` is needed. With ``change``, in the form of a step's, it is measured on the
    step's experiment with that change, and ``against = "before"`` compares the lane with the same one without it::

        [[check]]
        says = "Half the step has half the floor."
        supports = ["watch"]
        change = { lane1.sampler.step_size = 0.2 }
        measure = "ks"
        against = "before"
        equals = 0.5
        tolerance = 0.08
        quick = { tolerance = 0.12 }

    ``change = { n_steps = 4000 }`` is a shorter or longer run, on a model of data too; ``quick = { change = … }`` is
    the change at reduced length where it is another one.
``sweep``
    ``measure`` of every lane over a ``grid`` of addresses, with ``seeds`` seeds::

        [sweep]
        measure = "chain_ks"
        [sweep.grid]
        lane1.sampler.step_size = [0.5, 0.1, 0.05]
        lane2.sampler.step_size = [0.01, 0.005]
        gradient.batch_size = [1, 10, 100]

    A claim without a ``measure`` of its own is of the sweep. ``sweep`` says how the table becomes a number: ``"at"``
    a point, which ``where`` gives (``where = { gradient.batch_size = 10, sampler.step_size = 0.1 }``); the ``"best"``
    (smallest mean over seeds) over the axes that ``where`` leaves; ``"best_at"``, the value of the one axis that it
    leaves; or the ``"slope"`` of log |number| against the log of that axis.
``exercise``
    ``[[exercise]]``, up to five: ``text``, and for the teacher a ``solution`` in words and the ``experiment`` that
    shows it, a link's query or a table as above.
``teacher``
    A note for the teacher: what to say, and what students get wrong. The page shows it, and the solutions, where the
    link has ``teacher=1``.
``figures``
    What ``--plots`` and ``--html`` draw: some of marginal, joint, trace, autocorrelation, sweep, scores; if left out,
    what fits.

Say in a claim what the text says, with the least number of chains and steps that proves it. The standard errors of
most measures come from the spread between chains: give ``n_chains = 64`` rather than long chains. Four standard errors
are then exceeded by chance once in 6,000 choices of the seed; with 8 chains, once in 190.
``python -m sgmcmc_lab.lessons KEY`` runs a lesson and prints measured, expected, tolerance and
pass; ``--quick`` as the suite does; ``--html FILE`` writes it as one file, with what was measured.

The figures in a notebook
-------------------------
A figure of a trace, or of several in a list: marginal, joint, trace or autocorrelation::

    from sgmcmc_lab.lessons.figures import figure
    from sgmcmc_lab.samplers import RunSpec, run
    figure(run(RunSpec.of("quartic", "sgld", n_steps=10_000)), "marginal")
"""

from sgmcmc_lab.lessons.document import LessonError
from sgmcmc_lab.lessons.lesson import Claim, Lesson, Step, read
from sgmcmc_lab.lessons.library import Library, load_all

__all__ = ["Claim", "Lesson", "LessonError", "Library", "Step", "load_all", "read"]
