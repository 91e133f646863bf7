"""Lessons on the page: the place in the course, its panel, live claims, and the list."""
