"""WebAssembly modules of compiled functions."""


class ModuleError(Exception):
    """A module cannot be made; the message says why, or what to install."""
