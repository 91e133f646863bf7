"""Studies that reproduce the papers' tables and figures: a command for each, named after the figure.

``python -m sgmcmc_lab.lessons.papers.NAME --help`` describes the data and options of one;
:mod:`~lessons.papers.pictures` draws the figures.
"""
