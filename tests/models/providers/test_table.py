"""The table of providers: the package's rows hold, and every fault of a person's file is told with its row."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.models.providers import find, quirks
from evalwright.models.providers.table import TABLE, read_table


@pytest.mark.parametrize(
    ("model", "reasoning", "refuses"),
    [
        ("o1", True, True),
        ("o3-mini", True, True),
        ("o4-mini-2025-04-16", True, True),
        ("gpt-5", True, True),
        ("gpt-5.1-codex", True, True),
        ("gpt-5-chat-latest", True, False),
        ("ft:gpt-5-mini:org::id", True, True),
        ("gpt-4o-mini", False, False),
        ("gpt-4.1", False, False),
        ("gpt-3.5-turbo-instruct", False, False),
        ("omni-moderation-latest", False, False),
        ("o3de", False, False),
        ("my-o3", False, False),
    ],
)
def test_model_families(model: str, reasoning: bool, refuses: bool) -> None:
    row = find("openai")
    assert row is not None
    found = quirks(row, model)
    assert found.tokens_field == ("max_completion_tokens" if reasoning else "max_tokens")
    assert set(found.refuses) == ({"temperature", "top_p", "stop"} if refuses else set())


def test_the_packaged_rows_are_whole() -> None:
    for name, row in read_table(TABLE).items():
        assert row.name == name and row.base_url.startswith(("https://", "{endpoint}")), name


def test_three_lines_make_a_provider(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[mine]\nbase_url = "https://mine.example/v1"\nkey = "MINE_API_KEY"\n')
    row = read_table(path)["mine"]
    assert (row.key, row.wires, row.auth) == (("MINE_API_KEY",), ("openai-chat",), "bearer")


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("[a]\nkey = 'K'", ConfigurationError, "base_url is missing"),
        ("[a]\nbase_url = 'https://h'\nkeys = 'K'", UnknownName, "Did you mean 'key'"),
        ("[a]\nbase_url = 'https://h'\nwires = 'openai-chatt'", UnknownName, "openai-chat"),
        ("[a]\nbase_url = 'https://h'\nauth = 'beare'", UnknownName, "bearer"),
        ("[a]\nbase_url = 5", ConfigurationError, "'base_url' must be text"),
        ("[a]\nbase_url = 'https://h'\nrefuses = ['temprature']", UnknownName, "temperature"),
        ("[a]\nbase_url = 'https://h'\n[[a.models]]\nmatch = '('", ConfigurationError, "regular expression"),
        ("[a\n", ConfigurationError, "not TOML"),
        ("['a/b']\nbase_url = 'https://h'", ConfigurationError, "cannot be empty or hold"),
    ],
)
def test_faults_of_a_file_are_told(text: str, error: type[Exception], words: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(error, match=words) as raised:
        read_table(path)
    assert "mine.toml" in str(raised.value)
