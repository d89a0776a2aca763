"""Submissions: what a sound one brings, that every tampering is found and told, and that hostile
files do no harm.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright import evaluate
from evalwright.analysis.submission import submission_file as files
from evalwright.analysis.submission.submission_file import (
    make_submission,
    read_submission,
)
from evalwright.analysis.submission.verifying import verify_submission
from evalwright.core.errors import Rejected, RunError
from evalwright.models.scripted import ScriptedModel
from evalwright.runs.reader import open_run
from support.typed import typed

pytestmark = pytest.mark.usefixtures("own_folder")

TASK = "factual-closed-book"
Data = dict[str, Any]


FINISHED: list[Path] = []
"""The folder of a run of a few answers, some right."""


@pytest.fixture(autouse=True, scope="module")
def _finished(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("finished")
    (run,) = evaluate(
        TASK,
        "oracle/gold",
        limit=6,
        name="mine",
        out=str(folder),
        home=str(folder / "home"),
    )
    FINISHED[:] = [run.folder]


def submission(path: str = "s.json") -> Data:
    """A submission of that run; its content."""
    if not Path("runs/mine").exists():
        shutil.copytree(FINISHED[0], "runs/mine")
    make_submission(open_run("runs/mine"), Path(path))
    data: Data = json.loads(Path(path).read_text())
    return data


def signed(data: Data) -> Path:
    """Written with a hash that fits, as somebody who tampers would."""
    data["sha256"] = files._content_hash(data)
    path = Path("s.json")
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize("name", ["s.json", "s.json.gz"])
def test_make_verify_add_and_show(name: str) -> None:
    evaluate(TASK, ScriptedModel("Paris", name="scripted/me"), limit=8, name="mine")
    done = typed("runs", "submit", "make", "mine", "--into", name)
    assert done.code == 0 and "8 answers" in done.out
    done = typed("runs", "submit", "verify", name)
    assert (done.code, done.err) == (0, "") and "Verified: all 8 answers" in done.out
    date = str(open_run("runs/mine").data["started"])[:10]
    assert f"Not verified: that they are answers of 'scripted/me' of {date}" in done.out
    assert (
        json.loads(typed("runs", "submit", "verify", name, "--json").out)["ok"] is True
    )
    assert typed("runs", "submit", "add", name, "--to", "board").code == 0
    added = open_run("board/mine")
    mine = open_run("runs/mine")
    added.verify()
    assert [metric.as_dict() for metric in added.tasks[0].metrics] == [
        metric.as_dict() for metric in mine.tasks[0].metrics
    ]
    assert added.tasks[0].slices.keys() == mine.tasks[0].slices.keys()
    assert [row["answer"] for row in added.rows()] == [
        row["answer"] for row in mine.rows()
    ]
    done = typed("leaderboard", "board/mine", "runs/mine", "--html", "b.html")
    assert done.code == 0
    (note,) = re.findall(r"Submitted by others.*?: (.*)\.", " ".join(done.out.split()))
    assert note.count("scripted/me") == 1
    assert (
        typed("runs", "submit", "add", name, "--to", "board").code == 0
    )  # the same again changes nothing


def test_the_file_holds_nothing_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret1234567890")
    data = submission()
    record = json.loads(Path("runs/mine/run.json").read_text())
    record["model"]["name"] = f"hf/{Path.cwd()}/weights"
    record["model"]["endpoint"] = "http://10.0.0.7/v1"
    record["configuration"]["models"][0]["arguments"] = {
        "temperature": 0.5, "base_url": "http://10.0.0.7/v1", "path": str(Path.cwd()), "note": "sk-secret1234567890",
    }  # fmt: skip
    Path("runs/mine/run.json").write_text(json.dumps(record))
    data = submission()
    text = Path("s.json").read_text()
    assert data["run"]["model"]["name"] == "hf/weights"
    assert data["run"]["arguments"]["temperature"] == 0.5
    for word in (str(Path.cwd()), "10.0.0.7", "sk-secret"):
        assert word not in text


def put(*path: Any, to: Any) -> Callable[[Data], object]:
    """Sets a part of the file; `to` may be made of what is there."""

    def tamper(data: Any) -> None:
        *way, last = path
        for step in way:
            data = data[step]
        data[last] = to(data[last]) if callable(to) else to

    return tamper


FIRST = ("samples", 0)
METRIC = ("tasks", 0, "metrics", 0)
SCORE = (*FIRST, "scores", "short-answer", "value")
TAMPERED: dict[str, tuple[Callable[[Data], object], str]] = {
    "a score": (put(*SCORE, to=0.0), "wrong score"),
    "a huge score": (put(*SCORE, to=10**200), "wrong score"),
    "a text": (put("samples", 1, "responses", 0, "text", to="other"), "wrong answer, wrong score, wrong metric"),
    "an answer": (put("samples", 1, "answer", to="something else"), "wrong answer"),
    "a row twice": (put("samples", to=lambda rows: [*rows, rows[2]]), "doubled"),
    "a row less": (put("samples", to=lambda rows: rows[:-1]), "missing, wrong metric"),
    "a row invented": (put("samples", to=lambda rows: [*rows, {**rows[0], "id": "none"}]), "unknown sample"),
    "a scalar row": (put(*FIRST, to=7), "broken, missing, wrong metric"),
    "another limit": (put("run", "configuration", "limit", to=5), "unknown sample, wrong metric"),
    "a better metric": (put(*METRIC, "value", to=0.5), "wrong metric"),
    "a narrower interval": (put(*METRIC, "low", to=0.99), "wrong metric"),
    "another metric": (put("tasks", 0, "metrics", to=lambda all: [*all, {"label": "greatness"}]), "wrong metric"),
    "another prompt": (put(*FIRST, "prompt_sha256", to="0" * 32), "another prompt"),
    "another question": (put(*FIRST, "sample_sha256", to="0" * 32), "another question"),
    "other data": (put("tasks", 0, "content_hash", to="0" * 32), "another version"),
    "another task": (put("tasks", 0, "name", to="factual-closed-bok"), "unknown task"),
    "a path": (put("tasks", 0, "name", to="../../../etc/task.yaml"), "unknown task"),
    "a group": (put("tasks", 0, "name", to="factual"), "unknown task"),
    "more responses": (put(*FIRST, "responses", to=lambda own: own * 2), "broken, wrong metric"),
    "no response": (put(*FIRST, "responses", to=[]), "broken, wrong metric"),
    "a strange response": (put(*FIRST, "responses", 0, to={"run_me": "rm"}), "broken, wrong metric"),
    "a strange draw": (put(*FIRST, "draw", to=10**30), "missing, unknown sample, wrong metric"),
    "a filter of another form": (put("run", "configuration", "where", to={"domain": "geography"}), "filter"),
    "a negative cost": (put("run", "usage", "cost", to=-5), "impossible"),
    "a negative cost of the answers": (put("run", "usage", "answers", "cost", to=-0.5), "impossible"),
    "a time below nothing": (put("run", "seconds", to=-1), "impossible"),
    "a label that acts on terminals": (put("run", "model", "label", to="\x1b[31mhi"), "impossible"),
    "a name that acts on terminals": (put("run", "model", "name", to="a/b\x1b[2J"), "impossible"),
    "a limit that is none": (put("run", "configuration", "limit", to="all"), "impossible, missing"),
    "a wrong filter": (put("run", "configuration", "where", to=["domain=nowhere"]), "filter"),
}  # fmt: skip


@pytest.mark.parametrize("name", TAMPERED)
def test_tampering_is_found(name: str) -> None:
    data = submission()
    tamper, kinds = TAMPERED[name]
    tamper(data)
    # Once as it is, once with a hash that fits.
    Path("s.json").write_text(json.dumps(data))
    assert "changed" in {
        problem.kind
        for problem in verify_submission(read_submission(Path("s.json"))).problems
    }
    found = verify_submission(read_submission(signed(data)))
    assert {problem.kind for problem in found.problems} == set(kinds.split(", "))
    done = typed("runs", "submit", "verify", "s.json")
    assert done.code == 1 and "Not verified" in done.out and done.err == ""
    assert typed("runs", "submit", "add", "s.json", "--to", "board").code == 1
    assert not Path("board").exists()


@pytest.mark.parametrize(
    "name",
    [
        "../../out",
        "/abs/olute",
        "..",
        ".hidden",
        "a/b",
        "x" * 5000,
        "con\x00trol",
        7,
        None,
    ],
)
def test_a_run_leaves_its_folder_by_no_name(name: Any, tmp_path: Path) -> None:
    data = submission()
    data["run"]["id"] = name
    done = typed("runs", "submit", "add", str(signed(data)), "--to", "board")
    assert done.code == 0, done.text
    (made,) = Path("board").iterdir()
    assert (made / "run.json").is_file() and made.resolve().parent == tmp_path / "board"


def test_another_run_of_that_name_stays() -> None:
    data = submission()
    assert typed("runs", "submit", "add", "s.json", "--to", "board").code == 0
    before = Path("board/mine/run.json").read_bytes()
    data["run"]["seconds"] = 1.5
    done = typed("runs", "submit", "add", str(signed(data)), "--to", "board")
    assert done.code == 2 and "never replaces one" in done.err
    assert Path("board/mine/run.json").read_bytes() == before


def test_markup_in_names_is_text_on_the_board() -> None:
    data = submission()
    data["run"]["model"] = {
        "name": "<script>alert(1)</script>",
        "abilities": ["chat"],
        "fingerprint": "\x1b[2J",
    }
    data["run"]["model"]["abilities"] = [
        "generate",
        "chat",
        "log-likelihood",
        "classify",
    ]
    assert typed("runs", "submit", "add", str(signed(data)), "--to", "board").code == 0
    assert typed("leaderboard", "board/mine", "--html", "b.html").code == 0
    assert "<script>alert" not in Path("b.html").read_text()
    assert "\x1b" not in Path("board/mine/run.json").read_text()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.data())
def test_any_part_may_be_anything(draw: st.DataObject) -> None:
    data = submission("whole.json")
    place: Any = data
    path = []
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = draw.draw(st.sampled_from(keys))
        path.append(key)
        if (
            not isinstance(place[key], dict | list)
            or not place[key]
            or draw.draw(st.integers(0, 3)) == 0
        ):
            break
        place = place[key]
    place[key] = draw.draw(json_values)
    try:
        verify_submission(read_submission(signed(data)))
    except RunError:
        assert len(path) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not valid JSON"),
        (b"[1]", "is not a submission"),
        (b'{"format": "evalwright-submission", "version": 9}', "has version 9"),
        (b'{"format": "evalwright-submission", "version": 1}', "is missing"),
        (b"[" * 200_000, "not valid JSON"),
        (b"\x1f\x8bnot gzip", "broken gzip"),
        (b'{"format": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b"\xff\xfe\x00", "not valid JSON"),
    ],
)
def test_files_that_are_none(content: bytes, message: str) -> None:
    Path("s.json").write_bytes(content)
    done = typed("runs", "submit", "verify", "s.json")
    assert done.code == 2 and message in done.err


def test_a_file_that_unpacks_without_end_is_read_no_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 1 << 20)
    Path("s.json.gz").write_bytes(gzip.compress(b" " * (4 << 20)))
    with pytest.raises(RunError, match="larger than 1 MiB"):
        read_submission(Path("s.json.gz"))
    assert typed("runs", "submit", "verify", "nowhere.json").code == 2


def test_what_cannot_be_submitted() -> None:
    broken = ScriptedModel(
        lambda request: Rejected("no"), name="scripted/broken", version="1"
    )
    evaluate(TASK, broken, limit=3, name="bad")
    done = typed("runs", "submit", "make", "bad", "--into", "s.json")
    assert done.code == 2 and "3 samples of the run 'bad' failed" in done.err
    evaluate(
        TASK, "oracle/gold", limit=3, name="other", overrides={"description": "mine"}
    )
    done = typed("runs", "submit", "make", "other", "--into", "s.json")
    assert done.code == 2 and "overridden settings" in done.err
    assert not Path("s.json").exists()


def test_a_task_of_ones_own_is_named_by_the_reader() -> None:
    Path("mine.jsonl").write_text('{"id": "a", "question": "1?", "answer": "1"}\n')
    Path("mine.yaml").write_text(
        'task: my-own\ndataset: mine.jsonl\nsample: {input: "{{ question }}", target: "{{ answer }}"}\n'
        'prompt: {user: "{{ input }}"}\nanswer: {mode: generate, max_tokens: 4}\nscorers: [exact-match]\n'
    )
    evaluate("mine.yaml", "oracle/gold", name="own")
    assert typed("runs", "submit", "make", "own", "--into", "s.json").code == 0
    done = typed("runs", "submit", "verify", "s.json")
    assert done.code == 1 and "no task of this name here" in done.out
    assert typed("runs", "submit", "verify", "s.json", "--task", "mine.yaml").code == 0


def test_filters_options_and_draws_are_verified_too() -> None:
    evaluate(
        TASK,
        "oracle/gold",
        where=["domain=space", "domain!=history"],
        limit=4,
        name="some",
    )
    assert typed("runs", "submit", "make", "some", "--into", "some.json").code == 0
    assert typed("runs", "submit", "verify", "some.json").code == 0
    rows = [
        {
            "id": f"r{n}",
            "question": f"{n}?",
            "choices": ["a", "b", "c"],
            "answer": n % 3,
        }
        for n in range(6)
    ]
    Path("c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("c.yaml").write_text(
        'task: options\ndataset: c.jsonl\nsample: {input: "{{ question }}", choices: "{{ choices }}", target: "{{ answer }}"}\n'
        'prompt: {user: "{{ input }}"}\nanswer: {mode: likelihood}\nscorers: [choice]\n'
    )
    Path("d.yaml").write_text(
        'task: several\ndataset: c.jsonl\nsample: {input: "{{ question }}", target: "{{ answer }}"}\n'
        'prompt: {user: "{{ input }}"}\nanswer: {mode: generate, draws: 3, temperature: 1.0}\nscorers: [exact-match]\n'
    )
    for name in ("c", "d"):
        evaluate(f"{name}.yaml", "scripted/hash", name=name)
        assert typed("runs", "submit", "make", name, "--into", f"{name}.json").code == 0
        done = typed(
            "runs", "submit", "verify", f"{name}.json", "--task", f"{name}.yaml"
        )
        assert done.code == 0, done.text
    data = json.loads(Path("c.json").read_text())
    first = data["samples"][0]["responses"]
    first[0]["log_likelihood"], first[1]["log_likelihood"] = -1e9, 0.0
    found = verify_submission(
        read_submission(signed(data)), task_files=[Path("c.yaml")]
    )
    assert {
        problem.id for problem in found.problems if problem.kind.startswith("wrong ")
    } <= {
        "r0",
        "",
    }
    assert any(
        problem.kind in ("wrong answer", "wrong score", "wrong metric")
        for problem in found.problems
    )


@pytest.mark.parametrize("agrees", [False, True])
def test_a_judge_of_unsure_answers_is_sent_beside_the_rules(agrees: bool) -> None:
    """The rules' scores are verified; nobody else can compute the judge's from the file."""
    Path("capitals.csv").write_text(
        "question,answer\nCapital of France?,Paris\nCapital of Italy?,Rome\n"
    )

    def answer(request: Any) -> str:
        if "France" in str(request.prompt):
            return "It is either Lyon or Paris."
        return "Rome"

    def judge(request: Any) -> str:
        (mark,) = set(re.findall(r'mark="(\w+)"', str(request.prompt)))
        verdict = "incorrect" if agrees else "correct"
        return json.dumps({"check": mark, "reason": "it is so", "class": verdict})

    (run,) = evaluate(
        "capitals.csv",
        ScriptedModel(answer, name="scripted/me"),
        name="mine",
        roles={"judge": ScriptedModel(judge, name="scripted/judge-1", version="1")},
        unsure={"scorer": "judge-correct"},
    )
    assert run.tasks[0].n_judged == 1
    done = typed("runs", "submit", "make", "mine", "--into", "s.json")
    assert done.code == 0 and "1 answer read by a judge (scripted/judge-1)" in done.out
    data = json.loads(Path("s.json").read_text())
    (row,) = [row for row in data["samples"] if "judged" in row]
    assert row["scores"]["short-answer"]["value"] == 0.0
    assert row["judged"]["short-answer"]["value"] == float(not agrees)
    assert data["tasks"][0]["metrics"][0]["value"] == 0.5
    assert data["tasks"][0]["judged_metrics"][0]["value"] == (0.5 if agrees else 1.0)

    verify = ("runs", "submit", "verify", "s.json", "--task", "capitals.csv")
    done = typed(*verify)
    assert (done.code, done.err) == (0, "")
    assert "1 answer read by a judge (scripted/judge-1): verified are" in done.out
    assert "evalwright score RUN --judge" in done.out
    assert json.loads(typed(*verify, "--json").out)["read_by_judge"] == 1
    add = ("runs", "submit", "add", "s.json", "--task", "capitals.csv")
    done = typed(*add, "--to", "board")
    assert done.code == 0 and "`evalwright score board/mine --judge" in done.out
    added = open_run("board/mine")
    assert (added.tasks[0].n_unsure, added.tasks[0].n_judged) == (1, 0)

    row["scores"] = row["judged"] = {"short-answer": {"value": 1.0, "label": "correct"}}
    signed(data)
    assert typed(*verify).code == 1
