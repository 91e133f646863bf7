"""The description for a package index: addresses in README.md become absolute, since the index has no other file.

The address of the repository is ``Source`` in ``[project.urls]`` of pyproject.toml. Without one they stay as they are.
Setuptools loads this file at the build, by ``[tool.setuptools.cmdclass]``; nothing else does.
"""

import re

from setuptools.command.egg_info import egg_info


def described(text: str, source: str) -> str:
    """README.md with the addresses of files in the repository ``source``, pictures as files and others as pages."""

    def absolute(found: re.Match[str]) -> str:
        kind = "raw" if found[1] else "blob"
        return f"{found[1]}[{found[2]}]({source.rstrip('/')}/{kind}/HEAD/{found[3]})"

    return re.sub(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)", absolute, text) if source else text


class DescribedEggInfo(egg_info):
    """The metadata of a wheel and of an sdist, with absolute addresses."""

    def finalize_options(self) -> None:
        """Change the description before it is written."""
        super().finalize_options()
        metadata = self.distribution.metadata
        urls = metadata.project_urls or {}
        metadata.long_description = described(metadata.long_description or "", urls.get("Source", ""))
