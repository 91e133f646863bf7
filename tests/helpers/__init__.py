"""Parts that tests share."""
