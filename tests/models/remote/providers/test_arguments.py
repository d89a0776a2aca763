"""What a name and its arguments come to, for every kind of provider: addresses, switches of
thinking, and what is refused at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, Rejected, UsageError
from evalwright.core.requests import Generate, Message
from evalwright.models.registry import open_model
from evalwright.models.remote.api import ApiModel
from evalwright.models.remote.exchange import Reply
from support.tables import rows

CASES = str(Path(__file__).parent)
"""Beside this folder."""
VARIABLES = {
    "AWS_REGION": "eu-west-1",
    "GOOGLE_CLOUD_PROJECT": "project-1",
    "GOOGLE_CLOUD_LOCATION": "global",
    "AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com/",
    "AZURE_OPENAI_API_VERSION": "2025-01-01-preview",
}
NONE = (
    "AWS_DEFAULT_REGION",
    "AWS_PROFILE",
    "ANTHROPIC_VERTEX_PROJECT_ID",
    "OPENAI_BASE_URL",
    "AZURE_INFERENCE_ENDPOINT",
)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    for name in NONE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)


def opened(name: str, **arguments: Any) -> ApiModel:
    model = open_model(name, arguments)
    assert isinstance(model, ApiModel)
    return model


@pytest.mark.parametrize(
    ("name", "arguments", "base_url", "model", "interface"), rows(CASES, "addresses")
)
def test_addresses(
    name: str,
    arguments: dict[str, Any],
    base_url: str,
    model: str | None,
    interface: str,
) -> None:
    found = opened(name, **arguments)
    assert (found.base_url, found.interface) == (base_url, interface)
    assert found.model == (model or found.model)


def test_the_base_url_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1/")
    assert opened("openai/m").base_url == "http://localhost:1/v1"
    assert (
        opened("openai/m", base_url="http://localhost:2/v1").base_url
        == "http://localhost:2/v1"
    )


def test_a_version_comes_from_the_address_the_argument_or_the_environment() -> None:
    def version(name: str, **arguments: Any) -> Any:
        return opened(name, **arguments).describe()["arguments"]["variables"][
            "api_version"
        ]

    assert version("azure-openai/gpt") == "2025-01-01-preview"
    assert version("azure-openai/https://h?api-version=2025-04-01#gpt") == "2025-04-01"
    assert (
        version("azure-openai/gpt", variables={"api_version": "2024-10-21"})
        == "2024-10-21"
    )
    other = opened("azure-openai/gpt", variables={"api_version": "2024-10-21"})
    assert other.fingerprint != opened("azure-openai/gpt").fingerprint


@pytest.mark.parametrize(("name", "arguments", "words"), rows(CASES, "refused"))
def test_what_is_refused_at_once(
    name: str, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        open_model(name, arguments)


@pytest.mark.parametrize(
    "variable", ["AWS_REGION", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"]
)
def test_a_missing_part_of_an_address_is_named(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable)
    with pytest.raises(ConfigurationError, match=variable):
        open_model("bedrock/m" if variable == "AWS_REGION" else "vertex/m")


@pytest.mark.parametrize(("name", "level", "place", "sent"), rows(CASES, "thinking"))
def test_thinking_stands_in_the_body(
    name: str, level: Any, place: list[str], sent: Any
) -> None:
    body: Any = opened(name, thinking=level).body(Generate("hello", max_tokens=100))
    for step in place:
        body = body[step]
    assert body == sent


@pytest.mark.parametrize("interface", ["chat", "responses"])
@pytest.mark.parametrize(("model", "efforts"), rows(CASES, "efforts"))
def test_efforts_by_family_and_interface(
    model: str, efforts: str, interface: str
) -> None:
    """An effort that a family does not take would be a 400."""
    for effort in ("none", "minimal", "low", "medium", "high", "xhigh"):
        if effort not in efforts.split():
            with pytest.raises(UsageError):
                opened(f"openai/{model}", interface=interface, thinking=effort)
            continue
        body = opened(
            f"openai/{model}", interface=interface, thinking=effort
        ).settings.extra_body
        assert body == (
            {"reasoning_effort": effort}
            if interface == "chat"
            else {"reasoning": {"effort": effort}}
        )


PREFILLED = Generate(
    (Message("user", "Where?"), Message("assistant", "In the city of"))
)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("anthropic/claude-opus-4-6", {}),
        ("anthropic/claude-sonnet-5-5", {}),
        ("anthropic/claude-sonnet-4-5", {"thinking": "on"}),
        ("gemini/gemini-3.6-flash", {}),
        ("gemini/gemini-flash-latest", {}),
    ],
)
def test_a_prefill_is_refused_unsent_where_the_model_takes_none(
    name: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(Rejected, match="prefill"):
        opened(name, **arguments).body(PREFILLED)
    for taking in ("anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash"):
        assert opened(taking).body(PREFILLED)


def test_a_prefill_is_continued_where_a_server_must_be_told_to() -> None:
    """vLLM and SGLang close the assistant's turn otherwise, and the model begins another one."""
    closed = {"continue_final_message": True}
    for name, fields in (
        ("vllm/m", {**closed, "add_generation_prompt": False}),
        ("sglang/m", closed),
    ):
        model = opened(name)
        whole = Generate((Message("user", "Where?"),))
        assert model.body(PREFILLED).items() >= fields.items()
        assert not fields.keys() & model.body(whole).keys()
        switched = opened(
            name, thinking="off", extra_body={"continue_final_message": False}
        ).body(PREFILLED)
        assert (
            switched["continue_final_message"] is False
            and "chat_template_kwargs" in switched
        )
    assert "continue_final_message" not in opened("llamacpp/m").body(PREFILLED)


def test_as_many_stop_strings_are_sent_as_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """OpenAI rejects a fifth, Cohere a sixth; all are applied to the text, and end it."""
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://r.openai.azure.com")
    stops = Generate("x", stop=tuple("abcdefg"))
    names = (
        "openai/gpt-4o-mini",
        "azure-openai/dep",
        "cohere/command-a-03-2025",
        "vllm/m",
    )
    bodies = [opened(name).body(stops) for name in names]
    sent = [body.get("stop", body.get("stop_sequences")) for body in bodies]
    assert sent == [[*"abcd"], [*"abcd"], [*"abcde"], [*"abcdefg"]]
    model = opened("openai/gpt-4o-mini")
    reply = {
        "choices": [{"message": {"content": "1, 2, g, 3"}, "finish_reason": "length"}]
    }
    answer = model.read(Reply(reply, 0.1), stops)
    assert (answer.text, answer.finish_reason) == ("1, 2, ", "stop")


def test_a_key_or_a_login_does_not_travel_unencrypted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("VERTEX_ACCESS_TOKEN", raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key-0123456789")
    for name in (
        "anthropic/http://box.example.com/v1#m",
        "vertex/http://box.example.com/v1#m",
    ):
        assert opened(name).describe()["key"] == "none"
    monkeypatch.setenv("BOX_KEY", "box-key-value")
    named = opened("anthropic/http://box.example.com/v1#m", api_key_env="BOX_KEY")
    assert named.describe()["key"] == "$BOX_KEY"
    assert opened("anthropic/https://box.example.com/v1#m").describe()["key"] == "none"


@pytest.mark.parametrize(
    "name",
    [
        "gemini/../cachedContents",
        "gemini/models/./m",
        "gemini/..",
        "gemini/tunedModels/%2e%2e/files",
        "vertex/../x",
        "bedrock/../x",
        "azure-openai/dep/../../x",
        "replicate/../x",
        "litellm/gemini/../cachedContents",
    ],
)
def test_a_models_name_leads_to_no_other_path(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "AWS_REGION"):
        monkeypatch.setenv(variable, "somewhere")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com")
    with pytest.raises(
        ConfigurationError, match="would lead to another path of the server"
    ):
        open_model(name)


@pytest.mark.parametrize(
    "name",
    ["vllm/./models/m", "openai/http://localhost:9/v1#../m", "gemini/tunedModels/m..1"],
)
def test_dots_that_are_in_no_path_are_a_name(name: str) -> None:
    assert open_model(name).name == name
