"""Statistics of what was measured: calibration, exponents of growth, chains, derivatives by refits."""
