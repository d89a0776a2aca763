"""Functions as models: plain, async and of lists; what they are given, what they may return, and
what is shared.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evalwright
from evalwright import Run, compare, evaluate
from evalwright.core.errors import ConfigurationError, RateLimited
from evalwright.models.functions import FunctionModel

Doubler = Callable[..., Any]
register: Any = evalwright.model


@pytest.fixture(autouse=True)
def _questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i} 곱하기 2는?,{2 * i}\n" for i in range(12))
    Path("sums.csv").write_text(f"question,target\n{rows}", encoding="utf-8")


def doubled(prompt: str) -> str:
    return str(2 * int(prompt.split()[0]))


async def slowly(prompt: str) -> str:
    await asyncio.sleep(0)
    return doubled(prompt)


def of_lists(prompts: list[str]) -> list[str]:
    assert isinstance(prompts, list)
    return [doubled(prompt) for prompt in prompts]


class Callables:
    def __call__(self, prompt: str) -> str:
        return doubled(prompt)


@pytest.mark.parametrize(
    "function", [doubled, slowly, of_lists, Callables(), lambda prompt: doubled(prompt)], ids=["plain", "async", "lists", "object", "lambda"]
)  # fmt: skip
def test_any_form_is_evaluated(function: Doubler) -> None:
    (run,) = evaluate("sums.csv", function)
    assert run.tasks[0].main is not None and run.tasks[0].main.estimate.value == 1.0
    assert run.n_missing == 0 and "a Python function" in run.data["model"]["note"]


def test_the_function_may_stand_first_and_stays_a_function() -> None:
    model = evalwright.model(doubled)
    assert (
        isinstance(model, FunctionModel)
        and model("4 x") == "8"
        and "doubled" in repr(model)
    )
    (run,) = evaluate(model, "sums.csv", limit=3)
    assert run.model == "doubled" and run.tasks[0].n_samples == 3


def calls_of(make: Callable[[Doubler], Any]) -> int:
    """How often a function is called in two evaluations."""
    called = []

    def counted(prompt: str) -> str:
        called.append(prompt)
        return doubled(prompt)

    model = make(counted)
    for _ in range(2):
        evaluate("sums.csv", model)
    return len(called)


def test_nothing_is_shared_between_runs_unless_a_fingerprint_is_named() -> None:
    assert calls_of(lambda function: function) == 24
    assert calls_of(evalwright.model) == 24
    assert calls_of(evalwright.model(fingerprint="one")) == 12
    assert calls_of(evalwright.model(fingerprint="two")) == 12


def test_a_named_run_is_replaced_by_its_own_function_alone() -> None:
    (first,) = evaluate("sums.csv", doubled, name="one", limit=2)
    (again,) = evaluate("sums.csv", doubled, name="one", limit=2)
    assert first.data["identity"] != again.data["identity"]
    with pytest.raises(ConfigurationError, match="replace=True"):
        evaluate("sums.csv", doubled, name="one", limit=1)
    with pytest.raises(ConfigurationError, match="replace=True"):
        evaluate("sums.csv", lambda prompt: "7", name="one", limit=2)
    evaluate("sums.csv", doubled, name="one", limit=1, replace=True)


def test_one_function_in_two_roles_is_one_model() -> None:
    from evalwright.evaluation.objects import Objects

    objects = Objects()
    model = evalwright.model(doubled)
    assert (
        objects.name_model(model)
        == objects.name_model(doubled)
        == objects.name_model(model)
    )
    (one,) = objects.models.values()
    assert one is not model and not one.is_known
    with pytest.raises(
        ConfigurationError, match="Two different models are named 'lambda'"
    ):
        evaluate("sums.csv", [lambda prompt: prompt, lambda prompt: doubled(prompt)])


def test_lists_have_the_size_that_is_asked_for() -> None:
    sizes = []

    @evalwright.model(batch_size=5)
    def several(prompts: Any) -> Any:
        sizes.append(len(prompts))
        return (doubled(prompt) for prompt in prompts)

    (run,) = evaluate("sums.csv", several)
    assert sum(sizes) == 12 and max(sizes) <= 5 and run.n_missing == 0


def test_threads_side_by_side() -> None:
    both = threading.Barrier(2, timeout=900)

    @evalwright.model(concurrency=2)
    def waits(prompt: str) -> str:
        both.wait()
        return doubled(prompt)

    (run,) = evaluate("sums.csv", waits)
    assert run.n_missing == 0


def test_settings_and_messages() -> None:
    seen: list[Any] = []

    def chat(
        messages: Any, *, max_tokens: int, temperature: float | None = None
    ) -> str:
        seen.append((messages, max_tokens, temperature))
        return f"{messages[-1]['content'].split()[0]} STOP and more"

    overrides = {"answer.max_tokens": 7, "answer.stop": ["STOP"]}
    (run,) = evaluate("sums.csv", chat, limit=1, overrides=overrides)
    ((messages, max_tokens, temperature),) = seen
    assert messages[-1]["role"] == "user" and (max_tokens, temperature) == (7, 0.0)
    (record,) = run.samples()
    assert record.answer is not None and "STOP" not in record.answer.text


def failures_of(function: Doubler) -> set[str]:
    (run,) = evaluate("sums.csv", function, limit=2)
    assert run.n_missing == 2
    return {record.failure.message for record in run.samples() if record.failure}


async def awaited(prompt: str) -> str:
    return prompt


def raising(prompt: str) -> str:
    raise ValueError("no such thing")


async def cancelling(prompt: str) -> str:
    raise asyncio.CancelledError("too slow")


async def raising_later(prompt: str) -> str:
    raise ValueError("no such thing")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda prompt: None, "returned nothing: is a `return` missing?"),
        (lambda prompt: 4, "returned a int"),
        (lambda prompt: [prompt], "@evalwright.model(batch_size=32)"),
        (lambda prompt: awaited(prompt), "make it `async def`"),
        (raising, "'raising' raised ValueError: no such thing"),
        (raising_later, "'raising_later' raised ValueError: no such thing"),
        (cancelling, "'cancelling' raised CancelledError: too slow"),
        (
            evalwright.model(batch_size=4)(lambda prompts: ["1"] * 9),
            "returned 9 answers to 2 prompts",
        ),
        (
            evalwright.model(batch_size=4)(lambda prompts: "one"),
            "must return a list of answers",
        ),
        (
            evalwright.model(batch_size=4)(lambda prompts: [None] * 2),
            "is a `return` missing?",
        ),
    ],
)
def test_what_is_no_answer_is_a_failure_that_says_why(
    function: Doubler, said: str
) -> None:
    (message,) = failures_of(function)
    assert said in message


def test_a_request_error_of_an_async_function_is_tried_again() -> None:
    tries: list[str] = []

    async def limited(prompt: str) -> str:
        tries.append(prompt)
        if len(tries) == 1:
            raise RateLimited("slow down", retry_after=0.0)
        return doubled(prompt)

    (run,) = evaluate("sums.csv", limited, limit=1)
    assert run.n_missing == 0 and len(tries) == 2


async def async_lists(prompts: list[str]) -> list[str]:
    return prompts


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: evalwright.model(lambda: "x"), "it takes no prompt"),
        (lambda: evalwright.model(lambda a, b: "x"), "it cannot be given 'b'"),
        (lambda: evalwright.model(async_lists), "called for one prompt at a time"),
        (lambda: evalwright.model(fingerprint=" ")(doubled), "must name what answers"),
        (lambda: evalwright.model(batch_size=0)(doubled), "at least 1"),
        (
            lambda: evalwright.model(batch_size=2, concurrency=2)(doubled),
            "leave out concurrency",
        ),
        (
            lambda: evalwright.model(Callables),
            'under a provider\'s name: @model("callables")',
        ),
        (lambda: register("mine", name="x")(doubled), "leave out name"),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_called(
    make: Callable[[], Any], said: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        make()
    assert said in str(refused.value)


def test_several_functions_compared_in_one_call() -> None:
    found = compare(
        {"배": doubled, "그대로": lambda prompt: prompt.split()[0]}, tasks="sums.csv"
    )
    assert found.labels == ("배", "그대로") and "scores" in found.conclusion
    three = compare(doubled, slowly, of_lists, tasks="sums.csv", limit=4)
    assert len(three.runs) == 3  # type: ignore[union-attr]
    with pytest.raises(ConfigurationError, match="Finished runs take no limit"):
        compare("a", "b", limit=4)


def test_labels_of_a_mapping(tmp_path: Path) -> None:
    runs: list[Run] = evaluate(
        "sums.csv", {"a": doubled, "b": "scripted/echo"}, limit=2
    )
    assert [run.label for run in runs] == ["a", "b"]
