"""The description for a package index: addresses in README.md become absolute, since the index has no other file.

The address of the repository is ``Source`` in ``[project.urls]`` of pyproject.toml. Without one they stay as they are.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent


def described(text: str, source: str) -> str:
    """README.md with the addresses of files in the repository ``source``, pictures as files and others as pages."""

    def absolute(found: re.Match[str]) -> str:
        kind = "raw" if found[1] else "blob"
        return f"{found[1]}[{found[2]}]({source.rstrip('/')}/{kind}/HEAD/{found[3]})"

    return re.sub(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)", absolute, text) if source else text


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    setup(
        long_description=described(readme, project.get("urls", {}).get("Source", "")),
        long_description_content_type="text/markdown",
    )
