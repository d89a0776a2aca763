"""Tasks where declining is right are checked for all but declining, and a note says so."""

from __future__ import annotations

from typing import Any

from evalwright.analysis.task_checks.ignorance import check_ignorance
from evalwright.analysis.task_checks.material import Material, read_material
from evalwright.tasks.loading import task_from_definition


def material(scorer: str, target: str) -> Material:
    rows = [
        {
            "id": str(n),
            "input": f"Which king ruled the land of Zandor{n}?",
            "target": target,
        }
        for n in range(30)
    ]
    definition: dict[str, Any] = {
        "task": f"asked-{scorer}",
        "dataset": {"rows": rows},
        "scorers": [scorer],
        "metrics": ["accuracy"],
    }
    return read_material(task_from_definition(definition))


def told(*materials: Material) -> list[str]:
    return [
        f"{finding.verdict}: {finding.text}" for finding in check_ignorance(materials)
    ]


def test_declining_is_no_fault_where_it_is_right() -> None:
    found = told(material("stress", "No answer"))
    assert not [text for text in found if text.startswith("fault")]
    assert any("declining is right on 30 samples" in text for text in found)
    assert not any("I don't know" in text for text in found)


def test_beside_other_tasks_it_is_judged_on_those() -> None:
    found = told(material("stress", "No answer"), material("exact-match", "Alaric"))
    assert any(text.startswith("ok: 'I don't know': 0%") for text in found)
