"""Runs and lessons as live pages: the description of a run for a browser, and the makers of the pages."""
