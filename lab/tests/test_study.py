"""The study: its statistics against oracles, its prototypes against the estimator, and that it resumes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import make_classification

from scboost import SCBoostClassifier
from scboost_lab import cli, study, variants
from scboost_lab.comparisons import compare, mean_ranks, means
from scboost_lab.datasets import matrix

pd = pytest.importorskip("pandas")

TABLE = st.lists(st.lists(st.sampled_from([0.1, 0.2, 0.25, 0.5, 0.9]), min_size=4, max_size=4), min_size=1, max_size=8)


def as_means(values):
    """By method and set, from a list of sets with one value a method."""
    return {f"m{j}": {f"d{i}": row[j] for i, row in enumerate(values)} for j in range(len(values[0]))}


def test_the_halves_split_the_sets_without_overlap():
    assert not set(study.CHOOSE) & set(study.CONFIRM)
    assert len(study.CHOOSE) == len(study.CONFIRM) == 9
    assert len(set(study.ALL)) == 18


@given(TABLE, st.sampled_from([-1, 1]))
@settings(deadline=None, max_examples=60)
def test_ranks_by_counting(values, sign):
    table = as_means(values)
    sets = sorted(table["m0"])
    found = mean_ranks(table, list(table), sets, sign)
    for m in table:
        ranks = []
        for d in sets:
            better = sum(sign * (table[o][d] - table[m][d]) > 0 for o in table)
            equal = sum(table[o][d] == table[m][d] for o in table)
            ranks.append(1 + better + (equal - 1) / 2)
        assert found[m] == pytest.approx(np.mean(ranks))
    assert sum(found.values()) == pytest.approx(len(table) * (len(table) + 1) / 2)


def test_comparison_against_scipy():
    rng = np.random.default_rng(0)
    table = as_means(rng.normal(size=(18, 2)).tolist())
    sets = list(table["m0"])
    d = np.array([table["m0"][s] - table["m1"][s] for s in sets])
    found = compare(table, "m0", "m1", sets, sign=-1)
    boot = stats.bootstrap((d,), np.mean, method="percentile", n_resamples=10_000, random_state=1)
    assert found.difference == pytest.approx(d.mean())
    assert found.p == pytest.approx(stats.wilcoxon(d).pvalue)
    assert found.wins == np.sum(d < 0)
    assert (found.low, found.high) == pytest.approx(tuple(boot.confidence_interval), abs=0.03)
    back = compare(table, "m1", "m0", sets, sign=-1)
    assert back.difference == pytest.approx(-found.difference)
    assert back.wins + found.wins == len(sets)


def test_comparison_with_itself_is_no_difference():
    table = as_means([[0.3, 0.3], [0.5, 0.5]])
    found = compare(table, "m0", "m1", ["d0", "d1"], sign=1)
    assert (found.difference, found.p, found.wins, found.n) == (0.0, 1.0, 0, 2)


def test_means_skip_what_a_method_does_not_have():
    rows = [
        {"method": "a", "dataset": "d", "redundancy": ""},
        {"method": "b", "dataset": "d", "redundancy": "0.25"},
        {"method": "b", "dataset": "d", "redundancy": "0.75"},
    ]
    table = means(rows, "redundancy")
    assert table == {"b": {"d": 0.5}}


def test_diversity_of_copies_and_of_orthogonal_trees():
    rng = np.random.default_rng(0)
    h = rng.normal(size=50)
    copies = study.diversity(np.stack([h, 2 * h, 1 - h]))
    assert copies["effective_rank"] == pytest.approx(1.0, abs=1e-6)
    assert copies["redundancy"] == pytest.approx(1.0)
    A = rng.normal(size=(50, 6))
    Q, _ = np.linalg.qr(A - A.mean(axis=0))
    assert study.diversity(Q.T)["effective_rank"] == pytest.approx(6.0, rel=1e-6)
    H = rng.normal(size=(4, 30))
    off = np.abs(np.corrcoef(H)[np.triu_indices(4, 1)])
    assert study.diversity(H)["redundancy"] == pytest.approx(off.mean())


def test_every_method_of_every_part_can_be_made():
    names = {m for part in study.PARTS.values() for m in part.methods}
    for name in names:
        kind = name.split()[0]
        if kind in {"LGBM", "CAT", "NGB"}:
            pytest.importorskip({"LGBM": "lightgbm", "CAT": "catboost", "NGB": "ngboost"}[kind])
        assert hasattr(study.make_method(name, 100, 0), "predict_proba")


@pytest.mark.parametrize("text", ["colour=1", "gamma=0.5 nothing=2"])
def test_an_x_is_named(text):
    with pytest.raises(ValueError, match=r"unknown setting '(colour|nothing)'"):
        study.read_settings(text)


def test_rate_is_a_factor_of_the_automatic_rule():
    once = study.make_method("SCBoost rate=1.3", 1000, 0).learning_rate
    assert study.make_method("SCBoost rate=2.6", 1000, 0).learning_rate == pytest.approx(2 * once)


@pytest.fixture(scope="module")
def rows():
    return make_classification(n_samples=300, n_features=8, random_state=0)


def test_a_prototype_with_a_constant_rule_is_the_estimator(rows):
    params = study.read_settings("trees=12 cols=0.5 rows=0.7").params
    model = variants.Prototype(**params, random_state=3, n_jobs=1)
    model.spec = variants.Spec(params)
    expected = SCBoostClassifier(**params, random_state=3, n_jobs=1).fit(*rows).predict_proba(rows[0])
    np.testing.assert_array_equal(model.fit(*rows).predict_proba(rows[0]), expected)


def test_gamma_rules_stay_in_range_and_move_as_they_say():
    for rule in ("", "share", "falling", "rising", "rows"):
        for n, progress, share in ((10, 0.0, 0.0), (10**6, 1.0, 1.0), (3200, 0.5, 0.4)):
            assert 0 <= variants.gamma_rule(rule, 0.7, n, progress, share) <= 1
    falling = [variants.gamma_rule("falling", 0.7, 100, t, 0.1) for t in (0, 0.5, 1)]
    assert all(a > b for a, b in pairwise(falling))
    assert variants.gamma_rule("rows", 0.7, 1000, 0, 0) > variants.gamma_rule("rows", 0.7, 10_000, 0, 0)


@pytest.fixture
def data_dir(tmp_path):
    X, y = make_classification(n_samples=120, n_features=4, random_state=1)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.loc[::7, "a"] = np.nan
    frame["e"] = pd.Categorical(np.where(X[:, 1] > 0, "yes", "no"))
    frame["target"] = y
    frame.to_parquet(tmp_path / "tiny.parquet")
    return tmp_path


def test_categories_become_numbers_and_missing_values_stay(data_dir):
    X, y = matrix("tiny", str(data_dir), 1000, 1000)
    assert X.shape == (120, 5)
    assert np.isnan(X[::7, 0]).all()
    assert set(X[:, 4]) == {0.0, 1.0}
    capped, y_capped = matrix("tiny", str(data_dir), 60, 3)
    assert capped.shape == (60, 3)
    assert abs(y_capped.mean() - y.mean()) < 0.02


def test_a_stopped_study_goes_on_where_it_was(data_dir, tmp_path, monkeypatch, capsys):
    conditions = {"": {}, "noise=0.1": {"noise": 0.1}}
    part = study.part("tiny", ("SCBoost trees=3", "GBDT trees=3"), ("tiny",), folds=2, conditions=conditions)
    monkeypatch.setattr(study, "PARTS", {"tiny": part})
    command = ["study", "tiny", "--data-dir", str(data_dir), "--out", str(tmp_path / "out")]

    def run():
        return cli.main(command)

    assert run() == 0
    path = tmp_path / "out" / "tiny.csv"
    whole = path.read_text()
    assert len(whole.splitlines()) == 9
    path.write_text("".join(whole.splitlines(keepends=True)[:4]) + "tiny,SCB")  # killed in the middle of a line
    fitted = []
    original = study.make_method
    monkeypatch.setattr(study, "make_method", lambda *a: fitted.append(a[0]) or original(*a))
    assert run() == 0
    assert len(fitted) == 5
    timing = {"fit_seconds", "predict_seconds"}
    header = whole.splitlines()[0].split(",")
    kept = [i for i, name in enumerate(header) if name not in timing]

    def content(text):
        return sorted([line.split(",")[i] for i in kept] for line in text.splitlines()[1:])

    assert content(path.read_text()) == content(whole)
    assert "0 failed" in capsys.readouterr().out


def test_without_data_the_command_says_what_to_give(monkeypatch, capsys):
    monkeypatch.delenv("SCBOOST_DATA_DIR", raising=False)
    assert cli.main(["study", "shapes"]) == 2
    assert "--data-dir" in capsys.readouterr().err


def test_sets_and_methods_that_are_no_part_of_the_study_are_refused(data_dir, tmp_path, capsys):
    words = ["study", "gamma", "--data-dir", str(data_dir), "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as stop:
        cli.main([*words, "--sets", "../../x"])
    assert stop.value.code == 2
    assert "--sets: invalid choice: '../../x' (choose from " in capsys.readouterr().err
    assert cli.main([*words, "--sets", "qsar_biodeg"]) == 2
    assert "nothing to do for the strength of projection" in capsys.readouterr().err
    assert cli.main([*words, "--methods", "SVM"]) == 2
    assert "error: unknown method 'SVM'; known: ADA, CAT" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
