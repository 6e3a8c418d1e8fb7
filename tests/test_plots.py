"""Plots draw on the axes given and show the numbers of the reports."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from scboost import plotting, redundancy_report

mpl = pytest.importorskip("matplotlib")
mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def reports():
    X, y = make_classification(200, 5, random_state=0)
    boosted = GradientBoostingClassifier(n_estimators=8, random_state=0).fit(X, y)
    forest = RandomForestClassifier(n_estimators=6, random_state=0).fit(X, y)
    return redundancy_report(boosted, X, y), redundancy_report(forest, X)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("name", ["plot_spectrum", "plot_energy", "plot_correlation", "plot_innovation"])
def test_ticks_count_whole_trees(reports, name):
    _, ax = plt.subplots(figsize=(2.5, 2.5))
    getattr(plotting, name)(reports[0], ax=ax)
    axes = (ax.xaxis, ax.yaxis) if name == "plot_correlation" else (ax.xaxis,)
    assert all(np.all(axis.get_majorticklocs() % 1 == 0) for axis in axes)


def test_plots_draw_on_the_axes_given(reports):
    draw = [
        lambda ax: plotting.plot_spectrum(*reports, ax=ax),
        lambda ax: plotting.plot_energy(*reports, ax=ax),
        lambda ax: plotting.plot_correlation(reports[0], ax=ax),
        lambda ax: plotting.plot_innovation(reports[0], ax=ax),
        lambda ax: plotting.plot_trees_kept({"first": ([1, 2], [0.5, 0.6])}, full=0.7, ax=ax),
        lambda ax: plotting.plot_weights([1.0, 0.0, 2.0], reference=[1, 1, 1], ax=ax),
    ]
    for function in draw:
        _, ax = plt.subplots()
        assert function(ax) is ax
        assert ax.get_title()
        assert ax.get_xlabel()
        made = function(None)
        assert made is not ax
        made.figure.canvas.draw()


def test_plots_show_the_numbers_of_the_report(reports):
    ax = plotting.plot_spectrum(*reports, labels=["boosted", "forest"])
    for line, report in zip(ax.lines, reports, strict=False):
        np.testing.assert_array_equal(line.get_ydata(), report.spectrum)
    assert "boosted" in ax.get_legend().get_texts()[0].get_text()
    ax = plotting.plot_innovation(reports[0])
    np.testing.assert_array_equal(ax.patches[0].get_data().values, reports[0].redundancy_ratio)
    ax = plotting.plot_weights([1.0, 0.0, 2.0])
    assert "2 of 3 kept" in ax.get_title()


def test_plot_report_has_four_panels(reports):
    with_y, without_y = reports
    assert len(with_y.plot(without_y).axes) == 6  # four panels, a colour bar and a twin
    without_y.plot().canvas.draw()
    twice = with_y.plot(with_y).axes[3]
    assert len(twice.lines) == 2


def test_constant_trees_can_be_drawn():
    X, y = make_classification(50, 3, n_informative=2, n_redundant=0, random_state=0)
    constant = GradientBoostingClassifier(n_estimators=3, min_samples_leaf=40).fit(X, y)
    redundancy_report(constant, X, y).plot().canvas.draw()
    redundancy_report(GradientBoostingClassifier(n_estimators=1).fit(X, y), X).plot().canvas.draw()


def test_invalid_arguments_are_refused(reports):
    with pytest.raises(ValueError, match="at least one report"):
        plotting.plot_spectrum()
    with pytest.raises(ValueError, match="at least one report"):
        plotting.plot_energy()
    with pytest.raises(ValueError, match="labels must have one name for each of the 1 reports"):
        plotting.plot_spectrum(reports[0], labels=["a", "b"])
    with pytest.raises(ValueError, match="at least one path"):
        plotting.plot_trees_kept({})
    with pytest.raises(ValueError, match="weights must be a vector"):
        plotting.plot_weights([[1.0]])
