"""Agreement of judges from recorded scores: against numbers worked out apart, over one run and
several.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalwright import ScriptedModel, evaluate, score_run
from evalwright.analysis.judge_validation.panels import measure_agreement
from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.requests import Classify
from evalwright.reports.documents.judges import agreement_document
from evalwright.reports.markdown import to_markdown
from evalwright.runs.reader import Run
from evalwright.statistics import cohen_kappa, gwet_ac1, raw_agreement
from evalwright.tasks.loading import task_from_definition
from support.shown import terminal
from support.typed import typed as command

pytestmark = pytest.mark.usefixtures("own_folder")

N = 12


def judge(values: Sequence[float], name: str) -> ScriptedModel:
    """Gives the n-th article's summary the n-th value."""

    def script(request: Any) -> list[float]:
        assert isinstance(request, Classify)
        value = values[int(request.premise.split()[-1])]
        return [1 - value, value]

    return ScriptedModel(
        script, name=name, version=json.dumps(list(values)), abilities=["classify"]
    )


def run_of(
    judges: dict[str, ScriptedModel],
    *,
    draws: int = 1,
    answers: str = "A summary of six whole words.",
    **more: Any,
) -> Run:
    rows = [
        {"id": f"<b>{place}</b>", "input": str(place), "text": f"Article {place}"}
        for place in range(N)
    ]
    drawing = {"draws": draws, "temperature": 0.5} if draws > 1 else {}
    task = task_from_definition(
        {
            "task": "summaries",
            "dataset": {"rows": rows},
            "sample": {"passages": ["{{ text }}"]},
            "answer": drawing,
            "scorers": [
                {
                    "consistency": {
                        "judges": list(judges),
                        "only_answered": False,
                        **more,
                    }
                }
            ],
            "metrics": ["hallucination-rate"],
        }
    )
    (run,) = evaluate(
        task,
        ScriptedModel(answers, name="m"),
        roles=judges,
        name=f"run-{len(answers)}-{draws}",
    )
    return run


A = [0.9, 0.8, 0.2, 0.5, 0.1, 0.7, 0.6, 0.3, 0.95, 0.4, 0.85, 0.05]
B = [0.8, 0.4, 0.3, 0.6, 0.2, 0.9, 0.1, 0.2, 0.99, 0.7, 0.9, 0.5]


def votes(*columns: Sequence[float], threshold: float = 0.5) -> np.ndarray[Any, Any]:
    return (threshold <= np.array(columns).T).astype(float)


@pytest.mark.parametrize("threshold", [0.5, 0.75])
def test_two_judges_of_one_run(threshold: float) -> None:
    run = run_of({"a": judge(A, "m/a"), "b": judge(B, "m/b")}, threshold=threshold)
    agreement = measure_agreement([run])
    table = votes(A, B, threshold=threshold)
    assert [
        (rater.name, rater.role, rater.share.value) for rater in agreement.raters
    ] == [
        ("m/a", "a", table[:, 0].mean()),
        ("m/b", "b", table[:, 1].mean()),
    ]
    (pair,) = agreement.pairs
    assert pair.raw == raw_agreement(table)
    assert pair.kappa == cohen_kappa(table[:, 0], table[:, 1])
    assert pair.ac1 == gwet_ac1(table, labels=2)
    assert (pair.only_a, pair.only_b) == (
        int((table[:, 0] > table[:, 1]).sum()),
        int((table[:, 0] < table[:, 1]).sum()),
    )
    # Raw agreement and kappa once more, by hand.
    same = float((table[:, 0] == table[:, 1]).mean())
    p, q = table.mean(axis=0)
    chance = p * q + (1 - p) * (1 - q)
    assert pair.raw.value == pytest.approx(same)
    assert pair.kappa.value == pytest.approx((same - chance) / (1 - chance))
    assert (agreement.n, agreement.n_left_out, agreement.n_other) == (N, 0, 0)


def test_judges_of_several_runs() -> None:
    run = run_of({"a": judge(A, "m/a")})
    second = score_run(run, roles={"a": judge(B, "m/b")}, name="second")
    third = score_run(run, roles={"a": judge(B[::-1], "m/b")}, name="third")
    agreement = measure_agreement([run, second, third])
    table = votes(A, B, B[::-1])
    assert [rater.name for rater in agreement.raters] == [
        "m/a",
        "m/b (second)",
        "m/b (third)",
    ]
    assert agreement.raw == raw_agreement(table)
    assert agreement.ac1 == gwet_ac1(table, labels=2)
    assert len(agreement.pairs) == 3
    assert agreement.disputed[0].values != ()


def test_what_cannot_be_done_is_said() -> None:
    run = run_of({"a": judge(A, "m/a")})
    with pytest.raises(ConfigurationError, match=r"there is one \('m/a'\)"):
        measure_agreement([run])
    with pytest.raises(UnknownName, match="Did you mean 'consistency'"):
        measure_agreement([run], scorer="consistncy")
    with pytest.raises(ConfigurationError, match="between 0 and 1"):
        measure_agreement([run], level=95)


def test_the_page_and_the_command(tmp_path: Path) -> None:
    run = run_of({"a": judge(A, "m/a`|<i>"), "b": judge(B, "m/b")})
    agreement = measure_agreement([run])
    text = terminal(agreement_document(agreement), width=160)
    for wanted in (
        "Cohen's kappa",
        "Gwet's AC1",
        "Only first",
        "largest disagreement",
        "m/b",
    ):
        assert wanted in text
    markdown = to_markdown(agreement_document(agreement))
    # untrusted names stand in code spans
    assert "<b>" not in markdown.replace("`summaries <b>", "`")
    assert "| Judge | Passes &#91;interval&#93; | Answers |" in markdown
    done = command("check", "judge", "agreement", run.id, "--json", folder=tmp_path)
    assert done.code == 0, done.text
    data = json.loads(done.out)
    assert data["pairs"][0]["kappa"]["value"] == pytest.approx(
        agreement.pairs[0].kappa.value
    )
    assert data["raters"][0]["share"]["n"] == N
    done = command(
        "check", "judge", "agreement", run.id, "--markdown", "a.md", folder=tmp_path
    )
    assert done.code == 0, done.text
    assert Path("a.md").read_text(encoding="utf-8") == markdown
    assert command("check", "judge", "agreement", "none", folder=tmp_path).code == 2
