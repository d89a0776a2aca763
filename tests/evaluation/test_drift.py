"""Two backends asked the same: one model in two precisions, behind a server, and two that are
not the same.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import AbilityError, ConfigurationError
from evalwright.core.requests import Generate, LogLikelihood, Request
from evalwright.core.responses import Response
from evalwright.evaluation.drift import TaskDrift, _tokens, measure_drift
from evalwright.models.model_interface import RemoteModel
from evalwright.models.registry import open_model
from evalwright.models.scripted import ScriptedModel
from evalwright.statistics.paired import equivalence_paired
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
        f"    - {{input: 'The capital of {name}:', target: {name}}}"
        for name in CAPITALS.split()
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
        served = open_model(
            f"openai/{server.url}#tiny", {"interface": "completions", "echo": True}
        )
        drift = measure_drift(
            open_model(f"hf/{folder}"),
            served,
            tasks=["factual-choice", short],
            limit=12,
        )
    choice, written = drift.tasks
    assert (drift.verdict, drift.may_be_mixed, drift.not_compared) == ("same", True, ())
    assert (
        choice.tokens is not None
        and choice.tokens.n == 48
        and 0 < choice.tokens.largest < 1e-4
    )
    assert (written.n_generated, written.n_same) == (12, 12)
    assert (
        "may be mixed in one comparison: nothing differs by more than rounding"
        in drift.sentence
    )


@pytest.mark.torch
def test_another_precision_drifts_by_more_than_rounding(folder: Path) -> None:
    name = f"hf/{folder}"
    exact = open_model(name, {"dtype": "float32"})
    coarse = open_model(name, {"dtype": "bfloat16"})
    drift = measure_drift(exact, coarse, tasks=["factual-choice"], limit=40)
    (task,) = drift.tasks
    assert (drift.a, drift.b) == (f"{name} (A)", f"{name} (B)")
    assert (
        task.tokens is not None
        and task.tokens.n == 160
        and 1e-3 < task.tokens.largest < 0.5
    )
    assert task.tokens.low <= task.tokens.mean <= task.tokens.high
    assert (drift.verdict, drift.may_be_mixed) == ("not shown", False)
    wide = measure_drift(exact, coarse, tasks=["factual-choice"], limit=40, margin=0.5)
    assert (wide.verdict, wide.may_be_mixed) == ("equivalent", True)
    assert "within 50 points" in wide.sentence


def test_two_models_are_different() -> None:
    done = typed(
        "models",
        "check",
        "demo/small",
        "--against",
        "demo/large",
        "--task",
        "factual-choice",
    )
    assert done.code == 1
    assert "Do not mix demo/small and demo/large in one comparison" in done.out
    assert "systematically" in done.out and "points (90% interval" in done.out


def test_json_holds_what_the_sentence_says() -> None:
    words = [
        "models",
        "check",
        "demo/small",
        "--against",
        "demo/small",
        "-A",
        "batch_size=1",
    ]
    done = typed(*words, "--task", "factual-choice", "--limit", "10", "--json")
    data = json.loads(done.out)
    assert (done.code, data["verdict"], data["may_be_mixed"]) == (0, "same", True)
    assert (
        data["tasks"][0]["verdict"] == "same"
        and data["tasks"][0]["scores"]["difference"] == 0
    )


def scripted(name: str, texts: Mapping[str, str]) -> ScriptedModel:
    """Says `texts` by the word before the colon, else that word."""

    def script(request: Request) -> str:
        assert isinstance(request, Generate)
        word = str(request.prompt).rstrip("')").rpartition(":")[0].split()[-1]
        return texts.get(word, word)

    return ScriptedModel(script, name=name)


@pytest.mark.parametrize(
    ("wrong", "margin", "verdict"),
    [
        (0, 0.03, "same"),
        (1, 0.03, "not shown"),
        (1, 0.3, "equivalent"),
        (15, 0.03, "different"),
    ],
)
def test_verdicts_by_how_many_answers_differ(
    short: str, wrong: int, margin: float, verdict: str
) -> None:
    other = dict.fromkeys(CAPITALS.split()[:wrong], "elsewhere")
    right = {CAPITALS.split()[-1]: "nowhere"}  # of both, so that scores vary
    drift = measure_drift(
        scripted("a", right), scripted("b", right | other), tasks=[short], margin=margin
    )
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

    drift = measure_drift(
        scripted("a", {}), ScriptedModel(fail, name="b"), tasks=[short]
    )
    assert (drift.tasks[0].n_missing, drift.may_be_mixed) == (20, False)
    assert (
        "no sample was answered by both (" in drift.sentence
        and "answers differ" not in drift.sentence
    )
    assert drift.tasks[0].scores is None and drift.tasks[0].tokens is None


def test_some_failures_are_no_difference(short: str) -> None:
    def fail(request: Request) -> Any:
        assert isinstance(request, Generate)
        word = str(request.prompt).rstrip("')").rpartition(":")[0].split()[-1]
        if word == "Samoa":
            raise ValueError("no such thing")
        return "nowhere" if word == "Haiti" else word

    drift = measure_drift(
        scripted("a", {"Haiti": "nowhere"}),
        ScriptedModel(fail, name="b"),
        tasks=[short],
    )
    assert drift.verdict == "not shown" and "On 1 samples" not in drift.sentence
    assert "On 1 sample one of the two or both failed" in drift.sentence
    assert (
        "it was not shown that scores are equivalent within 3 points" in drift.sentence
    )


class Likely(RemoteModel):
    """Gives every text the log-probability -1 a token, and what `more` says of its prompt
    besides.
    """

    abilities = frozenset({"log-likelihood"})

    def __init__(self, name: str, more: Callable[[str], float]) -> None:
        self.name = name
        self._more = more

    async def answer(self, request: Request) -> Response:
        assert isinstance(request, LogLikelihood)
        value = -1 + self._more(str(request.context)) - len(request.continuation) / 1000
        return Response(
            log_likelihood=10 * value, tokens_scored=10, finish_reason="stop"
        )


@pytest.fixture
def choices(tmp_path: Path) -> str:
    rows = "\n".join(
        f"    - {{input: 'Number {n}', choices: [one, two2, three, fourth], target: {('one', 'two2')[n % 2]}}}"
        for n in range(100)
    )
    path = tmp_path / "choices.yaml"
    path.write_text(
        f"task: choices\ndataset:\n  rows:\n{rows}\nanswer: {{mode: likelihood}}\n",
        encoding="utf-8",
    )
    return str(path)


def test_a_constant_difference_is_a_difference(choices: str) -> None:
    drift = measure_drift(
        Likely("a", lambda _: 0.0),
        Likely("b", lambda _: -0.02),
        tasks=[choices, choices],
    )
    (task,) = drift.tasks  # a task named twice is asked once
    assert task.tokens is not None and task.verdict == "different"
    assert [task.tokens.low, task.tokens.high] == pytest.approx([0.02, 0.02], abs=1e-3)


def test_texts_of_one_sample_are_one_unit(choices: str) -> None:
    """Intervals by text, when what differs is the sample, called 21% of models at the margin
    equivalent instead of 5%.
    """
    rng = random.Random(0)
    wrong = 0
    for _ in range(300):
        by_sample = {f"Number {n}": rng.gauss(0.01, 0.03) for n in range(100)}
        texts = [
            (
                Response(log_likelihood=-1.0, tokens_scored=1),
                Response(log_likelihood=-1.0 - by_sample[key], tokens_scored=1),
            )
            for key in by_sample
        ]
        found = _tokens([[pair] * 4 for pair in texts], range(100))
        assert found is not None and found.n == 400
        wrong += found.equivalent
    assert wrong < 30


def test_a_small_difference_of_many_samples_is_equivalent() -> None:
    task = TaskDrift("t", 9, 0, "", 9, 8, None, equivalence_paired([1.0, 0.0] * 2000 + [1.0] * 8, [1.0, 0.0] * 2000 + [0.0] * 8, margin=0.03), True, True)  # fmt: skip
    assert task.scores is not None and task.scores.low > 0
    assert task.verdict == "equivalent"


def test_log_probabilities_that_one_does_not_give_are_said(short: str) -> None:
    said: list[str] = []
    drift = measure_drift(
        scripted("a", {}), scripted("b", {}), tasks=[short], say=said.append
    )
    assert [one.split(" is sent ")[0] for one in said] == [drift.a, drift.b]
    assert drift.verdict == "same"
    assert (
        f"No log-probabilities were compared on {short}: fewer than two samples have them"
        in drift.sentence
    )


def test_wrong_use(short: str) -> None:
    with pytest.raises(ConfigurationError, match="margin must be between 0 and 1"):
        measure_drift(open_model("demo/small"), open_model("demo/large"), margin=2)
    with pytest.raises(AbilityError, match="cannot answer 'log-likelihood' requests"):
        measure_drift(
            open_model("demo/small"),
            open_model("scripted/echo"),
            tasks=["factual-choice"],
        )
    assert typed("models", "check", "demo/small", "--limit", "3").code == 2
    assert (
        typed(
            "models", "check", "demo/small", "--against", "demo/large", "--ask", "x"
        ).code
        == 2
    )
    assert typed("models", "check", "demo/small", "--against", "demo/lage").code == 2
