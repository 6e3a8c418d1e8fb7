"""Parts of compress: families, the joint fit of all leaves, synthetic samples, trees, teachers, certificates."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import scboost
from scboost._compress.backfitting import backfit
from scboost._compress.certificate import certify, clopper_pearson, upper_mean_bound
from scboost._compress.compression import Search
from scboost._compress.factor import LeafFactor, cholesky_above
from scboost._compress.families import FAMILIES
from scboost._compress.grower import EngineGrower, Settings
from scboost._compress.growth import grow
from scboost._compress.leaves import JointFit, Leaves
from scboost._compress.samples import Samples
from scboost._compress.student import Problem, Student
from scboost._compress.synthetic import Munge
from scboost._compress.teachers import read_teacher
from scboost._compress.trees import apply_tree, apply_trees, leaf_nodes, split_features
from scboost._model.document import Document

N_OUTPUTS = {"identity": 2, "logit": 1, "softmax": 4, "log": 1}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def mixed_table(n, rng):
    """Numbers, integers, categories, missing values, a feature with a frequent value and two correlated ones."""
    x = rng.standard_normal(n)
    return pd.DataFrame(
        {
            "number": x,
            "correlated": x + 0.1 * rng.standard_normal(n),
            "integer": rng.integers(0, 50, n),
            "zeros": np.where(rng.random(n) < 0.6, 0.0, rng.exponential(size=n)),
            "colour": rng.choice(["red", "green", "blue"], n),
            "missing": np.where(rng.random(n) < 0.2, np.nan, rng.standard_normal(n)),
        }
    )


# --- families --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", FAMILIES)
def test_mean_and_hessian_are_derivatives_of_the_log_partition(link, rng):
    family, K = FAMILIES[link](), N_OUTPUTS[link]
    raw, direction = rng.standard_normal((2, K, 7))
    step = 1e-5
    ahead, behind = raw + step * direction, raw - step * direction
    slope = (family.log_partition(ahead) - family.log_partition(behind)) / (2 * step)
    assert np.allclose(slope, (family.mean(raw) * direction).sum(axis=0), atol=1e-8)
    curved = (family.mean(ahead) - family.mean(behind)) / (2 * step)
    assert np.allclose(curved, family.curve(family.mean(raw), direction), atol=1e-5)


@pytest.mark.parametrize("link", FAMILIES)
def test_the_bound_of_the_hessian_holds_in_all_directions(link, rng):
    family, K = FAMILIES[link](), N_OUTPUTS[link]
    mean = family.mean(3 * rng.standard_normal((K, 5000)))
    opposite = np.zeros((K, 5000))
    opposite[0] = 1.0
    opposite[-1] -= K > 1  # two classes against each other, which the diagonal of the Hessian alone does not bound
    for direction in (rng.standard_normal((K, 5000)), opposite):
        curved = (direction * family.curve(mean, direction)).sum(axis=0)
        assert np.all(curved <= (direction**2 * family.bound(family.hessian(mean))).sum(axis=0) + 1e-5)
    if link == "softmax":
        assert np.any(curved > (direction**2 * family.hessian(mean)).sum(axis=0))


@pytest.mark.parametrize("link", FAMILIES)
def test_divergence_is_zero_at_the_teacher_and_locally_half_the_squared_distance_in_the_hessian(link, rng):
    family, K = FAMILIES[link](), N_OUTPUTS[link]
    raw, direction = rng.standard_normal((2, K, 7))
    assert np.allclose(family.divergence(raw, raw), 0, atol=1e-15)
    step = 1e-3
    local = (direction * family.curve(family.mean(raw), direction)).sum(axis=0) * step**2 / 2
    assert np.allclose(family.divergence(raw + step * direction, raw), local, rtol=5e-3)


# --- joint fit -------------------------------------------------------------------------------------------------------


def joint_fit(link, rng, n=300, n_rounds=3, ridge=2.0):
    K = N_OUTPUTS[link]
    leaves = Leaves(K, n)
    for _ in range(n_rounds):
        for k in range(K):
            leaves.add(rng.integers(0, 6, n), 6, k)
    target = rng.standard_normal((K, n))
    weight = rng.random(n) + 0.5
    return JointFit(leaves, FAMILIES[link](), target, weight, rng.standard_normal(K), ridge)


def test_joint_fit_of_squared_error_is_ridge_regression(rng):
    fit = joint_fit("identity", rng)
    fit.refit(1e-10, 1)
    Z = np.concatenate([np.eye(6)[leaf] for leaf in fit.leaves.index], axis=1)
    for k in range(2):
        columns = np.concatenate([np.arange(6) + 6 * i for i in range(k, 6, 2)])
        A = Z[:, columns]
        right = A.T @ (fit.weight * (fit.target[k] - fit.intercept[k]))
        expected = np.linalg.solve(A.T @ (fit.weight[:, None] * A) + 2.0 * np.eye(18), right)
        assert np.allclose(fit.leaf_values[columns], expected, atol=1e-8)


@pytest.mark.parametrize("link", FAMILIES)
def test_residual_of_the_joint_fit_is_orthogonal_to_all_leaves(link, rng):
    fit = joint_fit(link, rng)
    fit.refit(1e-8, 50)
    assert fit.violation() < 1e-6
    residual, _ = fit.gradient_hessian()
    assert np.allclose(fit.leaves.sums(residual), fit.ridge * fit.leaf_values, atol=1e-6)


@pytest.mark.parametrize("link", FAMILIES)
def test_the_joint_fit_is_a_minimum(link, rng):
    fit = joint_fit(link, rng)
    fit.refit(1e-8, 50)
    best, values = fit.objective(), fit.leaf_values
    for _ in range(20):
        fit.leaf_values = values + 0.01 * rng.standard_normal(len(values))
        fit.scores = fit.leaves.scores(fit.leaf_values) + fit.intercept[:, None]
        assert fit.objective() >= best


@pytest.mark.parametrize("max_leaves", [100, 20])
def test_factor_solves_the_normal_equations_of_all_leaves_that_it_couples(max_leaves, rng):
    n, sizes = 200, [5, 7, 4, 6]
    weight = rng.random(n)
    factor = LeafFactor(weight, 0.5, max_leaves)
    blocks = []
    for size in sizes:
        leaf = rng.integers(0, size, n)
        factor.add(leaf, size)
        blocks.append(np.eye(size)[leaf])
    Z = np.concatenate(blocks, axis=1)
    normal = Z.T @ (weight[:, None] * Z) + 0.5 * np.eye(22)
    if max_leaves == 20:  # the last tree is alone
        normal[16:, :16] = normal[:16, 16:] = 0
    right = rng.standard_normal(22)
    assert np.allclose(normal @ factor.solve(right), right)


def test_a_sweep_fits_each_tree_to_what_the_others_leave(rng):
    one = joint_fit("identity", rng)
    fit = JointFit(one.leaves, one.family, one.target, one.weight, one.intercept, one.ridge)
    fit.sweep()
    for k in range(2):
        for i in (4 + k, 2 + k, k):
            residual = one.gradient_hessian()[0][k] + one.weight * one.leaf_values[6 * i :][one.leaves.index[i]]
            mass = one.leaves.sums(np.stack([one.weight] * 2))[6 * i : 6 * i + 6]
            one.leaf_values[6 * i : 6 * i + 6] = one.leaves.sums(np.stack([residual] * 2))[6 * i : 6 * i + 6] / (
                mass + one.ridge
            )
            one.scores = one.leaves.scores(one.leaf_values) + one.intercept[:, None]
    assert np.allclose(fit.leaf_values, one.leaf_values)
    assert np.allclose(fit.scores, one.scores)


@pytest.mark.parametrize("link", FAMILIES)
def test_sweeps_lower_the_objective_to_that_of_the_joint_fit(link, rng):
    fit = joint_fit(link, rng)
    exact = fit.of_trees(fit.leaves, fit.leaf_values)
    exact.refit(1e-8, 50)
    values = [fit.objective(), *(fit.sweep(20) for _ in range(200))]
    assert np.all(np.diff(values) <= 1e-12)
    assert values[-1] == pytest.approx(fit.objective())
    assert values[-1] == pytest.approx(exact.objective(), rel=1e-4)


@pytest.mark.parametrize("link", FAMILIES)
def test_a_restart_leaves_to_the_oldest_tree_what_trees_share(link, rng):
    one = joint_fit(link, rng, n=2000, n_rounds=2, ridge=0.1)
    leaves, K = one.leaves, one.leaves.n_outputs
    for k in range(K):
        leaves.add(leaves.index[k], 6, k)  # the trees of the first round again
    fit = JointFit(leaves, one.family, one.target, one.weight, one.intercept, one.ridge)
    fit.refit(1e-8, 50)
    scores, size = fit.scores, 6 * K
    first, last = (np.abs(fit.leaf_values[part]).mean() for part in (slice(size), slice(-size, None)))
    assert last == pytest.approx(first)  # the penalty is lowest if both have half of it
    fit.restart(5)
    first, last = (np.abs(fit.leaf_values[part]).mean() for part in (slice(size), slice(-size, None)))
    assert last < 0.1 * first
    assert np.allclose(fit.scores, fit.leaves.scores(fit.leaf_values) + fit.intercept[:, None])
    assert np.abs(fit.scores - scores).mean() < 0.05 * np.abs(scores - fit.intercept[:, None]).mean()


# --- growth ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", FAMILIES)
def test_every_tree_lowers_the_divergence_on_the_fitted_samples(link, rng):
    X = rng.standard_normal((1500, 4)).astype(np.float32)
    K = N_OUTPUTS[link]
    target = np.stack([np.sin(2 * X[:, k % 4]) + X[:, (k + 1) % 4] * X[:, 2] for k in range(K)]).astype(float)
    student, _ = grow(Problem(X, target), np.zeros(4, bool), FAMILIES[link](), Settings(6, 8))
    losses = [FAMILIES[link]().divergence(student.scores(X, t), target).mean() for t in range(1, 7)]
    assert np.all(np.diff(losses) < 0)


def test_students_of_values_grow_with_a_larger_ridge_and_those_of_classes_are_not_backfitted(rng):
    X, none = rng.uniform(-1, 1, (800, 5)).astype(np.float32), np.zeros(5, bool)
    target = (np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2])[None].astype(np.float64)
    fitting, validation = (Problem(X[part], target[:, part]) for part in (slice(400), slice(400, None)))
    ridges = {}
    for link in ("logit", "identity"):
        family = FAMILIES[link]()
        settings = Settings.of(fitting, family, 10, 8)
        student, fit = grow(fitting, none, family, settings, validation=validation)
        greedy, _ = grow(fitting, none, family, settings)
        assert np.array_equal(student.history[-1], greedy.history[-1]) == (link == "logit")
        assert student.n_rounds == 10
        ridges[link] = fit.ridge
    assert ridges["identity"] > ridges["logit"]


# --- backfitting -----------------------------------------------------------------------------------------------------


def grown(link, rng, n_rounds=5):
    """Return trees, their joint fit, the grower, and other samples of the teacher."""
    family, none, K = FAMILIES[link](), np.zeros(4, bool), N_OUTPUTS[link]
    X = rng.uniform(-1, 1, (4000, 4)).astype(np.float32)
    target = np.stack([np.sin(4 * X[:, k]) + 3 * X[:, k] * X[:, 3] for k in range(K)]).astype(float)
    problem, other = Problem(X[:2000], target[:, :2000]), Problem(X[2000:], target[:, 2000:])
    settings = Settings(n_rounds, 6)
    student, fit = grow(problem, none, family, settings)
    return student.trees, fit, EngineGrower(problem, none, settings, 1), other


def divergence_of(trees, fit, on):
    student = Student(trees, fit.intercept, [fit.leaf_values], fit.leaves.sizes)
    return fit.family.divergence(student.scores(on.X), on.target).mean()


@pytest.mark.parametrize("link", FAMILIES)
def test_backfitting_does_not_raise_the_divergence_on_validation_samples(link, rng):
    trees, fit, grower, validation = grown(link, rng)
    before = divergence_of(trees, fit, validation)
    new_trees, new_fit = backfit(trees, fit, grower, validation)
    assert len(new_trees) == len(trees)
    assert max(new_fit.leaves.sizes) <= 6
    assert new_trees is trees or divergence_of(new_trees, new_fit, validation) < before
    assert divergence_of(trees, fit, validation) == before  # what was given is as it was
    new_fit.refit(1e-8, 50)
    assert new_fit.violation() < 1e-6


def test_backfitting_that_does_not_help_on_validation_samples_is_not_kept(rng):
    trees, fit, grower, validation = grown("identity", rng)
    student = Student(trees, fit.intercept, [fit.leaf_values], fit.leaves.sizes)
    reproduced = replace(validation, target=student.scores(validation.X))
    same, same_fit = backfit(trees, fit, grower, reproduced)
    assert same is trees
    assert same_fit is fit


@pytest.mark.parametrize("n_rounds", [4, 20])
def test_backfitted_growth_is_better_on_validation_samples_and_keeps_smaller_models(n_rounds, rng):
    X = rng.uniform(-1, 1, (6000, 5)).astype(np.float32)
    f = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + X[:, 4]
    target = (f / f.std())[None].astype(np.float64)
    problem, validation = Problem(X[:3000], target[:, :3000]), Problem(X[3000:], target[:, 3000:])
    family, none = FAMILIES["identity"](), np.zeros(5, bool)
    settings = Settings.of(problem, family, n_rounds, 8)
    student, _ = grow(problem, none, family, settings, validation=validation)
    greedy, _ = grow(problem, none, family, settings)
    ours, theirs = (family.divergence(s.scores(validation.X), validation.target).mean() for s in (student, greedy))
    assert ours < theirs
    for t in range(1, n_rounds):
        assert np.array_equal(student.scores(validation.X, t), greedy.scores(validation.X, t))
        assert student.n_leaves(t) == greedy.n_leaves(t)
    assert student.n_leaves(n_rounds) == sum(student.sizes)
    for t in (2, n_rounds - 1):
        cut = student.truncated(t)
        assert cut.n_rounds == t
        assert np.array_equal(cut.scores(validation.X), student.scores(validation.X, t))
        assert np.array_equal(cut.scores(validation.X, 1), student.scores(validation.X, 1))


@pytest.mark.parametrize("link", FAMILIES)
def test_a_replaced_tree_leaves_a_fit_like_one_that_started_with_it(link, rng):
    fit = joint_fit(link, rng)
    fit.refit(1e-8, 50)
    values, K = fit.leaf_values.copy(), N_OUTPUTS[link]
    leaf = rng.integers(0, 4, 300)
    other = fit.without_values([K])
    other.replace_tree(K, leaf, 4)
    assert np.allclose(other.scores, other.leaves.scores(other.leaf_values) + other.intercept[:, None])
    assert np.array_equal(fit.leaf_values, values)
    index, sizes = list(fit.leaves.index), list(fit.leaves.sizes)
    index[K], sizes[K] = leaf, 4
    parts = zip(index, sizes, fit.leaves.outputs, strict=True)
    leaves = Leaves(K, 300)
    for part in parts:
        leaves.add(*part)
    fresh = JointFit(leaves, fit.family, fit.target, fit.weight, fit.intercept, fit.ridge)
    for one in (other, fresh):
        one.refit(1e-8, 50)
    assert np.allclose(other.leaf_values, fresh.leaf_values, atol=1e-6)


def test_growth_beats_boosting_of_the_same_size_by_squared_error(rng):
    import xgboost

    X = rng.uniform(-1, 1, (4000, 5)).astype(np.float32)
    f = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + X[:, 4]
    f = f / f.std()
    fitted, held = slice(0, 3000), slice(3000, None)
    settings = Settings(8, 16, ridge=0.1, min_child_weight=1.0)
    student, _ = grow(
        Problem(X[fitted], f[None, fitted].astype(float)), np.zeros(5, bool), FAMILIES["identity"](), settings
    )
    ours = np.mean((student.scores(X[held])[0] - f[held]) ** 2)
    for rate in (0.3, 0.5, 0.7, 1.0):
        other = xgboost.XGBRegressor(
            n_estimators=8, max_leaves=16, max_depth=0, grow_policy="lossguide", learning_rate=rate, n_jobs=1
        ).fit(X[fitted], f[fitted])
        assert ours < np.mean((other.predict(X[held]) - f[held]) ** 2)


# --- trees -----------------------------------------------------------------------------------------------------------


def test_leaves_are_those_that_xgboost_finds_for_categories_and_missing_values(rng):
    import xgboost

    table = mixed_table(800, rng).assign(colour=lambda t: t["colour"].astype("category"))
    y = table["number"].abs() + (table["colour"] == "red") + table["missing"].isna() + table["integer"] % 7
    model = xgboost.XGBRegressor(n_estimators=5, max_depth=6, enable_categorical=True, max_cat_to_onehot=1, n_jobs=1)
    model.fit(table, y)
    X = table.assign(colour=table["colour"].cat.codes).to_numpy(np.float32)
    expected = model.apply(table).astype(int)
    document = Document.of(model.get_booster())
    assert any(len(tree["categories"]) for tree in document.trees)
    for t, tree in enumerate(document.trees):
        assert np.array_equal(leaf_nodes(tree)[apply_tree(tree, X)], expected[:, t])


# --- synthetic samples -----------------------------------------------------------------------------------------------


def test_trees_split_on_the_given_features_only(rng):
    X = rng.standard_normal((800, 4)).astype(np.float32)
    X[:, 3] = rng.integers(5, size=800)
    target = (X[:, 0] + 0.5 * X[:, 1] + (X[:, 3] == 2))[None].astype(float)
    problem = Problem(X, target, features=np.array([1, 3]))
    student, _ = grow(problem, np.arange(4) == 3, FAMILIES["identity"](), Settings(5, 8))
    assert split_features(student.trees).tolist() == [1, 3]
    assert {tree["tree_param"]["num_feature"] for tree in student.trees} == {"4"}
    for tree in student.trees:
        by_category = tree["split_type"] == 1
        assert set(tree["split_indices"][by_category]) <= {3}
    assert np.corrcoef(student.scores(X)[0], target[0])[0, 1] > 0.5


def test_a_truncated_student_keeps_what_it_remembers(rng):
    X = rng.standard_normal((800, 4)).astype(np.float32)
    student, _ = grow(Problem(X, X[:, :2].T.astype(float)), np.zeros(4, bool), FAMILIES["identity"](), Settings(5, 8))
    cut = student.truncated(3)
    assert id(X) in cut._places
    assert np.array_equal(cut.leaves(X).index, list(apply_trees(cut.trees, X)))
    assert np.allclose(cut.scores(X), student.scores(X, 3))


def test_leaf_values_are_fitted_again_without_dropped_trees(rng):
    X = rng.standard_normal((3000, 4)).astype(np.float32)
    target = (2 * np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2])[None].astype(float)
    fitting, validation = (Problem(X[part], target[:, part]) for part in (slice(2500), slice(2500, None)))
    family = FAMILIES["logit"]()
    search = Search(fitting, validation, np.zeros(4, bool), family, 1)
    grown, _ = grow(fitting, np.zeros(4, bool), family, Settings.of(fitting, family, 8, 16))
    student, ridge = search.student(8, 16, lambda grown: grown.truncated(3))
    assert student.n_rounds == 3
    assert len(student.trees) == 3
    before = family.divergence(grown.scores(fitting.X, 3), fitting.target).mean()
    after = family.divergence(student.scores(fitting.X), fitting.target).mean()
    assert after < before
    assert ridge == 1.0


def test_synthetic_values_are_real_ones_except_for_values_that_occur_once(rng):
    samples = Samples.of(mixed_table(500, rng))
    drawn = samples.joined(Munge(samples.matrix, samples.categorical).draw(3000, rng))
    for j, name in enumerate(["number", "correlated", "integer", "zeros", "colour", "missing"]):
        real, new = samples.matrix[:, j], drawn.matrix[:, j]
        assert np.nanmin(real) <= np.nanmin(new) <= np.nanmax(new) <= np.nanmax(real)
        if name in {"integer", "colour"}:
            assert np.isin(new, real).all()
    zeros = drawn.matrix[:, 3]
    assert 0.4 < np.mean(zeros == 0) < 0.8
    assert not np.isin(zeros[zeros != 0], samples.matrix[:, 3]).all()
    assert np.isnan(drawn.matrix[:, 5]).any()
    assert not np.isnan(drawn.matrix[:, :5]).any()


def test_synthetic_samples_keep_correlations(rng):
    samples = Samples.of(mixed_table(1000, rng))
    drawn = Munge(samples.matrix, samples.categorical).draw(5000, rng).values(samples.matrix)
    assert np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1] > 0.9


def test_synthetic_samples_start_from_the_given_samples(rng):
    X = rng.standard_normal((200, 3))
    draw = Munge(X, np.zeros(3, bool), swap_probability=0.0).draw(50, rng, among=np.arange(10, 20))
    assert np.isin(draw.donor, np.arange(10, 20)).all()
    assert not draw.noise.any()


@pytest.mark.parametrize("n", [2, 3, 30])
def test_synthetic_samples_of_few_or_equal_samples(n, rng):
    X = np.repeat([[1.0, np.nan]], n, axis=0)
    values = Munge(X, np.zeros(2, bool)).draw(40, rng).values(X)
    assert np.array_equal(values, np.repeat(X[:1], 40, axis=0), equal_nan=True)


@pytest.mark.parametrize(
    "convert", [lambda t: t, pl.from_pandas, lambda t: pa.Table.from_pandas(t, preserve_index=False)]
)
def test_synthetic_tables_have_the_values_of_their_codes(convert, rng):
    samples = Samples.of(convert(mixed_table(300, rng)))
    drawn = samples.joined(Munge(samples.matrix, samples.categorical).draw(700, rng))
    assert type(drawn.X) is type(samples.X)
    if isinstance(drawn.X, pd.DataFrame):
        assert drawn.X.dtypes.equals(samples.X.dtypes)
    again = samples.like(drawn.X, "drawn")
    assert np.array_equal(again.matrix, drawn.matrix, equal_nan=True)


def test_tables_may_have_numbers_as_column_names(rng):
    samples = Samples.of(pd.DataFrame(rng.standard_normal((100, 3))))
    drawn = samples.take(np.arange(50)).joined(Munge(samples.matrix[:50], samples.categorical).draw(70, rng))
    assert drawn.X.columns.tolist() == [0, 1, 2]
    assert np.array_equal(drawn.X.to_numpy(), drawn.matrix)


def test_synthetic_arrays_keep_their_type(rng):
    X = rng.integers(0, 9, (100, 3)).astype(np.int32)
    samples = Samples.of(X)
    drawn = samples.joined(Munge(samples.matrix, samples.categorical).draw(50, rng))
    assert drawn.X.dtype == np.int32
    assert np.array_equal(drawn.X, drawn.matrix)


# --- teachers --------------------------------------------------------------------------------------------------------


def teachers():
    import catboost
    import lightgbm
    import xgboost

    return {
        "xgboost": (xgboost.XGBClassifier(n_estimators=10, n_jobs=1), lambda m, X: m.predict(X, output_margin=True)),
        "lightgbm": (
            lightgbm.LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1),
            lambda m, X: m.predict(X, raw_score=True),
        ),
        "catboost": (
            catboost.CatBoostClassifier(iterations=10, verbose=0, thread_count=1, allow_writing_files=False),
            lambda m, X: m.predict(X, prediction_type="RawFormulaVal"),
        ),
        "hist": (HistGradientBoostingClassifier(max_iter=10), lambda m, X: m.decision_function(X)),
        "logistic": (make_pipeline(StandardScaler(), LogisticRegression()), lambda m, X: m.decision_function(X)),
        "svm": (LinearSVC(), lambda m, X: m.decision_function(X)),
        "scboost": (scboost.SCBoostClassifier(n_estimators=10, n_jobs=1), lambda m, X: m.decision_function(X)),
    }


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", teachers())
def test_raw_scores_are_those_of_the_library(name, n_classes):
    X, y = make_classification(300, 6, n_informative=4, n_classes=n_classes, random_state=0)
    model, raw = teachers()[name]
    labels = np.array(["a", "b", "c"])[y]
    model.fit(X, y if name == "xgboost" else labels)
    teacher = read_teacher(model, X[:2], None, "auto")
    expected = np.atleast_2d(np.asarray(raw(model, X), float).T)
    found = teacher.raw(X)
    if n_classes > 2:  # only differences count
        assert teacher.family.link == "softmax"
        found, expected = found - found.mean(axis=0), expected - expected.mean(axis=0)
    assert np.allclose(found, expected, atol=2e-3)
    assert teacher.classes.tolist() == (list(range(n_classes)) if name == "xgboost" else ["a", "b", "c"][:n_classes])


def test_forest_probabilities_of_zero_become_finite_log_odds():
    X, y = make_classification(200, 5, random_state=0)
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    raw = read_teacher(forest, X[:2], None, "auto").raw(X)
    assert np.isfinite(raw).all()
    assert np.array_equal(raw[0] > 0, forest.predict(X) == 1)


def test_boosters_are_read_by_the_diagnostics():
    import lightgbm
    import xgboost

    X, y = make_classification(200, 5, random_state=0)
    booster = xgboost.train({"objective": "binary:logistic", "nthread": 1}, xgboost.DMatrix(X, y), 5)
    teacher = read_teacher(booster, X[:2], None, "auto")
    assert np.allclose(teacher.raw(X)[0], booster.inplace_predict(X, predict_type="margin"), atol=1e-5)
    assert teacher.classes.tolist() == [0, 1]
    booster = lightgbm.train({"objective": "regression", "num_threads": 1, "verbose": -1}, lightgbm.Dataset(X, y), 5)
    teacher = read_teacher(booster, X[:2], None, "auto")
    assert np.allclose(teacher.raw(X)[0], booster.predict(X), atol=1e-5)
    assert teacher.classes is None


def test_regressors_of_counts_are_read_on_the_log_scale():
    X, y = make_regression(200, 4, random_state=0)
    counts = np.round(np.exp(y / y.std()))
    model = HistGradientBoostingRegressor(loss="poisson", max_iter=5).fit(X, counts)
    teacher = read_teacher(model, X[:2], None, "auto")
    assert teacher.family.link == "log"
    assert np.allclose(np.exp(teacher.raw(X)[0]), model.predict(X))
    plain = HistGradientBoostingRegressor(max_iter=5).fit(X, y)
    assert read_teacher(plain, X[:2], None, "auto").family.link == "identity"
    with pytest.raises(ValueError, match="positive predictions"):
        read_teacher(plain, X[:2], None, "log").raw(X)


def test_functions_need_a_link():
    X = np.zeros((2, 3))
    with pytest.raises(ValueError, match="link='logit'"):
        read_teacher(lambda X: X[:, 0], X, None, "auto")
    with pytest.raises(ValueError, match="one score a sample, the function returns 3"):
        read_teacher(lambda X: X, X, None, "logit")
    with pytest.raises(ValueError, match="3 or more classes"):
        read_teacher(lambda X: X[:, 0], X, None, "softmax")
    assert read_teacher(lambda X: X, X, None, "softmax").classes.tolist() == [0, 1, 2]
    assert read_teacher(lambda X: X[:, 0], X, ["no", "yes"], "logit").classes.tolist() == ["no", "yes"]
    with pytest.raises(TypeError, match="compress needs a fitted estimator"):
        read_teacher(3, X, None, "auto")
    with pytest.raises(ValueError, match="link='probit' must be"):
        read_teacher(lambda X: X[:, 0], X, None, "probit")


def test_a_link_that_contradicts_the_model_is_refused():
    X, y = make_classification(100, 5, random_state=0)
    model = MLPClassifier((4,), max_iter=5, solver="lbfgs", random_state=0)
    with pytest.warns(match="converge"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="contradicts the model, whose link is 'logit'"):
        read_teacher(model, X[:2], None, "identity")


# --- certificates ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.5, 0.9, 0.97, 0.999])
@pytest.mark.parametrize("n", [10, 59, 200])
def test_clopper_pearson_covers_with_at_least_the_confidence_stated(n, p):
    hits = np.arange(n + 1)
    covered = np.array([clopper_pearson(k, n, 0.95) <= p for k in hits])
    assert stats.binom.pmf(hits, n, p) @ covered >= 0.95


def test_clopper_pearson_is_the_exact_test_inverted():
    bound = clopper_pearson(95, 100, 0.95)
    assert stats.binom.sf(94, 100, bound) == pytest.approx(0.05)


@pytest.mark.parametrize("draw", ["uniform", "skewed", "rare", "two values"])
def test_upper_bounds_of_means_cover_with_the_confidence_stated(draw):
    """Student's t covers 0.63 of the rare ones: most samples have none of them."""
    rng = np.random.default_rng(1)
    samples = {
        "uniform": (lambda: rng.uniform(-1, 1, 300), 1.0, 0.0),
        "skewed": (lambda: np.minimum(rng.exponential(size=300) ** 2, 30), 30.0, 1.924),
        "rare": (lambda: np.where(rng.random(300) < 1 / 300, 5.0, 0.0), 5.0, 5 / 300),
        "two values": (lambda: np.where(rng.random(300) < 0.5, 1.0, -1.0), 1.0, 0.0),
    }
    make, largest, mean = samples[draw]
    covered = np.mean([upper_mean_bound(make(), largest, 0.95) >= mean for _ in range(1000)])
    assert covered >= 0.95


def test_upper_bounds_of_means_tighten_with_the_number_of_samples():
    rng = np.random.default_rng(0)
    bounds = [upper_mean_bound(rng.uniform(-1, 1, n), 1.0, 0.95) for n in (100, 1000, 10_000)]
    assert bounds[0] > bounds[1] > bounds[2]
    assert bounds[2] < 0.02


def test_certificate_text_states_its_bounds():
    same = np.arange(1000) >= 12
    certificate = certify(same, np.full(1000, 0.01), np.linspace(-0.01, 0.02, 1000), 0.95, (0.01, 0.02))
    assert certificate.agreement == 0.988
    assert str(certificate) == (
        "At least 98.0 % of samples like these get the same label (95 % confidence).\n"
        "The mean loss rises by at most 0.00567 (95 % confidence)."
    )
    lower = certify(same, np.full(1000, 0.01), np.linspace(-0.02, 0.01, 1000), 0.95, (0.01, 0.01))
    assert str(lower).endswith("The mean loss falls by at least 0.00433 (95 % confidence).")
    assert "root mean squared difference on samples like these is at most 0.142" in str(
        certify(None, np.full(10, 0.01), None, 0.9, (0.01, 0.0))
    )


def test_a_factor_in_single_precision_is_close_enough_for_a_preconditioner(rng):
    n = 5000
    exact, single = (LeafFactor(np.full(n, 0.2), 3.0, dtype=dtype) for dtype in (np.float64, np.float32))
    for size in (60, 40, 50):
        leaf = rng.integers(0, size, n)
        exact.add(leaf, size)
        single.add(leaf, size)
    right = rng.standard_normal(150)
    assert np.allclose(single.solve(right), exact.solve(right), rtol=1e-3, atol=1e-4)


def test_a_matrix_without_a_cholesky_factor_gets_that_of_the_nearest_one(rng):
    Q = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    matrix = Q * [3.0, 2.0, 1.0, 1e-9, -1e-9] @ Q.T
    factor = cholesky_above(matrix, 0.5)
    assert np.allclose(factor, np.tril(factor))
    assert np.allclose(factor @ factor.T, Q * [3.0, 2.0, 1.0, 0.5, 0.5] @ Q.T)


def test_one_advance_of_the_squared_error_is_the_joint_fit(rng):
    one, other = (joint_fit("identity", np.random.default_rng(1)) for _ in range(2))
    one.advance()
    other.refit(1e-10, 1)
    assert np.allclose(one.leaf_values, other.leaf_values, rtol=1e-3, atol=1e-4)


def test_both_ways_to_find_leaves_agree(rng, monkeypatch):
    import scboost._compress.trees as trees_module

    X = np.where(rng.random((500, 4)) < 0.1, np.nan, rng.standard_normal((500, 4))).astype(np.float32)
    problem = Problem(X, np.nan_to_num(X[:, :1] * X[:, 1:2]).T.astype(np.float64))
    student, _ = grow(problem, np.zeros(4, dtype=bool), FAMILIES["identity"](), Settings(3, 12))
    found = list(trees_module.apply_trees(student.trees, X))
    monkeypatch.setattr(trees_module, "is_available", lambda: False)
    for one, other in zip(found, trees_module.apply_trees(student.trees, X), strict=True):
        assert np.array_equal(one, other)
