"""Records of leaderboards (`board.json`) of any size, the same ones on every machine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

LANGUAGE_NAMES = (
    "Thai", "Vietnamese", "Indonesian", "Tamil", "Filipino", "Malay", "Burmese", "Khmer",
    "Lao", "Javanese", "Sundanese", "Korean", "Japanese", "Hindi", "Bengali", "Swahili",
)  # fmt: skip
COMPETENCY_NAMES = (
    "Understanding",
    "Generation",
    "Reasoning",
    "Instruction following",
    "Safety",
    "Translation",
)
PROVIDERS = ("acme", "borealis", "cumulus", "delta-lab", "ember", "fjord")
LICENCES = ("apache-2.0", "mit", "llama3.1", "proprietary")
SIZES = (0.5, 1.5, 3, 7, 8, 14, 32, 70, 236)


def board_record(
    *,
    models: int = 12,
    languages: int = 3,
    tasks: int = 9,
    slices: int = 0,
    seed: int = 1,
    labels: Sequence[str] = (),
    names: Sequence[str] = (),
    pages: bool = False,
    facts: bool = True,
    corrected: bool = False,
    missing_share: float = 0.0,
    tasks_below_root: bool = False,
) -> dict[str, Any]:
    """Make the record of a board of languages, competencies and tasks.

    Args:
        models: Number of models.
        languages: Number of languages, the groups below the root.
        tasks: Number of tasks of all languages together.
        slices: Number of slices of each task.
        seed: Seeds the scores and facts.
        labels: Labels of the first models.
        names: Titles of the first tasks.
        pages: Whether models have pages.
        facts: Whether models have facts.
        corrected: Whether there are rates corrected by labels, and judge's errors.
        missing_share: Share of the scores of tasks that are missing.
        tasks_below_root: Put all tasks below the root, as a suite without a tree has them.
    """
    generator = random.Random(seed)
    abilities = sorted(
        (generator.uniform(0.2, 0.9) for _ in range(models)), reverse=True
    )
    model_records = _models(generator, models, labels, pages, facts)
    nodes: list[dict[str, Any]] = []

    def add_node(
        title: str, parent: dict[str, Any] | None, kind: str, keys: dict[str, str]
    ) -> dict[str, Any]:
        node: dict[str, Any] = {
            "id": f"{parent['id']}/{title}" if parent else title,
            "parent": parent["id"] if parent else None,
            "title": title,
            "kind": kind,
            "keys": keys,
        }
        nodes.append(node)
        return node

    language_names = [
        LANGUAGE_NAMES[i % len(LANGUAGE_NAMES)] + ("" if i < len(LANGUAGE_NAMES) else f" {i}")
        for i in range(languages)
    ]  # fmt: skip
    root = add_node("Overall", None, "group", {})
    task_names = [names[i] if i < len(names) else f"task-{i + 1}" for i in range(tasks)]
    by_language = [
        [name for i, name in enumerate(task_names) if i % languages == index]
        for index in range(languages)
    ]

    def add_task(name: str, parent: dict[str, Any], keys: dict[str, str]) -> None:
        task = add_node(name, parent, "task", keys)
        for i in range(slices):
            title = f"domain: part {i + 1}"
            add_node(title, task, "slice", {**keys, "domain": f"part {i + 1}"})

    if tasks_below_root:
        for name in task_names:
            add_task(name, root, {"task": name})
    else:
        for language, own_tasks in zip(language_names, by_language, strict=True):
            code = language.lower()
            group = add_node(language, root, "group", {"language": code})
            competencies: dict[str, list[str]] = {}
            for i, name in enumerate(own_tasks):
                competency = COMPETENCY_NAMES[i % len(COMPETENCY_NAMES)]
                competencies.setdefault(competency, []).append(name)
            for competency, competency_tasks in competencies.items():
                keys = {"language": code, "competency": competency.lower()}
                inner = add_node(competency, group, "group", keys)
                for name in competency_tasks:
                    add_task(name, inner, {**keys, "task": name})
    _add_scores(generator, nodes, abilities, missing_share)
    used = [name for name in COMPETENCY_NAMES if any(node["title"] == name for node in nodes)]  # fmt: skip
    dimensions = [
        {
            "key": "language",
            "title": "Language",
            "values": [[name.lower(), name] for name in language_names],
        },
        {
            "key": "competency",
            "title": "Competency",
            "values": [[name.lower(), name] for name in used],
        },
    ]
    if corrected:
        nodes.append(_add_corrections(generator, model_records, nodes[0]))
    return {
        "schema": 1,
        "preset": "",
        "title": "Synthetic board",
        "as_of": "2026-11-29",
        "columns": [],
        "rank_by": root["id"],
        "dimensions": [] if tasks_below_root else dimensions,
        "nodes": nodes,
        "models": model_records,
        "judges": [],
        "citation": {},
        "notes": [
            "Intervals are 95%. Scores generalise to items drawn like these.",
            "A rank is a range: the best and the worst rank that the model can have.",
        ],
    }


def _models(
    generator: random.Random,
    count: int,
    labels: Sequence[str],
    pages: bool,
    facts: bool,
) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for i in range(count):
        provider = generator.choice(PROVIDERS)
        size = generator.choice(SIZES)
        is_open = generator.random() < 0.7
        name = f"{provider}/{provider[:4]}-{size:g}b-v{i + 1}"
        record: dict[str, Any] = {
            "rank": None,
            "tied": "",
            "model": name,
            "label": labels[i] if i < len(labels) else name,
            "run": f"run-{i + 1}",
            "date": f"2026-{1 + i % 11:02d}-{1 + i % 28:02d}",
            "items": 900 - i % 3,
            "asked": 900,
            "not_asked": 0,
            "missing": i % 3,
            "unsure": 0,
            "provisional": i % 17 == 5,
            "outcomes": {},
            "cost": None,
            "facts": {},
        }
        if facts:
            record["facts"] = {
                "provider": provider,
                "size": size if is_open else None,
                "open": is_open,
                "licence": generator.choice(LICENCES[:3]) if is_open else "proprietary",
                "released": f"202{generator.randint(4, 6)}-{generator.randint(1, 12):02d}-15",
                "price_in": None if is_open else generator.choice((0.1, 0.5, 3.0)),
                "url": f"https://example.org/{i}",
            }
        if pages:
            record["page"] = f"models/model-{i + 1}.html"
        records.append(record)
    return records


def _add_scores(
    generator: random.Random,
    nodes: list[dict[str, Any]],
    abilities: Sequence[float],
    missing_share: float,
) -> None:
    """Give each node a number of every model: tasks around the models' abilities, groups less
    far from them.
    """
    parents = {node["parent"] for node in nodes}
    for node in nodes:
        is_group = node["kind"] == "group"
        spread = 0.03 if is_group else 0.1
        n_items = 100 * sum(
            inner["kind"] == "task" and inner["id"].startswith(node["id"])
            for inner in nodes
        )
        n_items = max(n_items, 25)
        values: list[float | None] = []
        lows: list[float | None] = []
        highs: list[float | None] = []
        reasons: dict[str, str] = {}
        for row, ability in enumerate(abilities):
            if not is_group and generator.random() < missing_share:
                values.append(None)
                lows.append(None)
                highs.append(None)
                reasons[str(row)] = "no answer to any of its questions"
                continue
            noise = 0.0 if node["parent"] is None else generator.gauss(0, spread)
            score = min(0.995, max(0.005, ability + noise))
            half_width = 1.96 * (score * (1 - score) / n_items) ** 0.5
            values.append(score)
            lows.append(max(0.0, score - half_width))
            highs.append(min(1.0, score + half_width))
        is_ranked = is_group or node["id"] not in parents
        node |= {
            "metric": "mean of its tasks" if is_group else "accuracy",
            "scale": "0 to 1",
            "measure": "",
            "lower_is_better": False,
            "tasks": [],
            "value": values,
            "low": lows,
            "high": highs,
            "n": [n_items if score is not None else 0 for score in values],
            "missing": [0 if score is not None else n_items for score in values],
            "rank": _ranks(values, lows, highs) if is_ranked else [],
            "tied": [],
            "reasons": reasons,
        }


def _ranks(
    values: Sequence[float | None],
    lows: Sequence[float | None],
    highs: Sequence[float | None],
) -> list[list[int] | None]:
    """Rank by intervals that do not overlap, which is cautious and quick."""
    starts = sorted(low for low in lows if low is not None)
    ends = sorted(high for high in highs if high is not None)
    ranks: list[list[int] | None] = []
    for score, low, high in zip(values, lows, highs, strict=True):
        if score is None or low is None or high is None:
            ranks.append(None)
            continue
        better = sum(start > high for start in starts)
        worse = sum(end < low for end in ends)
        ranks.append([1 + better, len(ends) - worse])
    return ranks


def _add_corrections(
    generator: random.Random, models: list[dict[str, Any]], root: dict[str, Any]
) -> dict[str, Any]:
    """Correct the models' scores at the root, and return the node with the judge's own numbers."""
    judged = {
        **root,
        "id": f"{root['id']}, by the judge",
        "title": f"{root['title']}, by the judge",
        "rank": [],
        "tied": [],
    }
    for name in ("value", "low", "high"):
        root[name] = [*root[name]]
    for row, model in enumerate(models):
        score = root["value"][row]
        corrected = min(0.99, score + generator.uniform(-0.05, 0.05))
        model["corrected"] = _estimate(corrected, 0.04, 400)
        for name in ("value", "low", "high"):
            root[name][row] = model["corrected"][name]
        model["judge_errors"] = {
            "false_alarm": _estimate(0.06, 0.03, 120),
            "miss": _estimate(0.11, 0.05, 80),
            "labels": 200,
            "pooled": row % 2 == 1,
        }
    return judged


def _estimate(center: float, half_width: float, n: int) -> dict[str, Any]:
    return {
        "value": center,
        "low": max(0.0, center - half_width),
        "high": min(1.0, center + half_width),
        "level": 0.95,
        "n": n,
        "n_missing": 0,
        "method": "PPI++",
    }
