"""The engine's compiled functions as WebAssembly, for a host without Python."""
