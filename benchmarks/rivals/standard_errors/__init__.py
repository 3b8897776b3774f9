"""Ways to the standard errors of a mixture's parameters, behind the protocol in `protocol.py`."""
