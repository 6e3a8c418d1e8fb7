"""Progress of a fit: by itself after three seconds on terminals, silent in logs; and what a fitted estimator prints."""

import itertools
import sys
from unittest import mock

import numpy as np
import pytest
from sklearn.datasets import load_iris

import scboost
from scboost import SCBoostClassifier
from scboost._runtime.progress import Progress

X, y = load_iris(return_X_y=True)
CLOCK = "scboost._runtime.progress.time.monotonic"


def shown(verbose, *, terminal, seconds, capsys, n_steps=12):
    """Return what a fit of two phases writes if every look at the clock takes so many seconds."""
    clock = itertools.count()
    with (
        mock.patch(CLOCK, side_effect=lambda: seconds * next(clock)),
        mock.patch.object(sys.stderr, "isatty", return_value=terminal, create=True),
    ):
        progress = Progress(verbose=verbose)
        for label in ("first phase", "second phase"):
            progress.begin(n_steps, label)
            for _ in range(n_steps):
                progress.step("loss 0.5")
            progress.end()
        progress.close()
    return capsys.readouterr().err


def test_long_fits_show_progress_on_a_terminal_and_remove_it(capsys):
    text = shown(None, terminal=True, seconds=1.0, capsys=capsys)
    assert "second phase" in text
    assert "\n" not in text
    assert text.endswith(f"\r{'':<100}\r")


def test_short_fits_and_log_files_stay_silent(capsys):
    assert shown(None, terminal=True, seconds=0.01, capsys=capsys) == ""
    assert shown(None, terminal=False, seconds=100.0, capsys=capsys) == ""


def test_progress_can_be_turned_on_and_off(capsys):
    assert shown(False, terminal=True, seconds=100.0, capsys=capsys) == ""
    log = shown(True, terminal=False, seconds=0.01, capsys=capsys).splitlines()
    assert ["12/12" in line for line in log] == [True, True]
    assert shown(True, terminal=True, seconds=1.0, capsys=capsys).count("\n") == 1


def test_progress_names_the_phase_and_shows_no_undefined_loss(capsys):
    SCBoostClassifier(verbose=True, random_state=0, cv=2).fit(X, y)
    shown = capsys.readouterr().err
    assert "scboost: cross-validation" in shown
    assert "scboost: final model" in shown
    assert "validation loss" in shown
    assert "nan" not in shown


def test_the_parameter_takes_none_and_booleans(capsys):
    for verbose in (None, False, True):
        SCBoostClassifier(n_estimators=2, verbose=verbose).fit(X, y)
    assert capsys.readouterr().err.count("2/2") == 1


def test_fitted_estimators_print_what_was_selected():
    model = SCBoostClassifier(preset="fast", random_state=0)
    assert str(model) == repr(model)
    model.fit(X, y)
    assert str(model).startswith(repr(model))
    settings = {name: (value, reason) for name, value, reason in model.__selected_settings__()}
    assert settings["number of rounds"] == ("100", 'preset="fast"')
    assert settings["learning rate"][0] == f"{model.learning_rate_:.4g}"
    assert "number of rounds" in model._repr_mimebundle_()["text/html"]
    given = SCBoostClassifier(n_estimators=3, learning_rate=0.1, max_depth=2).fit(X, y)
    assert str(given) == repr(given)


def test_the_reason_of_the_rounds_is_the_lowest_loss_and_reaches_the_report():
    model = SCBoostClassifier(random_state=0, cv=2).fit(X, y)
    settings = {name: (value, reason) for name, value, reason in model.__selected_settings__()}
    lowest = float(np.min(model.selection_log_["validation_loss"]))
    assert settings["number of rounds"] == (
        f"{model.n_estimators_:,}",
        f"lowest loss in cross-validation ({lowest:.4g})",
    )
    found = scboost.report(model, X, y).analysis.fitting
    assert [tuple(entry) for entry in found.selected] == model.__selected_settings__()
    assert found.curves["selection (validation)"].loss.min() == pytest.approx(lowest)
