"""What the task files call."""

from typing import Any


def heads(doc: Any) -> list[str]:
    return [f"{option} stands over {doc['numbered']}" for option in doc["options"]]


def numbered(table: Any) -> Any:
    return table.map(lambda doc: {**doc, "numbered": f"night {doc['n']}"})


def scored(doc: Any, results: list[str]) -> dict[str, Any]:
    hit = doc["options"][doc["gold"]] in results[0]
    return {"hit": hit, "length": len(results[0]), "sure": [doc["n"], results[0]]}


def longest(items: list[int]) -> int:
    return max(items)


def share(items: list[Any]) -> Any:
    return sum(len(text) > n for n, text in items) / len(items)
