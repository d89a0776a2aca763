"""`evalwright run`: what it prints, writes and returns, and what its flags do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import record, records
from support.openai_server import serving
from support.typed import typed

ECHO = ("--model", "scripted/echo")


def test_the_happy_path() -> None:
    done = typed("run", "questions.yaml", *ECHO, "--name", "first")
    assert done.code == 0
    assert "Run first" in done.out
    assert "questions" in done.out
    assert "6 sent, 0 from the store" in done.out
    assert len(records(Path("runs/first"))) == 6
    again = typed("run", "questions.yaml", *ECHO, "--name", "first")
    assert "0 sent, 6 from the store" in again.out


def test_several_models_end_with_the_board() -> None:
    done = typed(
        "run",
        "questions.yaml",
        *ECHO,
        "--model",
        "scripted/constant",
        "-M",
        "latency=0",
        "--name",
        "both",
    )
    assert done.code == 0
    assert sorted(path.name for path in Path("runs").iterdir()) == [
        "both-scripted-constant",
        "both-scripted-echo",
    ]
    parts = done.out.split("\nLeaderboard\n")
    assert len(parts) == 2
    assert "runs/both-scripted-echo" in parts[0]
    assert "runs/both-scripted-constant" in parts[0]
    assert "Rank" in parts[1]


def test_flags_reach_the_configuration() -> None:
    arguments = (
        "-M text=yes -M seed=4 --limit 3 --seed 9 --out results --name x --format text"
    )
    done = typed(
        "run", "questions.yaml", "--model", "scripted/constant", *arguments.split()
    )
    assert done.code == 0
    data = record(Path("results/x"))
    assert data["configuration"] == {
        "tasks": ["questions.yaml"],
        "models": [
            {"model": "scripted/constant", "arguments": {"text": "yes", "seed": 4}}
        ],
        "limit": 3,
        "seed": 9,
        "name": "x",
        "out": "results",
        "format": "text",
    }
    assert {row["answer"] for row in records(Path("results/x"))} == {"yes"}


@pytest.mark.parametrize("several", [False, True])
def test_a_recorded_configuration_gives_the_same_run(several: bool) -> None:
    models = [
        *ECHO,
        *(("--model", "scripted/hash", "-M", "latency=0") if several else ()),
    ]
    first = typed(
        "run",
        "questions.yaml",
        *models,
        "--limit",
        "4",
        "--seed",
        "2",
        "--json",
        "--quiet",
    )
    for old in json.loads(first.out):
        done = typed(
            "run", "--config", f"{old['folder']}/run.json", "--json", "--quiet"
        )
        assert done.code == 0, done.err
        (new,) = json.loads(done.out)
        assert (new["id"], new["identity"], new["folder"]) == (
            old["id"],
            old["identity"],
            old["folder"],
        )
        assert new["configuration"] == old["configuration"]
        assert new["usage"]["asked"] == 0
        assert new["tasks"] == old["tasks"]


def test_a_suite_file_and_flags_over_it() -> None:
    Path("suites").mkdir()
    for name in ("questions.yaml", "questions.jsonl"):
        Path(name).rename(f"suites/{name}")
    Path("suites/all.yaml").write_text(
        "tasks: questions.yaml\nmodels: [scripted/echo]\nlimit: 2\nname: suite\n"
    )
    assert typed("run", "--config", "suites/all.yaml").code == 0
    assert len(records(Path("runs/suite"))) == 2
    assert (
        typed(
            "run", "--config", "suites/all.yaml", "--limit", "5", "--name", "more"
        ).code
        == 0
    )
    assert len(records(Path("runs/more"))) == 5
    done = typed(
        "run", "--config", "suites/all.yaml", "-M", "latency=0", "--name", "argued"
    )
    assert done.code == 0
    assert record(Path("runs/argued"))["configuration"]["models"][0]["arguments"] == {
        "latency": 0
    }


def test_plugins_bring_models_scorers_and_tasks() -> None:
    Path("mine.py").write_text(
        "from evalwright import RemoteModel, Response, Score, model, scorer, task\n"
        "@model('plugged')\n"
        "class Mine(RemoteModel):\n"
        "    abilities = frozenset({'generate'})\n"
        "    def __init__(self, name, *, word='hm'):\n"
        "        self.name, self.word, self.fingerprint = name, word, f'mine {word}'\n"
        "    async def answer(self, request):\n"
        "        return Response(self.word)\n"
        "@scorer('test-cli-length')\n"
        "def length(sample, answer):\n"
        "    return Score(len(answer.text) / 10)\n"
        "@task('test-cli-task')\n"
        "def made():\n"
        "    return {'dataset': {'rows': [{'input': '?', 'target': 'x'}]}, 'scorers': ['test-cli-length']}\n"
    )
    done = typed(
        "run",
        "test-cli-task",
        "--plugin",
        "mine.py",
        "--model",
        "plugged/x",
        "-M",
        "word=hello",
        "--json",
    )
    assert done.code == 0, done.err
    assert json.loads(done.out)[0]["tasks"][0]["metrics"][0]["value"] == 0.5


def test_failures_end_with_1_and_a_sentence() -> None:
    Path("failing.py").write_text(
        "from evalwright import Score, scorer\n"
        "@scorer('test-cli-failing')\n"
        "def failing(sample, answer):\n"
        "    return Score(1 / (int(sample.target) % 2))\n"
    )
    Path("questions.yaml").write_text(
        Path("questions.yaml").read_text().replace("exact-match", "test-cli-failing")
    )
    done = typed("run", "questions.yaml", *ECHO, "--plugin", "failing.py", "--quiet")
    assert done.code == 1
    assert done.err.startswith("3 answers are missing: scorer error.")


def test_no_key_appears_anywhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-cli-secret-9876543210fedcba"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    with serving(key=secret) as server:
        command = ("--model", "openai/test", "-M", f"base_url={server.url}")
        done = typed(
            "run",
            "questions.yaml",
            *command,
            *["--name", "keyed"],
        )
        assert done.code == 0, done.text
        shown = typed("runs", "show", "keyed", "--json")
        checked = typed("models", "check", *command[1:], "--json")
        leaky = typed(
            "run",
            "questions.yaml",
            *command,
            "-M",
            f"api_key={secret}",
            "--name",
            "leaky",
        )
    assert leaky.code == 2
    assert secret not in done.text + shown.text + checked.text + leaky.text
    for path in folder.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


def test_settings_over_a_task() -> None:
    Path("mine.jsonl").write_text(
        '{"id": "x", "question": "Mine?", "answer": "1"}\n', encoding="utf-8"
    )
    done = typed(
        "run",
        "questions.yaml",
        *ECHO,
        *[
            "--name",
            "mine",
            "-T",
            "dataset.path=mine.jsonl",
            "-T",
            "answer.max_tokens=3",
        ],
    )
    assert done.code == 0, done.text
    (row,) = records(Path("runs/mine"))
    assert row["id"] == "x"
    assert record(Path("runs/mine"))["configuration"]["overrides"] == {
        "dataset": {"path": "mine.jsonl"},
        "answer": {"max_tokens": 3},
    }
    again = typed("run", "--config", "runs/mine/run.json")
    assert "0 sent, 1 from the store" in again.out, again.text
    other = typed("run", "questions.yaml", *ECHO, "--name", "mine")
    assert other.code == 2
    assert "from another configuration" in other.err
    for flags, message in (
        (("-T", "dataset.pth=x"), "unknown key `pth`"),
        (("-T", "dataset"), "-T takes key=value"),
        (("-T", "dataset.path=none.jsonl"), "none.jsonl"),
        (
            ("-T", "scorers.exact.x=1"),
            "Unknown scorer 'exact' of the task. Did you mean 'exact-match'?",
        ),
    ):
        done = typed("run", "questions.yaml", *ECHO, *flags)
        assert done.code == 2, flags
        assert message in done.err


@pytest.mark.parametrize("quiet", [False, True])
def test_a_log_file_has_what_happened_and_no_key(
    quiet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-log-secret-9876543210fedcba"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    with serving(
        key="another-key-than-ours"
    ) as server:  # which refuses ours, naming it
        options = ["--log-file", "logs/run.txt", *(["--quiet"] if quiet else [])]
        done = typed(
            "run",
            "questions.yaml",
            "--model",
            "openai/test",
            "-M",
            f"base_url={server.url}",
            *options,
        )
    assert done.code == 1
    log = Path("logs/run.txt").read_text(encoding="utf-8")
    assert "INFO Run runs/" in log and "openai/test, 6 answers on questions" in log
    assert "INFO openai/test: authentication failed" in log and "stopped" not in log
    assert "openai/test: 0 of 6 completed" in log
    assert secret not in log
    assert all(line.startswith("20") for line in log.splitlines())
    assert ("0 of 6 completed" in done.err) is not quiet


def test_verbose_shows_what_the_package_logs() -> None:
    command = ("run", "factual-choice", "--model", "demo/small", "--limit", "1")
    assert (
        "demo/small: loaded in"
        not in typed(*command, "--name", "a", "--home", "one").text
    )
    assert (
        "demo/small: loaded in"
        in typed(*command, "--name", "b", "--home", "two", "--verbose").err
    )
    assert typed(*command, "--name", "c", "--log-file", "runs").code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["resume", "first"], "To resume a run, run the same command again."),
        (["run", "nope.csv", "--model", "demo/small"], "There is no file 'nope.csv'."),
        (["run", "factual-choice", "--model", "demo/small", "--grace", "nan"], "Invalid value for '--grace': nan"),
        (["run", "factual-choice", "--model", "demo/small", "-R", "judge.a=1"], "the role 'judge', which no --role"),
        (["run", "factual-choice", "--model", "demo/small", "-R", "judge=1"], "-R takes ROLE.KEY=VALUE"),
        (["run", "factual-choice", *["--model", "demo/small"] * 2], "leave one out, or give them a `label`"),
        (["run", "factual-choice", "--model", "hf/m", "--devices", "all"], "argument of the model, -M devices=all"),
        (["plan", "factual-choice", "--model", "hf/m", "--devices-per-replica", "2"], "-M devices_per_replica=2"),
        (["store", "prune", "--older-than", "nan"], "Invalid value for '--older-than': nan"),
        (["store", "info", "--home", "suite.txt"], "is no store: check the path"),
    ],
)  # fmt: skip
def test_what_a_newcomer_types(words: list[str], said: str) -> None:
    Path("suite.txt").write_text("not a store", encoding="utf-8")
    done = typed(*words)
    assert done.code == 2
    assert said in " ".join(done.err.split())


def test_a_model_without_fingerprint_is_told_how_its_missing_answers_are_sent() -> None:
    Path("mine.py").write_text(
        "from evalwright import RemoteModel, model\n"
        "@model('shaky')\n"
        "class Shaky(RemoteModel):\n"
        "    abilities = frozenset({'generate'})\n"
        "    def __init__(self, name):\n"
        "        self.name = name\n"
        "    async def answer(self, request):\n"
        "        raise KeyError('weather')\n"
    )
    command = (
        *("run", "questions.yaml", "--plugin", "mine.py", "--model", "shaky/x"),
        *("--name", "shaky"),
    )
    first = typed(*command)
    assert first.code == 1
    text = " ".join((first.out + first.err).split())
    assert "only these are sent" not in text
    assert "'shaky/x' has no fingerprint" in text and "-M fingerprint=NAME" in text
    assert "local model raised" not in text
    again = typed(*command)
    assert again.code == 2
    assert "is finished. 'shaky/x' has no fingerprint" in " ".join(again.err.split())
    assert typed(*command, "--replace").code == 1

    named = (*command[:-1], "named", "-M", "fingerprint=v1")
    assert "only these are sent" in " ".join(typed(*named).err.split())
    assert typed(*named).code == 1
