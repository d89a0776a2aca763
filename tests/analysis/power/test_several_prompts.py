"""A plan for several prompts: what all runs cost together, and what their comparison can show."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import norm

from evalwright import plan
from evalwright.core.errors import ConfigurationError
from support.openai_server import serving
from support.typed import typed

MODELS = ("--model", "openai/m", "--model", "openai/n")
PROMPTS = ("--prompt", "short.txt", "--prompt", "same.txt", "--prompt", "long.txt")


@pytest.fixture(autouse=True)
def _prompts(folder: Path) -> None:
    (folder / "short.txt").write_text("Q: {{ input }}\nA:")
    (folder / "same.txt").write_text("Q: {{ input }}\nA:")
    (folder / "long.txt").write_text("Please answer in one word.\n\n{{ input }}")


def planned(*arguments: str) -> Any:
    done = typed("plan", *arguments, "--json")
    assert done.code == 0, done.text
    return json.loads(done.out)


def test_the_total_is_what_the_run_sends_and_equal_requests_count_once() -> None:
    with serving() as server:
        where = ("-M", f"base_url={server.url}")
        setup = ("questions.yaml", *MODELS, *PROMPTS, *where)
        forecast = planned(*setup, "--price", "1/2")
        by_run = {
            name: cost["requests"]["value"] for name, cost in forecast["models"].items()
        }
        assert by_run == {
            "openai/m · short": 60,
            "openai/m · same": 0,
            "openai/m · long": 60,
            "openai/n · short": 60,
            "openai/n · same": 0,
            "openai/n · long": 60,
        }
        assert not server.received, "a plan sends nothing"
        assert typed("run", *setup, "--name", "all", "--quiet").code == 0
        assert sum(server.received.values()) == 240
    assert forecast["total"]["requests"]["value"] == 240
    cost = sum(cost["money"]["high"] for cost in forecast["models"].values())
    assert forecast["total"]["money"]["high"] == pytest.approx(cost) and cost > 0


def test_equal_requests_of_one_prompt_count_once_too() -> None:
    Path("constant.txt").write_text("Say {{ id|length }}.")
    setup = ("questions.yaml", "--model", "scripted/echo", *PROMPTS[:2])
    forecast = planned(*setup, "--prompt", "constant.txt")
    cost = forecast["models"]["scripted/echo · constant"]
    assert cost["requests"]["value"] == 1
    assert forecast["total"]["requests"]["value"] == 61
    made = typed("run", *setup, "--prompt", "constant.txt", "--name", "r", "--json")
    assert sum(run["usage"]["sent"] for run in json.loads(made.out)) == 61


@pytest.mark.parametrize(("n_models", "n_pairs"), [(1, 3), (2, 15)])
def test_items_needed_are_for_all_pairs_of_runs(n_models: int, n_pairs: int) -> None:
    forecast = planned(
        "questions.yaml", *MODELS[: 2 * n_models], *PROMPTS, "--difference", "0.1"
    )
    z = norm.isf(0.025 / n_pairs) + norm.isf(0.2)
    (task,) = forecast["tasks"]
    assert forecast["n_pairs"] == n_pairs
    assert task["items_for_difference"]["value"] == -(-(z**2) * 0.5 // 0.01)
    assert task["items_for_half_width"]["value"] == 2401, "of one run: not corrected"


def test_a_plan_of_one_prompt_is_that_of_its_models() -> None:
    forecast = planned("questions.yaml", *MODELS, *PROMPTS[:2])
    assert set(forecast["models"]) == {"openai/m", "openai/n"}
    assert not {"total", "n_pairs"} & set(forecast)


def test_a_suite_is_planned_and_its_command_makes_the_run() -> None:
    suite = {
        "tasks": ["questions.yaml"],
        "models": ["scripted/echo"],
        "prompts": ["short.txt", {"name": "polite", "text": "Please: {{ input }}"}],
        "limit": 7,
    }
    Path("suite.yaml").write_text(json.dumps(suite))
    forecast = planned("--config", "suite.yaml")
    assert forecast["total"]["requests"]["value"] == 120
    assert any("limit of 7" in note for note in forecast["notes"])
    words = shlex.split(forecast["command"])
    assert words[1:] == ["run", "--config", "suite.yaml", "--limit", "60"]
    done = typed(*words[1:], "--name", "s", "--json")
    assert done.code == 0, done.text
    assert [run["usage"]["sent"] for run in json.loads(done.out)] == [60, 60]


def test_what_is_typed_comes_before_the_suite() -> None:
    Path("suite.yaml").write_text(
        "tasks: [none.yaml]\nmodels: [scripted/echo]\nprompts: [short.txt]\n"
    )
    forecast = planned("--config", "suite.yaml", "questions.yaml", *PROMPTS[2:])
    assert set(forecast["models"]) == {"scripted/echo · same", "scripted/echo · long"}
    words = shlex.split(forecast["command"])
    assert words[2:] == ["questions.yaml", "--config", "suite.yaml", *PROMPTS[2:]]


def test_a_suite_without_tasks_is_refused_with_what_to_do() -> None:
    Path("suite.yaml").write_text("models: [scripted/echo]\n")
    done = typed("plan", "--config", "suite.yaml")
    assert done.code == 2 and "name at least one task" in done.err


def test_a_pilot_measures_every_run_and_is_not_paid_twice() -> None:
    with serving() as server:
        where = ("-M", f"base_url={server.url}")
        setup = ("questions.yaml", *MODELS, *PROMPTS, *where, "--pilot", "10")
        forecast = planned(*setup)
        assert len(forecast["pilot_runs"]) == 6
        assert sum(server.received.values()) == 40
        again = planned(*setup)
        assert sum(server.received.values()) == 40
    assert again["pilot_runs"] == forecast["pilot_runs"]
    for name, cost in forecast["models"].items():
        if "same" not in name:
            assert name in cost["input_tokens"]["basis"], "measured on its own run"
    assert forecast["total"]["requests"]["value"] == 240
    (task,) = forecast["tasks"]
    assert "measured on 10 items" in task["paired_variance"]["basis"]


def test_stored_runs_of_prompts_are_found_by_their_prompt() -> None:
    with serving() as server:
        where = ("--model", "openai/m", "-M", f"base_url={server.url}")
        setup = ("questions.yaml", *where, *PROMPTS[2:])
        made = typed("run", *setup, "--limit", "20", "--name", "r", "--quiet")
        assert made.code == 0, made.text
        forecast = planned(*setup, "--from", "r-long", "--from", "r-same")
    for name in ("same", "long"):
        cost = forecast["models"][f"openai/m · {name}"]
        assert f"of openai/m · {name}" in cost["input_tokens"]["basis"]


def test_from_python() -> None:
    forecast = plan(
        "questions.yaml",
        "scripted/echo",
        prompts={"a": "Q: {{ input }}", "b": "Say: {{ input }}"},
    )
    assert forecast.total is not None and forecast.total.requests.value == 120
    assert "between the 2 runs" in forecast.conclusion
    with pytest.raises(ConfigurationError, match="named twice"):
        plan(
            "questions.yaml", ["scripted/echo", "scripted/echo"], prompts=["short.txt"]
        )
