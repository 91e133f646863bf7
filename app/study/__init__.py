"""The pages of studies: a model of real data, its methods side by side."""
