"""The line that somebody sees who waits for an answer."""

import io
import re
import sys

import numpy as np
import pytest
from catalogue import mixture, overlapping

from sklearn_lrvb.estimators import callbacks


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.slow
def test_somebody_who_waits_sees_one_line_that_goes(monkeypatch, capsys):
    X, terminal = overlapping(60), Terminal()
    estimator = mixture({}).fit(X)
    monkeypatch.setattr(sys, "stderr", terminal)
    asked = {"method": "bootstrap", "groups": range(60), "n_draws": 5, "random_state": 0}
    expected = estimator.set_params(verbose=0).posterior(**asked).covariance("means")
    estimator.set_params(verbose=None).posterior(**asked).covariance("means")
    assert terminal.getvalue() == ""  # It took less than two seconds, or nobody is told.
    monkeypatch.setattr(callbacks, "_PATIENCE", 0.0)
    monkeypatch.setattr(callbacks, "_PAUSE", 0.0)
    found = estimator.posterior(**asked).covariance("means")
    np.testing.assert_array_equal(found, expected)
    lines = terminal.getvalue().split("\r")
    assert re.fullmatch(
        r"bootstrap: 2 of at most 5 steps, about \d+ s more \(verbose=0: no line\) *", lines[2]
    )
    assert lines[-2].strip() == lines[-1] == ""  # The line is wiped out.
    assert capsys.readouterr().out == ""
    written = len(terminal.getvalue())
    for quiet in ({"verbose": 0}, {"verbose": None}):
        if quiet["verbose"] is None:
            monkeypatch.setenv("SKLEARN_LRVB_PROGRESS", "0")
        estimator.set_params(**quiet).posterior(**asked).covariance("means")
    monkeypatch.delenv("SKLEARN_LRVB_PROGRESS")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    estimator.posterior(**asked).covariance("means")
    assert len(terminal.getvalue()) == written
    assert sys.stderr.getvalue() == ""
