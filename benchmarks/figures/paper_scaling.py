"""How the time of LRVB and of Gibbs sampling grows."""

from growth_curves import curves
from sections.paper_scaling import GROWING, PASSES

from figures import curves as curves_figure


def draw(found, path):
    curves_figure.draw(curves(found, GROWING, PASSES), GROWING, path)
