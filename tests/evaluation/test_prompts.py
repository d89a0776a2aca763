"""Several prompts: a run for each model and prompt, alike in all else, and what is refused."""

from __future__ import annotations

import csv
import hashlib
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

import evalwright.runs
from evalwright import ScriptedModel, evaluate, open_run
from evalwright.analysis.comparison import compare_runs
from evalwright.analysis.several import compare_several
from evalwright.core.errors import ConfigurationError
from evalwright.evaluation.prompts import prompts_from_python
from evalwright.models.scripted import last_text
from support.typed import typed

SCHEMAS = Path(evalwright.runs.__file__).parent / "schemas"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"What is {n} + {n}?,{2 * n}\n" for n in range(1, 31))
    Path("sums.csv").write_text(f"question,target\n{rows}")
    Path("short.txt").write_text("Q: {{ input }}\nA:")
    Path("formal.txt").write_text('Show {"json": 1}.\n\n{input}\nAnswer:')


def prompts_of(run: Any) -> set[str]:
    return {str(row["prompt"]) for row in run.rows()}


def test_each_model_has_a_run_with_each_prompt() -> None:
    done = typed(
        *("run", "sums.csv", "--model", "demo/small", "--model", "demo/large"),
        *("--prompt", "short.txt", "--prompt", "formal.txt", "--name", "p"),
        *("--limit", "12"),
    )
    assert done.code == 0, done.text
    names = ["p-demo-large-formal", "p-demo-large-short"]
    names += ["p-demo-small-formal", "p-demo-small-short"]
    assert sorted(path.name for path in Path("runs").iterdir()) == names
    runs = {name: open_run(name) for name in names}
    short = runs["p-demo-small-short"]
    assert short.label == "demo/small · short"
    assert short.data["prompt"]["name"] == "short"
    assert all(text.startswith("Q: What is") for text in prompts_of(short))
    formal = runs["p-demo-small-formal"]
    assert any('{"json": 1}' in text for text in prompts_of(formal))
    ids = [[row["id"] for row in run.rows()] for run in runs.values()]
    assert all(run_ids == ids[0] for run_ids in ids), "the same items for all"


def test_a_prompt_may_have_a_system_message() -> None:
    suite = (
        "tasks: [sums.csv]\nmodels: [scripted/echo]\nlimit: 3\nprompts:\n"
        "  - {name: terse, system: 'Be terse about {{ id }}.', file: short.txt}\n"
        "  - {name: plain, file: short.txt}\n"
    )
    Path("suite.yaml").write_text(suite)
    done = typed("run", "--config", "suite.yaml", "--name", "p", "--quiet")
    assert done.code == 0, done.text
    terse, plain = open_run("p-terse"), open_run("p-plain")
    assert all("Be terse about" in text for text in prompts_of(terse))
    assert not any("Be terse" in text for text in prompts_of(plain))
    assert terse.data["prompt"]["hash"] != plain.data["prompt"]["hash"]
    again = typed("run", "--config", "runs/p-terse/run.json", "--name", "again")
    assert again.code == 0, again.text
    assert prompts_of(open_run("again")) == prompts_of(terse)
    clash = typed("run", "--config", "suite.yaml", "-T", "prompt.system=You are kind.")
    assert clash.code == 2
    assert "'prompt.system' is set for the tasks" in clash.err


def test_a_run_resumes_from_its_record_and_sends_nothing() -> None:
    common = ("sums.csv", "--model", "demo/small", "--limit", "5")
    prompts = ("--prompt", "short.txt", "--prompt", "formal.txt")
    assert typed("run", *common, *prompts, "--name", "p").code == 0
    again = typed("run", "--config", "runs/p-formal/run.json", "--name", "again")
    assert again.code == 0, again.text
    first, second = open_run("p-formal"), open_run("again")
    assert second.data["usage"]["sent"] == 0
    assert (first.label, first.data["prompt"]) == (second.label, second.data["prompt"])


def test_shots_are_drawn_alike_for_every_prompt() -> None:
    rows = "".join(f"Shot {n}?,s{n}\n" for n in range(40))
    Path("shots.csv").write_text(f"question,target\n{rows}")
    runs = evaluate(
        "sums.csv",
        ScriptedModel("2"),
        prompts={"a": "Q: {{ input }}", "b": "Say: {{ input }}"},
        overrides={"prompt": {"few_shot": {"count": 3, "dataset": "shots.csv"}}},
        limit=4,
    )
    drawn = [
        [re.findall(r"Shot \d+", str(row["prompt"])) for row in run.rows()]
        for run in runs
    ]
    assert drawn[0] == drawn[1]
    assert all(len(shots) == 3 for shots in drawn[0])


def test_equal_requests_are_sent_once() -> None:
    calls: list[str] = []

    def model(prompt: Any) -> str:
        calls.append(str(prompt))
        return "2"

    same = "Q: {{ input }}\nA:"
    runs = evaluate("sums.csv", model, prompts={"a": same, "b": same}, limit=6)
    assert len(runs) == 2 and len(calls) == 6


def test_a_suite_names_files_beside_it_and_texts() -> None:
    Path("folder").mkdir()
    Path("short.txt").rename("folder/short.txt")
    suite = {
        "tasks": ["../sums.csv"],
        "models": ["demo/small"],
        "limit": 3,
        "prompts": ["short.txt", {"name": "long", "text": "Please: {{ input }}"}],
    }
    Path("folder/suite.yaml").write_text(json.dumps(suite))
    done = typed("run", "--config", "folder/suite.yaml", "--name", "s")
    assert done.code == 0, done.text
    texts = prompts_of(open_run("s-long"))
    assert texts and all(text.startswith("Please: What is") for text in texts)
    assert open_run("s-short").data["prompt"]["name"] == "short"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--prompt", "none.txt"], "does not exist"),
        (["--prompt", "short.txt", "-T", "prompt.user=x"], "prompt.user"),
        (["--prompt", "short.txt", "--prompt", "x/short.txt"], "called 'short'"),
        (
            [
                *("--prompt", "short.txt", "--prompt", "formal.txt"),
                *("--until", "short beats small"),
            ],
            "compares a run, 'short', with a model, 'small'",
        ),
    ],
)
def test_what_does_not_go_together_is_said(arguments: list[str], words: str) -> None:
    Path("x").mkdir()
    Path("x/short.txt").write_text("{{ input }}")
    done = typed("run", "sums.csv", "--model", "demo/small", *arguments)
    assert done.code == 2
    assert words in done.err


def knows(shares: dict[str, float]) -> ScriptedModel:
    """A model that knows these shares of "QUESTION (PROMPT)" by prompt; some are easier."""

    def says(request: Any) -> str:
        text = last_text(request.prompt)
        number, prompt = re.findall(r"Item (\d+) \((\w+)\)", text)[0]
        hardness = random.Random(f"item {number}").random()
        own = random.Random(f"{prompt} {number}").random()
        return "yes" if (hardness + own) / 2 < shares[prompt] else "no"

    return ScriptedModel(says, name="scripted/knows", version=str(shares))


def prompt_texts(*names: str) -> dict[str, str]:
    return {name: f"{{{{ input }}}} ({name})" for name in names}


def items(count: int) -> list[dict[str, str]]:
    return [{"question": f"Item {n}", "answer": "yes"} for n in range(count)]


def decisions(run: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run.data["stopping"]["decisions"]
    return found


def test_a_rule_about_two_prompts_ends_both_runs_at_the_same_place() -> None:
    model = knows({"short": 0.7, "formal": 0.45})
    setup: dict[str, Any] = {
        "target": "answer",
        "scorers": ["exact-match"],
        "seed": 3,
    }
    runs = evaluate(
        items(600),
        model,
        prompts=prompt_texts("short", "formal"),
        until="short beats formal",
        name="two",
        **setup,
    )
    (decision,), (same,) = map(decisions, runs)
    assert decision == same
    assert decision["verdict"] == "scripted/knows · short better"
    assert decision["early"] and decision["units"] < 600 and "pairs" not in decision
    counts = [task["asked"] for run in runs for task in run.data["stopping"]["tasks"]]
    assert counts == [decision["units"]] * 2
    whole = evaluate(
        items(600), model, prompts=prompt_texts("short", "formal"), **setup
    )
    paired = compare_runs(*whole).tasks[0].paired
    assert paired is not None and paired.verdict == "better"


def test_every_two_of_three_prompts_are_decided_as_in_the_full_run() -> None:
    model = knows({"short": 0.68, "formal": 0.42, "long": 0.66})
    setup: dict[str, Any] = {
        "target": "answer",
        "scorers": ["exact-match"],
        "name": "three",
    }
    prompts = prompt_texts("short", "formal", "long")
    runs = evaluate(items(600), model, prompts=prompts, until="all pairs", **setup)
    by_rule = {
        decision["rule"]: decision for run in runs for decision in decisions(run)
    }
    assert len(by_rule) == 3
    assert {decision["pairs"] for decision in by_rule.values()} == {3}
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((SCHEMAS / "run.schema.json").read_text(encoding="utf-8"))
    for run in runs:
        jsonschema.validate(json.loads((run.folder / "run.json").read_text()), schema)
    asked = [run.data["stopping"]["tasks"][0]["asked"] for run in runs]
    assert asked[1] < asked[0] == asked[2], "each until its last pair is decided"
    again = evaluate(items(600), model, prompts=prompts, until="all pairs", **setup)
    assert [run.data["usage"]["sent"] for run in again] == [0, 0, 0]
    assert [decisions(run) for run in again] == [decisions(run) for run in runs]
    whole = evaluate(items(600), model, prompts=prompts, **setup)
    pairs = compare_several(whole).tasks[0].pairs
    labels = [run.label for run in whole]
    for pair in pairs:
        first, second = sorted((pair.a, pair.b))
        winner = {"better": pair.a, "worse": pair.b}.get(pair.verdict)
        verdict = by_rule[f"{labels[first]} beats {labels[second]}"]["verdict"]
        assert verdict == (
            "no difference seen" if winner is None else f"{labels[winner]} better"
        )


def test_a_rule_about_prompts_is_asked_of_each_model() -> None:
    models = {
        "one": knows({"short": 0.7, "formal": 0.4}),
        "two": replace_name(knows({"short": 0.5, "formal": 0.5})),
    }
    runs = evaluate(
        items(400),
        models,
        target="answer",
        scorers=["exact-match"],
        prompts=prompt_texts("short", "formal"),
        until=["short beats formal", "accuracy +-0.2"],
        name="each",
    )
    rules = [[decision["rule"] for decision in decisions(run)] for run in runs]
    for label, of_model in (("one", rules[:2]), ("two", rules[2:])):
        about_prompts = f"{label} · short beats {label} · formal"
        assert of_model == [[about_prompts, "accuracy +-0.2"]] * 2
    with pytest.raises(ConfigurationError, match="another configuration"):
        evaluate(
            items(400),
            models,
            target="answer",
            scorers=["exact-match"],
            prompts=prompt_texts("short", "formal"),
            until="one beats two",
            name="each",
        )


def replace_name(model: ScriptedModel) -> ScriptedModel:
    model.name = "scripted/other"
    return model


def test_a_budget_ends_prompts_evenly_and_the_same_command_goes_on() -> None:
    model = knows({"short": 0.6, "formal": 0.6})
    setup: dict[str, Any] = {
        "target": "answer",
        "scorers": ["exact-match"],
        "prompts": prompt_texts("short", "formal"),
        "name": "money",
        "until": "all pairs",
    }
    first = evaluate(items(200), model, budget="150 requests", **setup)
    asked = [run.data["stopping"]["tasks"][0]["asked"] for run in first]
    assert sum(asked) == 150 and abs(asked[0] - asked[1]) <= 2
    second = evaluate(items(200), model, budget="400 requests", **setup)
    assert sum(run.data["usage"]["sent"] for run in second) == 250


def test_a_file_outside_of_a_suites_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    suite = {
        "tasks": ["factual-choice"],
        "models": ["demo/small"],
        "prompts": ["/etc/hostname"],
    }
    (tmp_path / "inner" / "suite.yaml").write_text(json.dumps(suite))
    done = typed("run", "--config", "inner/suite.yaml")
    assert done.code == 2 and "outside" in done.err


@pytest.mark.parametrize("prompts", [[3], {"a b": "{{ input }}"}, [None]])
def test_what_is_no_prompt_is_refused(prompts: Any) -> None:
    with pytest.raises(ConfigurationError):
        prompts_from_python(prompts)


def test_prompts_in_python_are_texts_or_files() -> None:
    first, second = prompts_from_python(["{{ input }}!", Path("short.txt")])
    assert (first.name, first.text) == ("prompt-1", "{{ input }}!")
    assert (second.name, second.file) == ("short", "short.txt")
    (run,) = evaluate(
        "sums.csv", ScriptedModel("2"), prompts="short.txt", limit=2, name="one"
    )
    assert run.name == "one" and run.data["prompt"]["name"] == "short"


def test_a_comparison_of_prompts_corrects_the_best() -> None:
    runs = [*("sums.csv", "--model", "demo/small", "--name", "p")]
    assert (
        typed("run", *runs, "--prompt", "short.txt", "--prompt", "formal.txt").code == 0
    )
    shown = typed("compare", "p-short", "p-formal").out
    assert "Being chosen adds" in " ".join(shown.split())


def test_boards_records_and_pages_name_the_prompt_and_its_hash() -> None:
    prompts = ("--prompt", "short.txt", "--prompt", "formal.txt")
    models = ("--model", "demo/small", "--model", "demo/large")
    made = typed("run", "sums.csv", *models, *prompts, "--name", "p", "--limit", "5")
    assert made.code == 0, made.text
    names = [f"p-demo-{model}-{prompt}" for model in ("small", "large") for prompt in ("short", "formal")]  # fmt: skip
    output = " ".join(made.out.split())
    assert f"evalwright compare {' '.join(names)}" in output
    assert f"evalwright view {' '.join(names)}" in output
    digest = hashlib.sha256(Path("short.txt").read_bytes()).hexdigest()
    files = ("--json", "--csv", "board.csv", "--html", "board.html")
    board = typed("leaderboard", *names, *files)
    assert board.code == 0, board.text
    by_run = {row["run"]: row for row in json.loads(board.out)["rows"]}
    assert by_run[names[0]]["prompt"] == {"name": "short", "hash": digest}
    rows = list(csv.DictReader(Path("board.csv").read_text("utf-8").splitlines()))
    assert {row["prompt"] for row in rows} == {"short", "formal"}
    assert digest in {row["prompt_hash"] for row in rows}
    page = Path("board.html").read_text(encoding="utf-8")
    assert f"prompt short ({digest[:8]})" in page
    assert "2 models with 2 prompts" in page
    shown = typed("runs", "show", names[0], "--details").out
    assert f"short ({digest[:8]})" in shown


def test_a_board_without_prompts_says_nothing_of_them() -> None:
    assert typed("run", "sums.csv", "--model", "demo/small", "--name", "one").code == 0
    board = typed("leaderboard", "one", "--json", "--csv", "board.csv")
    assert "prompt" not in json.loads(board.out)["rows"][0]
    assert "prompt" not in Path("board.csv").read_text(encoding="utf-8")
