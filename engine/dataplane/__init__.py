"""Sessions and the worker processes that host them."""
