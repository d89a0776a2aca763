"""Confidence is read as it is stated, held against scores of a run made by the engine, and
doubtful ones are none.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalwright import ScriptedModel, Task, evaluate
from evalwright.analysis.confidence import OPTIONS, STATED, measure_confidence
from evalwright.core.errors import RunError
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.scorers.text.confidence import stated_confidence
from evalwright.statistics import brier_score, calibration_error
from evalwright.tasks.compiling import compile_task
from evalwright.tasks.loading import definitions_of
from support.typed import typed


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Lima\n\nConfidence: 80%", 0.8), ("**Confidence:** 80 %", 0.8), ("confidence = 0.85", 0.85),
        ("Confidence level: 7/10", 0.7), ("My confidence is 95 percent.", 0.95), ("Confidence: 65", 0.65),
        ("Confidence: 100/100", 1.0), ("Confidence: 0", 0.0), ("Confidence: 62,5%", 0.625),
        ("I am 90% confident.", 0.9), ("Confidence: 30%. No, wait. Confidence: 60%", 0.6),
        ("Confidence: 1.0", 1.0), ("Confidence: 1", None), ("Confidence: 150%", None),
        ("Confidence: -20%", None), ("Confidence: 1234", None), ("Confidence: high", None),
        ("80% of it is water", None), ("", None), ("confidence " * 5000, None),
    ],
)  # fmt: skip
def test_a_stated_confidence_is_read_or_not_at_all(
    text: str, wanted: float | None
) -> None:
    assert stated_confidence(text) == (
        None if wanted is None else pytest.approx(wanted)
    )


N = 200
RNG = np.random.default_rng(11)
SURE = RNG.choice([0.55, 0.75, 0.95], N)
RIGHT = RNG.random(N) < SURE - 0.2


def a_task(folder: Path, **more: Any) -> Task:
    rows = [
        {"id": i, "input": f"Code of place {i}?", "target": f"K{i}"} for i in range(N)
    ]
    definition = {
        "task": "codes",
        "dataset": {"rows": rows},
        "scorers": ["short-answer"],
        **more,
    }
    return compile_task(definitions_of(definition, base=folder)[0])


def reply(request: Request) -> str:
    place = int(str(getattr(request, "prompt", "")).split("place ")[1].split("?")[0])
    said = f"K{place}" if RIGHT[place] else f"K{place + N}"
    return said if place < 10 else f"{said}\n\nConfidence: {100 * SURE[place]:.0f}%"


def test_an_overconfident_model_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings: dict[str, Any] = {"home": str(tmp_path / "home"), "name": "sure"}
    (run,) = evaluate(a_task(tmp_path), ScriptedModel(reply, version="1"), **settings)
    (one,) = measure_confidence(run)
    assert (one.source, one.answers, one.without, one.failed) == (STATED, N, 10, 0)
    right = RIGHT.astype(float)
    # Records stand in the run's own order, which changes no mean.
    assert one.brier.score.value == pytest.approx(
        brier_score(SURE[10:], right[10:]).score.value
    )
    assert one.calibration.raw == pytest.approx(
        calibration_error(SURE[10:], right[10:]).raw
    )
    assert (
        one.calibration.miscalibrated
        and one.calibration.low < 0.2 < one.calibration.high
    )
    assert (
        one.auroc.low > 0.5
        and one.risk_coverage.area.value < one.risk_coverage.area_by_chance
    )
    assert one.at_coverage[-1].coverage == 1.0
    shown = typed("check", "calibration", "sure")
    assert (
        shown.code == 0
        and "overconfident by" in shown.out
        and "10 without" in " ".join(shown.out.split())
    )
    assert (
        json.loads(typed("check", "calibration", "sure", "--json").out)[0]["tasks"][0][
            "without"
        ]
        == 10
    )


def test_options_have_their_share_of_the_probability(tmp_path: Path) -> None:
    rows = [
        {"id": i, "input": f"Place {i}?", "choices": ["a", "b", "c"], "target": i % 3}
        for i in range(30)
    ]
    definition = {
        "task": "abc",
        "dataset": {"rows": rows},
        "answer": {"mode": "likelihood"},
    }
    task = compile_task(definitions_of(definition, base=tmp_path)[0])

    def likely(request: Request) -> Response:
        option = str(getattr(request, "continuation", "")).strip()
        return Response(
            log_likelihood=math.log({"a": 0.3, "b": 0.1, "c": 0.1}[option]),
            tokens_scored=1,
        )

    settings: dict[str, Any] = {
        "home": str(tmp_path / "home"),
        "out": str(tmp_path / "runs"),
    }
    (run,) = evaluate(task, ScriptedModel(likely, version="1"), **settings)
    (one,) = measure_confidence(run)
    # Always "a" with 0.3 / 0.5, right once in three.
    assert one.source == OPTIONS
    assert one.brier.score.value == pytest.approx((0.4**2 + 2 * 0.6**2) / 3)
    assert one.calibration.overconfidence == pytest.approx(0.6 - 1 / 3)


def test_what_has_no_confidence_is_said(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "home": str(tmp_path / "home"),
        "out": str(tmp_path / "runs"),
    }
    (run,) = evaluate(a_task(tmp_path), ScriptedModel("x"), limit=3, **settings)
    with pytest.raises(RunError, match="No answer of"):
        measure_confidence(run)
    graded = a_task(tmp_path, scorers=["token-f1"])
    (run,) = evaluate(
        graded, ScriptedModel("place 3 K3 Confidence: 50%"), name="graded", **settings
    )
    with pytest.raises(RunError, match="not all right or wrong"):
        measure_confidence(run)
