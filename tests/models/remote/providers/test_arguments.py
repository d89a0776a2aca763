"""What a name and its arguments come to, for every kind of provider: addresses, switches of thinking, and what is refused at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, Rejected, UsageError
from evalwright.core.requests import Generate, Message
from evalwright.models.registry import open_model
from evalwright.models.remote.api import ApiModel

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
    found = open_model(name, arguments)
    assert isinstance(found, ApiModel)
    return found


VERTEX = "https://{}/v1/projects/project-1/locations/{}"


@pytest.mark.parametrize(
    ("name", "arguments", "base_url", "interface"),
    [
        ("azure-openai/gpt", {}, "https://r.openai.azure.com", "azure-openai"),
        ("azure-openai/https://r.openai.azure.com/#gpt", {}, "https://r.openai.azure.com", "azure-openai"),
        (
            "azure-openai/https://h/openai/deployments/gpt/chat/completions?api-version=2025-04-01#gpt", {}, "https://h",
            "azure-openai",
        ),
        ("azure-inference/https://h/models/chat/completions#Phi-4", {}, "https://h/models", "azure-inference"),
        ("mistral/http://h/v1/chat/completions#m", {}, "http://h/v1", "mistral"),
        ("groq/http://h/v1/chat/completions#m", {}, "http://h/v1", "chat"),
        ("vllm/http://h/v1/completions#m", {}, "http://h/v1", "completions"),
        ("ollama/http://h/v1/embeddings#m", {}, "http://h/v1", "embeddings"),
        ("openai/http://h/v1/embeddings#m", {}, "http://h/v1", "embeddings"),
        ("bedrock/m", {}, "https://bedrock-runtime.eu-west-1.amazonaws.com", "bedrock"),
        ("bedrock/m", {"variables": {"region": "us-east-1"}}, "https://bedrock-runtime.us-east-1.amazonaws.com", "bedrock"),
        ("vertex/gemini-2.5-pro", {}, VERTEX.format("aiplatform.googleapis.com", "global"), "vertex"),
        (
            "vertex/m", {"variables": {"location": "us"}}, VERTEX.format("aiplatform.us.rep.googleapis.com", "us"), "vertex",
        ),
        (
            "vertex/claude-sonnet-4-5", {"variables": {"location": "europe-west1"}},
            VERTEX.format("europe-west1-aiplatform.googleapis.com", "europe-west1"), "vertex-anthropic",
        ),
    ],
)  # fmt: skip
def test_addresses(name: str, arguments: dict[str, Any], base_url: str, interface: str) -> None:
    found = opened(name, **arguments)
    assert (found.base_url, found.interface) == (base_url, interface)


def test_a_version_comes_from_the_address_the_argument_or_the_environment() -> None:
    def version(name: str, **arguments: Any) -> Any:
        return opened(name, **arguments).describe()["arguments"]["variables"]["api_version"]

    assert version("azure-openai/gpt") == "2025-01-01-preview"
    assert version("azure-openai/https://h?api-version=2025-04-01#gpt") == "2025-04-01"
    assert version("azure-openai/gpt", variables={"api_version": "2024-10-21"}) == "2024-10-21"
    other = opened("azure-openai/gpt", variables={"api_version": "2024-10-21"})
    assert other.fingerprint != opened("azure-openai/gpt").fingerprint


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("anthropic/claude-sonnet-4-5", {"seed": 1}, "does not take seed"),
        ("bedrock/m", {"seed": 1}, "does not take seed"),
        ("vertex/claude-sonnet-4-5", {"seed": 1}, "does not take seed"),
        ("openai/m", {"interface": "responses", "seed": 1}, "does not take seed"),
        (
            "anthropic/claude-sonnet-4-5",
            {"max_tokens_field": "max_completion_tokens"},
            "leave out max_tokens_field",
        ),
        ("anthropic/claude-sonnet-4-5", {"interface": "embeddings"}, "interface must be"),
        ("replicate/meta/llama", {"stream": True}, "cannot stream its answers"),
        ("openai/m", {"interface": "embeddings", "temperature": 0.5}, "temperature"),
        ("openai/m", {"interface": "embeddings", "max_tokens": 5}, "max_tokens"),
        ("openai/m", {"interface": "embeddings", "stream": True}, "stream"),
        ("openai/m", {"interface": "embeddings", "echo": True}, "has no echo"),
        ("openai/gpt-5", {"interface": "embeddings", "thinking": "low"}, "thinking"),
        ("anthropic/claude-opus-5-5", {"thinking": "off"}, "level of thinking"),
        ("anthropic/claude-opus-4-7", {"thinking": 2048}, "level of thinking"),
        ("anthropic/claude-3-5-haiku-latest", {"thinking": "on"}, "No thinking switch"),
        ("anthropic/claude-sonnet-4-5", {"thinking": "hihg"}, "level of thinking"),
        ("gemini/gemini-2.5-pro", {"thinking": "off"}, "thinking"),
        ("gemini/gemini-3-pro-preview", {"thinking": "minimal"}, "thinking"),
        ("gemini/gemini-3.5-flash", {"thinking": 2048}, "thinking"),
        ("gemini/gemini-2.0-flash", {"thinking": "on"}, "thinking"),
        ("openai/gpt-5", {"thinking": False}, "Known: minimal, low, medium, high"),
        ("openai/gpt-4o", {"thinking": "low"}, "No thinking switch"),
        ("openai/gpt-5", {"interface": "completions", "thinking": "low"}, "No thinking switch"),
        ("azure-openai/https://h?key=1#gpt", {}, r"without '\?'"),
        ("azure-openai/https://h?api-version=1&key=2#gpt", {}, r"without '\?'"),
        ("mistral/https://h/v1?api-version=1#m", {}, r"without '\?'"),
        ("azure-inference/m", {}, "AZURE_INFERENCE_ENDPOINT"),
    ],
)
def test_what_is_refused_at_once(name: str, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        open_model(name, arguments)


@pytest.mark.parametrize("variable", ["AWS_REGION", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"])
def test_a_missing_part_of_an_address_is_named(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variable)
    with pytest.raises(ConfigurationError, match=variable):
        open_model("bedrock/m" if variable == "AWS_REGION" else "vertex/m")


THINKING: list[tuple[str, Any, tuple[str, ...], Any]] = [
    ("anthropic/claude-3-7-sonnet-20250219", True, ("thinking",), {"type": "enabled", "budget_tokens": 4096}),
    ("anthropic/claude-sonnet-4-20250514", 2048, ("thinking", "budget_tokens"), 2048),
    ("anthropic/claude-opus-4-7", "xhigh", ("output_config", "effort"), "xhigh"),
    ("gemini/gemini-2.5-flash", "off", ("generationConfig", "thinkingConfig"), {"thinkingBudget": 0}),
    ("gemini/gemini-2.5-pro", 2048, ("generationConfig", "thinkingConfig", "thinkingBudget"), 2048),
    ("gemini/gemini-3-pro-preview", "low", ("generationConfig", "thinkingConfig", "thinkingLevel"), "LOW"),
    ("bedrock/eu.anthropic.claude-3-7-sonnet-20250219-v1:0", 2048, ("additionalModelRequestFields", "thinking", "budget_tokens"), 2048),
    ("cohere/command-a-reasoning-08-2025", "off", ("thinking", "type"), "disabled"),
    ("openai/gpt-5.1", "off", ("reasoning_effort",), "none"),
    ("openai/o3", "high", ("reasoning_effort",), "high"),
    ("replicate/openai/gpt-5", "minimal", ("input", "reasoning_effort"), "minimal"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "level", "place", "sent"), THINKING)
def test_thinking_stands_in_the_body(name: str, level: Any, place: tuple[str, ...], sent: Any) -> None:
    body: Any = opened(name, thinking=level).body(Generate("hello", max_tokens=100))
    for step in place:
        body = body[step]
    assert body == sent


EFFORTS = {
    "o1": "low medium high",
    "o1-mini": "",
    "o3-mini-2025-01-31": "low medium high",
    "gpt-5": "minimal low medium high",
    "gpt-5-mini-2025-08-07": "minimal low medium high",
    "ft:gpt-5-mini:org::id": "minimal low medium high",
    "gpt-5-pro": "high",
    "gpt-5-codex": "low medium high",
    "gpt-5-chat-latest": "",
    "gpt-5-search-api": "",
    "gpt-5.1": "none low medium high",
    "gpt-5.1-codex-max": "low medium high xhigh",
    "gpt-5.2": "none low medium high xhigh",
    "gpt-5.2-pro": "medium high xhigh",
    "gpt-5.4-mini": "none low medium high xhigh",
    "gpt-4o": "",
}


@pytest.mark.parametrize("interface", ["chat", "responses"])
@pytest.mark.parametrize(("model", "efforts"), EFFORTS.items())
def test_efforts_by_family_and_interface(model: str, efforts: str, interface: str) -> None:
    """An effort that a family does not take would be a 400."""
    for effort in ("none", "minimal", "low", "medium", "high", "xhigh"):
        if effort not in efforts.split():
            with pytest.raises(UsageError):
                opened(f"openai/{model}", interface=interface, thinking=effort)
            continue
        body = opened(f"openai/{model}", interface=interface, thinking=effort).settings.extra_body
        assert body == (
            {"reasoning_effort": effort} if interface == "chat" else {"reasoning": {"effort": effort}}
        )


PREFILLED = Generate((Message("user", "Where?"), Message("assistant", "In the city of")))


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
def test_a_prefill_is_refused_unsent_where_the_model_takes_none(name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(Rejected, match="prefill"):
        opened(name, **arguments).body(PREFILLED)
    for taking in ("anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash"):
        assert opened(taking).body(PREFILLED)


def test_a_key_or_a_login_does_not_travel_unencrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VERTEX_ACCESS_TOKEN", raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key-0123456789")
    for name in ("anthropic/http://box.example.com/v1#m", "vertex/http://box.example.com/v1#m"):
        assert opened(name).describe()["key"] == "none"
    assert opened("anthropic/https://box.example.com/v1#m").describe()["key"] == "$ANTHROPIC_API_KEY"
