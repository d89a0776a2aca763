"""`python/FILE.py:FUNCTION`: a function in a file as a model, by name: what it is opened as, what its
fingerprint stands for, and what is asked before a file of somebody else runs any.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright import evaluate, open_model, open_run
from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.evaluation.origins import proposed
from support.typed import typed

BOT = """\
import calls

def answer(question: str) -> str:
    calls.count(question)
    return "PARIS" if "France" in question else "unknown"

def of_lists(questions: list[str]) -> list[str]:
    return [answer(question) for question in questions]

async def slowly(question: str) -> str:
    return answer(question)

class Bot:
    def reply(self, question: str) -> str:
        return answer(question)

bot = Bot()
number = 7
"""
CALLS = """\
from pathlib import Path

def count(question):
    with Path("calls.txt").open("a") as file:
        file.write("x")
"""


@pytest.fixture(autouse=True)
def _folder(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(own_folder / "person"))
    Path("bots").mkdir()
    Path("bots/support_bot.py").write_text(BOT, encoding="utf-8")
    # Beside the file, so that the file can import it.
    Path("bots/calls.py").write_text(CALLS, encoding="utf-8")
    Path("questions.csv").write_text(
        "question,target\nWhat is the capital of France?,PARIS\nWho wrote Faust?,Goethe\n",
        encoding="utf-8",
    )


def n_calls() -> int:
    return len(Path("calls.txt").read_text(encoding="utf-8"))


MODEL = "python/bots/support_bot.py:answer"


@pytest.mark.parametrize("function", ["answer", "of_lists", "slowly", "bot.reply"])
def test_any_form_of_function_is_evaluated_by_name(function: str) -> None:
    (run,) = evaluate("questions.csv", f"python/bots/support_bot.py:{function}")
    assert run.tasks[0].main is not None
    assert run.tasks[0].main.estimate.value == 0.5
    assert run.model == f"python/bots/support_bot.py:{function}"
    assert "a Python function" in run.data["model"]["note"]


def test_the_same_content_is_not_asked_again_wherever_the_file_is() -> None:
    command = ("run", "questions.csv", "--home", "store", "--out", "runs")
    first = typed(*command, "--model", MODEL, "--name", "first")
    assert first.code == 0, first.text
    assert n_calls() == 2
    assert "not shared with other runs" not in first.text
    Path("elsewhere").mkdir()
    Path("elsewhere/bot.py").write_text(BOT, encoding="utf-8")
    second = typed(
        *command, "--model", "python/elsewhere/bot.py:answer", "--name", "second"
    )
    assert second.code == 0, second.text
    assert n_calls() == 2
    # A changed file, or another function of it, is another model.
    Path("bots/support_bot.py").write_text(
        BOT.replace('"unknown"', '"Goethe"'), encoding="utf-8"
    )
    third = typed(*command, "--model", MODEL, "--name", "third")
    assert third.code == 0, third.text
    assert n_calls() == 4
    main = open_run("third").tasks[0].main
    assert main is not None and main.estimate.value == 1.0
    other = open_model("python/bots/support_bot.py:bot.reply")
    assert other.fingerprint != open_model(MODEL).fingerprint


def test_a_named_fingerprint_stands_in_place_of_the_content() -> None:
    named = open_model(MODEL, {"fingerprint": "prompt-3"})
    assert named.is_known and named.fingerprint != open_model(MODEL).fingerprint
    Path("bots/support_bot.py").write_text(f"{BOT}\n# changed\n", encoding="utf-8")
    again = open_model(MODEL, {"fingerprint": "prompt-3"})
    assert again.fingerprint == named.fingerprint
    assert again.fingerprint != open_model(MODEL, {"fingerprint": "4"}).fingerprint


def test_the_settings_of_a_decorator_hold_and_arguments_replace_them() -> None:
    Path("decorated.py").write_text(
        "import evalwright\n\n"
        "@evalwright.model(name='support', fingerprint='v3', batch_size=4)\n"
        "def answer(questions):\n"
        "    assert len(questions) <= 4\n"
        "    return ['PARIS'] * len(questions)\n",
        encoding="utf-8",
    )
    decorated = open_model("python/decorated.py:answer")
    fingerprint = decorated.fingerprint
    assert decorated.is_known
    assert (
        open_model("python/decorated.py:answer", {"fingerprint": "v3"}).fingerprint
        == fingerprint
    )
    assert (
        open_model("python/decorated.py:answer", {"fingerprint": "v4"}).fingerprint
        != fingerprint
    )
    (run,) = evaluate("questions.csv", "python/decorated.py:answer")
    assert run.n_missing == 0


def test_a_plug_in_that_is_also_the_model_is_run_once() -> None:
    Path("mine.py").write_text(
        "import evalwright\n\n"
        "print('loaded')\n\n"
        "@evalwright.scorer('my-own-scorer-of-this-test')\n"
        "def my_own_scorer_of_this_test(sample, answer):\n"
        "    return True\n\n"
        "def answer(question):\n"
        "    return 'yes'\n",
        encoding="utf-8",
    )
    done = typed(
        *("run", "questions.csv", "--plugin", "mine.py"),
        *("--model", "python/mine.py:answer"),
    )
    assert done.code == 0, done.text
    assert done.out.count("loaded\n") <= 1


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("python/none.py:answer", "", "No such file or directory"),
        ("python/mine.py", "def reply(question): ...", "'python/mine.py:reply'"),
        ("python/mine.py:", "def reply(question): ...", "'python/mine.py:reply'"),
        ("python/mine", "", "'python/my_file.py:answer'"),
        ("python/mine.py:anwser", "def answer(question): ...", "answer"),
        ("python/mine.py:number", "number = 7", "is no function"),
        ("python/mine.py:f", "def f(a, b): ...", "it cannot be given 'b'"),
        ("python/mine.py:f", "import no_such_module_here", "ModuleNotFoundError"),
        ("python/mine.py:f", "def f(:", "SyntaxError"),
        ("python/mine.py:f", "raise SystemExit(3)", "SystemExit: 3"),
        ("mine.py:answer", "", "Did you mean 'python/mine.py:answer'?"),
        ("mine.py", "", "Did you mean 'python/mine.py:FUNCTION'?"),
        ("bots/mine.py:answer", "", "'python/bots/mine.py:answer'"),
    ],
)
def test_what_cannot_be_opened_is_said_in_words(
    name: str, content: str, said: str
) -> None:
    Path("mine.py").write_text(content, encoding="utf-8")
    done = typed("run", "questions.csv", "--model", name)
    assert done.code == 2, done.text
    assert said in done.err and "Traceback" not in done.err
    assert not Path("runs").exists()


@pytest.mark.parametrize("argument", ["batch_size=many", "concurrency=1.5"])
def test_bad_arguments_are_said_in_words(argument: str) -> None:
    done = typed("run", "questions.csv", "--model", MODEL, "-M", argument)
    assert done.code == 2 and "must be a whole number" in done.err, done.text


def test_an_unknown_function_comes_with_the_closest() -> None:
    with pytest.raises(UnknownName, match="answer"):
        open_model("python/bots/support_bot.py:anwser")


@pytest.mark.parametrize("model", [MODEL, f"likelihood/{MODEL}", f"verdict/{MODEL}"])
@pytest.mark.parametrize("place", ["models", "roles"])
def test_a_suite_names_a_function_only_with_permission(model: str, place: str) -> None:
    values: dict[str, object] = {"models": [model]}
    if place == "roles":
        values = {"models": ["openai/m"], "roles": {"judge": {"model": model}}}
    (setting,) = proposed(values, Path.cwd())
    assert setting.value == model


def test_a_function_of_a_suite_is_run_once_the_user_agrees() -> None:
    Path("bots/support_bot.py").write_text(
        f"from pathlib import Path\nPath('ran').touch()\n{BOT}", encoding="utf-8"
    )
    Path("suite.yaml").write_text(
        f"tasks: [questions.csv]\nmodels: [{MODEL}]\nname: mine\n", encoding="utf-8"
    )
    refused = typed("run", "--config", "suite.yaml")
    assert refused.code == 2 and "  models.0: " in refused.err, refused.text
    # What it imports may change, so no permission is for ever.
    assert "--trust-file 'suite.yaml'" in refused.err
    assert "from now on" not in refused.err
    assert not Path("ran").exists()
    done = typed("run", "--config", "suite.yaml", "--trust-file", "suite.yaml")
    assert done.code == 0, done.text
    assert Path("ran").exists()


def test_a_record_runs_no_python_unless_the_user_names_it() -> None:
    (run,) = evaluate("questions.csv", MODEL, name="mine")
    record = run.folder / "run.json"
    document = json.loads(record.read_text(encoding="utf-8"))
    assert document["configuration"]["models"]
    Path("bots/support_bot.py").write_text(
        f"from pathlib import Path\nPath('ran').touch()\n{BOT}", encoding="utf-8"
    )
    planned = typed("plan", "questions.csv", "--from", "mine")
    assert planned.code == 2 and "name it yourself" in planned.err, planned.text
    replayed = typed("run", "--config", str(record), "--name", "again")
    assert replayed.code == 2 and "--trust-file" in replayed.err, replayed.text
    assert not Path("ran").exists()


def test_a_file_that_is_read_from_a_folder_of_another_name_is_what_was_hashed() -> None:
    first = open_model(MODEL)
    Path("bots/support_bot.py").write_text(
        BOT.replace('"unknown"', '"Goethe"'), encoding="utf-8"
    )
    second = open_model(MODEL)
    assert first.fingerprint != second.fingerprint
    with pytest.raises(ConfigurationError, match="fingerprint"):
        open_model(MODEL, {"fingerprint": " "})
