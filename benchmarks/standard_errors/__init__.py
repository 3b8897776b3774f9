"""Ways to a mixture's parameters with standard errors, one a file, behind the protocol in `protocol.py`."""
