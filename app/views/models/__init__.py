"""Views of the inside of a model of data."""
