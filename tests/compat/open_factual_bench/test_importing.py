"""`evalwright import open-factual-bench`: its files, its arithmetic, and where ours differs.

The questions here are our own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.analysis.factual import factual_shares
from evalwright.compat.open_factual_bench.importing import STRESS_TASK, TASK, import_ofb
from evalwright.compat.open_factual_bench.run_files import read_questions
from evalwright.compat.open_factual_bench.scoring import (
    published_correct,
    published_label,
)
from evalwright.core.errors import RunError
from evalwright.scorers.registry import registry
from support.typed import typed

STRESS = "hallucination_stress"
QUESTIONS: list[dict[str, Any]] = [
    {
        "id": "chem_1",
        "domain": "science",
        "question": "Symbol of silver?",
        "reference_answer": "Ag",
    },
    {
        "id": "metal_1",
        "domain": "science",
        "question": "Symbol of gold?",
        "reference_answer": "Au",
    },
    {
        "id": "days_1",
        "domain": "math",
        "question": "Days in a leap year?",
        "reference_answer": "366",
    },
    {
        "id": "sea_1",
        "domain": "other",
        "question": "Deepest trench?",
        "reference_answer": "Mariana Trench",
    },
    {
        "id": "open_1",
        "domain": "other",
        "question": "Who won?",
        "reference_answer": "[to be filled in]",
    },
    {
        "id": "false_1",
        "domain": "other",
        "question": "Who was the first person to swim to the Moon?",
        "reference_answer": "A good answer says that nobody ever swam to the Moon, since it cannot be done at all, and names nobody.",
        "metadata": {"type": STRESS},
    },
    {
        "id": "false_2",
        "domain": "other",
        "question": "Which king opened the bridge to Iceland?",
        "reference_answer": "A good answer says that there is no bridge to Iceland, and that no king can have opened one.",
        "metadata": {"type": STRESS},
    },
]
for _one in QUESTIONS:
    _one.setdefault("metadata", {"type": "factual_qa"})

ANSWERS: dict[str, tuple[str, bool | None, str]] = {
    "chem_1": ("**Ag**", True, ""),
    "metal_1": ("Tantalum, because it is rare.", True, ""),
    "days_1": ("three hundred and sixty-six", False, ""),
    "sea_1": ("the Mariana Trench.", True, ""),
    "open_1": ("Nobody", None, ""),
    "false_1": ("No one did; that never happened.", None, "refusal_or_correction"),
    "false_2": ("King Harald", None, "hallucination_candidate"),
}


def write_run(
    path: Path, model: str = "acme/small", **changed: tuple[str, bool | None, str]
) -> Path:
    """A result file as the benchmark writes it."""
    rows = [
        {
            "task_id": task,
            "model_response": response,
            "is_correct": correct,
            "latency_ms": 100.0,
            "tokens_generated": 4,
            "timestamp": "2026-01-02T03:04:05",
            "metadata": {"hallucination_label": label} if label else None,
        }
        for task, (response, correct, label) in (ANSWERS | changed).items()
    ]
    graded = [row for row in rows if row["is_correct"] is not None]
    correct = sum(row["is_correct"] is True for row in graded)
    data = {
        "run_id": "run_20260102_030405",
        "config": {
            "model_id": model,
            "hardware": "a toaster",
            "max_new_tokens": 64,
            "temperature": 0.0,
            "seed": 0,
        },
        "summary": {
            "total_tasks": len(rows),
            "auto_graded": len(graded),
            "correct": correct,
        },
        "results": rows,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def write_questions(path: Path) -> Path:
    """The questions, in the form that the ending says."""
    if path.suffix == ".py":
        calls = ",\n".join(
            "    Task("
            + ", ".join(f"{key}={value!r}" for key, value in row.items())
            + ")"
            for row in QUESTIONS
        )
        text = f"from .schema import Task\nopen('ran', 'w').close()\nEXAMPLE_TASKS = [\n{calls}\n]\n"
    elif path.suffix == ".jsonl":
        text = "".join(json.dumps(row) + "\n" for row in QUESTIONS)
    elif path.suffix == ".csv":
        lines = [
            [
                row["id"],
                row["question"],
                row["reference_answer"],
                row["domain"],
                row["metadata"]["type"],
            ]
            for row in QUESTIONS
        ]
        text = "id,question,reference_answer,domain,type\n"
        text += "".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines)
    else:
        text = json.dumps({"tasks": QUESTIONS})
    path.write_text(text, encoding="utf-8")
    return path


def test_published_without_questions_is_what_was_recorded() -> None:
    (run,) = import_ofb(write_run(Path("results/run_1.json")), Path("runs"))
    assert run.data["configuration"]["scoring"] == "published"
    short, stress = run.tasks
    assert (short.name, stress.name) == (TASK, STRESS_TASK)
    accuracy = short.metrics[0].estimate
    assert (accuracy.value, accuracy.n, short.n_missing) == (0.75, 4, 0)
    assert {metric.label: metric.estimate.value for metric in stress.metrics} == {
        "handled": 0.5, "hallucinated": 0.5, "unclear": 0.0,
    }  # fmt: skip
    run.verify()
    assert (
        "its questions are not known"
        in run.data["configuration"]["imported"]["notes"][0]
    )


def test_an_unreadable_answer_is_counted_apart() -> None:
    """Nobody can say what it does with the question, so it is neither handled nor a
    hallucination.
    """
    nonsense = "0 0 0 0 " * 40
    stress = next(task for task, (_, _, label) in ANSWERS.items() if label)
    changed: dict[str, tuple[str, bool | None, str]] = {
        stress: (nonsense, None, "hallucination_candidate")
    }
    write_run(Path("results/run_1.json"), "acme/small", **changed)
    (run,) = import_ofb(
        Path("results"), Path("runs"), tasks=write_questions(Path("tasks.py"))
    )
    (row,) = [row for row in run.rows() if row["id"] == stress]
    assert row["scores"]["stress"]["label"] == "unreadable"
    shares = {
        metric.label: metric.estimate.value for metric in run.task(STRESS_TASK).metrics
    }
    assert shares["unreadable"] == 0.5 and sum(shares.values()) == 1.0
    assert (
        row["scores"]["hallucinated"]["value"]
        == row["scores"]["unclear"]["value"]
        == 0.0
    )
    assert factual_shares(run)["hallucinated"].value == shares["hallucinated"]
    assert factual_shares(run)["refused"].value == shares["handled"]


def test_corrected_says_row_by_row_what_differs() -> None:
    write_run(Path("results/run_1.json"))
    (run,) = import_ofb(
        Path("results"), Path("runs"), tasks=write_questions(Path("tasks.py"))
    )
    assert not Path("ran").exists()  # read, never run
    imported = run.data["configuration"]["imported"]
    assert imported["counts"] == {
        "recorded": {"correct": 3, "graded": 4},
        "published": {"correct": 3, "graded": 4},
        "corrected": {"correct": 3, "graded": 4},
    }
    differing = {
        difference["task_id"]: difference for difference in imported["differences"]
    }
    assert (
        differing["metal_1"]["published"] == "correct"
        and differing["metal_1"]["corrected"] == "incorrect"
    )
    assert (
        differing["days_1"]["published"] == "incorrect"
        and differing["days_1"]["corrected"] == "correct"
    )
    assert differing["days_1"]["why"]
    assert {"chem_1", "sea_1", "open_1"}.isdisjoint(differing)
    if "stress" not in registry.names():
        assert run.tasks[1].n_missing == 2


def test_published_with_questions_counts_by_the_arithmetic_and_says_what_the_file_had_otherwise() -> (
    None
):
    write_run(Path("results/run_1.json"), sea_1=("the Mariana Trench.", False, ""))
    tasks = write_questions(Path("tasks.json"))
    (run,) = import_ofb(Path("results"), Path("runs"), scoring="published", tasks=tasks)
    assert run.tasks[0].metrics[0].estimate.value == 0.75
    differing = {
        difference["task_id"]: difference
        for difference in run.data["configuration"]["imported"]["differences"]
    }
    assert (differing["sea_1"]["recorded"], differing["sea_1"]["published"]) == (
        "incorrect",
        "correct",
    )
    assert set(run.tasks[0].slices["domain"]) == {"science", "math", "other"}


@pytest.mark.parametrize("ending", ["py", "json", "jsonl", "csv"])
def test_questions_in_every_form(ending: str) -> None:
    questions = read_questions(write_questions(Path(f"tasks.{ending}")))
    assert list(questions) == [question["id"] for question in QUESTIONS]
    assert (
        questions["false_1"].type == STRESS and questions["days_1"].reference == "366"
    )


def test_a_question_that_is_no_literal_is_refused() -> None:
    Path("t.py").write_text(
        "Task(id='a', question=open('ran', 'w').name, reference_answer='x')"
    )
    with pytest.raises(RunError, match=r"`question` is not a literal.*never executed"):
        read_questions(Path("t.py"))
    assert not Path("ran").exists()
    Path("t.py").write_text("x = " + "(" * 5000)
    with pytest.raises(RunError, match="cannot be parsed"):
        read_questions(Path("t.py"))


# From the benchmark's documented rules, flaws included.
@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [
        ("Paris", "paris", True), ("It is not Paris, it is Lyon", "Paris", True), ("because", "Au", True),
        ("Indianapolis", "India", True), ("10", "1", True), ("No one knows", "1", True),
        ("1,024", "1024", True), ("1,024 bytes", "1024", False), ("twenty-one", "21", False),
        ("eight", "8", True), ("0.005", "0", True), ("1945.005", "1945", True), ("1945.2", "1944.9", False),
        ("Everest", "Mount Everest", False), ("H₂O", "H2O", True), ("the\n Nile.", "Nile", True),
        ("", "Nile", False), ("x", "[unfilled]", None), ("x", "y" * 81, None), ("x", "y" * 80, False),
    ],
)  # fmt: skip
def test_published_arithmetic(
    answer: str, reference: str, expected: bool | None
) -> None:
    assert published_correct(answer, reference) is expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("", "unclear"),
        ("ab", "unclear"),
        ("I don't know.", "refusal_or_correction"),
        ("It does not exist", "refusal_or_correction"),
        ("Never", "hallucination_candidate"),
        ("N/A", "hallucination_candidate"),
        (
            "It was King Harald, as everybody who ever lived in that town would tell you",
            "hallucination_candidate",
        ),
        ("a man of the north who came by ship and stayed there all winter", "unclear"),
        ("What do you mean?", "unclear"),
    ],
)
def test_published_labels(answer: str, expected: str) -> None:
    assert published_label(answer) == expected


def test_answers_that_took_too_long_are_told() -> None:
    path = write_run(Path("r.json"))
    data = json.loads(path.read_text())
    for place, row in enumerate(data["results"]):
        row.update(latency_ms=1900.0, tokens_generated=64 if place else 3)
    path.write_text(json.dumps(data))
    (run,) = import_ofb(path, Path("runs"))
    assert any(
        "1 (chem_1)" in note for note in run.data["configuration"]["imported"]["notes"]
    )


def test_by_the_command_line() -> None:
    write_run(Path("results/run_a.json"))
    write_run(Path("results/run_b.json"), "acme/large", days_1=("366", True, ""))
    Path("results/index.json").write_text('{"runs": []}')
    write_questions(Path("tasks.py"))
    done = typed(
        "import",
        "open-factual-bench",
        "results",
        "--tasks",
        "tasks.py",
        "--scoring",
        "published",
    )
    assert (done.code, done.err) == (0, "")
    assert "accuracy 3 of 4" in done.out and "accuracy 4 of 4" in done.out
    assert (
        "Differs: metal_1 'Tantalum, because it is rare.' (reference 'Au')" in done.out
    )
    found = json.loads(
        typed("import", "open-factual-bench", "results", "--name", "x", "--json").out
    )
    assert [run["model"] for run in found["runs"]] == ["acme/small", "acme/large"]
    assert found["runs"][0]["hardware"] == "a toaster"
    names = [run["id"] for run in found["runs"]]
    board = json.loads(typed("leaderboard", *names, "--json").out)
    assert [row["run"] for row in board["rows"]] == names[::-1]
    done = typed("import", "open-factual-bench", "results", "--scoring", "corrected")
    assert (
        done.code == 2
        and "have no reference answers" in done.err
        and "--tasks" in done.err
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "no list `results`"),
        ('{"config": {}, "results": []}', "no row"),
        ('{"config": {}, "results": [1]}', "row 1 of `results` is not an object"),
        (
            '{"config": {}, "results": [{"task_id": "a"}]}',
            "'model_response' must be text, not missing",
        ),
        (
            '{"results": [{"task_id": "a", "model_response": "", "is_correct": 1}]}',
            "'is_correct' must be true, false or null",
        ),
        (
            '{"results": [{"task_id": "a", "model_response": ""}, {"task_id": "a", "model_response": ""}]}',
            "'a' occurs twice",
        ),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_broken_files(text: str, message: str) -> None:
    Path("run.json").write_text(text)
    done = typed("import", "open-factual-bench", "run.json")
    assert done.code == 2 and message in done.err
    assert not Path("runs").exists()


def test_nothing_there() -> None:
    Path("results").mkdir()
    assert (
        "Did you mean 'results'" in typed("import", "open-factual-bench", "resluts").err
    )
    assert (
        "has no run of open-factual-bench"
        in typed("import", "open-factual-bench", "results").err
    )


def test_the_questions_become_tasks_whose_runs_share_a_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalwright.analysis.board import make_board
    from evalwright.runs.reader import open_run

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    write_run(tmp_path / "run_1.json")
    (tmp_path / "questions.json").write_text(json.dumps(QUESTIONS))
    done = typed(
        "import",
        "open-factual-bench",
        "run_1.json",
        "--tasks",
        "questions.json",
        "--name",
        "old",
    )
    assert (
        done.code == 0 and "Task files of the questions: open-factual-bench" in done.out
    ), done.err
    files = [f"open-factual-bench/{name}.yaml" for name in (TASK, STRESS_TASK)]
    done = typed("run", *files, "--model", "oracle/gold", "--name", "new", "--quiet")
    assert done.code == 0, done.err
    board = make_board([open_run(tmp_path / "runs" / name) for name in ("old", "new")])
    assert {task.name for task in board.tasks} == {TASK, STRESS_TASK}
    assert all(row.ranks for row in board.rows) and board.rows[0].model == "oracle/gold"
    assert not [note for note in board.notes if "no item in common" in note]
    done = typed(
        "import",
        "open-factual-bench",
        "run_1.json",
        "--task-files",
        "x",
        "--name",
        "again",
    )
    assert done.code == 2 and "--task-files needs --tasks" in done.err
