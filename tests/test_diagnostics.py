"""Measures against their definitions, written out by loops, NumPy or SciPy."""

from collections import Counter
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from scboost import diagnostics as dg
from scboost.diagnostics import _measures as measures
from scboost.diagnostics import _redundancy_text as render
from scboost.diagnostics import tree_matrix
from scboost.diagnostics._redundancy import make_report
from scboost.diagnostics._statistics import Statistics, combine

seeds = st.integers(0, 2**32 - 1)


def random_votes(seed, n=50, T=7):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, T)) < rng.random(T), 1, -1).astype(np.int8)


def random_trees(seed, n=60, T=8):
    """Return stepwise columns, some of them repeats, one of them constant."""
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(4, T))[rng.integers(0, 4, (n, T)), np.arange(T)] + rng.normal(size=(n, 1))
    H[:, 3] = 2 * H[:, 0] - H[:, 1]
    H[:, 5] = 0.25
    return H


@settings(deadline=None, max_examples=25)
@given(seeds)
def test_pairwise_measures_equal_their_definitions(seed):
    V = random_votes(seed)
    right = random_votes(seed + 1) > 0
    D, R = dg.pairwise_disagreement(V), dg.vote_correlation(V)
    Q, DF = dg.q_statistic(right), dg.double_fault(right)
    for i in range(V.shape[1]):
        for j in range(V.shape[1]):
            assert D[i, j] == pytest.approx(np.mean(V[:, i] != V[:, j]), abs=1e-12)
            varies = V[:, i].std() > 0 and V[:, j].std() > 0
            expected = np.corrcoef(V[:, i], V[:, j])[0, 1] if varies else np.nan
            assert R[i, j] == pytest.approx(expected, abs=1e-9, nan_ok=True)
            a, b = right[:, i], right[:, j]
            n11, n00, n10, n01 = sum(a & b), sum(~a & ~b), sum(a & ~b), sum(~a & b)
            denominator = n11 * n00 + n10 * n01
            expected = (n11 * n00 - n10 * n01) / denominator if denominator else np.nan
            assert Q[i, j] == pytest.approx(expected, nan_ok=True)
            assert DF[i, j] == pytest.approx(n00 / len(a))


def test_vote_counts_are_exact_over_many_blocks():
    V = random_votes(0, n=40_000, T=3)
    expected = [[np.count_nonzero(V[:, i] != V[:, j]) / len(V) for j in range(3)] for i in range(3)]
    assert_allclose(dg.pairwise_disagreement(V), expected, rtol=0, atol=1e-15)


@settings(deadline=None, max_examples=25)
@given(seeds, st.integers(2, 30))
def test_mean_disagreement_has_its_upper_bound(seed, T):
    V = random_votes(seed, n=20, T=T)
    bound = (T // 2) * (T - T // 2) / (T * (T - 1) / 2)
    assert dg.mean_of_pairs(dg.pairwise_disagreement(V)) <= bound + 1e-12
    half = np.where(np.arange(T) < T // 2, 1, -1)[None].repeat(20, 0).astype(np.int8)
    assert dg.mean_of_pairs(dg.pairwise_disagreement(half)) == pytest.approx(bound)


@settings(deadline=None, max_examples=25)
@given(seeds)
def test_ambiguity_decomposition_is_exact(seed):
    rng = np.random.default_rng(seed)
    H, w, y, b = rng.normal(size=(40, 6)), rng.random(6) + 0.01, rng.normal(size=40), rng.normal()
    found = dg.ambiguity(H, w, b, y)
    assert found.ensemble_error == pytest.approx(np.mean((b + H @ w - y) ** 2))
    assert found.ensemble_error == pytest.approx(found.member_error - found.ambiguity)
    assert dg.ambiguity(H, w, b).ambiguity == pytest.approx(found.ambiguity)
    assert dg.ambiguity(H[:, :1].repeat(3, 1), np.ones(3)).ambiguity == pytest.approx(0, abs=1e-12)


def test_ambiguity_needs_convex_weights():
    with pytest.raises(ValueError, match="weights must be non-negative"):
        dg.ambiguity(np.ones((3, 2)), np.array([1.0, -0.5]))


@settings(deadline=None, max_examples=25)
@given(seeds)
def test_spectrum_is_that_of_the_standardized_matrix(seed):
    H = random_trees(seed)
    C = dg.tree_covariance(H)
    assert_allclose(C, np.cov(H.T, bias=True), atol=1e-12)
    Z = (H - H.mean(axis=0)) / np.where(H.std(axis=0) > 1e-12, H.std(axis=0), np.inf)
    s = np.linalg.svd(Z, compute_uv=False)
    assert_allclose(dg.singular_spectrum(C), s / s[0], atol=1e-7)
    assert_allclose(dg.energy_by_component(C), s**2 / np.sum(s**2), atol=1e-12)
    e = dg.energy_by_component(C)
    assert dg.effective_rank(C) == pytest.approx(np.exp(-sum(x * np.log(x) for x in e if x > 1e-15)))


@settings(deadline=None, max_examples=25)
@given(seeds)
def test_redundancy_is_the_r2_on_earlier_trees(seed):
    H = random_trees(seed)
    C = dg.tree_covariance(H)
    ratio = dg.redundancy_ratio(C)
    centred = H - H.mean(axis=0)
    for t in range(H.shape[1]):
        h, earlier = centred[:, t], centred[:, :t]
        left = h - earlier @ np.linalg.lstsq(earlier, h, rcond=1e-10)[0]
        variance = h @ h
        expected = 1 - left @ left / variance if variance > 1e-12 else 1.0
        assert ratio[t] == pytest.approx(expected, abs=1e-8)
        assert dg.innovation(C)[t] == pytest.approx(left @ left / len(h), abs=1e-8)
    assert ratio[0] == 0
    assert ratio[3] == ratio[5] == 1


def test_measures_of_orthogonal_equal_and_constant_trees():
    rng = np.random.default_rng(0)
    orthogonal = np.linalg.qr(np.c_[np.ones(64), rng.normal(size=(64, 5))])[0][:, 1:]
    C = dg.tree_covariance(orthogonal)
    assert dg.effective_rank(C) == pytest.approx(5)
    assert_allclose(dg.singular_spectrum(C), 1)
    assert_allclose(dg.redundancy_ratio(C), 0, atol=1e-12)
    C = dg.tree_covariance(np.outer(rng.normal(size=64), [1.0, 2.0, -3.0]))
    assert dg.effective_rank(C) == pytest.approx(1)
    assert_allclose(dg.redundancy_ratio(C), [0, 1, 1])
    C = dg.tree_covariance(np.full((64, 3), np.float32(0.1)))
    assert dg.effective_rank(C) == 0
    assert_allclose(dg.redundancy_ratio(C), 1)
    assert_allclose(dg.energy_by_component(C), 0)
    assert np.isnan(dg.tree_correlation(C)).all()
    assert np.isnan(dg.mean_of_pairs(np.eye(1)))


def test_independent_noise_has_the_expected_redundancy():
    n, T = 400, 40
    ratio = np.mean(
        [dg.redundancy_ratio(dg.tree_covariance(np.random.default_rng(s).normal(size=(n, T)))) for s in range(50)],
        axis=0,
    )
    assert_allclose(ratio, np.arange(T) / (n - 1), atol=0.012)


def binary(n=300):
    return make_classification(n, 6, n_informative=4, n_redundant=0, random_state=0)


def test_report_numbers_are_the_measures():
    X, y = binary()
    model = GradientBoostingClassifier(n_estimators=12, random_state=0).fit(X[:150], y[:150])
    X, y = X[150:], y[150:]
    report = dg.redundancy_report(model, X, y)
    trees = tree_matrix(model, X)
    right = (trees.H > 0) == (y == 1)[:, None]
    assert report.n_trees == 12
    assert report.library == "sklearn"
    assert report.disagreement == pytest.approx(dg.mean_of_pairs(dg.pairwise_disagreement(trees.votes())))
    assert report.double_fault == pytest.approx(dg.mean_of_pairs(dg.double_fault(right)))
    assert report.tree_score == pytest.approx(right.mean())
    assert report.ensemble_score == pytest.approx(model.score(X, y))
    staged = [np.mean(p == y) for p in model.staged_predict(X)]
    assert_allclose(report.truncation, staged)
    for text in (str(report), report._repr_html_()):
        assert "effective rank" in text
        assert "GradientBoostingClassifier" in text
        assert f"{report.ensemble_score:.4f}" in text
    assert "Q-statistic" not in str(dg.redundancy_report(model, X))


def test_report_of_many_classes_is_the_mean_over_classes():
    X, y = make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)
    labels = np.array(["c", "a", "b"])[y]
    model = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X, labels)
    report = dg.redundancy_report(model, X, labels)
    trees = tree_matrix(model, X)
    ranks = [dg.effective_rank(dg.tree_covariance(trees.output(k).H)) for k in range(3)]
    assert report.effective_rank == pytest.approx(np.mean(ranks))
    assert report.ensemble_score == pytest.approx(model.score(X, labels))
    assert "x 3 outputs" in render.title(report)


@pytest.mark.parametrize("Model", [GradientBoostingRegressor, RandomForestRegressor, AdaBoostRegressor])
def test_regression_votes_are_relative_to_the_base_score(Model):
    X, y = make_regression(200, 5, random_state=0)
    y += 1000
    model = Model(n_estimators=5, random_state=0).fit(X, y)
    report = dg.redundancy_report(model, X, y)
    assert report.score_name == "R2"
    assert report.tree_score > 0.7  # around zero instead of the base every target would be on one side
    assert 0 < report.disagreement < 0.5


def test_truncated_forest_is_the_average_of_its_first_trees():
    X, y = binary()
    model = RandomForestClassifier(n_estimators=6, random_state=0).fit(X[:150], y[:150])
    path = dg.truncation_path(tree_matrix(model, X), y)
    first = np.mean([tree.predict_proba(X)[:, 1] for tree in model.estimators_[:3]], axis=0)
    assert path[2] == pytest.approx(np.mean((first > 0.5) == y))


def test_degenerate_ensembles_have_defined_values():
    X, y = binary()
    single = dg.redundancy_report(GradientBoostingClassifier(n_estimators=1).fit(X, y), X, y)
    assert single.effective_rank == pytest.approx(1)
    assert single.redundancy_ratio.tolist() == [0]
    assert np.isnan(single.disagreement)
    assert "undefined" in str(single)
    constant = GradientBoostingClassifier(n_estimators=3, min_samples_leaf=200).fit(X, y)
    report = dg.redundancy_report(constant, X, y)
    assert report.effective_rank == 0
    assert report.redundancy_ratio.tolist() == [1, 1, 1]
    assert report.disagreement == 0
    assert np.isnan(report.correlation)
    assert np.isfinite(dg.redundancy_report(constant, X[y == 1], y[y == 1]).double_fault)


@pytest.mark.parametrize("K", [1, 3])
def test_shared_intermediate_results_are_computed_once(K, monkeypatch):
    X, y = make_classification(300, 6, n_informative=4, n_classes=max(K, 2), random_state=0)
    model = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X, y)
    calls = Counter()

    def count(module, name):
        function = getattr(module, name)

        def counted(*arguments, **options):
            calls[name] += 1
            return function(*arguments, **options)

        monkeypatch.setattr(module, name, counted)

    for name in ("_gram", "tree_correlation", "redundancy_ratio", "energy_by_component"):
        count(measures, name)
    count(measures.linalg, "eigvalsh")
    dg.redundancy_report(model, X, y)
    # One Gram matrix of values and one of votes an output; correlations of values, of votes, and within two measures.
    assert calls.pop("tree_correlation") == 4 * K
    assert calls == {"_gram": 2 * K, "redundancy_ratio": K, "energy_by_component": K, "eigvalsh": K}


@settings(deadline=None, max_examples=25)
@given(seeds)
def test_correct_votes_have_the_gram_matrix_of_votes(seed):
    votes = random_votes(seed)
    right = np.random.default_rng(seed).random(len(votes)) < 0.5
    correct = (votes > 0) == right[:, None]
    gram = dg.vote_gram(votes)
    assert_allclose(dg.vote_gram(correct), gram, atol=1e-7)
    assert_allclose(dg.double_fault(correct, gram=gram), dg.double_fault(correct), atol=1e-15)
    assert_allclose(dg.q_statistic(correct, gram=gram), dg.q_statistic(correct))


def test_redundancy_is_the_mean_share_in_the_span_of_earlier_trees():
    X, y = binary()
    report = dg.redundancy_report(GradientBoostingClassifier(n_estimators=9, random_state=0).fit(X, y), X)
    assert report.redundancy == pytest.approx(report.redundancy_ratio.mean())
    assert f"redundancy {report.redundancy:>26.3f}" in str(report)


def test_too_few_samples_per_tree_are_warned_about():
    X, y = binary()
    model = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X, y)
    with pytest.warns(
        UserWarning, match=r"50 samples are too few for 20 trees: .* about 19 %. Use at least 96 samples"
    ):
        dg.redundancy_report(model, X[:50], y[:50])
    dg.redundancy_report(model, X[:96], y[:96])  # a warning would be an error


def test_targets_must_be_finite():
    X, y = make_regression(200, 5, random_state=0)
    model = GradientBoostingRegressor(n_estimators=3).fit(X, y)
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match=f"y must be finite, got {bad}"):
            dg.redundancy_report(model, X, np.where(np.arange(200) == 7, bad, y))


def test_targets_of_wrong_length_or_unseen_labels_are_refused():
    X, y = binary()
    model = GradientBoostingClassifier(n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match=r"y must have shape \(300,\)"):
        dg.redundancy_report(model, X, y[:10])
    with pytest.raises(ValueError, match=r"label [78], which is not a class of the model \(0, 1\)"):
        dg.redundancy_report(model, X, y + 7)


def measures_of_all_samples(model, X, y):
    """Return the numbers of a report by the public measures, from the tree matrix of all samples."""
    trees = tree_matrix(model, X)
    K = trees.n_outputs
    right = None if y is None else dg.correct_votes(trees, y)
    found = []
    for k in range(K):
        output = trees.output(k)
        C, votes, w = dg.tree_covariance(output.H), output.votes(), output.column_weights
        spread = dg.ambiguity(output.H, w, output.intercept).ambiguity
        around = spread + np.mean((output.margin() - output.base()) ** 2)
        numbers = {
            "redundancy": dg.redundancy_ratio(C).mean(),
            "disagreement": dg.mean_of_pairs(dg.pairwise_disagreement(votes)),
            "vote_correlation": dg.mean_of_pairs(dg.vote_correlation(votes)),
            "correlation": dg.mean_of_pairs(dg.tree_correlation(C)),
            "ambiguity": spread,
            "ambiguity_share": spread / around if around > 0 else 0,
            "effective_rank": dg.effective_rank(C),
            "energy": dg.energy_by_component(C),
            "spectrum": dg.singular_spectrum(C),
            "redundancy_ratio": dg.redundancy_ratio(C),
            "innovation": dg.innovation(C) * w**2,
            "correlations": dg.tree_correlation(C),
        }
        if right is not None:
            own = right[:, k::K]
            numbers["q_statistic"] = dg.mean_of_pairs(dg.q_statistic(own))
            numbers["double_fault"] = dg.mean_of_pairs(dg.double_fault(own))
            numbers["tree_score"] = own.mean()
        found.append(numbers)
    mean = {name: np.mean([numbers[name] for numbers in found], axis=0) for name in found[0]}
    return mean if y is None else mean | {"truncation": dg.truncation_path(trees, y)}


def assert_same_report(report, expected):
    """Compare the numbers that are expected to 1e-9, and the rest not at all."""
    found = asdict(report)
    for name, value in expected.items():
        if isinstance(value, str) or value is None:
            assert found[name] == value
        else:
            assert_allclose(found[name], value, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("with_y", [True, False])
@pytest.mark.parametrize(
    ("model", "n_classes"),
    [
        (GradientBoostingClassifier(n_estimators=12, random_state=0), 2),
        (GradientBoostingClassifier(n_estimators=6, random_state=0), 3),
        (GradientBoostingRegressor(n_estimators=12, random_state=0), 0),
        (RandomForestClassifier(n_estimators=8, random_state=0), 2),
        (RandomForestClassifier(n_estimators=8, random_state=0), 3),
        (RandomForestRegressor(n_estimators=8, random_state=0), 0),
        (AdaBoostClassifier(n_estimators=8, random_state=0), 2),
        (GradientBoostingClassifier(n_estimators=1, random_state=0), 2),
        (GradientBoostingClassifier(n_estimators=3, min_samples_leaf=301, random_state=0), 2),  # constant trees
        (RandomForestRegressor(n_estimators=3, min_samples_leaf=301, random_state=0), 0),
    ],
    ids=lambda value: f"{type(value).__name__}-{value.n_estimators}" if hasattr(value, "fit") else str(value),
)
def test_batches_give_the_report_of_all_samples(model, n_classes, with_y):
    if n_classes:
        X, y = make_classification(600, 6, n_informative=4, n_classes=n_classes, random_state=0)
        order = np.argsort(y, kind="stable")  # batches with one class only
        X, y = X[order], np.array(["c", "a", "b"])[y[order]]
    else:
        X, y = make_regression(600, 5, noise=20, random_state=0)
        y += 1e4
    model.fit(X[::2], y[::2])
    X, y = X[1::2], y[1::2] if with_y else None
    expected = measures_of_all_samples(model, X, y)
    whole = dg.redundancy_report(model, X, y)
    assert_same_report(whole, expected)
    for n_batches in (1, 3, 7):
        rows = np.array_split(np.arange(len(X)), n_batches)
        rows.insert(1, rows[0][:0])  # an empty batch
        report = dg.redundancy_report(model, (X[i] if y is None else (X[i], y[i]) for i in rows), name=whole.model_name)
        assert_same_report(report, asdict(whole))
        assert_same_report(report, expected)


def test_reports_of_many_blocks_equal_the_measures_of_all_samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    y = X[:, 0] + rng.normal(size=len(X)) + 1e7
    model = GradientBoostingRegressor(n_estimators=4, max_depth=2).fit(X[:500], y[:500])
    report = dg.redundancy_report(model, X, y)
    assert_same_report(report, measures_of_all_samples(model, X, y))
    assert report.ensemble_score == pytest.approx(model.score(X, y), abs=1e-9)
    assert report.n_samples == 20_000
    with pytest.raises(ValueError, match=r"y must have shape \(20000,\)"):
        dg.redundancy_report(model, X, y[:-1])


def test_r2_of_a_constant_target_is_undefined():
    X, y = make_regression(210, 5, random_state=0)
    model = GradientBoostingRegressor(n_estimators=3).fit(X, y)
    same = np.full(70, 0.1)
    assert np.isnan(dg.redundancy_report(model, X, np.full(210, 0.1)).ensemble_score)
    batches = ((X[i : i + 70], same) for i in range(0, 210, 70))
    assert np.isnan(dg.redundancy_report(model, batches).ensemble_score)


def test_trees_that_vary_by_rounding_error_are_constant():
    X, y = binary()
    trees = tree_matrix(GradientBoostingClassifier(n_estimators=4).fit(X, y), X)
    above = np.nextafter(np.float32(1000), np.float32(2000))
    H = np.repeat(np.where(np.arange(300) < 130, np.float32(1000), above)[:, None], 4, axis=1)
    for size in (300, 100, 7):
        parts = [Statistics.of_block(replace(trees, H=H[i : i + size])) for i in range(0, 300, size)]
        report = make_report(combine(parts), "constant")
        assert report.effective_rank == 0
        assert report.redundancy == 1


def test_malformed_batches_are_refused():
    X, y = binary()
    model = GradientBoostingClassifier(n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match="y cannot be given with an iterator X"):
        dg.redundancy_report(model, iter([X]), y)
    with pytest.raises(ValueError, match=r"pair \(X, y\), got a tuple of 3"):
        dg.redundancy_report(model, iter([(X, y, y)]))
    with pytest.raises(ValueError, match="Some batches have a y and others do not"):
        dg.redundancy_report(model, iter([(X, y), X]))
    with pytest.raises(ValueError, match=r"y must have shape \(300,\)"):
        dg.redundancy_report(model, iter([(X, y[:9])]))
    with pytest.raises(ValueError, match="X has 5 features"):
        dg.redundancy_report(model, iter([X, X[:, 1:]]))
    for empty in (iter([]), iter([X[:0]]), X[:0]):
        with pytest.raises(ValueError, match="X must have at least one sample"):
            dg.redundancy_report(model, empty)


@pytest.mark.parametrize(
    ("labels", "bad", "message"),
    [
        ([0, 1], [0, "a"], r"label '0'|label 'a'"),
        ([0, 1], np.array([0, "a"], dtype=object), "label 'a'"),
        (["a", "b"], np.array(["a", None], dtype=object), "missing label \\(None\\)"),
        (["a", "b"], np.array(["a", 1.5], dtype=object), "label 1.5"),
        (["a", "b"], np.array(["a", np.nan], dtype=object), "missing label \\(nan\\)"),
        ([0, 1], [0.0, np.nan], "missing label \\(nan\\)"),
        (["a", "b"], [0, 1], "label [01], which is not"),
        (["a", "b"], ["a", "c"], "label 'c', which is not a class of the model \\('a', 'b'\\)"),
        ([0, 1], np.array([0, [1]], dtype=object), "label \\[1\\]"),
    ],
)
def test_mixed_missing_and_unseen_labels_are_refused_by_name(labels, bad, message):
    X, y = binary(100)
    model = GradientBoostingClassifier(n_estimators=3).fit(X, np.array(labels)[y])
    y_bad = np.asarray(bad)[y]
    for tool in (
        dg.redundancy_report,
        dg.reweight,
        dg.report,
        dg.frontier,
        lambda *data: dg.prune(*data, max_trees=2),
    ):
        with pytest.raises(ValueError, match=message):
            tool(model, X, y_bad)


def test_labels_of_object_arrays_and_other_orders_are_encoded():
    X, y = binary(100)
    names = np.array(["b", "a"])
    model = GradientBoostingClassifier(n_estimators=3).fit(X, names[y])
    as_text = dg.redundancy_report(model, X, names[y])
    as_objects = dg.redundancy_report(model, X, names.astype(object)[y])
    assert as_text.ensemble_score == as_objects.ensemble_score == pytest.approx(model.score(X, names[y]))
    of_numbers = GradientBoostingClassifier(n_estimators=3).fit(X, y)
    expected = dg.redundancy_report(of_numbers, X, y).ensemble_score
    for same in (y.astype(bool), y.astype(float), y.astype(object)):
        assert dg.redundancy_report(of_numbers, X, same).ensemble_score == expected


def test_text_targets_of_a_regression_model_are_refused():
    X, y = make_regression(60, 5, random_state=0)
    model = GradientBoostingRegressor(n_estimators=3).fit(X, y)
    with pytest.raises(ValueError, match="y must hold numbers for a regression model, got 'low'"):
        dg.redundancy_report(model, X, np.where(y > 0, "1.5", "low"))


def test_the_verdict_comes_first():
    X, y = binary()
    report = dg.redundancy_report(GradientBoostingClassifier(n_estimators=9, random_state=0).fit(X, y), X, y)
    first = int(np.argmax(report.truncation >= report.ensemble_score)) + 1
    assert str(report).splitlines()[0] == report.verdict
    assert f"{100 * report.redundancy:.0f} % of the variance" in report.verdict
    assert f"first {first} of 9 trees reach the accuracy {report.ensemble_score:.3f}" in report.verdict
    assert report._repr_html_().startswith(f"<p><b>{report.verdict}</b></p>")
    without_y = dg.redundancy_report(GradientBoostingClassifier(n_estimators=9, random_state=0).fit(X, y), X)
    assert f"{without_y.n_components_90} of 9 components" in without_y.verdict
    explained = np.cumsum(without_y.energy)
    assert explained[without_y.n_components_90 - 1] >= 0.9 > explained[without_y.n_components_90 - 2]


def test_redundancy_of_many_trees_is_the_r2_of_their_regressions():
    rng = np.random.default_rng(3)
    H = rng.normal(size=(400, 150)) @ rng.normal(size=(150, 150))
    H[:, 70] = H[:, 3] + 2 * H[:, 65]
    ratio = dg.redundancy_ratio(dg.tree_covariance(H))
    centred = H - H.mean(axis=0)
    for t in (1, 63, 64, 70, 100, 149):
        coefficients = np.linalg.lstsq(centred[:, :t], centred[:, t], rcond=1e-12)[0]
        rest = centred[:, t] - centred[:, :t] @ coefficients
        assert_allclose(ratio[t], 1 - (rest @ rest) / (centred[:, t] @ centred[:, t]), atol=1e-7)
