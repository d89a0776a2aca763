"""Trees of tasks: what each task weighs, what is missing, and what is no tree."""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, EvalwrightError
from evalwright.metrics.tree import Node, Sample, distinct, read_tree

SIZES = {"law": 10, "logic": 30, "physics": 40, "chem": 20}
HUMANITIES: dict[str, Any] = {
    "name": "humanities",
    "average": "weighted",
    "parts": ["law", "logic"],
}
SCIENCE: dict[str, Any] = {
    "name": "science",
    "average": "pooled",
    "parts": ["physics", "chem"],
}


def tree(**more: Any) -> Node:
    return read_tree({"name": "all", "parts": [HUMANITIES, {**SCIENCE, **more}]})


def leaf_weights(node: Node, sizes: dict[str, int]) -> dict[str, float]:
    """How much each task weighs in the node's value."""
    out: dict[str, float] = {}
    for sample in node.samples(sizes):
        total = sum(sizes[task] for task in sample.tasks)
        out |= {task: sample.weight * sizes[task] / total for task in sample.tasks}
    return out


def test_weights_of_tasks_multiply_down_the_tree() -> None:
    assert leaf_weights(tree(), SIZES) == pytest.approx(
        {"law": 1 / 8, "logic": 3 / 8, "physics": 1 / 3, "chem": 1 / 6}
    )
    by_size = read_tree({"average": "weighted", "parts": [HUMANITIES, SCIENCE]})
    assert leaf_weights(by_size, SIZES) == pytest.approx(
        {name: n / 100 for name, n in SIZES.items()}
    )
    pooled = read_tree({"average": "pooled", "parts": [HUMANITIES, SCIENCE]})
    assert leaf_weights(pooled, SIZES) == pytest.approx(leaf_weights(by_size, SIZES))
    assert pooled.samples(SIZES) == (Sample(("law", "logic", "physics", "chem"), 1.0),)
    assert tree().samples(SIZES)[-1] == Sample(("physics", "chem"), 0.5)


@pytest.mark.parametrize("average", ["macro", "weighted", "pooled"])
def test_a_nodes_value_is_that_of_the_recursion(average: str) -> None:
    values = {"law": 0.3, "logic": 0.9, "physics": 0.5, "chem": 0.1}
    root = read_tree({"average": average, "parts": [HUMANITIES, SCIENCE]})

    def value(node: Node | str) -> tuple[float, int]:
        if isinstance(node, str):
            return values[node], SIZES[node]
        parts = [value(part) for part in node.parts]
        n = sum(size for _, size in parts)
        if node.average == "macro":
            return sum(own for own, _ in parts) / len(parts), n
        return sum(own * size for own, size in parts) / n, n

    weights = leaf_weights(root, SIZES)
    assert sum(weights[task] * values[task] for task in values) == pytest.approx(
        value(root)[0]
    )
    assert sum(weights.values()) == pytest.approx(1)


def test_a_missing_task_leaves_no_number_unless_the_tree_says_so() -> None:
    there = {task: n for task, n in SIZES.items() if task != "chem"}
    assert tree().samples(there) == () and leaf_weights(tree(), there) == {}
    assert tree().missing(there) == ("chem",)
    humanities, science, _ = tree().nodes()
    assert leaf_weights(humanities, there) and not science.samples(there)
    assert leaf_weights(tree(missing="ignore"), there)["physics"] == 0.5
    below = read_tree({"missing": "ignore", "parts": [HUMANITIES, SCIENCE]})
    assert leaf_weights(below, there)["physics"] == 0.5
    assert leaf_weights(below, {"law": 5}) == {"law": 1.0}
    assert below.samples({}) == ()


def test_a_tree_reads_back() -> None:
    for node in (tree(), tree(missing="ignore")):
        assert read_tree(node.as_dict()) == node
    assert [node.name for node in tree().nodes()] == ["humanities", "science", "all"]
    assert tree().tasks == tuple(SIZES)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["law"], "must be a mapping"),
        ({"parts": []}, "needs 'parts'"),
        ({"parts": "law"}, "needs 'parts'"),
        ({"parts": ["law"], "averge": "macro"}, "average"),
        ({"parts": ["law"], "average": "median"}, "macro"),
        ({"parts": ["law"], "missing": 0}, "ignore"),
        ({"parts": ["law", {"parts": ["logic"]}]}, "needs a name"),
        ({"parts": ["law", 3]}, "must be a mapping"),
        ({"parts": ["law", "law"]}, "'law' occurs in the tree twice"),
        ({"name": "law", "parts": ["law"]}, "'law' occurs in the tree twice"),
    ],
)
def test_what_is_no_tree(given: Any, says: str) -> None:
    with pytest.raises(EvalwrightError, match=says):
        read_tree(given)


def test_a_tree_is_not_deeper_than_anybody_reads() -> None:
    given: Any = "law"
    for level in range(30):
        given = {"name": f"level {level}", "parts": [given]}
    with pytest.raises(ConfigurationError, match="20 levels"):
        read_tree(given)


def test_a_node_is_shown_once_and_not_beside_its_only_part() -> None:
    group = Node("id/safety/safeguard", ("a", "b"))
    chain = Node("id", (Node("id/safety", (group,)),))
    other = Node("vi", (Node("vi/nlu", ("c",)), Node("vi/safety", ("d",))))
    trees = Node("SEA", (chain, other)), Node("all", (other, chain))
    found = [
        node.name for node in distinct(node for tree in trees for node in tree.nodes())
    ]
    assert found == ["id", "vi/nlu", "vi/safety", "vi", "SEA", "all"]


TAGGED: dict[str, dict[str, Any]] = {
    "th-nlu": {"language": "th", "competency": "nlu"},
    "th-pair": {"language": "th", "competency": "pragmatics", "group": "lindsea"},
    "th-single": {"language": "th", "competency": "pragmatics", "group": "lindsea"},
    "vi-nlu": {"language": "vi", "competency": "nlu"},
    "plain": {"source": "web"},
}


def shape(node: Node) -> dict[str, Any]:
    """A tree as nested names."""
    return {
        node.name: [
            part if isinstance(part, str) else shape(part) for part in node.parts
        ]
    }


def test_a_tree_is_made_from_metadata() -> None:
    by = ["language", "competency", {"key": "group", "average": "pooled"}]
    root = read_tree({"name": "Asia", "by": by}, tasks=TAGGED)
    assert shape(root) == {
        "Asia": [
            {
                "Thai": [
                    {"Thai/Understanding": ["th-nlu"]},
                    {
                        "Thai/pragmatics": [
                            {"Thai/pragmatics/lindsea": ["th-pair", "th-single"]}
                        ]
                    },
                ]
            },
            {"Vietnamese": [{"Vietnamese/Understanding": ["vi-nlu"]}]},
        ]
    }
    averages = {node.name: node.average for node in root.nodes()}
    assert averages["Thai/pragmatics/lindsea"] == "pooled"
    assert {*averages.values()} == {"pooled", "macro"}
    keys = {node.name: dict(node.keys) for node in root.nodes()}
    assert keys["Thai/Understanding"] == {"language": "th", "competency": "nlu"}
    assert keys["Asia"] == {}
    sizes = dict.fromkeys(TAGGED, 10)
    assert leaf_weights(root, sizes) == pytest.approx(
        {"th-nlu": 0.25, "th-pair": 0.125, "th-single": 0.125, "vi-nlu": 0.5}
    )


def test_written_parts_stand_beside_those_from_metadata() -> None:
    parts = [{"name": "Thai nlu", "parts": ["th-nlu"]}, "plain"]
    root = read_tree({"by": "language", "parts": parts}, tasks=TAGGED)
    assert shape(root)["overall"] == [
        {"Thai": ["th-pair", "th-single"]},
        {"Vietnamese": ["vi-nlu"]},
        {"Thai nlu": ["th-nlu"]},
        "plain",
    ]
    assert read_tree({"by": "language", "missing": "ignore"}, tasks=TAGGED).ignores_missing  # fmt: skip
    inner = read_tree({"by": "language", "missing": "ignore"}, tasks=TAGGED).parts[0]
    assert isinstance(inner, Node) and inner.ignores_missing


def test_names_from_metadata_are_unique() -> None:
    tasks = {
        "a": {"k": "overall"},
        "b": {"k": "a"},
        "c": {"k": "c/d"},
        "d": {"k": "c", "l": "d"},
    }
    root = read_tree({"by": ["k", "l"]}, tasks=tasks)
    names = [*(node.name for node in root.nodes()), *root.tasks]
    assert len(names) == len(set(names))
    assert {*root.tasks} == {*tasks}


def test_a_task_in_two_places_has_both_weights() -> None:
    tasks: dict[str, dict[str, Any]] = {"x": {"k": ["a", "b"]}, "y": {"k": "a"}}
    root = read_tree({"by": "k"}, tasks=tasks)
    assert root.tasks == ("x", "y")
    assert leaf_weights(root, {"x": 5, "y": 5}) == {"x": 0.75, "y": 0.25}
    pool = read_tree({"by": "k", "average": "pooled"}, tasks=tasks)
    assert pool.samples({"x": 5, "y": 5}) == (Sample(("x", "y"), 1.0),)


def test_keys_that_no_task_has_make_no_level() -> None:
    assert shape(read_tree({"by": ["domain", "language"]}, tasks=TAGGED))["overall"]
    assert read_tree({"by": "domain"}, tasks=TAGGED).parts == ()
    assert read_tree({"by": "language"}).parts == ()
