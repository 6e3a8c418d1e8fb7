"""The loop: what it is in its corners (plain Newton boosting, matching pursuit), how it stops and how it resumes."""

import itertools
import threading
from dataclasses import replace

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from data_makers import real_target, three_classes, two_classes
from scboost._core.history import History
from scboost._core.loop import Boosting, Settings, initial_state
from scboost._core.losses import LogisticLoss, SoftmaxLoss, SquaredLoss
from scboost._core.sampling import Draws
from scboost._core.stopping import StopReason
from scboost._data.hashing import row_keys
from scboost._engine.estimator import EstimatorEngine
from scboost._engine.leaf_sums import leaf_sums
from scboost._engine.xgboost.engine import XGBoostEngine
from scboost._model import ubjson
from scboost._runtime import threads as threads_module
from scboost._runtime.context import Context
from scboost._runtime.threads import SERIAL, Threads

PLAIN = Settings(eta=0.3, alpha=0.9, gamma=0.0, memory=None, leaf_rule="newton", l2=1.0, subsample=1.0, nu=0.0, seed=0)
PAPER = Settings(eta=0.1, alpha=0.9, gamma=1.0, memory=None, leaf_rule="mean", l2=0.0, subsample=1.0, nu=0.0, seed=0)
PARAMS = {"max_depth": 4, "lambda": 1.0, "min_child_weight": 1.0}


def run(loss, X, y, settings, rounds, *, engine=None, weight=None, intercept=None):
    """Rounds of the loop and the state it ended in."""
    engine = engine or XGBoostEngine(X, loss.n_outputs, PARAMS)
    y = np.asarray(y, dtype=engine.dtype)
    intercept = np.zeros(loss.n_outputs) if intercept is None else intercept
    state = initial_state(weight, settings, engine, intercept, len(y), rounds, Context())
    draws = Draws(row_keys(np.asarray(X)), settings.seed, weight)
    loop = Boosting(state, loss, y, weight, settings, engine, draws, Context())
    return [kept(round_) for round_ in itertools.islice(loop, rounds)], state


def kept(round_):
    """The round with copies of its innovations, which the next one overwrites."""
    return round_._replace(projections=[p._replace(innovation=p.innovation.copy()) for p in round_.projections])


def sklearn_trees(X, **params):
    return EstimatorEngine(X, lambda seed: DecisionTreeRegressor(random_state=0, **params), sample_weighted=False)


# --- gamma = 0 is XGBoost --------------------------------------------------------------------------


def assert_same_trees_as_xgboost(done, booster, eta):
    theirs = ubjson.decode(booster.save_raw("ubj"))["learner"]["gradient_booster"]["model"]["trees"]
    mine = [learner for round_ in done for learner in round_.learners]
    assert len(mine) == len(theirs)
    for learner, tree in zip(mine, theirs, strict=True):
        splits = tree["left_children"] != -1
        np.testing.assert_array_equal(learner.model["left_children"], tree["left_children"])
        np.testing.assert_array_equal(learner.model["split_indices"], tree["split_indices"])
        np.testing.assert_array_equal(
            learner.model["split_conditions"][splits], tree["split_conditions"][splits], err_msg="thresholds"
        )
        np.testing.assert_allclose(eta * learner.values, tree["split_conditions"][~splits], atol=2e-6, rtol=1e-4)


CASES = {
    "logistic": (LogisticLoss(), two_classes, {"objective": "binary:logistic"}),
    "softmax": (SoftmaxLoss(3), three_classes, {"objective": "multi:softprob", "num_class": 3}),
    "squared": (SquaredLoss(), real_target, {"objective": "reg:squarederror"}),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_without_projection_equals_xgboost(name, weighted, seed):
    # Equality may fail where two splits have the same gain up to float32; the data are continuous so that none has.
    loss, make, params = CASES[name]
    X, y = make(n=800, seed=seed)
    weight = np.random.default_rng(seed).uniform(0.5, 2, size=800) if weighted else None
    rounds = 12
    engine = XGBoostEngine(X, loss.n_outputs, PARAMS, sample_weight=weight)
    done, state = run(loss, X, y, PLAIN, rounds, engine=engine, weight=weight)
    base = {"logistic": 0.5, "squared": 0.0, "softmax": 0.0}[name]
    booster = xgb.train(
        {**PARAMS, **params, "tree_method": "hist", "eta": 0.3, "nthread": 1, "base_score": base},
        xgb.QuantileDMatrix(X, label=y, weight=weight, nthread=1),
        num_boost_round=rounds,
    )
    assert_same_trees_as_xgboost(done, booster, 0.3)
    margin = booster.predict(xgb.DMatrix(X), output_margin=True).reshape(800, -1).T
    np.testing.assert_allclose(state.F, margin, atol=2e-5)


def test_without_projection_no_history_is_kept():
    X, y = two_classes()
    done, state = run(LogisticLoss(), X, y, PLAIN, 3)
    assert state.projector is None
    assert all(round_.projections == [] for round_ in done)


# --- alpha = 1 is matching pursuit -----------------------------------------------------------------


def test_full_projection_is_orthogonal_matching_pursuit():
    X, y = real_target(n=200)
    trees = {}
    for eta in (0.01, 0.3, 1.0, 1.7):
        settings = replace(PAPER, eta=eta, alpha=1.0)
        done, _ = run(SquaredLoss(), X, y, settings, 10, engine=sklearn_trees(X, max_depth=3))
        H = np.empty((0, 200))
        for round_ in done:
            fitted = np.linalg.lstsq(H.T, y, rcond=None)[0] @ H if len(H) else 0
            np.testing.assert_allclose(round_.projections[0].innovation, y - fitted, atol=1e-9)
            H = np.vstack([H, round_.learners[0].predictions()])
        trees[eta] = H
    # The learners do not depend on the step sizes taken.
    for eta in (0.01, 1.0, 1.7):
        np.testing.assert_allclose(trees[eta], trees[0.3], atol=1e-9)


def test_the_innovation_is_orthogonal_to_every_remembered_learner():
    X, y = two_classes(n=250)
    settings = replace(PAPER, alpha=1.0, memory=3)
    done, _ = run(LogisticLoss(), X, y, settings, 8, engine=sklearn_trees(X, max_depth=3))
    learners = [round_.learners[0].predictions() for round_ in done]
    for t, round_ in enumerate(done):
        q = round_.projections[0].innovation
        for s, h in enumerate(learners[:t]):
            cosine = abs(q @ h) / (np.linalg.norm(q) * np.linalg.norm(h))
            assert cosine < 1e-9 or s < t - 3  # only the last three are remembered
        assert round_.projections[0].k == min(t, 3)


def test_innovation_energy_falls_by_at_least_the_explained_part():
    # Squared loss, alpha = 1: q is orthogonal to history, and so is the learner's part outside of it.
    X, y = real_target(n=150)
    settings = replace(PAPER, alpha=1.0, eta=1.0)
    done, _ = run(SquaredLoss(), X, y, settings, 6, engine=sklearn_trees(X, max_depth=2))
    for before, after in itertools.pairwise(done):
        p, q, h = before.projections[0], before.projections[0].innovation, before.learners[0].predictions()
        # The next innovation removes h's component outside the old span: Pythagoras.
        assert after.projections[0].innovation_energy <= p.innovation_energy - (q @ h) ** 2 / (h @ h) + 1e-9


# --- bookkeeping -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [PLAIN, PAPER, replace(PLAIN, gamma=0.7, memory=2)], ids=["plain", "paper", "default"]
)
def test_scores_are_the_intercept_and_the_steps(settings):
    X, y = two_classes()
    intercept = np.array([0.4])
    done, state = run(LogisticLoss(), X, y, settings, 6, intercept=intercept)
    F = intercept[0] + settings.eta * sum(round_.learners[0].predictions().astype(np.float64) for round_ in done)
    np.testing.assert_allclose(state.F[0], F, atol=1e-5)
    assert state.round == 6
    F = np.full((1, len(y)), 0.4)
    for round_ in done:
        assert round_.loss == pytest.approx(LogisticLoss().mean(y, F), rel=1e-5)
        F = F + settings.eta * round_.learners[0].predictions()


def test_newton_leaves_are_steps_on_the_raw_residual():
    X, y = two_classes()
    settings = replace(PLAIN, gamma=1.0, memory=None)
    engine = XGBoostEngine(X, 1, PARAMS)
    loss = LogisticLoss()
    y = y.astype(np.float32)
    state = initial_state(None, settings, engine, np.zeros(1), len(y), 6, Context())
    loop = iter(Boosting(state, loss, y, None, settings, engine, None, Context()))
    for _ in range(6):
        gradient, hessian = loss.gradient_hessian(y, state.F)
        learner = next(loop).learners[0]
        G = -np.bincount(learner.leaf, weights=gradient[0])
        D = np.bincount(learner.leaf, weights=hessian[0])
        np.testing.assert_allclose(learner.values, G / (D + 1.0), rtol=1e-5, atol=1e-7)


def test_mean_leaves_are_means_of_the_innovation():
    X, y = two_classes()
    engine = XGBoostEngine(X, 1, {"max_depth": 3, "lambda": 0.0, "min_child_weight": 0.0})
    done, _ = run(LogisticLoss(), X, y, PAPER, 6, engine=engine)
    for round_ in done:
        learner, q = round_.learners[0], round_.projections[0].innovation
        means = np.bincount(learner.leaf, weights=q) / np.bincount(learner.leaf)
        np.testing.assert_allclose(learner.values, means, atol=2e-6)


def test_small_newton_steps_lower_the_loss_every_round():
    for gamma in (0.0, 0.7, 1.0):
        X, y = two_classes(flip=0.0)
        done, _ = run(LogisticLoss(), X, y, replace(PLAIN, gamma=gamma, memory=5, eta=0.1), 15)
        losses = [round_.loss for round_ in done]
        assert np.all(np.diff(losses) < 0), gamma


@pytest.mark.parametrize("gamma", [0.4, 1.0])
def test_a_share_gamma_of_the_historical_component_is_removed(gamma):
    X, y = two_classes()
    done, _ = run(LogisticLoss(), X, y, replace(PAPER, gamma=gamma), 5, engine=sklearn_trees(X, max_depth=3))
    F = np.zeros((1, len(y)))
    for round_ in done:
        gradient, _ = LogisticLoss().gradient_hessian(y.astype(float), F)
        removed = -gradient[0] - round_.projections[0].innovation
        assert removed @ removed == pytest.approx(gamma**2 * round_.projections[0].historical_energy, abs=1e-9)
        F = F + 0.1 * round_.learners[0].predictions()


# --- stopping --------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaf_rule", ["mean", "newton"])
@pytest.mark.parametrize("kind", ["xgboost", "scikit-learn"])
def test_fit_stops_with_a_reason_if_no_split_is_found(kind, leaf_rule):
    # The target has three values, which one column tells apart: the first tree learns it, and full projection then
    # leaves rounding errors, on which no further tree may be grown.
    X = np.column_stack([np.repeat([0.0, 1.0, 2.0], 20), np.random.default_rng(0).normal(size=60)])
    y = X[:, 0] - 0.7
    params = {"max_depth": 3, "lambda": 0.0, "min_child_weight": 0.0}
    engine = XGBoostEngine(X, 1, params) if kind == "xgboost" else sklearn_trees(X, max_depth=3)
    settings = replace(PAPER, alpha=1.0, eta=0.5, leaf_rule=leaf_rule)
    done, state = run(SquaredLoss(), X, y, settings, 10, engine=engine)
    assert len(done) == 1
    assert state.stop.reason is StopReason.CONSTANT_INNOVATION


@pytest.mark.parametrize("make", [XGBoostEngine, None])
def test_zero_residual_stops_before_the_first_tree(make):
    X, _ = real_target()
    engine = XGBoostEngine(X, 1, PARAMS) if make else sklearn_trees(X)
    done, state = run(SquaredLoss(), X, np.zeros(300), PAPER, 3, engine=engine)
    assert done == []
    assert state.stop.reason is StopReason.CONSTANT_INNOVATION


@pytest.mark.parametrize("make", [XGBoostEngine, None])
def test_a_constant_residual_is_a_step_for_trees_without_a_split(make):
    X, _ = real_target()
    engine = XGBoostEngine(X, 1, PARAMS) if make else sklearn_trees(X)
    done, state = run(SquaredLoss(), X, np.full(300, 0.3), replace(PLAIN, eta=0.5, l2=0.0), 40, engine=engine)
    assert all(np.ptp(round_.learners[0].predictions()) < 1e-7 for round_ in done)
    np.testing.assert_allclose(state.F, 0.3, rtol=1e-5)


@pytest.mark.parametrize(("loss", "y"), [(SquaredLoss(), 1000.0), (LogisticLoss(), 0.0)])
def test_trees_without_splits_move_a_score_far_from_the_mean(loss, y):
    # Few samples differ from the others, so that no split is allowed at the start.
    X, _ = real_target()
    target = np.full(300, y)
    target[:2] += 1
    engine = XGBoostEngine(X, 1, {"max_depth": 3, "min_child_weight": 400.0})
    done, state = run(loss, X, target, replace(PLAIN, l2=0.0), 200, engine=engine)
    assert done
    np.testing.assert_allclose(state.F, loss.initial_score(target, None)[0], rtol=1e-2)


def test_constraints_that_allow_no_split_stop_with_a_reason():
    X, y = two_classes()
    engine = XGBoostEngine(X, 1, {"max_depth": 3, "min_child_weight": 1e9})
    prior = LogisticLoss().initial_score(y, None)
    done, state = run(LogisticLoss(), X, y, PLAIN, 3, engine=engine, intercept=prior)
    assert done == []
    assert state.stop.reason is StopReason.NO_SPLIT


def test_a_stopped_loop_stays_stopped():
    X, _ = real_target()
    y = np.zeros(300, dtype=np.float32)
    engine = XGBoostEngine(X, 1, PARAMS)
    _, state = run(SquaredLoss(), X, y, PAPER, 3, engine=engine)
    assert list(Boosting(state, SquaredLoss(), y, None, PAPER, engine, None, Context())) == []


# --- randomness and resuming -----------------------------------------------------------------------


@settings(deadline=None, max_examples=12)
@given(
    first=st.integers(1, 11),
    gamma=st.sampled_from([0.0, 0.7]),
    memory=st.sampled_from([None, 2, 5]),
    subsample=st.sampled_from([1.0, 0.6]),
    nu=st.sampled_from([0.0, 0.5]),
    name=st.sampled_from(["logistic", "softmax"]),
)
def test_resumed_loop_equals_uninterrupted_loop(first, gamma, memory, subsample, nu, name):
    loss, make, _ = CASES[name]
    X, y = make(n=200)
    settings = replace(PLAIN, gamma=gamma, memory=memory, subsample=subsample, nu=nu)
    whole, _ = run(loss, X, y, settings, 12, engine=XGBoostEngine(X, loss.n_outputs, PARAMS, colsample=0.6))
    y = y.astype(np.float32)
    engines = [XGBoostEngine(X, loss.n_outputs, PARAMS, colsample=0.6) for _ in range(2)]
    state = initial_state(None, settings, engines[0], np.zeros(loss.n_outputs), len(y), 12, Context())
    draws = Draws(row_keys(X), settings.seed)
    parts = list(itertools.islice(Boosting(state, loss, y, None, settings, engines[0], draws, Context()), first))
    parts += itertools.islice(Boosting(state, loss, y, None, settings, engines[1], draws, Context()), 12 - first)
    for a, b in zip(whole, parts, strict=True):
        for x, z in zip(a.learners, b.learners, strict=True):
            np.testing.assert_array_equal(x.predictions(), z.predictions())
        assert a.loss == b.loss


class Recorded(XGBoostEngine):
    """Records the targets that trees are grown on."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.targets = []

    def grow(self, target, hessian, seed, totals=None):
        self.targets.append(target.copy())
        return super().grow(target, hessian, seed)


@pytest.mark.parametrize("name", CASES)
def test_exploration_decreases_with_the_square_root_of_the_log_loss(name):
    loss, make, _ = CASES[name]
    X, y = make(n=400)
    settings = replace(PLAIN, nu=0.7)
    engine = Recorded(X, loss.n_outputs, PARAMS)
    done, _ = run(loss, X, y, settings, 8, engine=engine)
    F = np.zeros((loss.n_outputs, len(y)), dtype=np.float32)
    draws = Draws(row_keys(X), settings.seed)
    for t, (round_, target) in enumerate(zip(done, engine.targets, strict=True)):
        gradient, hessian = loss.gradient_hessian(np.asarray(y, dtype=np.float32), F)
        sizes = np.mean(np.abs(gradient) / np.sqrt(hessian), axis=1)
        dispersion = 1.0 if name == "logistic" else np.pi / 2 * np.mean(sizes**2)
        share = np.sqrt(round_.loss / done[0].loss) if loss.n_classes else 1.0
        for k in range(loss.n_outputs):
            z = np.sqrt(dispersion * hessian[k]) * draws.normal(t, k)
            np.testing.assert_allclose((target[k] + gradient[k]) @ z / (z @ z), 0.7 * share, atol=0.7 * 0.006)
        F += settings.eta * np.stack([learner.predictions() for learner in round_.learners])
    if loss.n_classes:
        assert done[-1].loss < 0.8 * done[0].loss


def test_subsamples_depend_on_the_seed():
    X, y = two_classes()
    rounds = {
        seed: [r.learners[0].predictions() for r in run(LogisticLoss(), X, y, settings, 3)[0]]
        for seed, settings in ((s, replace(PLAIN, subsample=0.5, seed=s)) for s in (0, 1))
    }
    again = run(LogisticLoss(), X, y, replace(PLAIN, subsample=0.5, seed=0), 3)[0]
    np.testing.assert_array_equal(rounds[0], [r.learners[0].predictions() for r in again])
    assert not np.array_equal(rounds[0][0], rounds[1][0])


def test_every_round_draws_a_new_subsample():
    X, y = two_classes(n=1000)
    drawn = []

    class Spy(XGBoostEngine):
        def grow(self, target, hessian, seed, totals=None):
            drawn.append(hessian[0] > 0)
            np.testing.assert_array_equal(target[0] != 0, drawn[-1])
            return super().grow(target, hessian, seed)

    settings = replace(PLAIN, subsample=0.3)
    run(LogisticLoss(), X, y, settings, 6, engine=Spy(X, 1, PARAMS))
    # Five standard deviations of a binomial share of 1000 samples.
    assert all(abs(rows.mean() - 0.3) < 5 * np.sqrt(0.21 / 1000) for rows in drawn)
    both = np.mean([np.mean(a & b) for a, b in itertools.combinations(drawn, 2)])
    assert abs(both - 0.09) < 0.02


def test_newton_leaves_need_learners_with_leaves():
    X, y = two_classes()
    engine = EstimatorEngine(X, lambda seed: LinearRegression(), sample_weighted=True)
    with pytest.raises(TypeError, match="leaf_rule='newton' needs learners with leaves, got LinearRegression"):
        run(LogisticLoss(), X, y, PLAIN, 1, engine=engine)


def test_a_round_without_split_is_not_the_last_if_features_are_sampled():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.zeros((300, 5)), rng.normal(size=300)])  # one column of six can be split
    y = (X[:, 5] > 0).astype(float)
    engine = XGBoostEngine(X, 1, PARAMS, colsample=1 / 6)
    done, state = run(LogisticLoss(), X, y, PLAIN, 30, engine=engine)
    assert len(done) == 30
    assert not state.stop
    sizes = {len(round_.learners[0].values) for round_ in done}
    assert 1 in sizes
    assert max(sizes) > 1


@pytest.fixture
def any_rows_on_threads(monkeypatch):
    monkeypatch.setattr(threads_module, "_THREADED", 0)


@pytest.mark.usefixtures("any_rows_on_threads")
def test_blocks_on_threads_come_back_in_order_and_pass_errors_on():
    def bounds(rows):
        return rows.start

    threads = Threads(3)
    assert threads.map_blocks(bounds, 1000, 7) == list(range(0, 1000, 7))
    assert threads.map_blocks(bounds, 5, 7) == [0]
    with pytest.raises(ZeroDivisionError):
        threads.map_blocks(lambda rows: 1 // (rows.start - 70), 1000, 7)
    threads.close()
    assert SERIAL.map_blocks(bounds, 20, 7) == [0, 7, 14]


def test_few_samples_stay_on_the_calling_thread_and_many_do_not():
    me = threading.get_ident()
    met = threading.Barrier(2, timeout=60)

    def meet(rows):
        met.wait()  # passes only if two threads are here
        return threading.get_ident()

    three = Threads(3)
    assert set(three.map_blocks(lambda rows: threading.get_ident(), 100_000)) == {me}
    assert len(set(three.map_blocks(meet, 2 << 18, 1 << 18))) == 2
    three.close()
    assert set(Threads(2).map_blocks(lambda rows: threading.get_ident(), 2 << 18)) == {me}


@pytest.mark.usefixtures("any_rows_on_threads")
def test_map_blocks_does_not_wait_for_busy_threads():
    free = threading.Event()
    threads = Threads(3)
    threads.map_blocks(lambda rows: None, 20, 7)
    for _ in range(2):
        threads._pool.submit(free.wait)  # all helpers are busy
    assert threads.map_blocks(lambda rows: rows.start, 20, 7) == [0, 7, 14]
    free.set()
    threads.close()


@pytest.mark.usefixtures("any_rows_on_threads")
def test_work_between_trees_does_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(0)
    n = 50_000  # several blocks
    y, F = (rng.random(n) < 0.5).astype(np.float32), rng.standard_normal((1, n)).astype(np.float32)
    weight = rng.random(n)
    history = History(n, 3, np.float32, weight)
    for _ in range(3):
        history.append(rng.standard_normal(n).astype(np.float32))

    def numbers(threads):
        gradient, hessian = LogisticLoss().gradient_hessian(y, F)
        context = Context(threads=threads)
        projection = history.project(-gradient[0], alpha=0.9, hessian=hessian[0], context=context)
        sums = leaf_sums(np.arange(n) % 7, 7, (gradient[0], hessian[0]), weight, threads)
        mean = LogisticLoss().mean(y, F, weight, threads=threads)
        return [mean, projection.innovation, projection.historical_energy, sums]

    three = Threads(3)
    for one, many in zip(numbers(SERIAL), numbers(three), strict=True):
        np.testing.assert_array_equal(one, many)
    three.close()


@pytest.mark.usefixtures("any_rows_on_threads")
def test_rounds_do_not_depend_on_the_number_of_threads():
    X, y = two_classes(n=50_000)
    y = y.astype(np.float32)

    def rounds(threads):
        context = Context(threads=threads)
        settings = replace(PLAIN, gamma=0.7, memory=3, nu=0.5)
        engine = XGBoostEngine(X, 1, PARAMS, context=context)
        state = initial_state(None, settings, engine, np.zeros(1), len(y), 4, context)
        draws = Draws(row_keys(X, threads), 0, None, context)
        loop = Boosting(state, LogisticLoss(), y, None, settings, engine, draws, context)
        losses = [round_.loss for round_ in itertools.islice(loop, 4)]
        return losses, state.F

    three = Threads(3)
    for one, many in zip(rounds(SERIAL), rounds(three), strict=True):
        np.testing.assert_array_equal(one, many)
    three.close()
