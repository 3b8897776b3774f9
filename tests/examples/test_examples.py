"""The lessons run without a warning, print and draw, answer their question, and leave no file behind."""

import importlib.util
import re
import runpy
import shutil
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from catalogue import set_sizes
from matplotlib import pyplot as plt

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "examples").glob("*.py"))
QUICK = "gaussian_mixture_from_parts", "plot_exact_multivariate_normal"  # Of which running is no slow test.
COURSE = runpy.run_path(str(ROOT / "docs" / "course.py"))["COURSE"]
# The first is the README's picture: run as a program it writes the figure to the working directory.
FILES_WRITTEN = {"plot_mnist_pca_pipeline.py": ["mnist_pca_pipeline.png"]}
# What a lesson may import though the tests do not need it.
OPTIONAL = ("arviz", "arviz_base", "arviz_plots", "arviz_stats")
# What makes a lesson large, and what the tests run in its place.
SMALLER = {
    "plot_crossed_effects.py": {
        "n_chains, n_sweeps, n_discarded = 100, 1500, 200": "n_chains, n_sweeps, n_discarded = 50, 150, 50",
        "simulated(2000, 2000, 20_000), 2000, 2000": "simulated(200, 200, 2_000), 200, 200",
        "few.sample(8000, ": "few.sample(200, ",
    },
    "plot_how_many_clusters.py": {
        "for seed in range(5):": "for seed in range(1):",
        "for seed in range(2)\n": "for seed in range(1)\n",
    },
    "plot_latent_classes.py": {
        "classes.posterior()": 'classes.posterior(method="lrvb")',
        "sample(1000)": "sample(100)",
    },
    "plot_local_level.py": {
        "np.linspace(-2.5, 2.0, 60)": "np.linspace(-2.5, 2.0, 15)",
        "np.linspace(-2.0, 5.0, 80)": "np.linspace(-2.0, 5.0, 20)",
    },
    "plot_mixed_columns.py": {
        "classes.posterior()": 'classes.posterior(method="lrvb")',
        "(n_components, random_state=0)": "(n_components, n_init=2, random_state=0)",
        "(3, random_state=0)": "(3, n_init=2, random_state=0)",
    },
    "plot_mnist_pca_pipeline.py": {"\nn_draws = 3000  #": "\nn_draws = 300  #"},
    "plot_model_choice.py": {
        "\nnumbers = range(1, 7)\n": "\nnumbers = range(1, 5)\n",
        "X, n_components=numbers, ": "X, n_components=numbers, n_init=1, n_draws=200, ",
        'for shape in ("full", "tied", "diag", "spherical"):': 'for shape in ("full", "spherical"):',
        "faithful, n_components=numbers, ": "faithful, n_components=numbers, n_init=1, n_draws=200, ",
    },
    "plot_rows_on_a_cluster.py": {
        "\nN_ROWS = 2_000_000\n": "\nN_ROWS = 30_000\n",
        "Client(n_workers=2, ": "Client(processes=False, n_workers=2, ",
    },
    "plot_rows_that_belong_together.py": {
        "\nn_studies = 60\n": "\nn_studies = 2\n",
        "numbers = (1, 2, 3, 4, 5)": "numbers = (1, 2)",
        'groups=form, method="bootstrap")': 'groups=form, method="bootstrap", n_draws=20)',
        "GroupKFold(14)": "GroupKFold(3)",
        "=KFold(14, ": "=KFold(3, ",
    },
    "plot_trust.py": {
        "1_000 if len(rows) > 1000 else 3_000": "200",
        "few.posterior_check(X, n_draws=4000, ": "few.posterior_check(X, n_draws=1000, ",
        "sample(4000)": "sample(200)",
    },
    "plot_topic_model.py": {
        "n_chains, n_sweeps, n_discarded = 50, 2000, 300": "n_chains, n_sweeps, n_discarded = 50, 200, 50"
    },
}

every_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def test_every_lesson_has_its_place_in_the_course():
    assert len(set(COURSE)) == len(COURSE)
    assert sorted(COURSE) == [path.name for path in LESSONS]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[] if path.stem in QUICK else pytest.mark.slow)
        for path in LESSONS
    ],
)
def test_it_runs_prints_and_draws(path, tmp_path, tmp_path_factory, monkeypatch, capsys):
    skip_without_its_imports(path)
    path = of_size_for_tests(path, tmp_path_factory)
    set_sizes(monkeypatch, sweeps_of_numbers=60)
    matplotlib.use("agg")
    plt.close("all")
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.extend(plt.get_fignums()))
    monkeypatch.setattr(sys, "argv", [str(path)])
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "+-" in printed.out
    assert max(map(len, printed.out.splitlines())) <= 110
    assert shown
    assert all(is_drawn(plt.figure(number)) for number in plt.get_fignums())
    assert set(plt.get_fignums()) == set(shown)
    plt.close("all")
    assert [file.name for file in tmp_path.iterdir()] == FILES_WRITTEN.get(path.name, [])


@every_lesson
def test_it_opens_with_its_question_and_closes_with_the_answer(path):
    text = path.read_text(encoding="utf8")
    line, title, again = text.splitlines()[1:4]
    assert title.endswith("?")
    assert line == again == "=" * len(title)
    *_, last = re.split(r"^# %%\n", text, flags=re.MULTILINE)
    assert last.startswith("# **Answer.** ")
    assert all(line.startswith("#") for line in last.splitlines())


@every_lesson
def test_it_refers_to_lessons_that_exist(path):
    named = re.findall(r":ref:`sphx_glr_gallery_(\w+\.py)`", path.read_text(encoding="utf8"))
    assert set(named) <= set(COURSE)


def skip_without_its_imports(path):
    """Skip a lesson that imports an optional package that is not installed."""
    imported = re.findall(r"^(?:import|from) (\w+)", path.read_text(encoding="utf8"), flags=re.MULTILINE)
    for name in set(imported) & set(OPTIONAL):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{path.name} needs {name}")


def of_size_for_tests(path, tmp_path_factory):
    """A lesson, or a smaller copy of it."""
    if path.name not in SMALLER:
        return path
    text = path.read_text(encoding="utf8")
    for large, small in SMALLER[path.name].items():
        assert text.count(large) == 1
        text = text.replace(large, small)
    copy = tmp_path_factory.mktemp("smaller") / path.name
    for table in path.parent.glob("*.csv"):
        shutil.copy(table, copy.parent)
    copy.write_text(text, encoding="utf8")
    return copy


def is_drawn(figure):
    """Whether a figure has axes with data, and shows more than empty axes do (2.2 % of its pixels)."""
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    on_paper = np.mean(np.any(pixels != pixels[0, 0], axis=-1))
    return any(ax.has_data() for ax in figure.axes) and on_paper > 0.03
