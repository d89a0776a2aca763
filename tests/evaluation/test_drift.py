"""Two backends asked the same: one model in two precisions, behind a server, and two that are not the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import AbilityError, ConfigurationError
from evalwright.core.requests import Generate, Request
from evalwright.evaluation.drift import measure_drift
from evalwright.models.registry import open_model
from evalwright.models.scripted import ScriptedModel
from support.openai_server import serving
from support.tiny_models import make_tiny_model
from support.typed import typed

CAPITALS = "Peru Kenya Japan Chile Egypt India Spain Italy Ghana Nepal Qatar Congo Sudan Niger Gabon Samoa Tonga Malta Benin Haiti"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("drift") / "model", context=1024)


@pytest.fixture
def short(tmp_path: Path) -> str:
    """A generation task whose answers are short; a random model is right in half of them."""
    rows = "\n".join(
        f"    - {{input: 'The capital of {name}:', target: {name}}}" for name in CAPITALS.split()
    )
    path = tmp_path / "short.yaml"
    path.write_text(
        f"task: short\ndataset:\n  rows:\n{rows}\nanswer: {{max_tokens: 6}}\nscorers: [exact-match]\nmetrics: [accuracy]\n",
        encoding="utf-8",
    )
    return str(path)


@pytest.mark.torch
def test_one_model_behind_a_server_is_the_same(folder: Path, short: str) -> None:
    with serving(folder) as server:
        served = open_model(f"openai/{server.url}#tiny", {"interface": "completions", "echo": True})
        drift = measure_drift(open_model(f"hf/{folder}"), served, tasks=["factual-choice", short], limit=12)
    choice, written = drift.tasks
    assert (drift.verdict, drift.may_be_mixed, drift.not_compared) == ("same", True, ())
    assert choice.tokens is not None and choice.tokens.n == 48 and 0 < choice.tokens.largest < 1e-4
    assert (written.n_generated, written.n_same) == (12, 12)
    assert "may be mixed in one comparison: nothing differs by more than rounding" in drift.sentence


@pytest.mark.torch
def test_another_precision_drifts_by_more_than_rounding(folder: Path) -> None:
    name = f"hf/{folder}"
    exact, coarse = open_model(name, {"dtype": "float32"}), open_model(name, {"dtype": "bfloat16"})
    drift = measure_drift(exact, coarse, tasks=["factual-choice"], limit=40)
    (task,) = drift.tasks
    assert (drift.a, drift.b) == (f"{name} (A)", f"{name} (B)")
    assert task.tokens is not None and task.tokens.n == 160 and 1e-3 < task.tokens.largest < 0.5
    assert task.tokens.low <= task.tokens.mean <= task.tokens.high
    assert (drift.verdict, drift.may_be_mixed) == ("not shown", False)
    wide = measure_drift(exact, coarse, tasks=["factual-choice"], limit=40, margin=0.5)
    assert (wide.verdict, wide.may_be_mixed) == ("equivalent", True)
    assert "within 50 points" in wide.sentence


def test_two_models_are_different() -> None:
    done = typed("models", "check", "demo/small", "--against", "demo/large", "--task", "factual-choice")
    assert done.code == 1
    assert "Do not mix demo/small and demo/large in one comparison" in done.out
    assert "systematically" in done.out and "points (90% interval" in done.out


def test_json_holds_what_the_sentence_says() -> None:
    words = ["models", "check", "demo/small", "--against", "demo/small", "-A", "batch_size=1"]
    done = typed(*words, "--task", "factual-choice", "--limit", "10", "--json")
    data = json.loads(done.out)
    assert (done.code, data["verdict"], data["may_be_mixed"]) == (0, "same", True)
    assert data["tasks"][0]["verdict"] == "same" and data["tasks"][0]["scores"]["difference"] == 0


def scripted(name: str, texts: Mapping[str, str]) -> ScriptedModel:
    """Says `texts` by the word before the colon, else that word."""

    def script(request: Request) -> str:
        assert isinstance(request, Generate)
        word = str(request.prompt).rstrip("')").rpartition(":")[0].split()[-1]
        return texts.get(word, word)

    return ScriptedModel(script, name=name)


@pytest.mark.parametrize(
    ("wrong", "margin", "verdict"),
    [(0, 0.03, "same"), (1, 0.03, "not shown"), (1, 0.3, "equivalent"), (15, 0.03, "different")],
)
def test_verdicts_by_how_many_answers_differ(short: str, wrong: int, margin: float, verdict: str) -> None:
    other = dict.fromkeys(CAPITALS.split()[:wrong], "elsewhere")
    right = {CAPITALS.split()[-1]: "nowhere"}  # of both, so that scores vary
    drift = measure_drift(scripted("a", right), scripted("b", right | other), tasks=[short], margin=margin)
    assert (drift.verdict, drift.tasks[0].n_same) == (verdict, 20 - wrong)


def test_scores_that_never_vary_show_nothing(short: str) -> None:
    every = CAPITALS.split()
    drift = measure_drift(
        scripted("a", dict.fromkeys(every, "x")),
        scripted("b", dict.fromkeys(every, "y")),
        tasks=[short],
        margin=0.5,
    )
    assert (drift.verdict, drift.may_be_mixed) == ("not shown", False)
    assert "got the same score, so it cannot show a difference" in drift.sentence


def test_a_failure_is_no_agreement(short: str) -> None:
    def fail(request: Request) -> Any:
        raise ValueError("no such thing")

    drift = measure_drift(scripted("a", {}), ScriptedModel(fail, name="b"), tasks=[short])
    assert (drift.tasks[0].n_failed, drift.may_be_mixed) == (20, False)
    assert "20 samples were not answered by both" in drift.sentence


def test_wrong_use(short: str) -> None:
    with pytest.raises(ConfigurationError, match="margin must be between 0 and 1"):
        measure_drift(open_model("demo/small"), open_model("demo/large"), margin=2)
    with pytest.raises(AbilityError, match="cannot answer 'log-likelihood' requests"):
        measure_drift(open_model("demo/small"), open_model("scripted/echo"), tasks=["factual-choice"])
    assert typed("models", "check", "demo/small", "--limit", "3").code == 2
    assert typed("models", "check", "demo/small", "--against", "demo/large", "--ask", "x").code == 2
    assert typed("models", "check", "demo/small", "--against", "demo/lage").code == 2
