"""How the cost grows with rows, features and components."""

from growth_curves import curves
from sections.growth import GROWING, PASSES

from figures import curves as curves_figure


def draw(found, path):
    curves_figure.draw(curves(found, GROWING, PASSES), GROWING, path)
