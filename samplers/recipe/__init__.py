"""The recipe as the implementation: typed expressions, D(z), Q(z), Γ and the drift that follows from them."""
