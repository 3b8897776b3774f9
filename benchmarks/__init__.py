"""Benchmarks of sklearn-lrvb: how fast it is, how accurate, and the experiments of the paper.

    python -m benchmarks                     lists the experiments
    python -m benchmarks run fit coverage    measures some of them and appends rows to results/NAME.csv
    python -m benchmarks report              writes the pages and figures in results/ from these rows

The folders:

* `speed`, `accuracy`, `paper`: the experiments, grouped by what they answer. A group is a page of the report.
* `problems`: the data sets, the mixtures that are fitted to them, and the priors.
* `rivals`: what is compared: our library, scikit-learn's mixtures, Gibbs sampling, NUTS and bootstraps.
* `analysis`: statistics of what was measured, which know nothing of experiments.
* `harness`: the list of experiments, how they are measured, rows, tables, figures and the report.
* `results`: rows (CSV), pages (Markdown) and figures (PNG).

An experiment is one module that `harness.experiments` names. It has a docstring, whose first line is shown in
the list of experiments, and

* ``TITLE``, the heading of its section;
* ``measure(settings)``, which yields rows of results (flat dicts);
* ``section(rows)``, the Markdown text of the section, without the heading;
* ``draw(rows, path)``, where it has a figure.

These stand in one file because they share the names of the columns. An experiment that would be longer than
about 350 lines is a package with the same four names, whose files have one job each (`fits`, `tables`,
`figure`).

A report is written from stored rows alone, on machines where nothing can be fitted. Hence an experiment
module imports no library that fits (ours, scikit-learn, numpyro), nor a module that does, at its top: the
functions that measure import these where they use them. A test runs the report without these libraries.
"""
