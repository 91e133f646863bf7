"""The page: its widgets, the session and the wires between them."""
