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
    """Of everything that has parameters: default, range, and whether its slider is logarithmic."""
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


def test_every_default_and_every_bound_is_what_links_rely_on():
    found = parameters()
    recorded = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    if new := found.keys() - recorded.keys():
        # A line a part, so that two new parts do not meet in one.
        lines = [
            f"  {json.dumps({key: value}, ensure_ascii=False)[1:-1]}" for key, value in {**found, **recorded}.items()
        ]
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        pytest.fail(f"nothing was recorded of {', '.join(sorted(new))}; it is now")
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
