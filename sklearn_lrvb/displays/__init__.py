"""Plots of a fitted mixture that follow scikit-learn's Display convention.

`from_estimator` computes what is drawn, keeps it as attributes of the display, and draws it; `plot` draws it
again without computing. Drawing needs matplotlib (``pip install "sklearn-lrvb[plot]"``), which is imported
when something is drawn and not before.
"""

from sklearn_lrvb.displays.class_profiles import ClassProfilesDisplay
from sklearn_lrvb.displays.cluster_regression import CovariateEffectsDisplay, OutcomeDifferencesDisplay
from sklearn_lrvb.displays.components import ComponentDisplay
from sklearn_lrvb.displays.influence import InfluenceDisplay
from sklearn_lrvb.displays.model_check import ModelCheckDisplay
from sklearn_lrvb.displays.posterior import PosteriorIntervalDisplay, PosteriorStdDisplay
from sklearn_lrvb.displays.results import DecidingRowsDisplay, ModelChoiceDisplay, PartitionDisplay

__all__ = [
    "ClassProfilesDisplay",
    "ComponentDisplay",
    "CovariateEffectsDisplay",
    "DecidingRowsDisplay",
    "InfluenceDisplay",
    "ModelCheckDisplay",
    "ModelChoiceDisplay",
    "OutcomeDifferencesDisplay",
    "PartitionDisplay",
    "PosteriorIntervalDisplay",
    "PosteriorStdDisplay",
]
