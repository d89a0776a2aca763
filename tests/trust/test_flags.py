"""A flag that does nothing is an error, and the number of shots counts for every task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright import evaluate, plan, task
from evalwright.core.errors import UsageError
from support.command import record, write_questions
from support.typed import typed

ECHO = ("--model", "scripted/echo")
RUN = ("run", "questions.yaml", "--quiet", *ECHO)


@pytest.fixture(autouse=True)
def _folder(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "EVALWRIGHT_PROVIDERS", "EVALWRIGHT_TASKS"):
        monkeypatch.delenv(name, raising=False)
    write_questions(own_folder, 6)
    Path("shots.yaml").write_text(
        Path("questions.yaml")
        .read_text()
        .replace("task: questions", "task: shots")
        .replace(
            'prompt: {user: "{{ input }}"}',
            'prompt: {user: "{{ input }}", few_shot: {count: 1, dataset: pool.jsonl}}',
        )
    )
    rows = [
        {"id": f"p{i}", "question": f"Shot {i}?", "answer": str(i)} for i in range(5)
    ]
    Path("pool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def prompts(*arguments: str) -> str:
    done = typed("tasks", "preview", *arguments)
    assert done.code == 0, done.text
    return done.out


def test_the_number_of_shots_counts_for_every_task() -> None:
    for count in (0, 1, 4):
        assert (
            prompts("shots.yaml", "--num-fewshot", str(count)).count("Shot ") == count
        )
    names = []
    for more in ((), ("--num-fewshot", "4")):
        done = typed("run", "shots.yaml", "--quiet", "--json", *ECHO, *more)
        assert done.code == 0, done.text
        names.append(json.loads(done.out)[0])
    own, four = names
    assert (
        own["id"] != four["id"]
        and four["id"].startswith("shots-4-shot--")
        and own["identity"] != four["identity"]
    )
    assert four["configuration"]["num_fewshot"] == 4
    assert four["tasks"][0]["definition"]["prompt"]["few_shot"]["count"] == 4
    shown = typed("runs", "show", four["id"])
    assert "4 shots" in shown.out
    again = typed("run", "--config", f"runs/{four['id']}/run.json", "--json", "--quiet")
    assert json.loads(again.out)[0]["identity"] == four["identity"]
    (run,) = evaluate("shots.yaml", "scripted/echo", num_fewshot=4, name="api")
    assert run.data["identity"] == four["identity"]
    Path("suite.yaml").write_text(
        "tasks: shots.yaml\nmodels: scripted/echo\nnum_fewshot: 4\nname: file\n"
    )
    assert typed("run", "--config", "suite.yaml", "--quiet").code == 0
    assert record(Path("runs/file"))["identity"] == four["identity"]
    given = ("-T", "prompt.few_shot.dataset.path=pool.jsonl", "--num-fewshot", "2")
    assert prompts("questions.yaml", *given).count("Shot ") == 2


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "no source of shots": ((*RUN, "--num-fewshot", "5"), "few_shot: {count: 5, dataset: FILE}"),
    "fewer than none": ((*RUN, "--num-fewshot", "-1"), "0 or more"),
    "too many": (("run", "shots.yaml", *ECHO, "--num-fewshot", "9"), "9 shots are needed"),
    "scoring": ((*RUN, "--scoring", "published"), "--scoring published has no effect"),
    "task root": ((*RUN, "--task-root", "."), "--task-root . has no effect"),
    "sandbox": ((*RUN, "--sandbox", "jail"), "--sandbox jail has no effect"),
    "start token": (("run", "questions.yaml", "--model", "openai/http://localhost:1#m", "-M", "bos=<s>"), "-M bos has no effect"),
    "window": (("run", "questions.yaml", "--model", "vllm/m", "-M", "context_length=99"), "-M context_length has no effect"),
    "trust": ((*RUN, "--trust", "/usr"), "--trust /usr has no effect"),
    "trust of what needs none": ((*RUN, "--trust", "."), "--trust . has no effect"),
    "preview scoring": (("tasks", "preview", "questions.yaml", "--scoring", "published"), "has no effect"),
    "show root": (("tasks", "show", "questions.yaml", "--task-root", "."), "has no effect"),
    "check trust": (("tasks", "check", "questions.yaml", "--trust", "/usr"), "has no effect"),
    "plan scoring": (("plan", "questions.yaml", *ECHO, "--scoring", "published"), "has no effect"),
    "role": ((*RUN, "--role", "judge=scripted/echo"), "uses a model in the role 'judge'"),
    "plan role": (("plan", "questions.yaml", *ECHO, "--role", "judge=scripted/echo"), "role 'judge'"),
    "resident none": ((*RUN, "--max-resident", "0"), "must be at least 1"),
    "resident several": ((*RUN, "--max-resident", "2"), "--max-resident 2 has no effect"),
    "price of local": ((*RUN, "-M", "local=true", "--price", "1/2"), "has no effect"),
    "price of nobody": ((*RUN, "--price", "openai/x=1/2"), "openai/x"),
    "price twice": (
        ("run", "questions.yaml", "--model", "openai/http://localhost:9/v1#m", "--price", "openai/http://localhost:9/v1#m=1/2", "--price", "3/4"),
        "has no effect",
    ),
    "name out": ((*RUN, "--name", "../x"), "cannot be the name of a run"),
    "name dots": ((*RUN, "--name", ".."), "cannot be the name of a run"),
    "batch": ((*RUN, "--batch"), "has no batch jobs"),
    "batch of a provider": (("run", "questions.yaml", "--model", "groq/x", "--batch"), "has no batch jobs"),
    "where": ((*RUN, "--where", "subject=x"), "metadata"),
    "limit": ((*RUN, "--limit", "0"), "at least 1"),
    "limit below": ((*RUN, "--limit", "-3"), "at least 1"),
    "seed": ((*RUN, "--seed", "-1"), "0 or more"),
    "chat": (("run", "questions.yaml", "--model", "demo/small", "--format", "chat"), "can do: chat"),
    "suite": ((*RUN, "--suite", "x"), "--config FILE"),
    "trust file": ((*RUN, "--trust-file", "x"), "--config FILE"),
    "setting": ((*RUN, "-T", "answer.max_token=3"), "max_token"),
    "scorer's setting": ((*RUN, "-T", "scorers.judge.role=x"), "judge"),
    "plan setting": (("plan", "questions.yaml", *ECHO, "-T", "answer.max_token=3"), "max_token"),
    "plan quiet": (("plan", "questions.yaml", *ECHO, "--quiet"), "--pilot"),
    "plan seed": (("plan", "questions.yaml", *ECHO, "--seed", "3"), "--pilot"),
    "preview arguments": (("tasks", "preview", "questions.yaml", "-M", "seed=1"), "--model"),
    "check runs": (("tasks", "check", "questions.yaml", "--out", "x"), "--run"),
    "score role": (("score", "r", "--role", "judge=scripted/echo"), "role 'judge'"),
    "score root": (("score", "r", "--task-root", "."), "has no effect"),
    "score name": (("score", "r", "--name", "../../x"), "cannot be the name of a run"),
    "aggregate name": (("aggregate", "r", "--name", "a/b"), "cannot be the name of a run"),
    "aggregate slice": (("aggregate", "r", "--slice", "nothing"), "nothing"),
    "gate": (("compare", "r", "r2", "--gate", "not-ruled-out"), "--fail-if"),
    "flips": (("compare", "r", "r2", "r3", "--flips", "2"), "--flips"),
    "all slices": (("compare", "r", "r2", "--all-slices"), "--slice"),
    "all slices of three": (
        ("compare", "r", "r2", "r3", "--slice", "domain", "--all-slices"),
        "every slice is listed",
    ),
    "one run": (("compare", "r", "--json-file", "x.json"), "two runs"),
    "compare slice": (("compare", "r", "r2", "--slice", "nothing"), "nothing"),
    "date key": (("contamination", "r", "--date-key", "x"), "--cut-off"),
    "n-gram": (("contamination", "r", "--ngram", "5"), "--corpus"),
    "question": (("check", "judge", "sample", "r", "--question", "x"), "--page"),
    "title": (("leaderboard", "r", "--title", "x"), "--title"),
    "import name": (("import", "lm-eval", "nowhere", "--name", "../x"), ""),
}  # fmt: skip


@pytest.fixture
def _runs() -> None:
    for name in ("r", "r2", "r3"):
        assert typed(*RUN, "--name", name).code == 0


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_nothing_is_refused(
    name: str, request: pytest.FixtureRequest
) -> None:
    arguments, says = REFUSED[name]
    if arguments[0] not in ("run", "plan", "tasks"):
        request.getfixturevalue("_runs")
    done = typed(*arguments)
    assert done.code == 2, done.text
    assert says in done.err and "bug" not in done.err, done.err
    assert not Path("runs").exists() or arguments[0] not in ("run", "plan", "tasks")


SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "num_fewshot": ({"num_fewshot": 3}, "no source of shots"),
    "dialect": ({"dialect": {"scoring": "published"}}, "no effect"),
    "roles": ({"roles": {"judge": "scripted/echo"}}, "role 'judge'"),
    "max_resident": ({"max_resident": 0}, "at least 1"),
    "seed": ({"seed": -1}, "0 or more"),
    "name": ({"name": "../x"}, "cannot be the name"),
    "limit": ({"limit": 0}, "at least 1"),
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("how", ["python", "file"])
def test_the_same_holds_for_python_and_suite_files(name: str, how: str) -> None:
    settings, says = SETTINGS[name]
    if how == "python":
        with pytest.raises(UsageError, match=says):
            evaluate("questions.yaml", "scripted/echo", **settings)
        return
    suite = {"tasks": "questions.yaml", "models": "scripted/echo", **settings}
    Path("suite.yaml").write_text(json.dumps(suite))
    done = typed("run", "--config", "suite.yaml")
    assert done.code == 2 and says in done.err


def test_settings_of_objects() -> None:
    @task("made")
    def made() -> dict[str, Any]:
        return {
            "dataset": {"rows": [{"input": "q", "target": "a"}]},
            "scorers": ["exact-match"],
        }

    from evalwright import load_task

    one = load_task("made")
    several: list[dict[str, Any]] = [
        {"num_fewshot": 2},
        {"overrides": {"version": 2}},
        {"format": "text"},
    ]
    for settings in several:
        with pytest.raises(UsageError, match="object"):
            evaluate(one, "scripted/echo", **settings)


def test_settings_of_tasks_count_in_a_plan() -> None:
    found = plan(
        "shots.yaml", "scripted/echo", num_fewshot=4, assume={"discordant": 0.2}
    )
    assert "--num-fewshot 4" in found.command
    Path("two.jsonl").write_text(
        "".join(Path("questions.jsonl").read_text().splitlines(keepends=True)[:2])
    )
    small = plan(
        "questions.yaml",
        "scripted/echo",
        overrides={"dataset.path": "two.jsonl"},
        assume={"discordant": 0.2},
    )
    assert small.tasks[0].n_total == 2
