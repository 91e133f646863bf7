"""Variational inference for models whose unknowns are all positive: what networks and factors both use.

Such a model has ``first_guess(rng)``, a random start of all unknowns (n,), ``log_joint(log_x, grad)``, the log of
p(data, x) as a density in x, which writes its gradient in log x, and ``n_data``.
"""
