"""`common` in a suite: what every model gets, less what a model does not take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.evaluation.common_arguments import without_refused
from evalwright.evaluation.configuration import ModelSpec
from evalwright.evaluation.configuration_file import read_configuration
from evalwright.models.registry import open_model
from support.openai_server import serving
from support.typed import typed

pytestmark = pytest.mark.usefixtures("own_folder")


def settled(
    common: str, *models: str, trust_file: str | None = None
) -> tuple[list[dict[str, Any]], list[str]]:
    listed = "".join(f"  - {model}\n" for model in models)
    Path("suite.yaml").write_text(
        f"tasks: [factual]\ncommon: {common}\nmodels:\n{listed}"
    )
    specs, sentences = without_refused(
        read_configuration(Path("suite.yaml"), None, trust_file).models, open_model
    )
    return [dict(spec.arguments) for spec in specs], sentences


@pytest.mark.parametrize(
    ("refusing", "argument"),
    [
        ("scripted/lead", "max_tokens: 100"),  # the backend has no such argument
        ("anthropic/claude-opus-4-1", "seed: 3"),  # its interface has none
        ("mistral/mistral-large-latest", "min_p: 0.1"),  # its provider has none
        ("demo/small", "thinking: high"),
    ],
)
def test_a_model_is_opened_without_what_it_does_not_take(
    refusing: str, argument: str
) -> None:
    taking = "vllm/x" if "min_p" in argument else "openai/gpt-5"
    arguments, sentences = settled(f"{{{argument}}}", taking, refusing)
    name = argument.partition(":")[0]
    assert name in arguments[0] and arguments[1] == {}
    assert sentences == [
        f"'{refusing}' is evaluated without '{name}' of common, which it does not take."
    ]


def test_a_models_own_argument_that_it_refuses_is_an_error() -> None:
    arguments, _ = settled("{}", "{model: scripted/lead, arguments: {max_tokens: 5}}")
    with pytest.raises(Exception, match="Unknown argument 'max_tokens'"):
        open_model("scripted/lead", arguments[0])


def test_null_takes_a_common_argument_away() -> None:
    arguments, sentences = settled(
        "{temperature: 1.0, max_tokens: 9}",
        "openai/gpt-4o",
        "{model: openai/gpt-4o-mini, arguments: {temperature: null}}",
    )
    assert arguments == [{"temperature": 1.0, "max_tokens": 9}, {"max_tokens": 9}]
    assert not sentences


@pytest.mark.parametrize(
    ("common", "trust_file", "message"),
    [
        (
            "{temprature: 1.0}",
            "suite.yaml",
            "No model takes 'temprature' of common. Unknown argument 'temprature'",
        ),
        (
            "{max_tokens: many}",
            None,
            "No model takes 'max_tokens' of common. .*must be a number",
        ),
    ],
)
def test_what_no_model_takes_is_an_error(
    common: str, trust_file: str | None, message: str
) -> None:
    models = ("scripted/lead", "openai/gpt-4o", "anthropic/claude-opus-4-1")
    with pytest.raises(ConfigurationError, match=message):
        settled(common, *models, trust_file=trust_file)


def test_a_model_that_cannot_be_opened_at_all_says_why_itself() -> None:
    spec = ModelSpec("nobody/x", {"seed": 1}, common=("seed",))
    specs, sentences = without_refused([spec], open_model)
    assert specs == (spec,) and not sentences


def test_a_run_says_it_and_records_what_was_used() -> None:
    with serving() as server:
        Path("suite.yaml").write_text(
            "tasks: [factual-closed-book]\ncommon: {max_tokens: 7}\nlimit: 2\nname: both\n"
            f"models: [{{model: 'openai/{server.url}#x', label: Server}}, scripted/lead]\n"
        )
        done = typed("run", "--config", "suite.yaml", "--trust-file", "suite.yaml")
        assert done.code == 0, done.text
        assert "'scripted/lead' is evaluated without 'max_tokens' of common" in done.err
        assert {entry["body"]["max_tokens"] for entry in bodies(server.log)} == {7}
    record = json.loads(Path("runs/both-scripted-lead/run.json").read_text())
    assert "arguments" not in record["configuration"]["models"][0]


def bodies(log: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    return [entry for entry in log or [] if "body" in entry]
