"""Compiled functions: the one compile policy, its cache, borrowed arrays, and WebAssembly, the second host."""
