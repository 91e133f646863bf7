"""The command line of the benchmarks: ``python -m tests.benchmarks``."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from sgmcmc_lab.lessons.record import check, conditions
from sgmcmc_lab.samplers.interrupts import interruptible
from sgmcmc_lab.samplers.machine import machine
from sgmcmc_lab.samplers.parameters import SpecError
from tests import benchmarks
from tests.benchmarks import classroom, closed, fairness, live, page, record, start, students

DONE, BAD_INPUT, STOPPED = 0, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and keep the record where that is asked for."""
    options = _parser().parse_args(arguments)
    try:
        with interruptible():
            return _bench(options)
    except SpecError as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("stopped: nothing was written", file=sys.stderr)
        return STOPPED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks", description="How fast the lab is on this machine."
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--quick", action="store_true", help="a short, rough measurement")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--live", action="store_true", help="an experiment as one HTML file in a headless browser instead"
    )
    instead.add_argument("--page", action="store_true", help="the lab's page in a headless browser instead")
    instead.add_argument(
        "--class", type=int, dest="students", metavar="N", help="N students in a teacher's room instead"
    )
    instead.add_argument(
        "--pages", type=int, metavar="N", help="N pages of the whole lab opened in the same second instead"
    )
    instead.add_argument("--fair", action="store_true", help="other pages beside the heaviest experiments instead")
    instead.add_argument("--start", action="store_true", help="the first start, with nothing compiled, instead")
    instead.add_argument(
        "--closed", type=int, metavar="N", help="what N pages leave in memory, opened and closed one after the other"
    )
    parser.add_argument(
        "--minutes", type=float, default=0.0, metavar="M", help="of --pages: they then work for M minutes"
    )
    parser.add_argument(
        "--over", type=float, default=1.0, metavar="S", help="of --pages: they come evenly over S seconds"
    )
    parser.add_argument(
        "--table", action="store_true", help="keep the figures in tests/benchmarks/results, and write its README.md"
    )
    return parser


def _bench(options: argparse.Namespace) -> int:

    def say(what: str) -> None:
        print(what, file=sys.stderr, flush=True)

    kind: Any
    report: Any
    alone = {"--minutes": options.minutes != 0, "--over": options.over != 1}
    if options.pages is None and any(alone.values()):
        raise SpecError("bench", ", ".join(name for name in alone if alone[name]), "allowed beside --pages N")
    if options.quick and {options.pages, options.students, options.closed} != {None}:
        raise SpecError("bench", "--quick", "--class, --pages and --closed have no short form: fewer are shorter")
    if options.table:
        if options.quick:
            raise SpecError("bench", "--quick", "--table keeps full measurements alone")
        check(record.FOLDER / _record_name(options))
    if options.pages is not None:
        kind, report = classroom, classroom.measure(options.pages, say, options.minutes, options.over)
    elif options.students is not None:
        kind, report = students, students.measure(options.students, say)
    elif options.closed is not None:
        kind, report = closed, closed.measure(options.closed, say)
    else:
        others = {"fair": fairness, "live": live, "start": start, "page": page}
        kind = next((others[name] for name in others if getattr(options, name)), benchmarks)
        report = kind.measure(options.quick, say)
    print(json.dumps(report.to_dict(), ensure_ascii=False, indent=2) if options.json else kind.as_text(report))
    if options.table:
        command = " ".join(["python -m tests.benchmarks", *_asked(options)])
        found = {"title": f"Measured by `{command}`", "command": command, **conditions(machine())}
        body = [{"text": kind.as_text(report)}]
        record.write_record(_record_name(options), {**found, "body": body, "report": report.to_dict()})
    return DONE


def _asked(options: argparse.Namespace) -> list[str]:
    """The options of a benchmark that decide what is measured."""
    numbers = {
        "class": options.students,
        "pages": options.pages,
        "closed": options.closed,
        "minutes": options.minutes or None,
    }
    numbers["over"] = options.over if options.over != 1 else None
    asked = [f"--{name} {value:g}" for name, value in numbers.items() if value is not None]
    return [*(f"--{name}" for name in ("page", "live", "fair", "start") if getattr(options, name)), *asked]


def _record_name(options: argparse.Namespace) -> str:
    return "".join(["bench", *_asked(options)]).replace("--", "-").replace(" ", "-") + ".json"


if __name__ == "__main__":
    sys.exit(main())
