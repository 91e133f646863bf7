"""Lessons on the page: the position in the course, marks of claims, progress, and the list."""
