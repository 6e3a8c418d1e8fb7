"""Models of other libraries' versions: scripts that an interpreter with the library runs to train and save them.

``XGBOOST`` and ``LIGHTGBM`` are run as ``python -c SCRIPT FOLDER``, and need the library, NumPy, pandas and
scikit-learn. They print one line for each model saved, and skip what their version does not know.
"""

# ruff: noqa: E501 - scripts as text

from __future__ import annotations

_DATA = """
import json, sys, warnings
from pathlib import Path
import numpy as np, pandas as pd
warnings.simplefilter("ignore")
folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
rng = np.random.RandomState(0)
n = 300
X = rng.normal(size=(n, 5))
f = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
missing = np.where(rng.rand(n, 5) < 0.2, np.nan, X)
classes = np.digitize(f, [-1, 0, 1])
table = pd.DataFrame(missing, columns=["first", "second", "third", "age", "height"])
table["colour"] = pd.Categorical(rng.choice(["red", "green", "blue", "grey", "pink"], size=n))
table["code"] = pd.Categorical(rng.choice(40, size=n))
groups = np.full(n // 20, 20)
weight = rng.rand(n) + 0.5
saved = []
"""

XGBOOST = (
    _DATA
    + """
import xgboost as xgb

def save(name, model):
    for ending in ("json", "ubj"):
        model.save_model(folder / f"{len(saved):03d}.{ending}")
    saved.append(name)
    print(name, flush=True)

def train(name, params, X=X, y=f, rounds=6, matrix=None, **options):
    try:
        data = xgb.DMatrix(X, y, **(matrix or {}))
        params = {"nthread": 1, "verbosity": 0, "max_depth": 3, **params}
        save(name, xgb.train(params, data, rounds, **options))
    except (ValueError, TypeError) as error:
        print("skipped", name, str(error).splitlines()[0][:80], file=sys.stderr)

positive, count, label = np.exp(f), rng.poisson(np.exp(f / 2)), (f > 0).astype(float)
for objective, y in [
    ("reg:squarederror", f + 100), ("reg:squaredlogerror", positive), ("reg:logistic", label),
    ("reg:pseudohubererror", f), ("reg:absoluteerror", f), ("binary:logistic", label), ("binary:logitraw", label),
    ("binary:hinge", label), ("count:poisson", count), ("survival:cox", positive * np.where(label, 1, -1)),
    ("reg:gamma", positive), ("reg:tweedie", count.astype(float)), ("multi:softmax", classes),
    ("multi:softprob", classes), ("reg:quantileerror", f),
]:
    more = {"num_class": 4} if "multi" in objective else {"quantile_alpha": [0.1, 0.5, 0.9]} if "quantile" in objective else {}
    train(objective, {"objective": objective, **more}, y=y)
    if objective in {"reg:squarederror", "binary:logistic", "multi:softprob", "count:poisson"}:
        train(f"dart {objective}", {"objective": objective, "booster": "dart", "rate_drop": 0.5, **more}, y=y)
        train(f"gblinear {objective}", {"objective": objective, "booster": "gblinear", **more}, y=y)
        train(f"missing {objective}", {"objective": objective, **more}, X=missing, y=y)
        kinds = {"feature_types": ["float"] * 5 + ["c", "c"], "enable_categorical": True}
        codes = np.column_stack([missing, table["colour"].cat.codes, table["code"].cat.codes])
        for most in (1, 100):
            train(f"categories {most} {objective}",
                  {"objective": objective, "tree_method": "hist", "max_cat_to_onehot": most, **more}, X=codes, y=y, matrix=kinds)
        train(f"pandas {objective}", {"objective": objective, "tree_method": "hist", "max_cat_to_onehot": 2, **more},
              X=table, y=y, matrix={"enable_categorical": True})
for objective in ("rank:pairwise", "rank:ndcg", "rank:map"):
    try:
        data = xgb.DMatrix(X, label if objective == "rank:map" else classes)
        data.set_group(groups)
        save(objective, xgb.train({"objective": objective, "nthread": 1, "verbosity": 0, "max_depth": 3}, data, 5))
    except ValueError as error:
        print("skipped", objective, error, file=sys.stderr)
aft = xgb.DMatrix(X)
aft.set_float_info("label_lower_bound", positive)
aft.set_float_info("label_upper_bound", np.where(label, positive, np.inf))
save("survival:aft", xgb.train({"objective": "survival:aft", "nthread": 1, "verbosity": 0}, aft, 5))
for name, params in {
    "monotone": {"monotone_constraints": "(1,-1,0,0,0)"},
    "interactions": {"interaction_constraints": "[[0, 1], [2, 3, 4]]"},
    "forest": {"num_parallel_tree": 4, "subsample": 0.5, "colsample_bynode": 0.5},
    "pruned exact": {"tree_method": "exact", "gamma": 3.0, "max_depth": 6},
    "pruned approx": {"tree_method": "approx", "gamma": 5.0, "max_depth": 6},
    "lossguide": {"tree_method": "hist", "grow_policy": "lossguide", "max_leaves": 40, "max_depth": 0},
    "deep": {"max_depth": 0, "grow_policy": "lossguide", "tree_method": "hist", "min_child_weight": 0, "lambda": 0, "eta": 1.0},
    "alpha": {"alpha": 100.0, "lambda": 10.0},
    "max_delta_step": {"max_delta_step": 0.1},
    "base_score": {"base_score": 0.25},
    "one_drop": {"booster": "dart", "rate_drop": 1.0, "one_drop": 1, "normalize_type": "forest"},
    "shotgun": {"booster": "gblinear", "updater": "shotgun", "feature_selector": "shuffle"},
    "several metrics": {"eval_metric": ["rmse", "mae"]},
}.items():
    train(name, params)
train("weights", {}, matrix={"weight": weight})
train("names", {}, matrix={"feature_names": ["a b", "ü", "c", "d", "e"]})
train("no rounds", {}, rounds=0)
train("no rounds of classes", {"objective": "multi:softprob", "num_class": 4}, y=classes, rounds=0)
train("two targets", {}, y=np.column_stack([f, -f]))
train("two labels", {"objective": "binary:logistic"}, y=np.column_stack([label, 1 - label]))
train("custom", {}, obj=lambda p, d: (p - d.get_label(), np.ones(len(p))))
train("large values", {}, y=1e12 * f)
train("small values", {}, y=1e-12 * f)
train("constant", {}, y=np.ones(n))
train("one feature", {}, X=X[:, :1])
train("stopped", {"eta": 1.0}, rounds=50, evals=[(xgb.DMatrix(X[:100], rng.permutation(f[:100])), "v")],
      early_stopping_rounds=3, verbose_eval=False)
booster = xgb.train({"nthread": 1, "max_depth": 3, "objective": "multi:softprob", "num_class": 4}, xgb.DMatrix(X, classes), 8)
save("slice", booster[2:6])
refresh = {"nthread": 1, "process_type": "update", "updater": "refresh", "refresh_leaf": True}
save("refreshed", xgb.train(refresh, xgb.DMatrix(X, f), 3, xgb_model=xgb.train({"nthread": 1}, xgb.DMatrix(X, f), 3)))
prune = {"nthread": 1, "process_type": "update", "updater": "prune", "gamma": 10.0}
save("pruned later", xgb.train(prune, xgb.DMatrix(X, f), 3, xgb_model=xgb.train({"nthread": 1}, xgb.DMatrix(X, f), 3)))
save("continued", xgb.train({"nthread": 1}, xgb.DMatrix(X, f), 3, xgb_model=xgb.train({"nthread": 1}, xgb.DMatrix(X, f), 3)))
booster.set_attr(note="text with \\u00e9 and \\" quotes")
save("attributes", booster)
few = {"n_estimators": 5, "n_jobs": 1, "max_depth": 3}
save("XGBClassifier", xgb.XGBClassifier(**few).fit(X, classes))
save("XGBRegressor", xgb.XGBRegressor(**few).fit(missing, f))
save("XGBRFClassifier", xgb.XGBRFClassifier(**few).fit(X, classes > 1))
save("XGBRFRegressor", xgb.XGBRFRegressor(**few).fit(X, f))
save("XGBRanker", xgb.XGBRanker(**few).fit(X, classes, group=groups))
"""
)

LIGHTGBM = (
    _DATA
    + """
import lightgbm as lgb

def save(name, model, **options):
    model.save_model(str(folder / f"{len(saved):03d}.txt"), **options)
    saved.append(name)
    print(name, flush=True)

quiet = {"verbose": -1, "num_threads": 1, "num_leaves": 7, "min_data_in_leaf": 5}

def train(name, params, X=X, y=f, rounds=6, data=None, **options):
    try:
        save(name, lgb.train({**quiet, **params}, lgb.Dataset(X, y, **(data or {})), rounds, **options))
    except (ValueError, TypeError, lgb.basic.LightGBMError) as error:
        print("skipped", name, str(error).splitlines()[0][:80], file=sys.stderr)

positive, count, label = np.exp(f), rng.poisson(np.exp(f / 2)).astype(float), (f > 0).astype(float)
for objective, y in [
    ("regression", f + 100), ("regression_l1", f), ("huber", f), ("fair", f), ("poisson", count), ("quantile", f),
    ("mape", positive), ("gamma", positive), ("tweedie", count), ("binary", label), ("multiclass", classes),
    ("multiclassova", classes), ("cross_entropy", label), ("cross_entropy_lambda", label),
]:
    more = {"num_class": 4} if "multi" in objective else {}
    train(objective, {"objective": objective, **more}, y=y)
    if objective in {"regression", "binary", "multiclass", "poisson"}:
        train(f"dart {objective}", {"objective": objective, "boosting": "dart", "drop_rate": 0.5, **more}, y=y)
        train(f"rf {objective}", {"objective": objective, "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5, **more}, y=y)
        train(f"missing {objective}", {"objective": objective, **more}, X=missing, y=y)
        for onehot in (1, 100):
            train(f"categories {onehot} {objective}",
                  {"objective": objective, "max_cat_to_onehot": onehot, "min_data_per_group": 1, "cat_smooth": 1.0, **more},
                  X=table, y=y + (table["colour"] == "red") if objective == "regression" else y)
        train(f"linear {objective}", {"objective": objective, "linear_tree": True, **more}, y=y)
for objective in ("lambdarank", "rank_xendcg"):
    train(objective, {"objective": objective}, y=classes, data={"group": groups})
for name, params in {
    "monotone": {"monotone_constraints": [1, -1, 0, 0, 0]},
    "interactions": {"interaction_constraints": [[0, 1], [2, 3, 4]]},
    "goss": {"boosting": "goss"},
    "extra trees": {"extra_trees": True},
    "deep": {"num_leaves": 200, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0.0},
    "bundled": {"max_bin": 15, "feature_fraction": 0.5},
    "zero as missing": {"zero_as_missing": True},
    "no missing": {"use_missing": False},
    "L1": {"lambda_l1": 1000.0},
    "path smooth": {"path_smooth": 1.0},
    "sqrt": {"reg_sqrt": True},
    "no boost from average": {"boost_from_average": False},
    "stumps": {"min_data_in_leaf": 1000},
    "quantized": {"use_quantized_grad": True},
    "custom names": {},
}.items():
    train(name, params, data={"feature_name": ["a", "b", "c", "d", "\\u00fc"]} if name == "custom names" else None)
train("weights", {}, data={"weight": weight})
train("no rounds", {}, rounds=1)
train("linear with gaps", {"linear_tree": True}, X=missing)
train("large values", {}, y=1e12 * f)
train("small values", {}, y=1e-12 * f)
train("constant", {}, y=np.ones(n))
train("one feature", {}, X=X[:, :1])
train("infinite features", {}, X=np.where(X > 2, np.inf, X))
from scipy import sparse
train("sparse", {}, X=sparse.csr_matrix(np.where(X > 0.5, X, 0)))
more = {"valid_sets": [lgb.Dataset(X[:100], rng.permutation(f[:100]))]}
if hasattr(lgb, "early_stopping"):
    train("stopped", {"learning_rate": 1.0}, rounds=50, callbacks=[lgb.early_stopping(3, verbose=False)], **more)
booster = lgb.train({**quiet, "objective": "multiclass", "num_class": 4}, lgb.Dataset(X, classes), 8)
save("some iterations", booster, num_iteration=3)
save("later iterations", booster, start_iteration=2)
save("importance", booster, importance_type="gain")
booster.shuffle_models()
save("shuffled", booster)
save("refitted", lgb.train(quiet, lgb.Dataset(X, f, free_raw_data=False), 4).refit(X, f + 1))
few = {"n_estimators": 5, "n_jobs": 1, "num_leaves": 7, "verbose": -1}
save("LGBMClassifier", lgb.LGBMClassifier(**few).fit(X, np.array(["a", "b", "c", "d"])[classes]).booster_)
save("LGBMRegressor", lgb.LGBMRegressor(**few).fit(table, f).booster_)
save("LGBMRanker", lgb.LGBMRanker(**few).fit(X, classes, group=groups).booster_)
"""
)
