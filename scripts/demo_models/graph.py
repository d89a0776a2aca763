"""The network as an ONNX graph, written node by node: the usual decoder interface with a cache of
keys and values.

Writing it directly keeps the file free of an exporter's leftovers and independent of the exporter's
version. Weights are stored in half precision and cast to float32 when the file is opened, so
computation is in float32 throughout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from scripts.demo_models.shape import Shape

OPSET = 17
FORBIDDEN = -1e9
"""Added to the attention scores of positions that may not be looked at; finite, so a padded row is
no NaN.
"""


Array = np.ndarray[Any, np.dtype[np.float32]]


def export(shape: Shape, weights: Mapping[str, Array], path: Path) -> None:
    """Write a network as `path`.

    Weights go by their names in `network.Network`; they are rounded to half precision.
    """
    graph = _Graph()
    positions = _Positions(graph, shape)
    embedding = graph.weight("embedding", weights["embedding.weight"])
    x = graph.node("Gather", [embedding, "input_ids"], axis=0)
    presents = []
    for place in range(shape.layers):
        part = {
            name.removeprefix(f"layers.{place}."): array
            for name, array in weights.items()
            if name.startswith(f"layers.{place}.")
        }
        x, key, value = _layer(graph, shape, positions, place, part, x)
        presents += [(f"present.{place}.key", key), (f"present.{place}.value", value)]
    x = _norm(graph, x, graph.weight("norm", weights["norm.weight"]), shape.epsilon)
    transposed = graph.node("Transpose", [embedding], perm=[1, 0])
    graph.node("MatMul", [x, transposed], output="logits")
    for name, source in presents:
        graph.node("Identity", [source], output=name)
    _save(graph, shape, path)


class _Graph:
    """Collects nodes and initializers; every output gets its own name."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self._count = 0
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def node(
        self,
        kind: str,
        inputs: Sequence[str],
        output: str | None = None,
        **attributes: Any,
    ) -> str:
        """Add a node with one output; returns the output's name."""
        self._count += 1
        output = output or f"{kind.lower()}_{self._count}"
        self.nodes.append(
            helper.make_node(
                kind, list(inputs), [output], name=f"{kind}_{self._count}", **attributes
            )
        )
        return output

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        """Add a small constant, once for equal ones; returns its name."""
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = f"constant_{len(self._constants)}"
            self.initializers.append(
                numpy_helper.from_array(array, self._constants[key])
            )
        return self._constants[key]

    def weight(self, name: str, array: Array) -> str:
        """Add a weight in half precision; returns the name of its float32 form."""
        self.initializers.append(
            numpy_helper.from_array(array.astype(np.float16), f"{name}.half")
        )
        return self.node("Cast", [f"{name}.half"], output=name, to=TensorProto.FLOAT)


class _Positions:
    """What all layers share: rotary cosines and sines, and the mask added to attention scores."""

    def __init__(self, graph: _Graph, shape: Shape) -> None:
        head = shape.head_size
        frequencies = shape.rope_base ** (
            -np.arange(0, head, 2, dtype=np.float32) / head
        )
        places = graph.node("Cast", ["position_ids"], to=TensorProto.FLOAT)
        places = graph.node(
            "Unsqueeze", [places, graph.constant([1, 3])]
        )  # [batch, 1, new, 1]
        half = graph.node("Mul", [places, graph.constant(frequencies, np.float32)])
        angles = graph.node("Concat", [half, half], axis=-1)
        self.cosine = graph.node("Cos", [angles])
        self.sine = graph.node("Sin", [angles])
        self.bias = self._bias(graph)

    def _bias(self, graph: _Graph) -> str:
        """[batch, 1, new, cached + new]: 0 where the mask is 1 and the position is not ahead."""
        total = graph.node(
            "Squeeze", [graph.node("Shape", ["attention_mask"], start=1, end=2)]
        )
        new = graph.node(
            "Squeeze", [graph.node("Shape", ["input_ids"], start=1, end=2)]
        )
        cached = graph.node("Sub", [total, new])
        zero = graph.constant(0)
        step = graph.constant(1)
        keys = graph.node("Range", [zero, total, step])
        queries = graph.node(
            "Unsqueeze",
            [graph.node("Range", [cached, total, step]), graph.constant([1])],
        )
        causal = graph.node("LessOrEqual", [keys, queries])
        present = graph.node("Cast", ["attention_mask"], to=TensorProto.BOOL)
        present = graph.node("Unsqueeze", [present, graph.constant([1, 2])])
        allowed = graph.node("And", [causal, present])
        return graph.node(
            "Where",
            [
                allowed,
                graph.constant(0, np.float32),
                graph.constant(FORBIDDEN, np.float32),
            ],
        )


def _layer(
    graph: _Graph,
    shape: Shape,
    positions: _Positions,
    place: int,
    weights: Mapping[str, Array],
    x: str,
) -> tuple[str, str, str]:
    """One layer: the new stream, and all keys and values with the cached ones in front."""

    def linear(source: str, name: str) -> str:
        matrix = graph.weight(
            f"layer_{place}.{name}", weights[f"{name}.weight"].T.copy()
        )
        return graph.node("MatMul", [source, matrix])

    def norm(source: str, name: str) -> str:
        return _norm(
            graph,
            source,
            graph.weight(f"layer_{place}.{name}", weights[f"{name}.weight"]),
            shape.epsilon,
        )

    def heads(source: str) -> str:
        split = graph.node(
            "Reshape", [source, graph.constant([0, 0, shape.heads, shape.head_size])]
        )
        return graph.node("Transpose", [split], perm=[0, 2, 1, 3])

    normed = norm(x, "attention_norm")
    query = _rotate(graph, shape, positions, heads(linear(normed, "query")))
    key = _rotate(graph, shape, positions, heads(linear(normed, "key")))
    key = graph.node("Concat", [f"past_key_values.{place}.key", key], axis=2)
    value = graph.node(
        "Concat",
        [f"past_key_values.{place}.value", heads(linear(normed, "value"))],
        axis=2,
    )
    scores = graph.node(
        "MatMul", [query, graph.node("Transpose", [key], perm=[0, 1, 3, 2])]
    )
    scores = graph.node(
        "Mul", [scores, graph.constant(shape.head_size**-0.5, np.float32)]
    )
    weighted = graph.node(
        "Softmax", [graph.node("Add", [scores, positions.bias])], axis=-1
    )
    mixed = graph.node(
        "Transpose", [graph.node("MatMul", [weighted, value])], perm=[0, 2, 1, 3]
    )
    mixed = graph.node("Reshape", [mixed, graph.constant([0, 0, shape.width])])
    x = graph.node("Add", [x, linear(mixed, "output")])

    normed = norm(x, "inner_norm")
    gate = linear(normed, "gate")
    gate = graph.node("Mul", [gate, graph.node("Sigmoid", [gate])])
    inner = graph.node("Mul", [gate, linear(normed, "up")])
    return graph.node("Add", [x, linear(inner, "down")]), key, value


def _norm(graph: _Graph, x: str, weight: str, epsilon: float) -> str:
    square = graph.node(
        "ReduceMean", [graph.node("Mul", [x, x])], axes=[-1], keepdims=1
    )
    root = graph.node(
        "Sqrt", [graph.node("Add", [square, graph.constant(epsilon, np.float32)])]
    )
    return graph.node("Mul", [graph.node("Div", [x, root]), weight])


def _rotate(graph: _Graph, shape: Shape, positions: _Positions, x: str) -> str:
    half = graph.constant([shape.head_size // 2])
    last = graph.constant([3])
    first = graph.node("Slice", [x, graph.constant([0]), half, last])
    second = graph.node("Slice", [x, half, graph.constant([shape.head_size]), last])
    turned = graph.node("Concat", [graph.node("Neg", [second]), first], axis=-1)
    return graph.node(
        "Add",
        [
            graph.node("Mul", [x, positions.cosine]),
            graph.node("Mul", [turned, positions.sine]),
        ],
    )


def _save(graph: _Graph, shape: Shape, path: Path) -> None:
    def cache(kind: str, length: str) -> list[Any]:
        axes = ["batch", shape.heads, length, shape.head_size]
        return [
            helper.make_tensor_value_info(
                f"{kind}.{place}.{part}", TensorProto.FLOAT, axes
            )
            for place in range(shape.layers)
            for part in ("key", "value")
        ]

    def integers(name: str, length: str) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", length])

    inputs = [
        integers("input_ids", "new"),
        integers("attention_mask", "total"),
        integers("position_ids", "new"),
        *cache("past_key_values", "cached"),
    ]
    logits = helper.make_tensor_value_info(
        "logits", TensorProto.FLOAT, ["batch", "new", shape.vocabulary]
    )
    decoder = helper.make_graph(
        graph.nodes,
        "decoder",
        inputs,
        [logits, *cache("present", "total")],
        graph.initializers,
    )
    model = helper.make_model(
        decoder,
        opset_imports=[helper.make_opsetid("", OPSET)],
        producer_name="evalwright demo models",
        ir_version=8,
    )
    onnx.checker.check_model(model, full_check=True)
    onnx.save_model(model, str(path))
