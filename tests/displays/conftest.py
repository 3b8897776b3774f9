"""What all tests of displays share: nothing is shown, and no figure stays."""

import matplotlib
import pytest
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def _no_window():
    """Draw in memory, and leave no figure behind."""
    matplotlib.use("Agg")
    yield
    plt.close("all")
