"""Three questions to a model: what each kind of answer is judged to be, through the real door
and from the command line.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evalwright.cli import main
from evalwright.core.errors import AbilityError, ConfigurationError, Rejected
from evalwright.core.requests import Generate, Request
from evalwright.evaluation.smoke import LONG, NOTHING, ORDINARY, smoke_test
from evalwright.models.registry import open_model
from evalwright.models.scripted import Scripted, ScriptedModel, last_text, lead

REFUSAL = "The article has nothing to summarise."


def careful(request: Request) -> Scripted:
    """Refuses what is short, summarises the rest."""
    assert isinstance(request, Generate)
    text = last_text(request.prompt)
    return REFUSAL if len(text.split()) < 150 else lead(text, 2)


def short_sighted(request: Request) -> Scripted:
    assert isinstance(request, Generate)
    if len(last_text(request.prompt).split()) > 2000:
        raise Rejected("The prompt is longer than 4096 tokens.")
    return careful(request)


@pytest.mark.parametrize(
    ("script", "ordinary", "nothing", "longest"),
    [
        (careful, "pass", "pass", "pass"),
        (short_sighted, "pass", "pass", "look"),
        (lambda request: "", "fail", "look", "look"),
        (lambda request: "Yes.", "fail", "look", "look"),
        (lambda request: REFUSAL, "fail", "pass", "look"),
        (
            lambda request: "A town has a mill and a bridge, and both are old.",
            "pass",
            "look",
            "pass",
        ),
        (lambda request: "On and on it goes. " * 300, "look", "look", "pass"),
        (lambda request: "<think>Where do I begin", "fail", "look", "look"),
    ],
)
def test_each_kind_of_answer(
    script: Callable[[Request], Scripted],
    ordinary: str,
    nothing: str,
    longest: str,
    tmp_path: Path,
) -> None:
    verdicts = smoke_test(ScriptedModel(script), words=3000, home=str(tmp_path))
    assert [verdict.case for verdict in verdicts] == [ORDINARY, NOTHING, LONG]
    assert [verdict.result for verdict in verdicts] == [ordinary, nothing, longest]
    assert verdicts[2].words == 3000 and all(
        verdict.why.endswith(".") for verdict in verdicts
    )


def test_who_cannot_be_asked(tmp_path: Path) -> None:
    with pytest.raises(AbilityError, match="cannot generate text"):
        smoke_test(ScriptedModel("x", abilities=("embed",)), home=str(tmp_path))
    with pytest.raises(ConfigurationError, match="at least one word"):
        smoke_test(open_model("scripted/lead"), words=0, home=str(tmp_path))


def test_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["models", "test", "scripted/lead", "--words", "2000"]) == 0
    said = capsys.readouterr().out
    assert (
        said.startswith("pass  ordinary")
        and " nothing to summarise" in said
        and "(2,000 words)" in said
    )
    assert (
        main(["models", "test", "scripted/constant", "-M", "text=No.", "--json"]) == 1
    )
    assert [row["result"] for row in json.loads(capsys.readouterr().out)] == [
        "fail",
        "look",
        "look",
    ]


def test_the_models_of_a_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("suite.yaml").write_text(
        "models: [scripted/lead, nobody/x]\nsuites: {all: {}, none: {models: []}}\n"
    )
    test_all = ["models", "test", "--config", "suite.yaml", "--suite", "all"]
    assert main([*test_all, "--words", "2000"]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("scripted/lead\n  pass  ordinary")
    assert "cannot be asked: Unknown model provider 'nobody'" in shown
    assert main([*test_all, "--words", "2000", "--json"]) == 1
    asked, refused = json.loads(capsys.readouterr().out)
    assert [case["words"] for case in asked["cases"]][-1] == 2000
    assert "nobody" in refused["refused"]
    test_none = ["models", "test", "--config", "suite.yaml", "--suite", "none"]
    assert main(test_none) == 2
    assert "has no models" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ([], "--config FILE"),
        (["scripted/lead", "--config", "suite.yaml"], "--config FILE"),
        (["scripted/lead", "--suite", "all"], "only be used with --config"),
        (["--config", "suite.yaml", "-M", "text=No."], "in its file"),
    ],
)
def test_a_model_or_a_suite(
    arguments: list[str], advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "test", *arguments]) == 2
    assert advice in capsys.readouterr().err
