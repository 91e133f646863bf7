"""The recipe as the implementation: D(z), Q(z), Γ and the drift that follows from them."""
