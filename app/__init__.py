"""The dashboard, served by ``panel serve app``."""
