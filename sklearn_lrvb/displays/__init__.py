"""Plots of a fitted mixture by scikit-learn's Display convention. matplotlib is imported when drawing."""

from sklearn_lrvb.displays.components import ComponentDisplay
from sklearn_lrvb.displays.influence import InfluenceDisplay
from sklearn_lrvb.displays.posterior_std import PosteriorStdDisplay

__all__ = ["ComponentDisplay", "InfluenceDisplay", "PosteriorStdDisplay"]
