"""Tasks of a folder as Tasks: asked in one turn, several, two phases, by likelihood; what is
recorded; what is refused.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compat.sea_helm.small_tree import entry, rows, small_tree, spoken, write
from evalwright import evaluate
from evalwright.cli import main
from evalwright.compat.sea_helm.compiling import SEEDS, compiled
from evalwright.compat.sea_helm.config import read_tree
from evalwright.compat.sea_helm.folder_files import local_file
from evalwright.compat.sea_helm.naming import Chosen, options_of
from evalwright.compat.sea_helm.sea_task import SeaTask
from evalwright.compat.sea_helm.task_rows import load_rows, rows_of
from evalwright.core.errors import (
    ConfigurationError,
    DatasetError,
    Failure,
    RequestFailed,
    TaskError,
    UnknownName,
    UsageError,
)
from evalwright.core.requests import Generate, LogLikelihood, Request
from evalwright.core.responses import Response, Usage
from evalwright.core.samples import Answer, Score
from evalwright.core.tasks import Task
from evalwright.models.scripted import ScriptedModel
from evalwright.reports.endings import failure_notes, unscored_sentences
from evalwright.tasks.dialects import dialect
from evalwright.tasks.loading import load_tasks


def _loaded(root: Path, name: str, **settings: Any) -> list[Task]:
    return load_tasks(
        f"sea-helm:{name}", dialect={"task_root": str(root), **settings}, chat=True
    )


def _asked(
    task: Task, replies: Sequence[Response], index: int = 0, draw: int = 0
) -> tuple[Answer, list[Request]]:
    """The answer to a sample with these replies, and what was asked."""
    requests: list[Request] = []

    async def ask(role: str, request: Request) -> Response:
        requests.append(request)
        return replies[min(len(requests), len(replies)) - 1]

    return asyncio.run(task.strategy(task.samples[index], ask, draw)), requests


def test_a_set_runs_from_the_command_line_and_is_averaged_and_scored_again(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(small_tree(own_folder / "tree"))
    run = [
        "run",
        "sea-helm:both",
        "--task-root",
        root,
        "--model",
        "demo/small",
        "--format",
        "text",
        "--name",
        "one",
    ]
    assert (
        main(
            [
                *run,
                "-D",
                "skip_tasks=",
                "-D",
                "generation.temperature=0",
                "--limit",
                "3",
            ]
        )
        == 0
    )
    data = json.loads((own_folder / "runs" / "one" / "run.json").read_text())
    assert [task["name"] for task in data["tasks"]] == [
        "sea-helm:colours/id", "sea-helm:qa-mc/id", "sea-helm:qa-mc/tl", "sea-helm:colours/tl",
    ]  # fmt: skip
    definition = data["tasks"][1]["definition"]
    assert definition["config"]["languages"].keys() == {"id"}
    assert (definition["competency"], definition["aggregation_group"]) == (
        "nlu",
        "reading",
    )
    assert {group["label"] for group in data["groups"]} >= {
        "id nlu",
        "tl nlu",
        "id",
        "tl",
        "SEA",
        "all languages",
    }
    line = json.loads(
        (own_folder / "runs" / "one" / "samples.jsonl").read_text().splitlines()[0]
    )
    assert line["metadata"]["row"]["prompts"] == [
        {"question": f"What is {line['metadata']['index']}?"}
    ]
    assert main(["score", "one", "--name", "again"]) == 0
    again = json.loads((own_folder / "runs" / "again" / "run.json").read_text())
    assert [one["metrics"][0]["value"] for one in again["tasks"]] == [
        one["metrics"][0]["value"] for one in data["tasks"]
    ]
    assert main(["score", "one", "--name", "other", "--scoring", "published"]) == 0
    assert main(["score", "other", "--name", "back", "--scoring", "corrected"]) == 0
    other, back = (
        json.loads((own_folder / "runs" / name / "run.json").read_text())
        for name in ("other", "back")
    )
    assert [one["metrics"] for one in back["groups"]] == [
        one["metrics"] for one in data["groups"]
    ]
    assert other["groups"][-1]["metrics"][0]["value"] == pytest.approx(0)
    assert {one["description"][-11:] for one in other["tasks"]} == {"(published)"}
    write(Path(root) / "seahelm_tasks" / "colours" / "id.jsonl", rows(3))
    assert main(["score", "one", "--name", "third"]) == 2
    assert "are no longer those of the run" in capsys.readouterr().err


def test_tasks_are_listed_and_shown(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(small_tree(own_folder / "tree"))
    assert main(["tasks", "list", "--dialect", "sea-helm", "--task-root", root]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "sea-helm:colours/tl  task in a language" in said
    assert "sea-helm:holes  set" in said
    (own_folder / "other").mkdir()
    assert dialect("sea-helm").names([own_folder / "other"]) == ()
    assert main(["tasks", "show", "sea-helm:colours/tl", "--task-root", root]) == 0
    assert "colours (tl), nlu (corrected)" in capsys.readouterr().out
    assert (
        main(
            [
                "tasks",
                "preview",
                "sea-helm:colours/tl",
                "--task-root",
                root,
                "--num-fewshot",
                "1",
            ]
        )
        == 0
    )
    assert "Sagot: A" in capsys.readouterr().out
    assert (
        main(
            [
                "tasks",
                "show",
                "sea-helm:colours",
                "--task-root",
                root,
                "-D",
                "base_modle=true",
            ]
        )
        == 2
    )
    assert "Did you mean 'base_model'" in capsys.readouterr().err


def test_the_model_samples_by_itself_with_the_seeds_of_the_runs(tmp_path: Path) -> None:
    root = small_tree(tmp_path)
    task = _loaded(root, "colours/id", runs=8, reasoning=True)[0]
    assert task.draws == 8
    answer, (asked,) = _asked(task, [Response(text="Jawaban: A")], draw=3)
    assert isinstance(asked, Generate)
    # A remote model is sent seed + draw.
    assert (asked.temperature, asked.max_tokens, (asked.seed or 0) + asked.draw) == (
        None,
        508,
        SEEDS[3],
    )
    assert answer.text == "Jawaban: A"
    assert task.strategy.needs == {"generate", "chat"}
    twin = _loaded(root, "colours-logprobs/id", runs=8)[0]
    assert twin.draws == 1
    assert _loaded(root, "colours-logprobs/id", runs=8, reasoning=True)[0].draws == 8
    own = _loaded(
        root, "colours/id", seed=5, generation={"temperature": 0.5, "max_tokens": 3}
    )[0]
    (asked,) = _asked(own, [Response(text="x")])[1]
    assert isinstance(asked, Generate)
    assert (asked.seed, asked.temperature, asked.max_tokens) == (5, 0.5, 3)


def test_a_base_model_goes_on_from_the_answer_tag(tmp_path: Path) -> None:
    task = _loaded(small_tree(tmp_path), "colours/id", base_model=True)[0]
    first = Response(
        text="I think. ", finish_reason="stop", usage=Usage(output_tokens=3)
    )
    answer, asked = _asked(task, [first, Response(text=" B")])
    phases = [one for one in asked if isinstance(one, Generate)]
    assert phases[0].stop == ("Jawaban:",)
    assert phases[0].prompt == (
        "Pick one (id). Write Jawaban: and {a letter}.\n\nQuestion: What is 10?\n\nJawaban: A\n\nQuestion: What is 0?\n\n"
    )
    assert phases[1].prompt == f"{phases[0].prompt}I think. Jawaban:"
    assert (phases[1].stop, phases[1].max_tokens) == (("\n\n",), 5)
    assert answer.text.strip() == "B"
    assert task.strategy.needs == {"generate"}


def test_a_twin_scores_every_label_behind_the_tag_or_as_published_the_right_one(
    tmp_path: Path,
) -> None:
    root = small_tree(tmp_path)
    replies = [
        Response(text="So "),
        Response(log_likelihood=-2.0),
        Response(log_likelihood=-0.5),
    ]
    for scoring, labels in (("corrected", ("A", "B")), ("published", ("A",))):
        task = _loaded(root, "colours-logprobs/id", scoring=scoring)[0]
        sample = task.samples[0]
        assert (sample.choices, sample.gold) == (labels, (0,))
        answer, asked = _asked(task, replies)
        scored = [one for one in asked if isinstance(one, LogLikelihood)]
        assert [one.continuation for one in scored] == [f" {label}" for label in labels]
        assert not isinstance(scored[0].context, str)
        assert scored[0].context[-1].content == "So Jawaban:"
        assert answer.log_likelihoods == (-2.0, -0.5)[: len(labels)]
    assert task.strategy.needs == {"generate", "chat", "log-likelihood"}


def test_replies_are_fed_back_turn_by_turn(tmp_path: Path) -> None:
    root = small_tree(tmp_path)
    two = [
        {**row, "prompts": [*row["prompts"], {"question": "Why?"}]} for row in rows(2)
    ]
    write(root / "seahelm_tasks" / "colours" / "id.jsonl", two)
    answer, asked = _asked(
        _loaded(root, "colours/id")[0],
        [Response(text="<think>x</think>One"), Response(text="Two")],
    )
    assert len(answer.responses) == 2
    last = asked[1]
    assert isinstance(last, Generate)
    assert not isinstance(last.prompt, str)
    assert [(one.role, one.text) for one in last.prompt][1] == ("assistant", "One")
    assert last.prompt[2].text.endswith("Question: Why?")
    assert answer.text == "Two"
    _, asked = _asked(
        _loaded(root, "colours/id")[0], [Response(text="", finish_reason="length")]
    )
    assert len(asked) == 1


def test_published_a_task_that_its_own_code_fails_on_fails_with_the_published_zero(
    own_folder: Path,
) -> None:
    root = small_tree(own_folder / "tree")
    nulls = {"colours": {"fewshot_num_examples": {"base": None}}}
    write(root / "seahelm_tasks" / "zz" / "config.yaml", nulls)
    task = _loaded(root, "colours/id", base_model=True, scoring="published")[0]
    with pytest.raises(RequestFailed, match=r"TypeError\. The published number is 0"):
        _asked(task, [Response(text="x")])
    run = evaluate(task, ScriptedModel("A"))[0]
    assert run.n_missing == 4
    assert run.data["tasks"][0]["metrics"][0]["value"] == 0.0
    said = unscored_sentences([run])
    assert "--scoring corrected" in said and "same command" not in said
    with pytest.raises(UsageError, match="With --format text it is asked without chat"):
        evaluate(_loaded(root, "qa-mc/id")[0], "demo/small")
    assert all("--scoring corrected" in note.advice for note in failure_notes(run))
    corrected = _loaded(root, "colours/id", base_model=True)[0]
    assert corrected.definition["num_fewshot"] == 0
    _asked(corrected, [Response(text="x")])


def test_published_knows_the_labels_of_the_limited_rows_alone(own_folder: Path) -> None:
    """Whatever else its reply says: SEA-HELM takes the first rows before it looks at their
    labels.
    """
    root = small_tree(own_folder / "tree")
    write(
        root / "seahelm_tasks" / "colours" / "id.jsonl",
        sorted(rows(6), key=lambda row: str(row["label"])),
    )
    model = ScriptedModel("Jawaban: B, bukan: Jawaban: A")

    def read(limit: float | None, **settings: str) -> dict[str, float]:
        dialect = {"task_root": str(root), **settings}
        run = evaluate(
            "sea-helm:colours/id", model, dialect=dialect, limit=limit, name=f"n{limit}"
        )[0]
        assert main(["score", f"n{limit}", "--name", f"again{limit}"]) == 0
        again = json.loads(
            (own_folder / "runs" / f"again{limit}" / "run.json").read_text()
        )["tasks"][0]
        assert again["metrics"] == json.loads(
            json.dumps(run.data["tasks"][0]["metrics"])
        )
        return {metric["label"]: metric["value"] for metric in again["metrics"]}

    assert read(2, scoring="published")["accuracy"] == 100
    assert read(0.5, scoring="published")["accuracy"] == 100
    assert read(4, scoring="published")["accuracy"] == 50
    assert read(None, scoring="published")["accuracy"] == 50
    with pytest.raises(
        ConfigurationError,
        match=r"-D limit .*--limit N",
    ):
        evaluate(
            "sea-helm:colours/id", model, dialect={"task_root": str(root), "limit": 2}
        )


def test_translations_share_a_cluster_and_ids_are_unique(tmp_path: Path) -> None:
    root = small_tree(tmp_path)
    write(
        root / "seahelm_tasks" / "qa-mc" / "tl.jsonl",
        [{**row, "id": f"{row['id']}_TL"} for row in rows(3)],
    )
    write(
        root / "seahelm_tasks" / "qa-mc" / "id.jsonl",
        [{**row, "id": None} for row in rows(2)],
    )
    one, other = _loaded(root, "qa-mc")
    assert [sample.id for sample in one.samples] == ["#0", "#1"]
    assert [sample.cluster for sample in other.samples] == [
        "qa-mc:item0",
        "qa-mc:item1",
        "qa-mc:item2",
    ]
    assert _loaded(root, "colours/id")[0].samples[0].cluster == ""


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"runs": 0}, "`runs` must be greater than or equal to 1"),
        ({"base_model": "yes"}, "`base_model` must be true or false"),
        ({"scoring": "best"}, "Known|Did you mean|scoring"),
        ({"generation": {"temprature": 1}}, "Did you mean 'temperature'"),
        ({"generation": 3}, "`generation` must be a mapping"),
    ],
)
def test_settings_are_checked(settings: Mapping[str, Any], said: str) -> None:
    with pytest.raises((ConfigurationError, UnknownName), match=said):
        options_of({"task_root": "x", **settings})


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("../outside.jsonl", "outside of its folder"),
        ("{tmp}/outside.jsonl", "outside of its folder"),
        ("seahelm_tasks/link.jsonl", "outside of its folder"),
        ("seahelm_tasks/.hidden.jsonl", "or hidden"),
        ("https://example.org/rows.jsonl", "addresses are not opened"),
        ("seahelm_tasks/pipe.jsonl", "or is not a file"),
        ("seahelm_tasks", "or is not a file"),
        ("nowhere.jsonl", "does not exist"),
        (None, "names no data"),
    ],
)
def test_rows_come_out_of_the_folder_alone(
    tmp_path: Path, file: str | None, said: str
) -> None:
    import os

    root = small_tree(tmp_path / "tree").resolve()
    write(tmp_path / "outside.jsonl", rows(2))
    write(root / "seahelm_tasks" / ".hidden.jsonl", rows(2))
    (root / "seahelm_tasks" / "link.jsonl").symlink_to(tmp_path / "outside.jsonl")
    os.mkfifo(root / "seahelm_tasks" / "pipe.jsonl")
    here: dict[str, Any] = {
        "filepath": file and file.replace("{tmp}", str(tmp_path)),
        "prompt_template": {},
    }
    with pytest.raises((TaskError, DatasetError), match=said):
        load_rows(SeaTask("x", "id", {"languages": {"id": here}}, root))


@pytest.mark.parametrize(
    "line",
    [
        '{"prompts": 3}',
        '{"prompts": []}',
        '{"prompts": ["x"]}',
        "[1",
        "\x00",
        '{"id": 1}',
    ],
)
def test_broken_rows_are_named(tmp_path: Path, line: str) -> None:
    root = small_tree(tmp_path)
    write(
        root / "seahelm_tasks" / "colours" / "id.jsonl",
        f"{json.dumps(rows(1)[0])}\n{line}\n",
    )
    with pytest.raises(DatasetError, match=r"[Rr]ow 2"):
        list(_loaded(root, "colours/id")[0].samples)


def test_a_placeholder_that_a_row_lacks_is_sent_as_none_only_as_published(
    tmp_path: Path,
) -> None:
    root = small_tree(tmp_path).resolve()
    task = SeaTask("colours", "id", read_tree(root).tasks["colours"], root)
    file = root / "seahelm_tasks" / "colours" / "id.jsonl"
    write(file, [{"prompts": [{"hint": "x"}]}, {"prompts": [{"question": "y"}]}])
    assert load_rows(replace(task, published=True))[0]["prompts"] == [
        {"hint": "x", "question": None}
    ]
    with pytest.raises(
        DatasetError,
        match=r"id\.jsonl, row 1: .*'question'.*`task_template`",
    ):
        load_rows(task)[0]


def test_a_row_of_a_file_with_null_in_its_text_fails_alone_and_is_no_example(
    tmp_path: Path,
) -> None:
    root = small_tree(tmp_path).resolve()
    lacking = {**rows(2)[1], "prompts": [{"question": None}]}
    write(root / "seahelm_tasks" / "colours" / "id.jsonl", [rows(2)[0], lacking])
    (task,) = _loaded(root, "colours/id")
    assert [one.input.partition("Question: ")[2] for one in task.samples] == [
        "What is 0?",
        "",
    ]
    with pytest.raises(RequestFailed, match="'item1' has null at 'question'") as caught:
        _asked(task, [], 1)
    assert caught.value.failure.kind == "bad row"
    write(
        root / "seahelm_tasks" / "colours" / "id_examples.jsonl", [lacking, rows(3)[2]]
    )
    _, (asked,) = _asked(
        _loaded(root, "colours/id", num_fewshot=2)[0], [Response(text="Jawaban: A")]
    )
    assert isinstance(asked, Generate) and not isinstance(asked.prompt, str)
    assert [one.text.split()[-1] for one in asked.prompt] == ["2?", "A", "0?"]
    (published,) = _loaded(root, "colours/id", scoring="published")
    assert published.samples[1].input.endswith("Question: None")


def test_an_empty_reply_is_an_answer_as_published_alone(tmp_path: Path) -> None:
    root = small_tree(tmp_path)

    async def ask(role: str, request: Request) -> Response:
        raise RequestFailed(
            Failure("empty reply", "provider", "nothing", usage={"output_tokens": 7})
        )

    for scoring in ("published", "corrected"):
        (task,) = _loaded(root, "colours/id", scoring=scoring)
        if scoring == "corrected":
            with pytest.raises(RequestFailed):
                asyncio.run(task.strategy(task.samples[0], ask, 0))
            continue
        answer = asyncio.run(task.strategy(task.samples[0], ask, 0))
        assert (answer.text, answer.usage.output_tokens) == ("", 7)
        made = task.scorers[0].function(task.samples[0], answer)
        assert isinstance(made, Score) and (made.value, made.label) == (0, "null")


def test_a_row_of_endless_turns_is_refused(tmp_path: Path) -> None:
    root = small_tree(tmp_path)
    row = {**rows(1)[0], "prompts": [{"question": "?"}] * 101}
    write(root / "seahelm_tasks" / "colours" / "id.jsonl", [row])
    with pytest.raises(DatasetError, match="101 turns, more than the 100"):
        _loaded(root, "colours/id")


def test_a_list_of_rows_is_read(tmp_path: Path) -> None:
    root = small_tree(tmp_path).resolve()
    task = SeaTask("colours", "id", read_tree(root).tasks["colours"], root)
    file = root / "seahelm_tasks" / "colours" / "id.jsonl"
    file.write_text(json.dumps(rows(2)))
    assert [row["id"] for row in load_rows(task)] == ["item0", "item1"]
    assert len(rows_of(local_file(task, "seahelm_tasks/colours/id.jsonl"))) == 2


def test_loaders_and_metrics_that_are_not_known_are_refused(tmp_path: Path) -> None:
    root = small_tree(tmp_path)
    own = entry(
        "new",
        {"id": spoken("colours", "id")},
        dataloader_file="mine.py",
        dataloader_class="Mine",
    )
    other = entry("odd", {"id": spoken("colours", "id")}, metric_class="Mine")
    write(root / "seahelm_tasks" / "zz" / "config.yaml", {"new": own, "odd": other})
    with pytest.raises(TaskError, match=r"class Mine of 'mine\.py'"):
        _loaded(root, "new")
    with pytest.raises(
        TaskError,
        match=r"class Mine of 'src/metrics/f1_acc_metric\.py'",
    ):
        _loaded(root, "odd")


def test_a_twin_without_a_loader_has_its_siblings_and_fails_as_published(
    tmp_path: Path,
) -> None:
    root = small_tree(tmp_path)
    own = {
        "dataloader_file": "src/dataloaders/seahelm_local_dataloader.py",
        "dataloader_class": "SeaHelmLocalDataloader",
    }
    write(root / "seahelm_tasks" / "zz" / "config.yaml", {"colours": own})
    tree = read_tree(root)
    for scoring in ("corrected", "published"):
        options = options_of({"task_root": str(root), "scoring": scoring})
        made = compiled(tree, "colours-logprobs", "id", options, Chosen([]))
        assert ("FileNotFoundError" in made.definition["fails"]) == (
            scoring == "published"
        )


def test_below_chance_is_0_and_runs_are_compared_without_the_folder(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = small_tree(own_folder / "tree")
    for own in ("colours/id", "colours/tl", "qa-mc/id", "qa-mc/tl"):
        write(root / "seahelm_tasks" / f"{own}.jsonl", rows(40))
    for name, text in (("some", "A"), ("wrong", "neither")):
        chosen = ["sea-helm:both", "--task-root", str(root), "-D", "skip_tasks="]
        assert (
            main(
                [
                    "run",
                    *chosen,
                    "--model",
                    "scripted/constant",
                    "-M",
                    f"text={text}",
                    "--name",
                    name,
                ]
            )
            == 0
        )
    for group in json.loads((own_folder / "runs" / "wrong" / "run.json").read_text())[
        "groups"
    ]:
        for metric in group["metrics"]:
            if metric["value"] is not None:
                assert metric["low"] == metric["value"] == 0.0 <= metric["high"] < 0.5
    (root / "seahelm_tasks").rename(root / "elsewhere")
    capsys.readouterr()
    assert main(["compare", "some", "wrong", "--metric", "macro_f1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    first = next(one for one in found["tasks"] if one["task"] == "sea-helm:colours/id")
    assert (
        0.1
        < first["paired"]["low"]
        < first["paired"]["difference"]
        < first["paired"]["high"]
    )


def test_data_out_of_reach_fail_their_task_and_the_others_are_run(
    own_folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(repository: str) -> str:
        raise DatasetError(f"The revision of '{repository}' cannot be found.")

    monkeypatch.setattr("evalwright.tasks.datasets.reading.first_fetched", refused)
    root = small_tree(own_folder / "tree")
    hub = {
        "dataloader_file": "src/dataloaders/huggingface_dataloader.py", "dataloader_class": "HuggingFaceDataloader",
        "languages": {"id": {"filepath": "owner/data", "example_filepath": "owner/data"}},
    }  # fmt: skip
    write(root / "seahelm_tasks" / "zz" / "config.yaml", {"qa-mc": hub})
    run = [
        "run",
        "--task-root",
        str(root),
        "--model",
        "scripted/constant",
        "-M",
        "text=A",
        "--name",
        "r",
    ]
    assert main([*run, "sea-helm:both/id"]) == 1
    data = json.loads((own_folder / "runs" / "r" / "run.json").read_text())
    found = {task["name"]: task for task in data["tasks"]}
    assert (
        found["sea-helm:colours/id"]["n_samples"],
        found["sea-helm:colours/id"]["n_missing"],
    ) == (4, 0)
    lost = found["sea-helm:qa-mc/id"]
    assert (lost["n_samples"], lost["failures"]) == (1, {"no data": 1})
    assert (lost["metrics"][0]["label"], lost["metrics"][0]["value"]) == (
        "normalized_accuracy",
        None,
    )
    assert "1 missing, left out of the scores" in " ".join(
        capsys.readouterr().out.split()
    )
    # SEA-HELM catches what its loader raises, and writes 0 and an error for the task: published, it
    # counts as that and is said so.
    published = ["--scoring", "published", "--replace"]
    assert main([*run, *published, "sea-helm:both/id"]) == 1
    lost, totals = totals_of(own_folder / "runs" / "r", "sea-helm:qa-mc/id")
    assert (lost["metrics"][0]["value"], totals["id nlu"]) == (0, 0)
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "1 missing: sea-helm:qa-mc/id failed and counts as 0 in the scores, as published."
        in said
    )
    assert main(["export", "sea-helm", "r", "--out", "exp"]) == 0
    exported = json.loads(next(Path("exp").rglob("results/*.json")).read_text())
    assert exported["id"]["total"] == pytest.approx(totals["id"])
    capsys.readouterr()
    assert main([*run, "sea-helm:qa-mc/id"]) == 2
    assert "cannot be found" in capsys.readouterr().err


def test_an_absent_file_fails_its_task_alone_and_a_group_can_leave_it_out(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = small_tree(own_folder / "tree")
    language = {
        "id": {"filepath": "seahelm_tasks/absent.jsonl", "example_filepath": None}
    }
    of_group = {"aggregation_group": "several"}
    write(
        root / "seahelm_tasks" / "zz" / "config.yaml",
        {"qa-mc": {"languages": language, **of_group}, "colours": of_group},
    )
    run = [
        "run",
        "--task-root",
        str(root),
        "--model",
        "scripted/constant",
        "-M",
        "text=A",
        "--name",
        "r",
    ]
    assert main([*run, "sea-helm:several/id"]) == 1
    lost, _ = totals_of(own_folder / "runs" / "r", "sea-helm:qa-mc/id")
    assert lost["failures"] == {"no data": 1}
    assert "absent.jsonl" in " ".join(capsys.readouterr().out.split())
    assert (
        main([*run, "--replace", "sea-helm:several/id", "-D", "skip_tasks=qa-mc"]) == 0
    )
    record = json.loads((own_folder / "runs" / "r" / "run.json").read_text())
    assert [task["name"] for task in record["tasks"]] == ["sea-helm:colours/id"]
    assert main([*run, "--replace", "sea-helm:qa-mc/id"]) == 2
    assert "absent.jsonl', which does not exist" in " ".join(
        capsys.readouterr().err.split()
    )


def totals_of(folder: Path, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A task of a record, and the numbers of its groups by label."""
    record = json.loads((folder / "run.json").read_text())
    (task,) = (one for one in record["tasks"] if one["name"] == name)
    return task, {
        group["label"]: group["metrics"][0]["value"] for group in record["groups"]
    }


@pytest.mark.parametrize("scoring", ["corrected", "published"])
def test_a_task_whose_metric_is_not_here_fails_alone_and_the_others_have_their_totals(
    own_folder: Path, capsys: pytest.CaptureFixture[str], scoring: str
) -> None:
    root = small_tree(own_folder / "tree")
    metric = {
        "metric_file": "seahelm_tasks/vision/xm3600/refclipscore_metric.py", "metric_class": "RefClipScoreMetric",
        "metric": "normalized_refclipscore", "competency": "vision",
    }  # fmt: skip
    write(root / "seahelm_tasks" / "zz" / "config.yaml", {"qa-mc": metric})
    run = [
        "run",
        "--task-root",
        str(root),
        "--model",
        "scripted/constant",
        "-M",
        "text=Jawaban: A",
    ]
    run += ["--scoring", scoring, "--name", "r"]
    assert main([*run, "sea-helm:both/id"]) == 1
    data = json.loads((own_folder / "runs" / "r" / "run.json").read_text())
    found = {task["name"]: task for task in data["tasks"]}
    assert found["sea-helm:qa-mc/id"]["failures"] == {"not scored here": 1}
    assert found["sea-helm:colours/id"]["metrics"][0]["value"] is not None
    totals = {group["label"]: group["metrics"][0]["value"] for group in data["groups"]}
    assert totals["id nlu"] is not None
    assert totals["id vision"] == (None if scoring == "corrected" else 0)
    capsys.readouterr()
    assert main([*run, "--replace", "sea-helm:qa-mc/id", "sea-helm:colours/tl"]) == 1
    assert main([*run, "--replace", "sea-helm:qa-mc/id"]) == 2
    assert "RefCLIPScore" in capsys.readouterr().err


def test_a_task_that_fails_alone_uses_the_models_of_its_set(
    own_folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The judge of a set is named as ever, whether or not the hub answers, and is no flag
    without effect.
    """

    def refused(repository: str) -> str:
        raise DatasetError(f"The revision of '{repository}' cannot be found.")

    monkeypatch.setattr("evalwright.tasks.datasets.reading.first_fetched", refused)
    root = small_tree(own_folder / "tree")
    judged = {
        "metric_file": "src/metrics/llm_judges/criteria_judge_metric.py", "metric_class": "CriteriaJudgeMetric",
        "metric": "average_criteria_score", "dataloader_class": "HuggingFaceDataloader",
        "dataloader_file": "src/dataloaders/huggingface_dataloader.py",
        "judge": {
            "judge_model_name": "openai/gpt-oss-120b", "judge_model_type": "vllm", "classifications": {"MET": 1},
            "judge_prompts": {"system_prompt": "", "criteria_prompt": "{response}"},
        },
        "languages": {"id": {"filepath": "owner/data", "example_filepath": None}},
    }  # fmt: skip
    write(root / "seahelm_tasks" / "zz" / "config.yaml", {"qa-mc": judged})
    run = [
        "run",
        "--task-root",
        str(root),
        "--model",
        "scripted/constant",
        "-M",
        "text=A",
        "--name",
        "r",
    ]
    assert main([*run, "sea-helm:both/id"]) == 2
    assert "--role judge=vllm/openai/gpt-oss-120b" in " ".join(
        capsys.readouterr().err.split()
    )
    judge = ["--judge", "scripted/constant", "-R", "judge.text=x"]
    assert main([*run, "sea-helm:both/id", *judge]) == 1
    (lost,) = (
        task
        for task in json.loads((own_folder / "runs" / "r" / "run.json").read_text())[
            "tasks"
        ]
        if task["name"] == "sea-helm:qa-mc/id"
    )
    assert lost["failures"] == {"no data": 1}


def test_settings_without_effect_are_errors(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(small_tree(own_folder / "tree"))
    run = [
        "run",
        "--task-root",
        root,
        "--model",
        "scripted/constant",
        "-M",
        "text=A",
        "--quiet",
    ]
    for name, setting, said in (
        (
            "both",
            "tokenizer=gpt2",
            "-D tokenizer has no effect: no task here is made to a length",
        ),
        ("both", "skip_tasks=colors", "Did you mean 'colours'"),
        ("colours", "skip_tasks=colours", "no set is named"),
        ("both", "skip_tasks=colours-logprobs", "has no effect: both has none of them"),
    ):
        assert main([*run, f"sea-helm:{name}", "-D", setting]) == 2
        assert said in " ".join(capsys.readouterr().err.split())
    assert main([*run, "sea-helm:colours/id", "--num-fewshot", "3"]) == 0
    assert (
        "fewer examples are there, and all of them are sent, in sea-helm:colours/id (2)"
        in (" ".join(capsys.readouterr().err.split()))
    )
    write(
        Path(root) / "seahelm_tasks" / "zz" / "config.yaml",
        {"colours": {"languages": {"id": {"example_filepath": None}}}},
    )
    assert main([*run, "sea-helm:colours/id", "--num-fewshot", "3"]) == 2
    assert "'colours/id' has no examples" in " ".join(capsys.readouterr().err.split())


def test_answers_are_scored_again_by_the_other_arithmetic(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(small_tree(own_folder / "tree"))
    run = [
        "run",
        "sea-helm:colours/id",
        "--task-root",
        root,
        "--model",
        "scripted/constant",
    ]
    assert main([*run, "-M", "text=Jawaban: A", "--name", "r", "--quiet"]) == 0
    assert main(["score", "r", "--scoring", "published", "--name", "again"]) == 0
    again = json.loads((own_folder / "runs" / "again" / "run.json").read_text())[
        "tasks"
    ][0]
    assert again["scorers"][0]["options"]["scoring"] == "published"
    capsys.readouterr()
    assert main(["score", "r", "-D", "runs=3", "--name", "other"]) == 2
    assert "-D runs has no effect on answers that are there" in capsys.readouterr().err
