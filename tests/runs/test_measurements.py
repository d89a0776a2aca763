"""What is measured of a stored run: scores by item and draw, clusters, tokens, and the pace."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from evalwright import Response, ScriptedModel, Usage, evaluate
from evalwright.runs.measurements import judges_share, measure
from evalwright.tasks.loading import task_from_definition
from support.runs import make_run, rewritten


def test_draws_tokens_and_costs_of_a_real_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": str(i), "q": f"Q{i}?", "c": "a" if i < 2 else ""} for i in range(5)]
    task = task_from_definition(
        {
            "task": "drawn",
            "dataset": {"rows": rows},
            "sample": {
                "id": "{{ id }}",
                "input": "{{ q }}",
                "target": "yes",
                "cluster": "{{ c }}",
            },
            "prompt": {"user": "{{ input }}"},
            "answer": {"max_tokens": 4, "temperature": 1.0, "draws": 3},
            "scorers": ["exact-match"],
        }
    )
    model = ScriptedModel(
        lambda request: Response(
            "yes" if request.draw else "no",  # type: ignore[union-attr]
            usage=Usage(7, 2),
            cost=0.5,
        ),
        name="m/drawing",
    )
    run = evaluate(task, model)[0]
    lines = run.samples_file.read_text().splitlines()
    run = rewritten(
        run, "".join(f"{line}\n" for line in (*lines[::3], *lines[1::3], *lines[2::3]))
    )
    found, pace = measure(run)
    measured = found["drawn"]
    assert measured.scores.shape == (5, 3)
    assert measured.means == pytest.approx(np.full(5, 2 / 3))
    assert measured.clusters is not None
    assert len(set(measured.clusters.tolist())) == 4
    assert (
        measured.clusters[measured.ids.index("0")]
        == measured.clusters[measured.ids.index("1")]
    )
    assert (
        measured.requests.sum(),
        measured.input_tokens.sum(),
        measured.cost.sum(),
    ) == (15, 105, 7.5)
    assert (pace.requests, pace.seconds) == (15, run.data["seconds"])
    assert judges_share(run, 15) == 0.0


def test_failed_items_and_unpriced_answers(tmp_path: Path) -> None:
    measured = measure(make_run(tmp_path, scores=[1.0, None, 0.0]))[0]["factual"]
    assert [math.isnan(x) for x in measured.means] == [False, True, False]
    assert len(measured.requests) == 2
    assert np.isnan(measured.cost).all()
    assert measured.clusters is None
