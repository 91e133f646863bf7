"""Communities of a network: the edge partition model and its methods, one file each."""
