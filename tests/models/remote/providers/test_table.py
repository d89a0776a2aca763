"""The table of providers: the package's rows hold, and every fault of a person's file is told
with its row.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from evalwright.core import errors
from evalwright.core.errors import UnknownName
from evalwright.core.requests import Generate
from evalwright.models.registry import open_model
from evalwright.models.remote.api import ApiModel
from evalwright.models.remote.providers import Provider, apply_rules, find
from evalwright.models.remote.providers.provider_rows import read_table
from evalwright.models.remote.providers.provider_table import TABLE
from support.tables import rows

CASES = str(Path(__file__).parent)
"""Beside this folder."""


@pytest.mark.parametrize(
    ("model", "reasoning", "refuses"), rows(CASES, "openai_families")
)
def test_model_families(model: str, reasoning: bool, refuses: bool) -> None:
    row = find("openai")
    assert row is not None
    found = apply_rules(row, model)
    assert found.tokens_field == (
        "max_completion_tokens" if reasoning else "max_tokens"
    )
    assert set(found.refuses) == (
        {"temperature", "top_p", "stop"} if refuses else set()
    )


ROWS = read_table(TABLE)


def variables(row: Provider) -> list[str]:
    """All environment variables that a row names."""
    return [
        *row.key,
        *(name for value in row.variables.values() for name in value.split("|")),
    ]


@pytest.mark.parametrize("name", ROWS)
def test_the_packaged_rows_are_whole(name: str) -> None:
    row = ROWS[name]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert (
        row.title
        and row.docs.startswith("https://")
        and row.example.startswith(f"{name}/")
    )
    local = re.match(r"http://localhost:\d+/", row.base_url) is not None
    parts = urlsplit(re.sub(r"\{\w+\}", "x", row.base_url))
    assert local or (
        row.base_url.startswith("{") or (parts.scheme == "https" and parts.hostname)
    )
    assert not parts.path.endswith("/") and not parts.query
    assert local or row.key or row.auth in ("aws", "google")
    for variable in variables(row):
        assert re.fullmatch(r"[A-Z][A-Z0-9_]+", variable), variable
    found = {"host"} if row.auth == "google" else set()
    assert set(re.findall(r"\{(\w+)\}", row.base_url)) <= set(row.variables) | found
    for rule in row.models:
        for example in rule.examples:
            assert re.fullmatch(rule.match, example, re.IGNORECASE), (
                f"{rule.match} does not fit {example}"
            )


@pytest.mark.parametrize(("model", "arguments", "has", "lacks"), rows(CASES, "sent"))
def test_what_is_sent(
    model: str, arguments: dict[str, Any], has: dict[str, Any], lacks: tuple[str, ...]
) -> None:
    made = open_model(model, arguments)
    assert isinstance(made, ApiModel)
    request = Generate(
        "Hello?", max_tokens=9, temperature=0.5, top_p=0.9, stop=("x",), seed=1
    )
    body = made.wire.payload(request, made.settings)
    assert {name: body.get(name) for name in has} == has
    assert not set(lacks) & set(body)


@pytest.mark.parametrize(("model", "asked", "sent"), rows(CASES, "least_temperature"))
def test_the_least_temperature(model: str, asked: float, sent: float) -> None:
    made = open_model(model)
    assert isinstance(made, ApiModel)
    request = made._with_defaults(Generate("Hello?", temperature=asked))
    assert made.wire.payload(request, made.settings).get("temperature") == sent
    told = made.describe()["arguments"].get("least_temperature")
    assert told == (0.01 if sent == 0.01 or model.startswith("minimax") else None)


def test_who_has_to_stream() -> None:
    for name, stream in (
        ("qwen/qwen-plus", True),
        ("groq/llama-3.3-70b-versatile", False),
    ):
        made = open_model(name)
        assert isinstance(made, ApiModel) and made.settings.stream is stream
    told = open_model("qwen/qwen-plus", {"stream": False})
    assert isinstance(told, ApiModel) and told.settings.stream is False


@pytest.mark.parametrize(
    "host", ["dbc-1.cloud.databricks.com", "https://dbc-1.cloud.databricks.com"]
)
def test_variables_fill_an_address(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_HOST", host)
    model = open_model("databricks/databricks-gpt-oss-120b")
    assert (
        model.describe()["base_url"]
        == "https://dbc-1.cloud.databricks.com/serving-endpoints"
    )
    assert isinstance(model, ApiModel) and model.official


def test_whose_address_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNOWFLAKE_ACCOUNT", "acme-eu")
    for name, official in (
        ("snowflake/claude-sonnet-4-5", True),
        ("snowflake/https://snowflakecomputing.com.evil.example/v1#m", False),
        ("groq/https://api.groq.com.evil.example/v1#m", False),
        ("groq/http://localhost:1/v1#m", False),
    ):
        model = open_model(name)
        assert isinstance(model, ApiModel) and model.official is official, name


@pytest.mark.parametrize(("text", "error", "words"), rows(CASES, "broken_files"))
def test_faults_of_a_file_are_told(
    text: str, error: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(getattr(errors, error), match=words) as raised:
        read_table(path)
    assert "mine.toml" in str(raised.value)


def test_rules_of_another_row(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        "[a]\nbase_url = 'https://a.example'\n[[a.models]]\nmatch = 'm.*'\nrefuses = ['stop']\n"
        "[b]\nbase_url = 'https://b.example'\nrules_of = ['a']\n[[b.models]]\nmatch = 'mm'\nrefuses = ['seed']\n"
    )
    row = read_table(path)["b"]
    assert [apply_rules(row, name).refuses for name in ("m1", "mm", "x")] == [
        ("stop",),
        ("seed",),
        (),
    ]
    path.write_text(
        "[b]\nbase_url = 'https://b.example'\nrules_of = ['openia']\n[openai]\nbase_url = 'https://h'"
    )
    with pytest.raises(UnknownName, match="Did you mean 'openai'"):
        read_table(path)


@pytest.mark.parametrize(("model", "refuses", "levels"), rows(CASES, "claude_families"))
@pytest.mark.parametrize(
    ("provider", "form"),
    [("anthropic", "{}"), ("vertex", "{}"), ("bedrock", "us.anthropic.{}-v1:0")],
)
def test_the_families_of_claude(
    provider: str, form: str, model: str, refuses: list[str], levels: list[str]
) -> None:
    found = apply_rules(ROWS[provider], form.format(model))
    assert (set(found.refuses), set(found.thinking)) == (set(refuses), set(levels))
