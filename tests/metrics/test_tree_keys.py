"""What the nodes of a dialect's tree select, so that boards name and find them by language."""

from __future__ import annotations

from evalwright.metrics.tree import Node, is_named_by_dialect, with_shared_keys
from evalwright.runs.grouping import metadata_of

TASKS = {
    f"sea-helm:{name}/{language}": {
        "language": language, "competency": competency, "aggregation_group": group,
    }
    for name, language, competency, group in (
        ("toxicity", "id", "safety", ""), ("general", "id", "safety", "safeguard"), ("wild", "id", "safety", "safeguard"),
        ("qa", "id", "nlu", ""), ("qa", "th", "nlu", ""),
    )
}  # fmt: skip


def tree() -> Node:
    safeguard = Node(
        "sea-helm:id/safety/safeguard", ("sea-helm:general/id", "sea-helm:wild/id")
    )
    safety = Node("sea-helm:id/safety", ("sea-helm:toxicity/id", safeguard))
    indonesian = Node(
        "sea-helm:id", (safety, Node("sea-helm:id/nlu", ("sea-helm:qa/id",)))
    )
    thai = Node("sea-helm:th", (Node("sea-helm:th/nlu", ("sea-helm:qa/th",)),))
    return Node("sea-helm:all", (indonesian, thai))


def test_a_dialects_node_selects_what_its_tasks_share() -> None:
    keys = {
        node.name: dict(node.keys) for node in with_shared_keys(tree(), TASKS).nodes()
    }
    assert keys == {
        "sea-helm:all": {},
        "sea-helm:id": {"language": "id"},
        "sea-helm:id/safety": {"language": "id", "competency": "safety"},
        "sea-helm:id/safety/safeguard": {
            "language": "id", "competency": "safety", "aggregation_group": "safeguard",
        },
        "sea-helm:id/nlu": {"language": "id", "competency": "nlu"},
        "sea-helm:th": {"language": "th"},
        "sea-helm:th/nlu": {"language": "th", "competency": "nlu"},
    }  # fmt: skip


def test_nodes_that_people_name_keep_their_names() -> None:
    node = Node("exams: all", ("law", "logic"))
    assert not is_named_by_dialect(node)
    facts = {"law": {"language": "en"}, "logic": {"language": "en"}}
    assert with_shared_keys(node, facts).keys == ()


def test_a_dialects_groups_are_metadata_of_its_tasks() -> None:
    definition = {"dialect": "sea-helm", "competency": "nlu", "language": "th"}
    task = {"name": "a", "definition": definition, "metadata": {"language": "lo"}}
    own = {"name": "b", "definition": {"competency": "nlu"}, "metadata": {}}
    assert metadata_of([task, own]) == {
        "a": {"competency": "nlu", "language": "lo"},
        "b": {},
    }
