"""The zeros and ones of handwritten digits, and the features that the paper made of them."""

import socket
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_openml, load_digits
from sklearn.model_selection import train_test_split

from benchmarks.problems.stored import stored_arrays

_TRAINING_ROWS = 60_000  # the first ones of OpenML's MNIST
_PIXELS = 784  # of a digit of MNIST
_PATIENCE = 10.0  # seconds to wait for an answer of OpenML


@dataclass(frozen=True)
class Digits:
    """Zeros and ones.

    Attributes
    ----------
    train, test : (n, n_pixels), grey levels from 0 to 255
    train_labels, test_labels : (n,) of int, 0 or 1
    source : str, where they come from
    """

    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray
    source: str

    @property
    def of_mnist(self):
        """Whether these are digits of MNIST, by their size."""
        return self.train.shape[1] == _PIXELS


def zeros_and_ones(path, quick=False):
    """MNIST from a file, or else from OpenML or its cache; scikit-learn's small digits where neither is
    available.

    Parameters
    ----------
    path : str or None, npz with X_train, y_train, X_test and y_test; X of shape (n, 784), uint8
    quick : bool, whether to take the small digits instead of OpenML's
    """
    found = _found(path, quick)
    print(f"digits: {found.source}", flush=True)
    return found


def _found(path, quick):
    if path:
        return _stored(path)
    if quick:
        return _small()
    try:
        return _from_openml()
    except (OSError, ImportError) as error:  # no network, or no pandas
        print(f"digits: OpenML's MNIST is not available ({error}); --mnist takes a file", flush=True)
        return _small()


def _stored(path):
    stored = stored_arrays(path, ("X_train", "X_test", "y_train", "y_test"))
    train, test = stored["X_train"].astype(float), stored["X_test"].astype(float)
    labels = {name: stored[name].astype(int) for name in ("y_train", "y_test")}
    for name, values in labels.items():
        if not np.isin(values, (0, 1)).all():
            there = ", ".join(map(str, np.unique(values)))
            raise ValueError(f"{path}: {name} has the labels {there}; keep the zeros and ones only")
    return Digits(train, labels["y_train"], test, labels["y_test"], f"MNIST, {Path(path).name}")


def _from_openml():
    with _at_most_silent(_PATIENCE):
        mnist = fetch_openml("mnist_784", version=1, as_frame=False, n_retries=1, delay=0.1)
    pixels, labels = mnist.data.astype(float), mnist.target.astype(int)
    wanted = labels < 2
    train, test = wanted[:_TRAINING_ROWS].nonzero()[0], _TRAINING_ROWS + wanted[_TRAINING_ROWS:].nonzero()[0]
    return Digits(pixels[train], labels[train], pixels[test], labels[test], "MNIST, OpenML")


@contextmanager
def _at_most_silent(seconds):
    """Give up connections that do not answer for longer."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _small():
    pixels, labels = load_digits(n_class=2, return_X_y=True)
    train, test, train_labels, test_labels = train_test_split(255 / 16 * pixels, labels, random_state=0)
    return Digits(train, train_labels, test, test_labels, "8 x 8 pixels, scikit-learn's load_digits")


def paper_features(digits, pca_path):
    """The paper's features of the training and of the test digits, two arrays of shape (n, 25).

    Parameters
    ----------
    digits : Digits, of MNIST
    pca_path : str, npz with pixel_mean (784,) and components (25, 784)
    """
    pixel_mean, components = stored_arrays(pca_path, ("pixel_mean", "components")).values()
    if digits.train.shape[1] != len(pixel_mean):
        raise ValueError(
            f"{pca_path} projects {len(pixel_mean)} pixels, but these digits have {digits.train.shape[1]} "
            f"({digits.source}); give MNIST by --mnist"
        )

    def projected(pixels):
        signed = pixels.astype(np.uint8).view(np.int8)  # the authors' program read signed bytes
        return (signed - pixel_mean) @ components.T

    return projected(digits.train), projected(digits.test)
