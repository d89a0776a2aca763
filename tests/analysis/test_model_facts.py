"""Facts about models: read from tables, suites, records and names, and never guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.analysis.model_facts import (
    FROM_NAME,
    FROM_RECORD,
    FROM_TABLE,
    facts_of_runs,
    read_facts,
    size_in_name,
)
from evalwright.core.errors import ConfigurationError, UsageError
from evalwright.runs.model_facts import check_fact, check_facts
from evalwright.runs.reader import Run, open_run
from support.runs import edited, make_run

SCORES = [1, 0, 1, 1, 0, 1]


def run_of(folder: Path, model: str, label: str = "", **recorded: Any) -> Run:
    run = make_run(folder / "runs", scores=SCORES, model=model, label=label)
    with edited(run.folder) as data:
        data["model"] |= recorded
    return open_run(run.folder)


@pytest.mark.parametrize(
    ("key", "written", "fact"),
    [
        ("size", "8B", 8.0),
        ("size", "8.03b", 8.03),
        ("size", "700M", 0.7),
        ("size", "1.6T", 1600.0),
        ("size", "671 billion", 671.0),
        ("size", 8, 8.0),
        ("size", "unknown", None),
        ("context", "128k", 128_000.0),
        ("context", "32,768", 32_768.0),
        ("context", 1_048_576, 1_048_576.0),
        ("open", "no", False),
        ("open", "open", True),
        ("open", True, True),
        ("released", "2026-03", "2026-03"),
        ("released", 2024, "2024"),
        ("cutoff", "2026-02-28", "2026-02-28"),
        ("price_in", "$0.15", 0.15),
        ("price_out", 0, 0.0),
        ("licence", "Apache-2.0", "Apache-2.0"),
        ("url", "https://example.org/x", "https://example.org/x"),
        ("stars", 5, 5.0),
        ("stars", "many", "many"),
        ("stars", None, None),
    ],
)
def test_forms_of_facts(key: str, written: Any, fact: Any) -> None:
    assert check_fact(key, written, "here") == fact


@pytest.mark.parametrize(
    ("key", "written", "why"),
    [
        ("size", "8x7B", "'8x7B' is no number of parameters"),
        ("size", -1, "is no number of parameters"),
        ("size", True, "is no number of parameters"),
        ("open", "perhaps", "'perhaps' is no answer: it is yes or no"),
        ("released", "2026-02-30", "'2026-02-30' is no date"),
        ("released", "in May", "is no date"),
        ("price_in", "cheap", "is no price in US dollars"),
        ("price_in", -1, "is no price"),
        ("context", "long", "is no number of tokens"),
        ("url", "javascript:alert(1)", "is no address"),
        ("stars", ["a"], "must be a text, a number, or yes or no"),
        ("stars", float("nan"), "is no finite number"),
        ("stars", "x" * 400, "400 characters"),
    ],
)
def test_a_fact_of_the_wrong_form_is_refused(key: str, written: Any, why: str) -> None:
    with pytest.raises(ConfigurationError, match="^facts.yaml:3: .*" + why[:30]):
        check_fact(key, written, "facts.yaml:3")


def test_other_spellings_of_keys() -> None:
    assert check_facts({"License": "MIT", "cut-off": "2025"}, "x") == {
        "licence": "MIT",
        "cutoff": "2025",
    }
    with pytest.raises(ConfigurationError, match="'licence' and 'License' are the"):
        check_facts({"licence": "MIT", "License": "MIT"}, "x")


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("Qwen3-8B", 8.0),
        ("qwen2.5:0.5b", 0.5),
        ("SmolLM2-135M", 0.135),
        ("Qwen3-30B-A3B", 30.0),
        ("Qwen2.5-7B-Instruct-1M", 7.0),
        ("gemma-3-270m-it", 0.27),
        ("Mixtral-8x7B-Instruct", None),
        ("Llama-4-Scout-17B-16E", None),
        ("gemma-3n-E4B", None),
        ("gpt-4o", None),
        ("model-8bit", None),
        ("draft-1b-for-70b", None),
        ("abc8b", None),
    ],
)
def test_a_size_is_read_from_a_name_only_if_it_is_unmistakable(
    name: str, size: float | None
) -> None:
    assert size_in_name(name) == size


@pytest.mark.parametrize(
    ("model", "facts"),
    [
        ("openai/gpt-4o", {"provider": "openai", "family": "GPT"}),
        ("hf/Qwen/Qwen3-8B@abc", {"provider": "Qwen", "family": "Qwen", "size": 8.0}),
        ("hf/gpt2", {"family": "GPT"}),
        ("hf/bert", {}),
        ("demo/small", {}),
        ("openrouter/meta/Llama-3-70B", {"provider": "meta", "family": "Llama", "size": 70.0}),
        ("deepseek/DeepSeek-R1-Distill-Qwen-7B", {"provider": "deepseek", "size": 7.0}),
        ("openai/http://10.0.0.7:8000/v1#llama-3-8b", {"family": "Llama", "size": 8.0}),
    ],
)  # fmt: skip
def test_facts_in_names(tmp_path: Path, model: str, facts: dict[str, Any]) -> None:
    (of_model,), sentences = facts_of_runs([run_of(tmp_path, model)])
    assert dict(of_model.facts) == facts
    assert set(of_model.sources.values()) <= {FROM_NAME}
    assert sentences == []


def test_table_before_record_before_name(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        "openai/gpt-7B",
        price={"input": 0.15, "output": 0.6},
        parameters=7_240_000_000,
        facts={"licence": "MIT", "open": True},
    )
    table = tmp_path / "facts.yaml"
    table.write_text("openai/gpt-7B: {licence: closed, price_in: 0.2}\n")
    (of_model,), _ = facts_of_runs([run], read_facts(table))
    assert of_model.facts == {
        "licence": "closed",
        "price_in": 0.2,
        "price_out": 0.6,
        "size": 7.24,
        "open": True,
        "provider": "openai",
        "family": "GPT",
    }
    assert of_model.sources["licence"] == FROM_TABLE
    assert of_model.sources["price_out"] == FROM_RECORD
    assert of_model.sources["provider"] == FROM_NAME


def test_yaml_json_and_csv_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "facts.yaml").write_text("A one: {size: 8B, open: no, stars: 4}\n")
    (tmp_path / "list.yml").write_text(
        "- {model: A one, size: 8B, open: no, stars: 4}\n"
    )
    (tmp_path / "facts.json").write_text(
        json.dumps({"A one": {"size": "8B", "open": False, "stars": 4}})
    )
    (tmp_path / "list.json").write_text(
        json.dumps([{"label": "A one", "size": 8, "open": False, "stars": 4}])
    )
    (tmp_path / "facts.csv").write_bytes(
        "\ufeffModel;Size;open;stars;url\r\nA one;8B;no;4;\r\n".encode()
    )
    names = ("facts.yaml", "list.yml", "facts.json", "list.json", "facts.csv")
    for name in names:
        table = read_facts(tmp_path / name)
        assert table.facts == {"A one": {"size": 8.0, "open": False, "stars": 4.0}}, (
            name
        )


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("f.yaml", "a: {size: 8B}\nb: {size: big}\n", "f.yaml:2: 'big' is no number"),
        ("f.yaml", "a: 8B\n", "f.yaml:1: 'a' must be a mapping"),
        ("f.yaml", "a: {size: 1}\na: {size: 2}\n", "f.yaml:2"),
        ("f.json", '{\n "a": {"open": 3}\n}', "f.json:2: '3' is no answer"),
        ("f.json", '{\n "a": \n}', "f.json:3: this is not JSON"),
        ("f.json", "3", "f.json:1: a table of facts is"),
        ("f.json", '[{"size": 3}]', "f.json, entry 1: the entry has no 'model'"),
        ("f.json", "[" * 100_000, "f.json:1: this is not JSON"),
        ("f.csv", "name,size\na,8B\nb,x\n", "f.csv:3: 'x' is no number"),
        ("f.csv", "size\n8B\n", "f.csv:1: a table of facts needs the column 'model'"),
        ("f.csv", "model,size\na,1,2\n", "f.csv:2: the row has more cells"),
        ("f.csv", "model,size\na,1\na,2\n", "f.csv:3: 'a' is also in f.csv:2"),
        ("f.csv", "model,size\n,1\n", "f.csv:2: the row names no model"),
        ("f.csv", "model,size\n", "names no model"),
    ],
)  # fmt: skip
def test_a_wrong_table_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    with pytest.raises(UsageError) as caught:
        read_facts(Path(name))
    assert message in str(caught.value)


def test_unknown_models_come_with_the_closest_ones(tmp_path: Path) -> None:
    runs = [run_of(tmp_path, "openai/gpt-4o"), run_of(tmp_path, "openai/o3", "The o3")]
    table = tmp_path / "facts.yaml"
    table.write_text("GPT-4o: {open: no}\nthe o4: {open: no}\nelse: {open: no}\n")
    with pytest.raises(ConfigurationError, match="no model of this board is called"):
        facts_of_runs(runs, read_facts(table))

    table.write_text(
        "openai/GPT-4o: {open: no}\nthe o4: {open: no}\nelse: {open: no}\n"
    )
    (first, second), sentences = facts_of_runs(runs, read_facts(table))
    assert first.facts["open"] is False
    assert "open" not in second.facts
    assert len(sentences) == 2
    assert "facts.yaml:2: no model of this board is called 'the o4'" in sentences[0]
    assert "Did you mean 'The o3'?" in sentences[0]
    assert sentences[1].endswith("has no facts about The o3.")


def test_a_record_that_was_edited_has_no_facts(tmp_path: Path) -> None:
    run = run_of(tmp_path, "demo/small", facts={"open": "x"}, parameters="many")
    assert facts_of_runs([run])[0][0].facts == {}


def test_many_unknown_names_are_counted_and_found_quickly(tmp_path: Path) -> None:
    runs = [run_of(tmp_path, f"maker/model-{i:03}") for i in range(12)]
    table = tmp_path / "facts.csv"
    rows = "".join(f"maker/model-{i:03}x,1\n" for i in range(1, 9_000))
    table.write_text(f"model,stars\nmaker/model-000,1\n{rows}")
    facts, sentences = facts_of_runs(runs, read_facts(table))
    assert facts[0].facts["stars"] == 1.0
    assert len(sentences) == 7
    assert sentences[0].startswith(f"{table}:3: no model of this board is called")
    assert "more such names" in sentences[5]


def test_no_fact_stands_in_for_what_a_board_says(tmp_path: Path) -> None:
    """A run's author may not choose its cost, nor its rank."""
    run = make_run(tmp_path, name="a", model="x/a", scores=[1.0], cost=2.0)
    run.data["model"]["facts"] = {"cost": 0.1, "size": 8, "context": "huge"}
    assert facts_of_runs([run])[0][0].facts["size"] == 8.0
    assert "cost" not in facts_of_runs([run])[0][0].facts
    with pytest.raises(ConfigurationError, match="cost"):
        check_facts({"cost": 0.1}, "models.yaml")


@pytest.mark.parametrize("size", [10**400, 1e300, "9" * 60 + "B"])
def test_numbers_that_no_page_can_show(size: Any) -> None:
    with pytest.raises(ConfigurationError, match="size"):
        check_facts({"size": size}, "models.yaml")


def test_an_address_with_a_login_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="url"):
        check_facts({"url": "https://good.example@evil.example/"}, "models.yaml")
