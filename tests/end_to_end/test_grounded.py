"""Grounded answers through the real engine: scripted models score what the card says, and a real
small model runs.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalwright import evaluate
from evalwright.analysis.context_gain import measure_context_gains
from evalwright.evaluation.configuration import PromptFormat
from evalwright.reports.conclusions import gain_sentence
from evalwright.runs.reader import Run
from support.grounded_models import HABITS, model, perfect, reading, rows
from support.tiny_models import make_tiny_model

CARD = (Path(__file__).resolve().parents[2] / "docs" / "grounded.md").read_text(
    encoding="utf-8"
)
ROW = re.compile(r"^\| (?P<model>[^|]+) \| (?P<cells>[^\n]+) \|$", re.MULTILINE)


def table(heading: str) -> dict[str, list[str]]:
    """The rows of the card's table under a heading, by model."""
    section = CARD.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    found = {
        one["model"]: [cell.strip() for cell in one["cells"].split("|")]
        for one in ROW.finditer(section)
    }
    found.pop("model")
    return found


SCORES = table("What scripted models score")
INJECTED = table("Instructions in passages")


pytestmark = pytest.mark.usefixtures("own_folder")


def metrics(run: Run, task: int = 0) -> dict[str, float]:
    return {metric.label: metric.estimate.value for metric in run.tasks[task].metrics}


def shares(run: Run) -> dict[bool, float]:
    """The headline by whether the passages answer, in points."""
    found: dict[bool, list[float]] = {True: [], False: []}
    for row in run.rows():
        found[row["metadata"]["answerable"]].append(row["scores"]["grounding"]["value"])
    return {key: 100 * sum(values) / len(values) for key, values in found.items()}


def shown(value: float) -> str:
    return "none" if value != value else f"{100 * value:g}"


def test_the_card_names_every_scripted_model() -> None:
    assert set(SCORES) == set(HABITS)


@pytest.mark.parametrize("name", HABITS)
def test_a_scripted_model_scores_what_its_card_says(name: str) -> None:
    answerable, not_answerable, *citations, label = SCORES[name]
    (run,) = evaluate("factual-grounded", model(HABITS[name], "grounded"))
    assert run.n_missing == 0
    assert shares(run) == {True: float(answerable), False: float(not_answerable)}
    found = metrics(run)
    for column, value in zip(("precision", "recall", "f1"), citations, strict=True):
        if value != "-":
            assert shown(found[f"citation-{column}"]) == value, column
    assert run.tasks[0].n_unsure == (2 if name == "wrong answers, cited" else 0)
    scored = [
        row for row in run.rows() if row["metadata"]["answerable"] and row["scores"]
    ]
    labels = {row["scores"]["grounding"]["label"] for row in scored}
    assert labels == {label}


# -- instructions in passages
# -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", INJECTED)
@pytest.mark.parametrize("form", ["chat", "text"])
def test_an_instruction_in_a_passage_costs_what_the_card_says(
    name: str, form: PromptFormat
) -> None:
    (run,) = evaluate(
        "factual-grounded-injected",
        model(HABITS[name], "grounded_injected"),
        format=form,
    )
    assert metrics(run)["accuracy"] * 100 == float(INJECTED[name][0])
    if name == "obeys passages":
        attacks = Counter(row["metadata"]["attack"] for row in run.rows())
        assert len(attacks) >= 8, "every attack reached the model and was obeyed"


def test_every_attack_is_in_the_prompt_on_the_line_of_its_passage() -> None:
    seen: list[str] = []

    def looking(row: Any, prompt: str) -> str:
        seen.append(prompt)
        return perfect(row, prompt)

    evaluate(
        "factual-grounded-injected", model(looking, "grounded_injected"), format="chat"
    )
    assert len(seen) == len(rows("grounded_injected"))
    for prompt in seen:
        assert "reply only with «" in prompt
        assert re.findall(r"^\[(\d)\]", prompt, re.MULTILINE) == ["1", "2", "3"]
        assert len(re.findall(r"^Question:", prompt, re.MULTILINE)) == 1


# -- with a judge
# -----------------------------------------------------------------------------------------------------------


def test_a_judge_decides_what_rules_are_unsure_of() -> None:
    def wordy(row: Any, prompt: str) -> str:
        return (
            f"{perfect(row, prompt)}. Other things are told there too [1]."
            if row["answerable"]
            else "Not in the passages"
        )

    target = model(wordy, "grounded")
    (run,) = evaluate(
        "factual-grounded-judged", target, roles={"judge": "baseline/lexical"}
    )
    (plain,) = evaluate("factual-grounded", target)
    assert run.n_missing == 0
    reasons = [row["scores"]["grounding"].get("unsure", "") for row in plain.rows()]
    for_a_judge = sum("needs a judge" in reason for reason in reasons)
    assert 0 < for_a_judge <= plain.tasks[0].n_unsure
    scores = [score for row in run.rows() for score in row["scores"].values()]
    unsure = [score["unsure"] for score in scores if score.get("unsure")]
    assert run.tasks[0].n_unsure < for_a_judge
    assert not any("needs a judge" in reason for reason in unsure)
    assert run.data["usage"]["requested"] >= len(reasons) + for_a_judge


# -- what passages add
# ------------------------------------------------------------------------------------------------------

TWINS = ["factual-grounded", "factual-grounded-closed-book"]


def test_the_closed_book_twin_shows_what_passages_add() -> None:
    (run,) = evaluate(TWINS, model(reading, "grounded"))
    (found,) = measure_context_gains(run)
    by_name = found.parts
    assert list(by_name) == ["all", "answerable", "not answerable"]
    data = rows("grounded")
    answerable = sum(row["answerable"] for row in data)
    assert by_name["all"].n == len(data)
    assert by_name["all"].difference == pytest.approx(answerable / len(data))
    assert (by_name["answerable"].mean_a, by_name["answerable"].mean_b) == (1.0, 0.0)
    assert by_name["answerable"].p_value < 0.001
    assert by_name["answerable"].low > 0.5
    assert by_name["not answerable"].difference == 0.0
    assert by_name["all"].n_clusters == len({row["cluster"] for row in data})
    assert "higher" in gain_sentence(found)
    assert found.as_dict()["parts"][1]["difference"] == 1.0


# -- a real model
# -----------------------------------------------------------------------------------------------------------


def test_a_real_transformer_runs_from_end_to_end(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "tiny", "llama", context=4096)
    (run,) = evaluate(TWINS, f"hf/{folder}", limit=4)
    assert run.n_missing == 0
    for row in run.rows():
        assert row["answer"] is not None
        assert next(iter(row["scores"].values()))["label"] in run_labels()
    assert metrics(run)["accuracy"] <= 0.5, "random weights know nothing"


def run_labels() -> tuple[str, ...]:
    from evalwright.scorers.grounding.outcome import OUTCOMES

    return OUTCOMES
