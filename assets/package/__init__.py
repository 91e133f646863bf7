"""SG-MCMC Lab: the dashboard (``app``), the engine (``samplers``), the course (``lessons``) and its ``assets``.

A regular package, not a namespace: Bokeh looks for a component's scripts beside the file of its top-level package.
"""
