"""What changed between two versions of a task set is found by id, and hashes say what is equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright import load_task
from evalwright.analysis.contamination.versions import diff_tasks
from support.typed import typed

ROWS: list[dict[str, Any]] = [
    {
        "id": "a",
        "input": "Capital of Kazakhstan?",
        "target": "Nur-Sultan",
        "source": "atlas",
    },
    {"id": "b", "input": "Capital of Peru?", "target": "Lima"},
    {"id": "c", "input": "Capital of Chile?", "target": "Santiago"},
    {"id": "d", "input": "Capital of Cuba?", "target": "Havana"},
]


def write(name: str, rows: list[dict[str, Any]], **more: Any) -> str:
    Path(name).write_text(
        json.dumps({"task": "capitals", "dataset": {"rows": rows}, **more})
    )
    return name


@pytest.fixture(autouse=True)
def _folder(own_folder: Path) -> None:
    write("1.yaml", ROWS)


def test_every_sort_of_change_is_found() -> None:
    new = [
        {**ROWS[0], "target": "Astana", "source": "decree"},
        {**ROWS[1], "input": "Name the capital of Peru."},
        {**ROWS[2], "id": "chile"},
        {"id": "e", "input": "Capital of Fiji?", "target": "Suva"},
    ]
    write("2.yaml", new, version="2", prompt={"user": "{{ input }}!"})
    found = diff_tasks(load_task("1.yaml"), load_task("2.yaml"))
    assert (found.added, found.removed, found.renamed, found.unchanged) == (
        ("e",),
        ("d",),
        (("c", "chile"),),
        0,
    )
    assert [(one.id, one.what) for one in found.changed] == [
        ("a", ("references", "metadata")),
        ("b", ("wording",)),
    ]
    first = found.changed[0]
    assert first.before["references"] == ["Nur-Sultan"] and first.after[
        "references"
    ] == ["Astana"]
    assert (
        first.before["metadata"] == {"source": "atlas"}
        and first.hash_before != first.hash_after
    )
    assert found.changed[1].after["wording"] == {"input": "Name the capital of Peru."}
    assert [setting.key for setting in found.settings] == ["prompt"]
    assert not found.same_scores
    shown = typed("tasks", "diff", "1.yaml", "2.yaml")
    assert shown.code == 1 and "Astana" in shown.out and "still" not in shown.out
    assert (
        "1 added; 1 removed; 1 with another wording; 1 with other references; 1 renamed; other prompt"
        in " ".join(shown.out.split())
    )


def test_a_version_that_should_have_moved_is_said() -> None:
    write("2.yaml", ROWS[1:])
    done = typed("tasks", "diff", "1.yaml", "2.yaml")
    assert done.code == 1 and "The version is still 1" in " ".join(done.out.split())


def test_the_order_of_rows_and_other_metadata_change_no_score() -> None:
    write("2.yaml", [{**row, "domain": "towns"} for row in ROWS[::-1]], version="1.1")
    done = typed("tasks", "diff", "1.yaml", "2.yaml", "--json")
    data = json.loads(done.out)
    assert (done.code, data["same_scores"], len(data["changed"])) == (0, True, 4)
    assert (
        data["conclusion"]
        == "Changed from version 1 to 1.1: 4 with other metadata alone."
    )
    same = typed("tasks", "diff", "1.yaml", "1.yaml")
    assert same.code == 0 and "Nothing changed" in same.out
