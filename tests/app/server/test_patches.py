"""The faults of libraries that the lab mends: each patch is off where its function is another, and no other script
reaches into BokehJS.
"""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from sgmcmc_lab.app.server import patches

APP = Path(patches.__file__).parent.parent
ASSETS = APP.parent / "assets"


@pytest.fixture
def library(monkeypatch):
    """A library whose next release may be another."""
    module = ModuleType("a_library")
    exec("def _private():\n    return 'as it was'\n", vars(module))  # noqa: S102 - a module of this test
    monkeypatch.setitem(sys.modules, "a_library", module)
    monkeypatch.setattr(patches, "library", lambda function: "a_library 1.0")
    monkeypatch.setattr(patches, "digest", lambda function: DIGESTS[getattr(module, "release", 1)])
    patches.found.cache_clear()
    yield module
    patches.found.cache_clear()


DIGESTS = {1: "0123456789ab", 2: "ba9876543210"}


@pytest.mark.parametrize("release", [1, 2])
def test_a_patch_is_on_where_its_function_is_known_and_off_elsewhere(release, library, caplog):
    """Fails where a release with another private function is patched all the same. Fault: the second release."""
    library.release = release
    patch = patches.Patch(
        "a_library:_private",
        {"a_library 1.0": DIGESTS[1]},
        "It is slower",
        "A report",
        lambda original: lambda: "patched " + original(),
    )
    for _ in range(2):
        patch.put()
    assert library._private() == ("patched as it was" if release == 1 else "as it was")
    assert caplog.messages == ([] if release == 1 else ["It is slower: a_library:_private is unknown (a_library 1.0)."])


def test_a_function_that_is_gone_or_has_no_source_is_unknown():
    assert patches.digest("a_library_that_is_not_there:name") == patches.ABSENT
    assert patches.digest("panel.viewable:Viewable._that_is_gone") == patches.ABSENT
    assert patches.digest("builtins:len") == "builtin_function_or_method"


def test_every_patch_is_known_for_the_installed_library_and_has_a_report():
    """At most three, each with a report for its authors. Planted fault: a digest of another source."""
    assert len(patches.PATCHES) <= 3
    for patch in patches.PATCHES:
        assert patch.fits and len(patch.report) > 100, patch.function
        assert not patches.Patch(patch.function, {"a release": "another"}, "", "", patch.make).fits


OF_BOKEHJS = re.compile(r"(?<!this)(?<!exports)\??\._\w+|Bokeh\.require|default_view|needs_clip")
"""A private name of another object, and what BokehJS does not document."""


def test_no_script_reaches_into_bokehjs():
    """Fails where a script beside ``patches.js`` does. Planted fault: a line of that one."""
    found = {path.name: OF_BOKEHJS.findall(path.read_text(encoding="utf-8")) for path in ASSETS.rglob("*.js")}
    assert found.pop("patches.js")
    assert {name: names for name, names in found.items() if names} == {}
