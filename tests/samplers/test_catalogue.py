"""Every parameter's default and bounds, as links and files rely on them: those of ``catalogue.json``.

A link leaves out what it has no other value for, and may go to the bounds: a default that changes, or a bound that
moves inwards, gives an old link another meaning. A new parameter is recorded by itself. Where a change is meant,
delete the file, run this, and look at what differs in Git.
"""

import json
from pathlib import Path

import pytest

from sgmcmc_lab.samplers.cli import catalogue
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.models import METHODS, MODELS
from sgmcmc_lab.samplers.models.topics.model import FIRST
from sgmcmc_lab.samplers.parameters import declared
from sgmcmc_lab.samplers.schedules import SCHEDULES
from sgmcmc_lab.samplers.targets import TARGETS

FILE = Path(__file__).with_name("catalogue.json")


def parameters():
    """The parameters of every registered part: default, range, and whether the slider is logarithmic."""
    found = catalogue()
    sections = {
        "targets": TARGETS,
        "samplers": SAMPLERS,
        "gradients": GRADIENTS,
        "schedules": SCHEDULES,
        "models": MODELS,
        "methods": METHODS,
    }
    out = {"settings": {p["name"]: [p["default"], p.get("bounds"), None] for p in found["settings"]}}
    for section, registry in sections.items():
        for entry in found[section]:
            scales = {name: getattr(p, "log", None) for name, p in declared(registry[entry["key"]])}
            out[f"{section} {entry['key']}"] = {
                p["name"]: [p["default"], p.get("bounds"), scales[p["name"]]] for p in entry["parameters"]
            }
    return json.loads(json.dumps(out))


def in_order(found, recorded):
    """The recorded parts and the new ones in the order of the registries, as the command ``list`` has them.

    Parts that no registry has come last.
    """
    return {**found, **recorded}


def test_a_part_at_the_end_of_the_file_gets_its_place():
    found = {"samplers sgld": 1, "samplers sghmc": 2, "samplers hmc": 3}
    recorded = {"samplers hmc": 3, "samplers removed": 0, "samplers sgld": 7}
    ordered = {"samplers sgld": 7, "samplers sghmc": 2, "samplers hmc": 3, "samplers removed": 0}
    assert list(in_order(found, recorded).items()) == list(ordered.items())


def test_every_default_and_every_bound_is_what_links_rely_on():
    found = parameters()
    recorded = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    new, ordered = found.keys() - recorded.keys(), in_order(found, recorded)
    if new or list(ordered) != list(recorded):
        # A line a part, so that two new parts do not meet in one.
        lines = [f"  {json.dumps({key: value}, ensure_ascii=False)[1:-1]}" for key, value in ordered.items()]
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        pytest.fail(
            f"nothing was recorded of {', '.join(sorted(new))}; it is now"
            if new
            else f"{FILE.name} was not in the order of the registries; it is now"
        )
    # The package that has the Reuters articles is not built for every Python.
    recorded["models topics"]["corpus"][0] = FIRST
    different = [
        f"{owner}.{name}: {of.get(name)} is not {recorded.get(owner, {}).get(name)}"
        for owner, of in found.items()
        for name in {**of, **recorded.get(owner, {})}
        if of.get(name) != recorded.get(owner, {}).get(name)
    ]
    assert different == []
    assert found.keys() == recorded.keys()
