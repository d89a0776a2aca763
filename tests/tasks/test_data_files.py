"""`evalwright run mine.csv`: columns found by their names or named, answers that are there or
generated, a rubric or a reference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright import evaluate, open_run
from evalwright.core.errors import DatasetError, UsageError
from evalwright.tasks.loading import load_task
from support.openai_server import OpenAIServer, serving
from support.typed import typed
from support.written_judge import Asked, judge

pytestmark = pytest.mark.usefixtures("own_folder")


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


ANSWERED = """\
Question,Model Output,Reference
What is the capital of France?,Paris,Paris
What is the capital of Italy?,"Perhaps Milan, or Rome.",Rome
What is the capital of Spain?,Madrid!,Madrid
"""


def decide(asked: Asked) -> dict[str, Any]:
    unsure = "Perhaps" in asked.material["answer"]
    said = {
        key: {"reason": "r", "class": "not met" if unsure else "met"}
        for key in asked.criteria
    }
    return {
        **said,
        "reason": "it hedges",
        "class": "incorrect" if unsure else "correct",
    }


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with serving(judge(decide)) as running:
        yield running


def judged(server: OpenAIServer, *more: str) -> list[str]:
    return [
        "--judge",
        "openai/judge",
        "-R",
        f"judge.base_url={server.url}",
        "-R",
        "judge.api_key_env=TEST_KEY",
        *more,
    ]


def command(*arguments: str) -> Any:
    return typed(
        *arguments,
        folder=Path.cwd(),
        extra={"TEST_KEY": "sk-x", "EVALWRIGHT_HOME": "home"},
    )


def test_from_nothing_to_a_result_in_one_command_and_one_screen(
    server: OpenAIServer,
) -> None:
    write("mine.csv", ANSWERED.replace("Model Output", "output"))
    done = command(
        "run", "mine.csv", "--rubric", "Commits itself to one city.", *judged(server)
    )
    assert done.code == 0, done.text
    assert "66.7" in done.out
    lines = done.out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "input = Question, answer = output, target = Reference" in done.err
    assert sum(server.received.values()) == 3, "nothing was generated"
    again = command(
        "run", "mine.csv", "--rubric", "Commits itself to one city.", *judged(server)
    )
    assert again.code == 0, again.text
    assert sum(server.received.values()) == 3, "and no verdict is paid for twice"
    (folder,) = Path("runs").iterdir()
    run = open_run(folder)
    assert run.model == "answers/mine"
    assert [row["answer"] for row in run.rows()] == [
        "Paris",
        "Perhaps Milan, or Rome.",
        "Madrid!",
    ]


def test_a_judge_reads_what_rules_are_unsure_of(server: OpenAIServer) -> None:
    write("mine.csv", ANSWERED.replace("Model Output", "output"))
    alone = command("run", "mine.csv", "--name", "rules", "--quiet")
    assert alone.code == 0, alone.text
    estimate = open_run("runs/rules").tasks[0].metrics[0].estimate
    assert (estimate.n, estimate.n_unsure) == (3, 1)
    assert (
        estimate.unsure_range is not None
        and estimate.unsure_range[0] < estimate.unsure_range[1]
    )
    both = command("run", "mine.csv", "--name", "both", *judged(server, "--quiet"))
    assert both.code == 0, both.text
    scored = command("score", "rules", "--name", "scored", *judged(server))
    assert scored.code == 0, scored.text
    for name in ("both", "scored"):
        run = open_run(f"runs/{name}")
        estimate = run.tasks[0].metrics[0].estimate
        assert estimate.value == pytest.approx(2 / 3)
        assert estimate.n_unsure == 0
        told = [row["scores"]["short-answer"]["explanation"] for row in run.rows()]
        assert told[1].startswith("judge-correct: it hedges; rules: ")
    assert sum(server.received.values()) == 1, "one verdict serves both"


def test_a_model_answers_anew_and_a_column_answer_is_then_what_is_expected() -> None:
    write("qa.jsonl", json.dumps({"question": "2 + 2?", "answer": "4"}) + "\n")
    done = command(
        "run",
        "qa.jsonl",
        "--model",
        "scripted/constant",
        "-M",
        "text=4",
        "--name",
        "new",
    )
    assert done.code == 0, done.text
    run = open_run("runs/new")
    assert run.tasks[0].metrics[0].estimate.value == 1
    assert "target = answer" in done.err
    (row,) = run.rows()
    assert row["prompt"] in ("2 + 2?", [["user", "2 + 2?"]])
    (again,) = evaluate("qa.jsonl", "scripted/echo", name="echo")
    assert next(again.rows())["answer"] == "2 + 2?"


def test_it_is_said_whose_answers_are_scored(server: OpenAIServer) -> None:
    write("qa.csv", "question,answer\nWhat is the capital of France?,Paris\n")
    rubric = ["run", "qa.csv", "--rubric", "Names one city."]
    alone = command(*rubric)
    assert alone.code == 2
    assert "It reads the answers in the file (column 'answer')" in alone.err
    judged_file = command(*rubric, *judged(server))
    assert judged_file.code == 0, judged_file.text
    assert (
        "Scored are the answers in the file (column 'answer'): nothing is generated."
        in judged_file.err
    )
    assert sum(server.received.values()) == 1, "only the verdict is asked for"
    constant = ["--model", "scripted/constant", "-M", "text=Rome"]
    new = command(*rubric, *constant, *judged(server))
    assert new.code == 0, new.text
    assert (
        "New answers are generated: those in the file (column 'answer') are what is expected."
        in new.err
    )


def test_it_is_said_that_answers_in_the_file_are_not_used() -> None:
    write("mine.csv", "question,output,reference\n2 + 2?,5,4\n")
    write("odd.csv", "question,reply,reference\n2 + 2?,5,4\n")
    constant = ["--model", "scripted/constant", "-M", "text=4"]
    by_name = command("run", "mine.csv", *constant)
    assert (
        "New answers are generated: those in the file (column 'output') are not used."
        in by_name.err
    )
    named = command("run", "odd.csv", "--column", "answer=reply", *constant)
    assert (
        "New answers are generated: those in the file (column 'reply') are not used."
        in named.err
    )
    without = command("run", "odd.csv", *constant)
    assert without.code == 0, without.text
    assert "in the file" not in without.err


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        ("letter", "the option whose letter the model finds most probable. "),
        ("likelihood", "the option whose text the model finds most probable. "),
    ],
)
def test_where_nothing_is_generated_it_is_said(mode: str, sentence: str) -> None:
    write("mine.csv", "question,A,B,C,answer\n2 + 2?,5,4,3,B\n")
    run = ("run", "mine.csv", "--model", "demo/small", "-T", f"answer.mode={mode}")
    done = command(*run)
    assert done.code == 0, done.text
    assert f"Nothing is generated: the answer is {sentence}" in done.err
    assert "The column 'answer' is what is expected." in done.err
    assert "New answers" not in done.err

    write("mine.csv", "question,A,B,C,output,target\n2 + 2?,5,4,3,C,B\n")
    unused = command(*run)
    assert unused.code == 0, unused.text
    assert "The answers in the file (column 'output') are not used." in unused.err


def test_what_scores_answers_may_be_that_a_model_writes_new_ones() -> None:
    write("qa.csv", "question,answer\n2 + 2?,4\n")
    unscored = command("run", "qa.csv")
    assert unscored.code == 2
    assert (
        "name a --model, of whose answers the column 'answer' is then what is expected"
        in unscored.err
    )


def test_columns_that_are_named(server: OpenAIServer) -> None:
    write("frei.csv", "Die Frage,Was kam,Was es ist,Wo es steht\nWo?,Hier,Dort,Text\n")
    named = [
        "input=Die Frage",
        "answer=Was kam",
        "target=Was es ist",
        "passages=Wo es steht",
    ]
    columns = [part for one in named for part in ("--column", one)]
    done = command(
        "run",
        "frei.csv",
        *columns,
        "--rubric",
        "Says where.",
        "--rubric",
        "Is kind.",
        "--name",
        "frei",
        *judged(server),
    )
    assert done.code == 0, done.text
    run = open_run("runs/frei")
    assert [metric.label for metric in run.tasks[0].metrics] == [
        "rubric",
        "Says where.",
        "Is kind.",
    ]
    (row,) = run.rows()
    assert (row["input"], row["answer"], row["targets"]) == ("Wo?", "Hier", ["Dort"])
    assert row["passages"][0]["text"] == "Text"


@pytest.mark.parametrize(
    ("file", "arguments", "said"),
    [
        ("a,b\n1,2\n", ("--rubric", "x"), "--column input=NAME"),
        ("question,b\n1,2\n", (), "--rubric"),
        (
            "question,b\n1,2\n",
            ("--column", "target=c", "--model", "demo/small"),
            "It has: question, b",
        ),
        ("question,b\n1,2\n", ("--column", "targets=b"), "Did you mean 'target'?"),
        ("question,output\n1,2\n", ("--rubric", "x"), ", or --judge"),
        (
            "question,output\n1,2\n",
            ("--rubric", "x", "--rubric", "x", "--judge", "demo/small"),
            "'x' twice",
        ),
        ("question,target\n1,2\n", (), "No models given"),
        ("question,output\n", ("--rubric", "x"), "has no rows"),
        (
            "question,output,target\n1,2,3\n",
            ("--judge", "demo/small", "--role", "judge=demo/large"),
            "both name a model",
        ),
        (
            "question,output,target\n1,2,3\n",
            ("--rubric", "x", "-T", "scorers.a.b=1", "--judge", "demo/small"),
            "-T scorers",
        ),
        (
            "question;output;target\n1;2;3\n",
            ("--judge", "demo/small"),
            "separated by semicolons: save the file as .csv with commas",
        ),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(
    file: str, arguments: tuple[str, ...], said: str
) -> None:
    write("mine.csv", file)
    done = command("run", "mine.csv", *arguments)
    assert done.code == 2, done.text
    assert said in done.text
    assert "Traceback" not in done.text


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("question;target\nA, b;c, d\n", "semicolons"),
        ("question\ttarget\nA\tb\n", "tabs"),
    ],
)
def test_a_file_with_other_separators_is_known_wherever_it_is_read(
    file: str, name: str
) -> None:
    write("mine.csv", file)
    write(
        "task.yaml",
        'task: t\ndataset: mine.csv\nsample: {input: "{{ question }}", target: "{{ target }}"}\n',
    )
    for words in (
        ("run", "mine.csv", "--model", "scripted/echo"),
        ("run", "task.yaml", "--model", "scripted/echo"),
        ("run", "mine.csv", "--column", "input=question", "--model", "scripted/echo"),
        ("init", "--task", "mine.csv", "--model", "scripted/echo"),
    ):
        done = command(*words)
        assert done.code == 2
        assert f"the cells seem to be separated by {name}" in done.text


def test_flags_without_effect_are_errors() -> None:
    done = command(
        "run", "factual-closed-book", "--model", "demo/small", "--column", "input=a"
    )
    assert done.code == 2
    assert "--column names the columns of a data file" in done.text
    done = command("run", "factual-closed-book", "--model", "demo/small", "-D", "a=b")
    assert (done.code, "-D a=b has no effect" in done.text) == (2, True)
    done = command(
        "run", "factual-closed-book", "--model", "demo/small", "-T", "promt.user=a"
    )
    assert (done.code, "The override 'promt.user' (-T): unknown key" in done.text) == (
        2,
        True,
    )
    done = command(
        "run",
        "wikitext",
        "--model",
        "demo/small",
        "--judge",
        "demo/large",
        "--limit",
        "1",
    )
    assert done.code == 2, done.text


def test_given_answers_in_a_task_file() -> None:
    write(
        "answers.jsonl",
        json.dumps({"id": "a", "input": "2 + 2?", "said": "4", "target": "4"}) + "\n",
    )
    write(
        "given.yaml",
        "task: given\ndataset: answers.jsonl\nanswer: {mode: given, column: said}\n",
    )
    (run,) = evaluate("given.yaml", [])
    assert run.tasks[0].metrics[0].estimate.value == 1
    for text, said in (
        ("answer: {mode: given}", "answer.column"),
        ("answer: {column: said}", "answer.column"),
        ("answer: {mode: given, column: other}", "no answer in the column 'other'"),
        ("answer: {mode: given, column: said, max_tokens: 5}", "max_tokens"),
    ):
        write("bad.yaml", f"task: bad\ndataset: answers.jsonl\n{text}\n")
        with pytest.raises(UsageError, match=said):
            load_task("bad.yaml")
    with pytest.raises(UsageError, match="hold the answers"):
        evaluate("given.yaml", "demo/small")
    with pytest.raises(DatasetError, match="no rows"):
        load_task(write("empty.csv", "input,target\n"))


def test_other_columns_go_along_as_metadata() -> None:
    write(
        "a.csv", "question,target,topic,level,id\n1+1?,2,sums,easy,x\n2+2?,4,sums,,y\n"
    )
    (run,) = evaluate("a.csv", "scripted/echo", where=["level=easy"])
    (row,) = run.rows()
    assert row["metadata"] == {"topic": "sums", "level": "easy"}
    write(
        "b.jsonl",
        '{"question": "a", "target": "a", "topic": "t"}\n{"question": "b", "target": "b"}\n',
    )
    (run,) = evaluate("b.jsonl", "scripted/echo")
    assert run.n_missing == 0


def test_columns_may_have_the_names_that_templates_read() -> None:
    path = write("d.csv", "question,target,get,row,other\nq,t,1,2,3\n")
    [sample] = load_task(str(path)).samples
    assert (sample.input, sample.targets) == ("q", ("t",))
    assert sample.metadata == {"get": "1", "row": "2", "other": "3"}
    path = write("r.csv", "row,target\nq,t\n")
    task = load_task(str(path), overrides={"columns.input": "row"})
    assert [sample.input for sample in task.samples] == ["q"]


@pytest.mark.parametrize("row", ['"row": {"answer": "B"}', '"row": 1, "choices": [1]'])
def test_a_column_that_hides_the_row_is_refused_in_a_sentence(row: str) -> None:
    path = write("d.jsonl", f'{{"question": "q", "answer": "A", {row}}}\n')
    with pytest.raises(DatasetError, match=r"'d.jsonl' has a column named 'row', the"):
        load_task(str(path), overrides={"columns.target": "answer"})


def test_a_table_with_very_many_columns_is_refused_in_a_sentence() -> None:
    write(
        "wide.csv", ",".join(f"c{n}" for n in range(50_000)) + f"\n{'1,' * 49_999}1\n"
    )
    with pytest.raises(DatasetError, match="49,980 more") as refused:
        load_task("wide.csv")
    assert len(str(refused.value)) < 500


def test_a_file_with_what_is_expected_is_previewed_and_checked_as_a_model_is_asked() -> (
    None
):
    write(
        "rows.csv",
        "question,answer,aliases\nCapital of Peru?,Lima,\nCapital of Iran?,Tehran,Teheran\n",
    )
    shown = typed("tasks", "preview", "rows.csv")
    assert shown.code == 0 and "Capital of Peru?" in shown.out
    assert "2 samples read" in typed("tasks", "check", "rows.csv").out
    done = typed(
        "run",
        "rows.csv",
        "--model",
        "scripted/constant",
        "--name",
        "empty",
        "-T",
        'scorers=["exact-match"]',
    )
    assert "input = question, target = answer." in done.text
    run = open_run("empty")
    assert [sample.sample.targets for sample in run.samples()] == [
        ("Lima",),
        ("Tehran", "Teheran"),
    ]
    assert (
        run.task("rows").metrics[0].estimate.value == 0
    )  # an empty cell is no answer that an empty reply could give


@pytest.mark.parametrize(
    "text",
    [
        "question,A,B,C,D,answer,topic\n1+1?,1,2,3,4,B,sums\n2+2?,1,2,4,,C,sums\n",
        "question,Option 1,Option 2,Option 3,Option 4,answer,topic\n1+1?,one,two,three,four,two,sums\n2+2?,one,two,four,,C,sums\n",
        "question,choices,answer,topic\n1+1?,\"['one', 'two', 'three', 'four']\",B,sums\n2+2?,\"['one', 'two', 'four']\",C,sums\n",
    ],
)
def test_columns_of_options_are_read_as_options(text: str) -> None:
    write("exam.csv", text)
    done = command(
        "run",
        "exam.csv",
        "--model",
        "scripted/constant",
        "-M",
        "text=B",
        "--name",
        "all-b",
    )
    assert done.code == 0, done.text
    assert "input = question, target = answer, choices = " in done.err
    run = open_run("runs/all-b")
    assert run.tasks[0].metrics[0].estimate.value == 0.5
    first, second = run.samples()
    assert (len(first.sample.choices), len(second.sample.choices)) in (
        (4, 3),
        (3, 4),
    )  # an empty cell is no option
    assert first.sample.metadata == {"topic": "sums"}
    done = command(
        "run",
        "exam.csv",
        "--model",
        "scripted/hash",
        "-T",
        "answer.mode=letter",
        "--name",
        "letters",
    )
    assert done.code == 0, done.text
    assert "7 sent" in done.err, "each letter of each row, by its log-probability"


def test_two_columns_a_and_b_are_no_options() -> None:
    write("pairs.csv", "question,a,b,target\nWhich?,x,y,z\n")
    (run,) = evaluate("pairs.csv", "scripted/echo")
    (sample,) = run.samples()
    assert sample.sample.choices == () and sample.sample.metadata == {
        "a": "x",
        "b": "y",
    }


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ("What is 2+2?,3,4,5,6,B\nWhat is 3+3?,6,4,5,7,A\n", "question,A,B,C,D,answer"),
        ("Largest planet,Mars,Venus,Jupiter,C\n", "question,A,B,C,answer"),
        ("What is 1+1?,2,2,3,4,A\n", "question,A,B,C,D,answer"),
        ("What is 1+1?,2,,3,4,A\n", "question,A,B,C,D,answer"),
        ("Name the longest river,Nile\n", "question,answer"),
        ("Name the longest river,Nile,easy\n", "question,answer,column3"),
    ],
)
def test_a_file_without_the_names_of_its_columns(
    rows: str, line: str, tmp_path: Path
) -> None:
    (tmp_path / "bare.csv").write_text(rows + rows, encoding="utf-8")
    run = ("run", "bare.csv", "--model", "demo/small", "--quiet")
    refused = typed(*run, folder=tmp_path)
    assert refused.code == 2
    assert "The first row looks like data" in refused.err
    assert f"put a line with their names above it, such as {line}." in refused.err
    assert "--column" not in refused.err

    (tmp_path / "bare.csv").write_text(f"{line}\n{rows}", encoding="utf-8")
    if "2,2" not in rows and "2,," not in rows:  # an option twice is another fault
        done = typed(*run, folder=tmp_path)
        assert done.code == 0, done.err


@pytest.mark.parametrize("header", ["a,b", "Frage,Antwort", "A,B", "text,gold label"])
def test_names_of_columns_are_not_taken_for_data(header: str, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(f"{header}\n1,2\n", encoding="utf-8")
    refused = typed("run", "mine.csv", "--model", "demo/small", folder=tmp_path)
    assert "--column input=NAME" in refused.err
    assert "looks like data" not in refused.err


def test_a_bundled_task_on_a_file_without_names(tmp_path: Path) -> None:
    rows = "What is 2+2?,3,4,5,6,B\nWhat is 3+3?,6,4,5,7,A\n"
    (tmp_path / "bare.csv").write_text(rows, encoding="utf-8")
    refused = typed(
        *("run", "arc-easy", "-T", "dataset.path=bare.csv", "--model", "demo/small"),
        folder=tmp_path,
    )
    assert "such as question,A,B,C,D,answer" in refused.err
    assert "own columns" not in refused.err


def test_shots_of_the_same_file(tmp_path: Path) -> None:
    rows = "".join(f"What is {number}+1?,{number + 1}\n" for number in range(1, 5))
    (tmp_path / "sums.csv").write_text(f"question,answer\n{rows}", encoding="utf-8")
    run = ("run", "sums.csv", "--model", "demo/small", "--quiet", "--num-fewshot", "3")
    refused = typed(*run, folder=tmp_path)
    assert refused.code == 2
    (setting,) = re.findall(r"-T (\S+):", refused.err)
    assert setting == "prompt.few_shot.dataset.path=sums.csv"

    done = typed(*run, "-T", setting, "--name", "shots", folder=tmp_path)
    assert done.code == 0, done.err
    for row in open_run(tmp_path / "runs/shots").rows():
        questions = re.findall(r"What is \d\+1\?", str(row["prompt"]))
        assert len(questions) == len(set(questions)) == 4
        assert questions[-1] == row["input"]
