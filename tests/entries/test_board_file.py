"""`board.yaml` is read strictly: every mistake has its line, and nothing in it can run code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evalwright.core.errors import ConfigurationError, UsageError
from evalwright.entries.addresses import allowing_address, wrong_address
from evalwright.entries.board_file import ArgumentRule, read_board
from evalwright.entries.entry_file import read_entry
from evalwright.evaluation.configuration import ModelSpec

BOARD = """\
title: Our board
suite: {tasks: [factual-closed-book], limit: 40, accept_failures: 2%}
board: {tasks_are: items}
entries:
  providers: [openai, demo]
  base_urls: ["https://open.example.com/v1", {url: "https://api.example.com/v1", key: EXAMPLE_API_KEY}]
  arguments: {temperature: [0, 2], reasoning_effort: [low, high], max_tokens: }
  most_dollars: 20
  prices: {openai/new-model: 1.25/10}
  maintainers: [octocat]
trial: {samples: 20, cases: 2, budget: 1 USD}
publish: {readme: README.md, plot: img/board.svg, samples: "hub:acme/answers"}
drift: {every: month, items: 50, repeats: 3, budget: 2 USD}
"""


def written(folder: Path, text: str = BOARD) -> Path:
    file = folder / "board.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_all_of_it_is_read(tmp_path: Path) -> None:
    board = read_board(written(tmp_path).parent)
    assert (board.title, board.board) == ("Our board", {"tasks_are": "items"})
    assert (board.suite.tasks, board.suite.limit) == (("factual-closed-book",), 40)
    assert board.entries.arguments["temperature"] == ArgumentRule(0.0, 2.0)
    assert board.entries.arguments["max_tokens"] == ArgumentRule()
    assert board.entries.prices["openai/new-model"].output == 10
    assert (board.trial.cases, board.drift.every) == (2, "month")
    assert (board.publish.site, board.publish.samples) == ("site", "hub:acme/answers")


def test_the_evaluation_has_the_prices_of_its_models(tmp_path: Path) -> None:
    board = read_board(written(tmp_path))
    assert board.configuration().price == ()
    configuration = board.configuration([ModelSpec("openai/new-model")])
    assert configuration.price == ("openai/new-model=1.25/10",)
    assert configuration.models == (ModelSpec("openai/new-model"),)


def test_a_key_goes_to_an_address_by_the_board_alone(tmp_path: Path) -> None:
    board = read_board(written(tmp_path))
    entry = tmp_path / "a.yaml"
    entry.write_text("model: openai/m\nbase_url: https://api.example.com/v1/eu\n")
    spec = read_entry(entry).model_spec(board)
    assert spec.arguments["api_key_env"] == "EXAMPLE_API_KEY"
    entry.write_text("model: openai/m\nbase_url: https://open.example.com/v1\n")
    assert "api_key_env" not in read_entry(entry).model_spec(board).arguments


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("title: Our board", "titel: Our board"), "board.yaml:1: Unknown key 'titel'. Did you mean 'title'"),
        (("title: Our board\n", ""), "'title' is missing"),
        (("tasks: [factual-closed-book], ", ""), "board.yaml:2: The suite names no task"),
        (("limit: 40", "models: [demo/small]"), "board.yaml:2: 'models' cannot be set"),
        (("limit: 40", "limit: many"), "board.yaml:2: 'limit' must be"),
        (("limit: 40", "limt: 40"), "Did you mean 'limit'"),
        (("tasks_are: items", "tasks_are_: items"), "board.yaml:3: Unknown key"),
        (("tasks_are: items", "by: {a: 1}"), "board.yaml:3: 'board.by' must be a plain value"),
        (("tasks_are: items", "facts: ../facts.yaml"), "board.yaml:3: '../facts.yaml' must be in the repository"),
        (("openai, demo", "opnai"), "board.yaml:5: Unknown provider 'opnai'. Did you mean"),
        (("openai, demo", "python"), "board.yaml:5: Entries cannot have models of 'python'"),
        (("openai, demo", "replay"), "run code or read files"),
        (("openai, demo", "litellm"), "run code or read files"),
        (("https://open.example.com/v1", "https://open.example.com:443x/v1"), "board.yaml:6"),
        (("EXAMPLE_API_KEY", "sk-abc"), "board.yaml:6: 'key' is the name of an environment variable"),
        (("temperature: [0, 2]", "temperature: [2, 0]"), "board.yaml:7: The range of"),
        (("temperature: [0, 2]", "headers: "), "board.yaml:7: Entries cannot set 'headers'"),
        (("temperature: [0, 2]", "base_url: "), "Addresses go under base_urls"),
        (("temperature: [0, 2]", "api_key_env: "), "Entries cannot set 'api_key_env'"),
        (("temperature: [0, 2]", "trust_remote_code: "), "Entries cannot set"),
        (("most_dollars: 20", "most_dollars: free"), "board.yaml:8: 'entries.most_dollars' must be"),
        (("most_dollars: 20", "most_dollars: -1"), "board.yaml:8"),
        (("1.25/10", "cheap"), "board.yaml:9: The price 'cheap' cannot be read"),
        (("octocat", "a b"), "board.yaml:10: 'a b' cannot be a name on GitHub"),
        (("samples: 20", "samples: 0"), "board.yaml:11: 'trial.samples' must be"),
        (("1 USD", "1 EUR"), "board.yaml:11: The budget '1 EUR'"),
        (("README.md", "../README.md"), "board.yaml:12: '../README.md' must be in the repository"),
        (("README.md", ".github/x"), "and not hidden there"),
        (("hub:acme/answers", "ftp://x"), "board.yaml:12: Samples go to one of"),
        (("every: month", "every: weak"), "board.yaml:13: Unknown period 'weak'. Did you mean 'week'"),
    ],
)  # fmt: skip
def test_a_mistake_has_its_line(
    tmp_path: Path, change: tuple[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert change[0] in BOARD
    with pytest.raises(UsageError) as raised:
        read_board(written(tmp_path, BOARD.replace(*change)))
    assert words in str(raised.value)


def test_somebody_elses_board_needs_permission(tmp_path: Path) -> None:
    file = written(tmp_path)
    board = read_board(file)
    with pytest.raises(
        ConfigurationError, match=r"entries.base_urls.0: .*open.example"
    ):
        board.require_allowed(None)
    board.require_allowed(None, sends=False)
    board.require_allowed(str(file))
    with pytest.raises(ConfigurationError, match=r"names 'other\.yaml'"):
        board.require_allowed("other.yaml")
    trusting = BOARD.replace("limit: 40", "dialect: {trust: [tasks]}")
    with pytest.raises(ConfigurationError, match=r"dialect\.trust"):
        read_board(written(tmp_path, trusting)).require_allowed(None, sends=False)
    harmless = read_board(written(tmp_path))
    harmless = replace(harmless, entries=replace(harmless.entries, base_urls={}))
    harmless.require_allowed(None)
    harmless.require_allowed(str(file))


@pytest.mark.parametrize(
    ("scalar", "is_allowed"),
    [(0, True), (2.0, True), (2.01, False), (True, False), ("1", False)],
)
def test_a_range_is_of_numbers(scalar: object, is_allowed: bool) -> None:
    assert (ArgumentRule(0, 2).refuses(scalar) == "") is is_allowed


def test_words_are_compared_with_their_kind() -> None:
    assert not ArgumentRule(words=("low", True)).refuses(True)
    assert ArgumentRule(words=("low", 1)).refuses(True) == "must be one of: low, 1"


ALLOWED = ("https://api.example.com/v1",)


@pytest.mark.parametrize(
    "address",
    [
        "https://api.example.com/v1",
        "https://api.example.com/v1/",
        "https://api.example.com/v1/eu",
    ],
)
def test_an_address_below_an_allowed_one(address: str) -> None:
    assert allowing_address(address, ALLOWED) == ALLOWED[0]


@pytest.mark.parametrize(
    "address",
    [
        "https://api.example.com/v2",
        "https://api.example.com/v10",
        "https://api.example.com",
        "http://api.example.com/v1",
        "https://api.example.com.evil.org/v1",
        "https://evil.org/https://api.example.com/v1",
        "https://api.example.com@evil.org/v1",
        "https://user:pass@api.example.com/v1",
        "https://api.example.com:444/v1",
        "https://api.example.com:443/v1",
        "https://api.example.com./v1",
        "HTTPS://API.EXAMPLE.COM/v1",
        "https://API.example.com/v1",
        "https://api.example.com/V1",
        "https://api.example.com/v1/../v2",
        "https://api.example.com/v1/./x",
        "https://api.example.com/v1/%2e%2e/v2",
        "https://api.example.com/v1%2f..%2fv2",
        "https://api.example.com//v1",
        "https://api.example.com/v1//x",
        "https://api.example.com\\@evil.org/v1",
        "https://api.example.com/v1?x=1",
        "https://api.example.com/v1#x",
        "https://\u0430pi.example.com/v1",
        "https://xn--pi-6kc.example.com/v1",
        "https://api\u3002example.com/v1",
        " https://api.example.com/v1",
        "https://api.example.com/v1 ",
        "https://api.example.com/v1\n",
        "//api.example.com/v1",
        "api.example.com/v1",
        "file:///etc/passwd",
        "https://[::1]/v1",
        "https://api.example.com/v1/" + "a" * 400,
        "",
    ],
)
def test_every_other_spelling_is_refused(address: str) -> None:
    assert allowing_address(address, ALLOWED) is None


def test_an_address_says_why() -> None:
    assert "Punycode" in wrong_address("https://xn--x.example/v1")
    assert "ASCII" in wrong_address("https://\u0430.example/v1")
    assert "user's name" in wrong_address("https://a@b.example")
