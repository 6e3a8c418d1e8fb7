"""skl2onnx converters of the estimators, to export whole pipelines."""

from __future__ import annotations

from typing import Any

from scboost._estimators import SCBoostClassifier, SCBoostRegressor
from scboost._estimators.base import SCBoost
from scboost._model.exports import to_onnx

__all__ = ["register_converters"]


def register_converters() -> None:
    """Make ``skl2onnx.to_onnx`` export pipelines that end in an estimator of scboost.

    Call it once per process. The estimator must receive numeric features: encode categorical columns in the
    pipeline, for example with :class:`sklearn.preprocessing.OrdinalEncoder`. For an estimator alone use
    :func:`scboost.to_onnx`, which needs no skl2onnx.

    Examples
    --------
    >>> import scboost.onnx
    >>> scboost.onnx.register_converters()  # doctest: +SKIP
    >>> exported = skl2onnx.to_onnx(pipeline, X[:1])  # doctest: +SKIP
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError as error:
        raise ImportError("register_converters needs skl2onnx: `pip install skl2onnx`.") from error
    update_registered_converter(
        SCBoostClassifier,
        "SCBoostClassifier",
        _classifier_shapes,
        _convert,
        options={"zipmap": [True, False, "columns"], "nocl": [True, False], "output_class_labels": [False, True]},
    )
    update_registered_converter(SCBoostRegressor, "SCBoostRegressor", _regressor_shapes, _convert)


def _classifier_shapes(operator: Any) -> None:
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes

    _refuse_categories(operator.raw_operator)
    calculate_linear_classifier_output_shapes(operator)


def _regressor_shapes(operator: Any) -> None:
    from skl2onnx.common.data_types import FloatTensorType

    _refuse_categories(operator.raw_operator)
    n_outputs = len(operator.raw_operator.intercept_)
    operator.outputs[0].type = FloatTensorType([operator.inputs[0].get_first_dimension(), n_outputs])


def _refuse_categories(model: SCBoost) -> None:
    encoder = model.__fitted_model__().encoder
    if encoder.dates is not None:
        raise ValueError(
            f"This {type(model).__name__} has dates, whose parts ONNX does not compute. Replace them in the pipeline "
            "by numbers, or export the model alone with scboost.to_onnx, which takes encode_features(model, X)."
        )
    if encoder.categories is not None:
        raise ValueError(
            f"This {type(model).__name__} has categorical features, which ONNX does not support. Encode them in the "
            "pipeline, for example with OrdinalEncoder(handle_unknown='use_encoded_value', unknown_value=np.nan)."
        )


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the graph of :func:`scboost.to_onnx` to that of a pipeline."""
    import onnx

    model: SCBoost = operator.raw_operator
    exported = to_onnx(model)
    graph, versions = exported.graph, {opset.domain: opset.version for opset in exported.opset_import}
    names = {"X": _input(scope, operator, container)}
    results = [output.name for output in graph.output]
    names |= {name: scope.get_unique_variable_name(f"scboost_{name}") for name in results}
    for constant in graph.initializer:
        names[constant.name] = scope.get_unique_variable_name(f"scboost_{constant.name}")
        renamed = onnx.TensorProto()
        renamed.CopyFrom(constant)
        renamed.name = names[constant.name]
        container.initializers.append(renamed)
    for node in graph.node:
        for name in node.output:
            names.setdefault(name, scope.get_unique_variable_name(f"scboost_{name}"))
        attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        container.add_node(
            node.op_type,
            [names[name] for name in node.input],
            [names[name] for name in node.output],
            op_domain=node.domain,
            op_version=versions[node.domain],
            name=scope.get_unique_operator_name(node.op_type),
            **attributes,
        )
    for name, output in zip(results, operator.outputs, strict=False):
        if name == "prediction":  # regressors of skl2onnx return a column
            shape = scope.get_unique_variable_name("scboost_shape")
            container.add_initializer(shape, onnx.TensorProto.INT64, [2], [-1, len(model.intercept_)])
            container.add_node(
                "Reshape", [names[name], shape], output.full_name, name=scope.get_unique_operator_name("R")
            )
        else:
            container.add_node(
                "Identity", names[name], output.full_name, name=scope.get_unique_operator_name("Identity")
            )


def _input(scope: Any, operator: Any, container: Any) -> str:
    """Return the name of the features as one float32 matrix."""
    import onnx

    parts = []
    for variable in operator.inputs:
        parts.append(scope.get_unique_variable_name("scboost_part"))
        container.add_node(
            "Cast",
            variable.full_name,
            parts[-1],
            to=onnx.TensorProto.FLOAT,
            name=scope.get_unique_operator_name("Cast"),
        )
    if len(parts) == 1:
        return str(parts[0])
    joined = scope.get_unique_variable_name("scboost_features")
    container.add_node("Concat", parts, joined, axis=1, name=scope.get_unique_operator_name("Concat"))
    return str(joined)
