"""Entries of the parameters that a user has named."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Entries:
    """The name of one entry of the parameters, or of the difference of two.

    Attributes
    ----------
    text : str, such as "mean[1,x0] - mean[0,x0]"
    terms : tuple of (str, int, float), of every entry its target, its flat position and its sign
    """

    text: str
    terms: tuple
