"""A person's own file of providers and prices: three lines make a provider, and its cost is
recorded to the last digit.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from evalwright import plan
from evalwright.core import errors
from evalwright.core.errors import ConfigurationError
from evalwright.evaluation.configuration_file import read_configuration
from evalwright.models.registry import open_model
from evalwright.models.remote import prices
from evalwright.models.remote.prices import Price
from evalwright.models.remote.providers import (
    add_file,
    find,
    names,
    provider_table,
    user_names,
)
from support.command import write_questions
from support.openai_server import OpenAIServer, serving
from support.tables import rows
from support.typed import typed

KEY = "sk-own-0123456789abcdef"


@pytest.fixture(autouse=True)
def _folder(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MINE_API_KEY", KEY)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "EVALWRIGHT_PROVIDERS"):
        monkeypatch.delenv(name, raising=False)
    write_questions(own_folder, 6)
    yield
    provider_table._read_variable.cache_clear()


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    numbers = itertools.count(7)

    def with_cache(reply: dict[str, Any], body: Any) -> dict[str, Any]:
        n = next(numbers)
        usage = {
            "prompt_tokens": 1000 + 37 * n,
            "completion_tokens": 100 + 13 * n,
            "prompt_tokens_details": {"cached_tokens": 411 + n},
        }
        return {**reply, "usage": usage}

    with serving(key=KEY, edit=with_cache) as found:
        yield found


def write(server_url: str, more: str = "", name: str = "mine.toml") -> Path:
    path = Path(name)
    path.write_text(
        f'[mine]\nbase_url = "{server_url}"\nkey = "MINE_API_KEY"\n{more}',
        encoding="utf-8",
    )
    return path


PRICES = '[mine.prices]\nas_of = "2026-11-01"\n"m*" = { input = 0.15, output = 0.6, cached_input = 0.0375 }\n'


def exact_cost(usage: dict[str, int]) -> Fraction:
    cached = usage.get("cached_tokens", 0)
    into = (usage["input_tokens"] - cached) * Fraction("0.15") + cached * Fraction(
        "0.0375"
    )
    return (into + usage["output_tokens"] * Fraction("0.6")) / 1_000_000


def samples(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def responses(value: Any) -> Iterator[dict[str, Any]]:
    """Everything in a record that looks like a response with tokens."""
    if isinstance(value, dict):
        if "usage" in value and "cost" in value:
            yield value
        for part in value.values():
            yield from responses(part)
    elif isinstance(value, list):
        for part in value:
            yield from responses(part)


def test_the_recorded_cost_is_tokens_times_price_to_the_last_digit(
    server: OpenAIServer,
) -> None:
    file = write(server.url, PRICES)
    done = typed(
        "run",
        "questions.yaml",
        "--model",
        "mine/m1",
        "--plugin",
        str(file),
        "--name",
        "r",
        "--json",
    )
    assert done.code == 0, done.err
    run = json.loads(done.out)[0]
    answers = run["usage"]["answers"]
    assert answers["cached_tokens"] > 0 and answers["output_tokens"] > 0
    assert run["usage"]["cost"] == float(exact_cost(answers))
    found = [response for row in samples(Path("runs/r")) for response in responses(row)]
    assert len(found) == 6
    for response in found:
        assert response["cost"] == float(exact_cost(response["usage"]))
    assert "Cost" in typed("runs", "show", "runs/r").out
    price = run["model"]["price"]
    assert (price["input"], price["cached_input"], price["as_of"]) == (
        0.15,
        0.0375,
        "2026-11-01",
    )
    assert KEY not in Path("runs/r/run.json").read_text()


def test_a_budget_in_dollars_needs_no_price_where_one_is_known(
    server: OpenAIServer,
) -> None:
    file = write(server.url)
    arguments = (
        "run",
        "questions.yaml",
        "--model",
        "mine/m1",
        "--plugin",
        str(file),
        "--budget",
        "5 USD",
    )
    done = typed(*arguments, "--name", "a")
    assert done.code == 2 and "price of 'mine/m1' is not known" in done.err
    write(server.url, PRICES)
    done = typed(*arguments, "--name", "b")
    assert done.code == 0, done.err
    run = json.loads(Path("runs/b/run.json").read_text())
    assert run["stopping"]["budget"]["spent"]["dollars"] == pytest.approx(
        run["usage"]["cost"], abs=1e-6
    )
    assert run["usage"]["cost"] > 0


def test_a_cost_that_replies_name_is_taken_at_its_word() -> None:
    def edit(reply: dict[str, Any], body: Any) -> dict[str, Any]:
        return {**reply, "usage": {**reply["usage"], "cost": 0.25}}

    with serving(key=KEY, edit=edit) as server:
        write(server.url, 'cost_field = "usage.cost"\n')
        arguments = (
            "run",
            "questions.yaml",
            "--model",
            "mine/m1",
            "--plugin",
            "mine.toml",
            "--name",
            "r",
        )
        done = typed(*arguments, "--budget", "1 USD")
        assert done.code == 1, done.err
        run = json.loads(Path("runs/r/run.json").read_text())
        assert run["stopping"]["budget_reached"] == "dollars"
        assert run["usage"]["cost"] == 1.0
        assert sum(server.received.values()) == 4


def test_prices_do_not_change_who_a_model_is(server: OpenAIServer) -> None:
    add_file(write(server.url))
    before = open_model("mine/m1")
    add_file(write(server.url, PRICES))
    after = open_model("mine/m1")
    assert before.fingerprint == after.fingerprint
    assert "price" not in before.describe() and "price" in after.describe()


def test_another_server_under_a_known_name_has_no_packaged_price() -> None:
    model = open_model("openai/http://localhost:9/v1#gpt-4o-mini")
    assert "price" not in model.describe()
    assert "price" in open_model("openai/gpt-4o-mini").describe()
    assert "price" not in open_model("vllm/gpt-4o-mini").describe()


def test_only_prices_for_a_known_provider(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text('[openai.prices]\n"gpt-4o-mini" = { input = 7, output = 8 }\n')
    assert add_file(path) == ["openai"]
    assert prices.price_of("openai", "gpt-4o-mini") == Price(7, 8)
    assert "openai" not in user_names() and find("openai") is not None
    path.write_text('[opena.prices]\n"gpt-4o-mini" = { input = 7, output = 8 }\n')
    with pytest.raises(ConfigurationError, match="base_url is missing"):
        add_file(path)


def test_the_variable_names_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("https://a.example/v1", name="a.toml")
    Path("b.toml").write_text('[yours]\nbase_url = "https://b.example/v1"\n')
    monkeypatch.setenv(
        "EVALWRIGHT_PROVIDERS", os.pathsep.join(("a.toml", str(tmp_path / "b.toml")))
    )
    assert {"mine", "yours"} <= set(names())
    assert open_model("yours/x").describe()["base_url"] == "https://b.example/v1"
    monkeypatch.setenv("EVALWRIGHT_PROVIDERS", "gone.toml")
    with pytest.raises(ConfigurationError, match=r"gone.toml.*EVALWRIGHT_PROVIDERS"):
        open_model("yours/x")


def test_nothing_is_read_from_the_working_folder_by_itself(tmp_path: Path) -> None:
    evil = '[openai]\nbase_url = "https://evil.example/v1"\nkey = "OPENAI_API_KEY"\n'
    for name in (
        "providers.toml",
        "evalwright.toml",
        ".evalwright/providers.toml",
        "evalwright_providers.toml",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(evil)
    (tmp_path / ".env").write_text("EVALWRIGHT_PROVIDERS=providers.toml\n")
    done = typed("models", "check", "openai/gpt-4o-mini", "--json")
    assert "evil" not in done.text
    assert (
        open_model("openai/gpt-4o-mini").describe()["base_url"]
        == "https://api.openai.com/v1"
    )


def test_a_configuration_names_its_files(server: OpenAIServer, tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    folder.mkdir()
    write_questions(folder, 6)
    write(server.url, PRICES, name="suite/mine.toml")
    (folder / "suite.yaml").write_text(
        "plugins: mine.toml\ntasks: [questions.yaml]\nmodels: [mine/m1]\nname: s\n"
    )
    done = typed(
        "run", "--config", "suite/suite.yaml", "--trust-file", "suite/suite.yaml"
    )
    assert done.code == 0, done.err
    run = json.loads(Path("runs/s/run.json").read_text())
    assert run["configuration"]["plugins"] == ["suite/mine.toml"]
    assert run["usage"]["cost"] > 0
    again = typed(
        "run", "--config", "runs/s/run.json", "--trust-file", "runs/s/run.json"
    )
    assert again.code == 0, again.err


def test_a_configuration_runs_no_python(tmp_path: Path) -> None:
    (tmp_path / "boom.py").write_text("raise SystemExit('ran')")
    (tmp_path / "suite.yaml").write_text(
        "plugins: [boom.py]\ntasks: [questions.yaml]\nmodels: [demo/small]\n"
    )
    with pytest.raises(
        ConfigurationError, match=r"suite.yaml:1.*not a TOML file.*--plugin"
    ):
        read_configuration(tmp_path / "suite.yaml")


def test_what_is_shown_of_ones_own(server: OpenAIServer) -> None:
    file = str(write(server.url, PRICES))
    shown = typed("models", "list", "--plugin", file).out
    assert (
        "mine/...  http://127.0.0.1" in shown
        and "key set, prices known" in shown
        and KEY not in shown
    )
    rows_shown = json.loads(typed("models", "list", "--plugin", file, "--json").out)
    mine = next(row for row in rows_shown if row["provider"] == "mine")
    named = [mine[name] for name in ("group", "key", "priced", "variables")]
    assert named == ["Your own", "set", 1, ["MINE_API_KEY"]]
    done = typed("models", "check", "mine/m1", "--plugin", file, "--ask", "Hello?")
    assert done.code == 0, done.err
    assert "input 0.15, output 0.6, cached_input 0.0375, as_of 2026-11-01" in done.out
    money = (
        plan(
            "questions.yaml", "mine/m1", assume={"output_tokens": 10, "discordant": 0.2}
        )
        .models["mine/m1"]
        .money
    )
    assert (
        money.value is not None
        and money.value > 0
        and "prices of 2026-11-01" in money.basis
    )


@pytest.mark.parametrize(
    ("more", "error", "words"), rows(str(Path(__file__).parent), "broken_rows")
)
def test_faults_of_a_file_are_told(more: str, error: str, words: str) -> None:
    path = write("https://h.example/v1", more)
    with pytest.raises(getattr(errors, error), match=words) as raised:
        add_file(path)
    assert "mine.toml" in str(raised.value)
    assert "mine" not in user_names()


def test_a_name_that_a_backend_has() -> None:
    Path("mine.toml").write_text('[hf]\nbase_url = "https://h.example/v1"\n')
    with pytest.raises(
        ConfigurationError, match=r"mine.toml, provider 'hf'.*another name"
    ):
        add_file(Path("mine.toml"))
    Path("mine.toml").write_text(
        '[openai]\nbase_url = "https://h.example/v1"\nkey = "MINE_API_KEY"\n'
    )
    add_file(Path("mine.toml"))
    assert (
        open_model("openai/gpt-4o-mini").describe()["base_url"]
        == "https://h.example/v1"
    )
