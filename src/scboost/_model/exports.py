"""Conversion of fitted models to XGBoost's scikit-learn classes, ONNX and treelite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scboost._arrays import ArrayLike
from scboost._core.links import LogLink
from scboost._engine.xgboost.ensemble import TreeEnsemble
from scboost._model.document import Tree, leaves
from scboost._model.fitted import FittedModel, HasFittedModel, fitted_model
from scboost._xgboost import import_xgboost

if TYPE_CHECKING:
    import onnx
    import treelite
    import xgboost

_ONNX_DOMAINS = {"": 17, "ai.onnx.ml": 3}  # supported by all recent runtimes
_ONNX_IR = 8


def to_xgboost(model: FittedModel, n_jobs: int | None) -> xgboost.XGBClassifier | xgboost.XGBRegressor:
    """Convert a fitted model to XGBoost's scikit-learn class; see the method of the estimators."""
    document = model.trees("to_xgboost").document()
    xgb = import_xgboost()
    cls = xgb.XGBClassifier if model.loss.classifies else xgb.XGBRegressor
    exported: xgboost.XGBClassifier | xgboost.XGBRegressor = cls(n_jobs=n_jobs, enable_categorical=True)
    exported.load_model(bytearray(document.encode()))
    return exported


def encode_features(model: HasFittedModel, X: ArrayLike) -> Any:
    """Encode samples for exported trees, which take categories and dates as numbers.

    Parameters
    ----------
    model : SCBoostClassifier or SCBoostRegressor
        Fitted.
    X : array-like, sparse matrix or table of shape (n_samples, n_features)
        Samples as passed to ``predict``.

    Returns
    -------
    ndarray of float32 or CSR matrix of shape (n_samples, n_model_features)
        Categories are integer codes, and each date is replaced by its parts: the columns are those that
        ``model.model_feature_names_`` names. NaN and entries that a sparse matrix does not store are missing.
    """
    fitted = fitted_model(model, "encode_features")
    fitted.trees("encode_features")
    return fitted.encode(X).astype(np.float32)


def to_treelite(model: HasFittedModel) -> treelite.Model:
    """Convert a fitted model to treelite.

    Parameters
    ----------
    model : SCBoostClassifier or SCBoostRegressor
        Fitted, with XGBoost's trees.

    Returns
    -------
    treelite.Model
        Takes the matrix that :func:`encode_features` returns and predicts probabilities (of the second class if there
        are two) or values.
    """
    document = fitted_model(model, "to_treelite").trees("to_treelite").document()
    try:
        import treelite
    except ImportError as error:
        raise ImportError("to_treelite needs treelite: `pip install 'scboost[export]'`.") from error
    # treelite supports category codes only, and rejects a model with names
    exported: treelite.Model = treelite.frontend.from_xgboost(document.without_tables().booster())
    return exported


def to_onnx(model: HasFittedModel) -> onnx.ModelProto:
    """Convert a fitted model to ONNX.

    The graph is built from the trees directly: converters of XGBoost models do not support trees without a split, all
    links, or intercepts.

    Parameters
    ----------
    model : SCBoostClassifier or SCBoostRegressor
        Fitted, with XGBoost's trees.

    Returns
    -------
    onnx.ModelProto
        The input ``X`` is float32 of shape (n, n_model_features), as :func:`encode_features` returns it: NaN is
        missing, categories are integer codes, dates are replaced by their parts. A classifier has the outputs
        ``label`` of shape (n,) and ``probabilities`` of shape (n, n_classes); a regressor has ``prediction`` of shape
        (n,), or (n, n_quantiles) for several quantiles.
        A model of several targets has ``prediction``, or ``probabilities`` for labels, of shape (n, n_targets).
        Sums are computed in float32.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import scboost
    >>> X, y = load_iris(return_X_y=True)
    >>> exported = scboost.to_onnx(scboost.SCBoostClassifier(n_estimators=5).fit(X, y))
    >>> [output.name for output in exported.graph.output]
    ['label', 'probabilities']
    """
    fitted = fitted_model(model, "to_onnx")
    fitted.values_only("to_onnx")
    ensemble = fitted.trees("to_onnx")
    try:
        import onnx
    except ImportError as error:
        raise ImportError("to_onnx needs onnx: `pip install 'scboost[export]'`.") from error
    helper = onnx.helper
    nodes, source = [], "X"
    if fitted.encoder.sparse:
        nodes = [
            helper.make_node("Equal", ["X", "zero"], ["is_zero"]),
            helper.make_node("Where", ["is_zero", "nan", "X"], ["rows"]),
        ]
        source = "rows"
    nodes.append(_onnx_trees(ensemble, source))
    constants = {"zero": np.zeros(1, np.float32), "one": np.ones(1, np.float32), "nan": np.full(1, np.nan, np.float32)}
    outputs = []
    if fitted.classes is not None:
        constants["labels"] = _onnx_labels(fitted.classes)
        nodes += _onnx_classes(ensemble.n_outputs)
        kind = helper.np_dtype_to_tensor_dtype(constants["labels"].dtype)
        outputs = [
            helper.make_tensor_value_info("label", kind, [None]),
            helper.make_tensor_value_info("probabilities", onnx.TensorProto.FLOAT, [None, len(fitted.classes)]),
        ]
    elif fitted.n_targets > 1:
        last = "Sigmoid" if fitted.loss.classifies else "Identity"
        name = "probabilities" if fitted.loss.classifies else "prediction"
        nodes.append(helper.make_node(last, ["scores"], [name]))
        outputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None, ensemble.n_outputs])]
    elif ensemble.n_outputs > 1:  # quantiles, which must not cross
        constants["all"] = np.array([ensemble.n_outputs], dtype=np.int64)
        nodes.append(helper.make_node("TopK", ["scores", "all"], ["prediction", "order"], axis=1, largest=0))
        outputs = [helper.make_tensor_value_info("prediction", onnx.TensorProto.FLOAT, [None, ensemble.n_outputs])]
    else:
        link = "Exp" if isinstance(fitted.loss.link, LogLink) else "Identity"
        constants["column"] = np.array([1], dtype=np.int64)
        nodes += [
            helper.make_node("Squeeze", ["scores", "column"], ["score"]),
            helper.make_node(link, ["score"], ["prediction"]),
        ]
        outputs = [helper.make_tensor_value_info("prediction", onnx.TensorProto.FLOAT, [None])]
    used = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "scboost",
        [helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, [None, fitted.encoder.features.n])],
        outputs,
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items() if name in used],
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in _ONNX_DOMAINS.items()]
    exported = helper.make_model(graph, opset_imports=opsets, ir_version=_ONNX_IR, producer_name="scboost")
    onnx.checker.check_model(exported)
    return exported


def _onnx_trees(ensemble: TreeEnsemble, source: str) -> onnx.NodeProto:
    """Add the raw scores of shape (n, K): the sum of the trees plus the intercept."""
    from onnx.helper import make_node

    document = ensemble.centred_document()
    parts = [_onnx_tree(i, tree, k) for i, (tree, k) in enumerate(zip(document.trees, document.outputs, strict=True))]
    attributes = {name: [value for part in parts for value in part[name]] for name in parts[0]}
    return make_node(
        "TreeEnsembleRegressor",
        [source],
        ["scores"],
        domain="ai.onnx.ml",
        n_targets=ensemble.n_outputs,
        base_values=ensemble.intercept.astype(np.float32).tolist(),
        aggregate_function="SUM",
        post_transform="NONE",
        **attributes,
    )


def _onnx_tree(number: int, tree: Tree, output: int) -> dict[str, list[Any]]:
    """One tree as ONNX's lists by node.

    A split on categories is a chain of nodes that each compare with one of them: the members of the set go right, as in
    XGBoost, and all other values go left. All nodes of a chain share the right child, as runtimes expect.
    """
    leaf = leaves(tree)
    n = len(leaf)
    nodes = {
        "featureids": np.where(leaf, 0, tree["split_indices"]).tolist(),
        "modes": ["LEAF" if is_leaf else "BRANCH_LT" for is_leaf in leaf],
        "values": np.where(leaf, 0, tree["split_conditions"]).tolist(),
        "truenodeids": np.where(leaf, 0, tree["left_children"]).tolist(),
        "falsenodeids": np.where(leaf, 0, tree["right_children"]).tolist(),
        "missing_value_tracks_true": np.where(leaf, 0, tree["default_left"]).tolist(),
    }
    sets = np.split(tree["categories"], tree["categories_segments"][1:])
    for node, members in zip(tree["categories_nodes"].tolist(), sets, strict=False):  # without a split, one empty set
        column, _, _, left, right, missing_left = (values[node] for values in nodes.values())
        places = [node, *range(n, n + len(members) - 1)]
        n += len(places) - 1
        for place, category, next_place in zip(places, members.tolist(), [*places[1:], left], strict=True):
            link = column, "BRANCH_EQ", float(category), right, next_place, 1 - missing_left
            for values, value in zip(nodes.values(), link, strict=True):
                values[place : place + 1] = [value]
    at_leaves = np.flatnonzero(leaf)
    return {
        "nodes_treeids": [number] * n,
        "nodes_nodeids": list(range(n)),
        **{f"nodes_{name}": column for name, column in nodes.items()},
        "target_treeids": [number] * len(at_leaves),
        "target_nodeids": at_leaves.tolist(),
        "target_ids": [int(output)] * len(at_leaves),
        "target_weights": tree["split_conditions"][at_leaves].tolist(),
    }


def _onnx_classes(n_outputs: int) -> list[onnx.NodeProto]:
    """Probabilities and labels from scores."""
    from onnx.helper import make_node

    if n_outputs == 1:
        nodes = [
            make_node("Sigmoid", ["scores"], ["second"]),
            make_node("Sub", ["one", "second"], ["first"]),
            make_node("Concat", ["first", "second"], ["probabilities"], axis=1),
        ]
    else:
        nodes = [make_node("Softmax", ["scores"], ["probabilities"], axis=1)]
    return [
        *nodes,
        make_node("ArgMax", ["probabilities"], ["winner"], axis=1, keepdims=0),
        make_node("Gather", ["labels", "winner"], ["label"]),
    ]


def _onnx_labels(classes: Any) -> Any:
    if classes.dtype.kind in "biu":
        return classes.astype(np.int64)
    if classes.dtype.kind == "f":
        return classes.astype(np.float32)
    if all(isinstance(label, str) for label in classes):
        return classes.astype(object)
    raise ValueError(f"to_onnx supports labels that are numbers or strings, not {classes.dtype}: {classes[:3]!r}.")
