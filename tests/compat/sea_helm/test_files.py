"""SEA-HELM's result folders: imported, exported, checked; and what becomes of each flag of its
command line.
"""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

import evalwright.compat.sea_helm.results as sea_files
from compat.sea_helm.sea_results import task, write_results, write_tree
from evalwright.api import open_run
from evalwright.cli import main
from evalwright.compat.sea_helm.exporting import export_sea_helm
from evalwright.compat.sea_helm.importing import import_sea_helm
from evalwright.compat.sea_helm.over_runs import write_over_runs
from evalwright.core.errors import RunError
from support.openai_server import serving

ID = "sea-helm:colours/id"
TL = "sea-helm:colours/tl"
SHAPES = "sea-helm:shapes/id"
FLAGS = tomllib.loads(
    (Path(sea_files.__file__).with_name("flags.toml")).read_text(encoding="utf-8")
)["flag"]
PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "sea-helm-flags.md"


def test_numbered_runs_are_repeats_of_one_run() -> None:
    write_results(Path("out"), "acme/tiny", ["AABBAB", "AABBBA"])
    (run,), left_out = import_sea_helm(Path("out"), Path("runs"))
    run.verify()
    assert not left_out
    assert run.model == "acme/tiny"
    assert [task.name for task in run.tasks] == [ID, TL, SHAPES]
    first = run.task(ID)
    assert (first.n_samples, first.n_missing) == (6, 0)
    # (100 + 100 * (2 * 2/3 - 1)) / 2, as SEA-HELM recorded them
    assert first.metrics[0].estimate.value == pytest.approx((100 + 100 / 3) / 2)
    assert run.data["tasks"][0]["draws"] == 2
    records = [record for record in run.samples() if record.task == ID]
    assert [(record.index, record.draw) for record in records[:3]] == [
        (0, 0),
        (0, 1),
        (1, 0),
    ]
    assert [
        record.scores["sea-helm"].value for record in records if record.draw == 1
    ] == [1, 1, 1, 1, 0, 0]
    assert records[0].answer is not None
    assert records[0].answer.text == "Jawaban: A"
    assert run.data["tasks"][2]["draws"] == 1  # max_n_runs


def test_totals_are_those_of_its_own_results() -> None:
    folder = write_results(Path("out"), "acme/tiny", ["AABBBA"])
    ((run,), _) = import_sea_helm(folder, Path("runs"))
    recorded = json.loads(next(folder.glob("run_0/results/*.json")).read_text())
    found = {group.name: group.metrics[0].estimate.value for group in run.groups}
    assert found["sea-helm:id"] == pytest.approx(recorded["id"]["total"])
    assert found["sea-helm:id/safety"] == pytest.approx(
        recorded["id"]["safety"]["total"]
    )
    assert found["sea-helm:all"] == pytest.approx(recorded["total"])


def test_what_a_run_lacks_is_said() -> None:
    folder = write_results(Path("out"), "acme/tiny", ["AABBAB", "AABBBA"])
    for path in [
        *folder.glob("run_0/inferences/id/colours/*"),
        *folder.glob("run_1/results/*.json"),
    ]:
        path.unlink()
    ((run,), _) = import_sea_helm(Path("out"), Path("runs"))
    notes = run.data["configuration"]["imported"]["notes"]
    assert f"{ID}: run 0 has 0 of 6 answers; what is there counts" in notes
    assert f"{ID}: run 1 has no results; what is there counts" in notes
    assert run.task(ID).metrics[0].estimate.value == 100


def test_what_raised_and_what_had_no_reply_has_failed() -> None:
    write_results(Path("out"), "acme/tiny", ["AAB-AB"], raised=[0])
    ((run,), _) = import_sea_helm(Path("out"), Path("runs"))
    shapes = run.task(SHAPES)
    colours = run.task(ID)
    assert shapes.n_missing == 6
    assert shapes.failures == {"SEA-HELM's own code raised": 5, "request failed": 1}
    assert shapes.metrics[0].estimate.value == 0
    assert shapes.metrics[0].estimate.method.startswith("failed, published as 0")
    assert (colours.n_missing, colours.failures) == (1, {"request failed": 1})
    assert any(
        "SEA-HELM's code raised" in note
        for note in run.data["configuration"]["imported"]["notes"]
    )
    # Its answers are there, so ours can score them, by the rows of the folder.
    root = write_tree(Path("tree"))
    ((again,), _) = import_sea_helm(
        Path("out"), Path("ours"), scoring="corrected", task_root=root
    )
    assert again.task(SHAPES).n_missing == 1
    assert (
        again.task(SHAPES).metrics[0].estimate.low
        < again.task(SHAPES).metrics[0].estimate.value
    )


def test_a_task_of_which_nothing_came_has_failed() -> None:
    write_results(Path("out"), "acme/tiny", ["AABBAB"], raised=[0])
    next(Path("out").rglob("*_shapes_id_turn1_batch_response.jsonl")).unlink()
    ((run,), _) = import_sea_helm(Path("out"), Path("runs"))
    assert (run.task(SHAPES).n_samples, run.task(SHAPES).n_missing) == (1, 1)
    ((run,), _) = import_sea_helm(
        Path("out"), Path("known"), task_root=write_tree(Path("tree"))
    )
    assert (run.task(SHAPES).n_samples, run.task(SHAPES).n_missing) == (6, 6)


def test_models_of_two_organisations_are_kept_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for owner, said in (("acme", "AABBAB"), ("other", "BBAABA")):
        write_results(Path("out") / owner, f"{owner}/tiny", [said])
    assert main(["import", "sea-helm", "out"]) == 0
    runs = {
        open_run(path).model: open_run(path) for path in sorted(Path("runs").iterdir())
    }
    assert {
        name: run.task(ID).metrics[0].estimate.value for name, run in runs.items()
    } == {
        "acme/tiny": 100,
        "other/tiny": 0,
    }
    assert main(["leaderboard", *map(str, Path("runs").iterdir())]) == 0
    capsys.readouterr()
    assert (
        main(
            [
                "compare",
                *map(str, sorted(Path("runs").iterdir())),
                "--metric",
                "mean_individual_score",
                "--json",
            ]
        )
        == 0
    )
    (first, *_) = json.loads(capsys.readouterr().out)["tasks"]
    assert first["paired"]["difference"] == 1
    # In one folder their files have the same names.
    write_results(Path("mixed"), "acme/tiny", ["AABBAB"])
    config = next(Path("mixed").rglob("*.yaml"))
    config.with_name("tiny_run_config_2026-03-09T10:00:00.000001.yaml").write_text(
        config.read_text().replace("acme/tiny", "other/tiny")
    )
    capsys.readouterr()
    assert main(["import", "sea-helm", "mixed"]) == 2
    assert "cannot be told whose answers they are" in capsys.readouterr().err


def test_an_export_is_imported_with_the_same_scores(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_results(Path("out") / "acme", "acme/tiny", ["AAB-AB", "AABBBA"], raised=[0])
    ((run,), _) = import_sea_helm(Path("out"), Path("runs"))
    files, _ = export_sea_helm([run], Path("exp"))
    theirs = {str(path.relative_to("out")) for path in Path("out").rglob("*.jsonl")}
    assert theirs <= {str(path.relative_to("exp")) for path in files}
    ((again,), _) = import_sea_helm(Path("exp"), Path("again"))
    assert list(map(plainly, again.samples())) == list(map(plainly, run.samples()))
    for one, other in zip(run.tasks, again.tasks, strict=True):
        assert one.metrics[0].estimate.value == other.metrics[0].estimate.value
    before, after = (
        json.loads(next(Path(place).rglob("run_1/results/*.json")).read_text())
        for place in ("out", "exp")
    )
    assert after["total"] == pytest.approx(before["total"])
    assert after["tl"]["nlu"]["colours"]["normalized_accuracy"] == pytest.approx(
        before["tl"]["nlu"]["colours"]["normalized_accuracy"]
    )
    config = yaml.safe_load(next(Path("exp").rglob("run_1/configs/*.yaml")).read_text())
    assert config["run_args"]["model_name"] == "acme/tiny"
    assert list(config["tasks"]["colours"]["languages"]) == ["id", "tl"]
    assert "shapes" not in config["tasks"]  # which has one run alone
    with pytest.raises(RunError, match="files of another run"):
        export_sea_helm([_at(run, "2020-01-01T00:00:00")], Path("exp"))


def test_a_broken_record_is_not_exported() -> None:
    write_results(Path("out"), "acme/tiny", ["AABBAB"])
    ((run,), _) = import_sea_helm(Path("out"), Path("runs"))
    broken = {
        **run.data["tasks"][0],
        "definition": {"dialect": "sea-helm", "task": "../x", "language": "id"},
    }
    with pytest.raises(RunError, match="is broken"):
        export_sea_helm(
            [type(run)(run.folder, {**run.data, "tasks": [broken]})], Path("exp")
        )


def _at(run: Any, started: str) -> Any:
    return type(run)(run.folder, {**run.data, "started": started})


def plainly(record: Any) -> Any:
    scores = {name: score.value for name, score in record.scores.items()}
    failed = record.failure is not None or bool(record.score_failures)
    text = record.answer.text if record.answer and not failed else None
    return (
        record.task,
        record.index,
        record.draw,
        record.sample.id,
        record.sample.input,
        record.sample.targets,
        scores,
        failed,
        text,
    )


def test_runs_of_ours_are_exported_and_paired_with_imported_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = str(write_tree(Path("tree")))
    assert (
        main(
            [
                "run",
                "sea-helm:mine",
                "--task-root",
                root,
                "--model",
                "scripted/hash",
                "-D",
                "runs=2",
                "--name",
                "own",
                "--quiet",
            ]
        )
        == 0
    )
    own = open_run("runs/own")
    files, _ = export_sea_helm([own], Path("exp"))
    results = json.loads(
        next(path for path in files if path.parent.name == "results").read_text()
    )
    assert -100 <= results["id"]["safety"]["forms"] <= 100
    lines = [
        json.loads(line)
        for line in next(Path("exp").rglob("*_colours_id.jsonl"))
        .read_text()
        .splitlines()
    ]
    assert {line["cleaned_responses"] for line in lines} <= {"A", "B", "null"}
    ((back,), _) = import_sea_helm(Path("exp"), Path("back"), task_root=Path(root))
    assert sorted(map(plainly, back.samples()), key=str) == sorted(
        map(plainly, own.samples()), key=str
    )
    hashes = [
        {task["name"]: task["content_hash"] for task in run.data["tasks"]}
        for run in (own, back)
    ]
    assert hashes[0] == hashes[1]
    # Scored again by the rows of the folder, and compared with the run itself.
    assert main(["score", str(back.folder), "--name", "again", "--out", "back"]) == 0
    assert open_run("back/again").task(ID).metrics
    ((ours,), _) = import_sea_helm(
        Path("exp"), Path("ours"), scoring="corrected", task_root=Path(root)
    )
    assert ours.task(ID).metrics[0].estimate.value == pytest.approx(
        own.task(ID).metrics[0].estimate.value
    )
    capsys.readouterr()
    assert main(["compare", "own", str(ours.folder)]) == 0
    # An export of corrected scores is no published one.
    assert back.data["configuration"]["imported"]["scoring"] == "corrected"
    assert back.task(ID).metrics[0].estimate.value == pytest.approx(
        own.task(ID).metrics[0].estimate.value
    )


def test_check_says_what_is_not_whole(capsys: pytest.CaptureFixture[str]) -> None:
    root = write_tree(Path("tree"))
    folder = write_results(
        Path("out") / "acme",
        "acme/tiny",
        ["AABBAB", "AABBBA", "AAB-AB", "AABBAB", "AABBAB"],
        raised=[0],
    )
    next(folder.glob("run_1/**/*_colours_tl.jsonl")).unlink()
    cut = next(folder.glob("run_1/**/*_colours_id.jsonl"))
    cut.write_text("".join(cut.read_text().splitlines(keepends=True)[:4]))
    next(folder.glob("run_3/results/*.json")).write_text("{")
    assert main(["runs", "check", "out", "--json"]) == 1
    found = {
        one["run"]: "; ".join(one["problems"])
        for one in json.loads(capsys.readouterr().out)["runs"]
    }
    assert found["acme/tiny/run_0"] == "its code raised, scored 0: shapes/id"
    assert (
        found["acme/tiny/run_1"]
        == "samples missing: colours/id (2 of 6); tasks missing: colours/tl"
    )
    assert (
        found["acme/tiny/run_2"] == "failures: colours/id (1 of 6), colours/tl (1 of 6)"
    )
    assert found["acme/tiny/run_3"].startswith("damaged: ")
    assert found["acme/tiny/run_4"] == ""
    config = root / "seahelm_tasks/colours/config.yaml"
    config.write_text(config.read_text().replace("1.1", "1.2"))
    assert main(["runs", "check", str(folder / "run_4"), "--task-root", str(root)]) == 1
    assert "version 1.1, now 1.2" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("pattern", "old", "new", "said"),
    [
        ("*_colours_tl.jsonl", '"individual_scores": {', '"individual_scores": "x", "z": {', "not scored"),
        ("*_colours_tl.jsonl", '"responses": [', '"responses": null, "x": [', "failures: colours/tl (6 of 6)"),
        ("*.json", '"normalized_accuracy": ', '"normalized_accuracy": "1", "x": ', "no number in results"),
        ("*_colours_tl.jsonl", "", "", "samples twice: colours/tl (6 of 12)"),
    ],
)  # fmt: skip
def test_check_finds_what_an_import_could_not_use(
    pattern: str, old: str, new: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_results(Path("out") / "acme", "acme/tiny", ["AABBAB"])
    (file,) = folder.rglob(pattern)
    text = file.read_text()
    file.write_text(text.replace(old, new) if old else text * 2)
    assert main(["runs", "check", "out"]) == 1
    assert said in " ".join(capsys.readouterr().out.split())


def test_check_takes_runs_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    root = write_tree(Path("tree"))
    run = [
        "run",
        "sea-helm:mine",
        "--task-root",
        str(root),
        "--model",
        "scripted/hash",
        "--quiet",
        "--name",
    ]
    assert main([*run, "own"]) == main([*run, "cut"]) == main([*run, "gone"]) == 0
    capsys.readouterr()
    assert main(["runs", "check", "own"]) == 0
    assert "No problems found." in capsys.readouterr().out
    for name, text in (("cut", "samples.jsonl"), ("gone", "run.json")):
        file = Path("runs") / name / text
        file.write_text(file.read_text()[:-50])
    rows = root / "seahelm_tasks/colours/tl.jsonl"
    rows.write_text(rows.read_text().replace("tl 0?", "tl 9?"))
    assert main(["runs", "check", "runs", "--json"]) == 1
    found = {
        Path(one["run"]).name: one["problems"]
        for one in json.loads(capsys.readouterr().out)["runs"]
    }
    assert found["own"] == [f"not of today: {TL} (other rows)"]
    assert found["cut"][0].startswith("damaged: ")
    assert found["gone"][0].startswith("damaged: ")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"forms"', '"../../../away"', "which is no name of a file"),
        (
            '"metric": "normalized_accuracy"',
            '"metric": 3',
            "`colours.metric` must be text",
        ),
        ('{"tasks"', '{"taskz"', "no mapping of tasks"),
    ],
)
def test_bad_configurations_are_sentences(
    old: str, new: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_results(Path("out"), "acme/tiny", ["AABBAB"])
    config = next(Path("out").rglob("*.yaml"))
    assert old in config.read_text()
    config.write_text(config.read_text().replace(old, new))
    assert main(["import", "sea-helm", "out"]) == 2
    assert said in capsys.readouterr().err
    assert main(["import", "sea-helm", "nowhere"]) == 2
    assert main(["import", "sea-helm", "home"]) == 2


def test_bad_rows_are_sentences_or_failures(capsys: pytest.CaptureFixture[str]) -> None:
    write_results(Path("out"), "acme/tiny", ["AABBAB"])
    path = next(Path("out").rglob("*_colours_id.jsonl"))
    good = path.read_text().splitlines()
    odd = {
        **json.loads(good[0]),
        "responses": [{"a": 1}],
        "individual_scores": {"x": "y"},
        "prompts": 3,
        "token_usages": 7,
    }
    path.write_text("\n".join([json.dumps(odd), *good[1:]]))
    ((run,), _) = import_sea_helm(Path("out"), Path("runs"))
    assert run.task(ID).failures == {"no score": 1}
    path.write_text("\n".join(["[1]", *good[1:]]))
    assert main(["import", "sea-helm", "out", "--out", "other"]) == 2
    assert "line 1" in capsys.readouterr().err


@pytest.fixture(scope="module")
def server_url() -> Any:
    with serving() as server:
        yield server.url


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag["there"][:40])
def test_each_flag_has_a_command(
    flag: dict[str, Any], server_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_tree(Path("tree"))
    write_results(Path("results"), "acme/tiny", ["AABBAB"])
    line = (
        flag["try"]
        .replace("DIR", str(root))
        .replace("RESULTS", "results")
        .replace("URL", server_url)
    )
    quiet = ["--quiet"] if line.startswith("run ") else []
    code = main([*shlex.split(line), *quiet])
    said = capsys.readouterr()
    assert code == flag.get("exits", 0), said.err
    assert flag.get("says", "") in said.err
    assert "bug in evalwright" not in said.err


def test_the_page_has_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for flag in FLAGS:
        here = flag["here"].replace("](", "](../").replace("](../reference/", "](")
        assert f"| {flag['there']} | {here} |" in page


_JUDGED = "src/metrics/llm_judges/criteria_judge_metric.py", "CriteriaJudgeMetric"


def write_kept(
    folder: Path,
    metric: str,
    of: tuple[str, str],
    scores: Sequence[float],
    number: float,
) -> Path:
    """A result folder beside whose `colours` stands `letters`, whose scores are no labels."""
    place = write_results(folder, "acme/tiny", ["AABBAB"])
    path = next(place.glob("run_0/configs/*"))
    config = json.loads(path.read_text())
    config["tasks"]["letters"] = task(
        "letters", "id", metric=metric, metric_file=of[0], metric_class=of[1]
    )
    judge = {
        "judge_model_name": "judge",
        "judge_prompts": {"criteria_prompt": "x", "system_prompt": "x"},
    }
    config["tasks"]["letters"]["judge"] = {
        **judge,
        "classifications": {"YES": 1, "NO": 0},
    }
    path.write_text(json.dumps(config))
    rows = [
        json.loads(line)
        for line in next(place.glob("run_0/inferences/id/colours/*s_id.jsonl"))
        .read_text()
        .splitlines()
    ]
    lines = [
        {**row, "individual_scores": {metric: score}}
        for row, score in zip(rows, scores, strict=True)
    ]
    path = place / "run_0/inferences/id/letters/tiny_letters_id.jsonl"
    path.parent.mkdir()
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    path = next(place.glob("run_0/results/*"))
    results = json.loads(path.read_text())
    results["id"]["nlu"]["letters"] = {metric: number}
    path.write_text(json.dumps(results))
    return place


@pytest.mark.parametrize(
    ("metric", "of", "scores", "number", "has_interval"),
    [
        ("average_criteria_score", _JUDGED, [0.9, 0.5, 0.3, 0.5, 0.7, 0.5], 56.0 + 2 / 3, True),
        ("normalized_accuracy", ("seahelm_tasks/own.py", "Own"), [1, 1, 1, 1, 0.5, 0], 50.0, False),
        ("normalized_accuracy", ("seahelm_tasks/own.py", "Own"), [90, 80, 0, 10, 20, 40], 40.0, True),
        (
            "normalized_refclipscore",
            ("seahelm_tasks/vision/xm3600/refclipscore_metric.py", "RefClipScoreMetric"),
            [90, 80, 0, 10, 20, 40],
            40.0,
            True,
        ),
    ],
)  # fmt: skip
def test_corrected_the_number_of_recorded_scores_is_that_of_the_results(
    metric: str,
    of: tuple[str, str],
    scores: Sequence[float],
    number: float,
    has_interval: bool,
) -> None:
    write_kept(Path("out") / "acme", metric, of, scores, number)
    ((run,), _) = import_sea_helm(Path("out"), Path("runs"), scoring="corrected")
    found_in = "sea-helm:letters/id"
    found = run.task(found_in).metrics[0]
    assert found.label == metric
    assert found.kind == "accuracy"
    assert found.estimate.value == pytest.approx(number / 100)
    assert (found.estimate.low == found.estimate.low) == has_interval
    kept = [
        next(iter(one.scores.values())).value
        for one in run.samples()
        if one.task == found_in
    ]
    assert kept == pytest.approx(
        [score / (100 if max(scores) > 1 else 1) for score in scores]
    )
    totals = {group.name: group.metrics[0].estimate.value for group in run.groups}
    assert totals["sea-helm:id/nlu"] == pytest.approx((1 + number / 100) / 2)
    export_sea_helm([run], Path("exp"))
    exported = json.loads(next(Path("exp").rglob("run_0/results/*.json")).read_text())
    assert exported["id"]["nlu"]["letters"][metric] == pytest.approx(number)
    assert exported["id"]["nlu"]["total"] == pytest.approx((100 + number) / 2)
    ((again,), _) = import_sea_helm(Path("exp"), Path("again"))
    assert again.task("sea-helm:letters/id").metrics[0].estimate.value == pytest.approx(
        number / 100
    )


def test_runs_of_both_scorings_are_neither_exported_nor_imported_as_one() -> None:
    write_results(Path("out") / "acme", "acme/tiny", ["AABBAB"])
    published, corrected = (
        import_sea_helm(Path("out"), Path(scoring), scoring=scoring)[0][0]
        for scoring in ("published", "corrected")
    )
    with pytest.raises(RunError, match=r"\(published\).*\(corrected\)"):
        export_sea_helm([published, corrected], Path("exp"), over_runs=True)
    assert not Path("exp").exists()
    export_sea_helm([published, published], Path("exp"))
    export_sea_helm([corrected], Path("other"))
    (Path("exp/acme/tiny/run_1")).rename("exp/run_1")
    (Path("other/acme/tiny/run_0")).rename("exp/acme/tiny/run_1")
    with pytest.raises(RunError, match=r"run_0 \(published\) and run_1 \(corrected\)"):
        import_sea_helm(Path("exp/acme"), Path("again"))
    with pytest.raises(RunError, match="both scorings"):
        write_over_runs(sea_files.find_runs(Path("exp/acme"))[0], Path("scores.yaml"))
    assert not Path("scores.yaml").exists()


def _samples_of(place: Path, number: int) -> Path:
    return next(place.glob(f"run_{number}/inferences/id/colours/*s_id.jsonl"))


def test_the_same_rows_in_another_order_are_the_same_rows() -> None:
    place = write_results(Path("out"), "acme/tiny", ["AABBAB", "AABBBA"])
    path = _samples_of(place, 1)
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    ((run,), _) = import_sea_helm(Path("out"), Path("runs"))
    found = [
        one.scores["sea-helm"].value
        for one in run.samples()
        if (one.task, one.draw) == (ID, 1)
    ]
    assert found == [1, 1, 1, 1, 0, 0]


def test_other_rows_are_named_with_runs_file_line_and_what_to_do() -> None:
    place = write_results(Path("out"), "acme/tiny", ["AABBAB", "AABBBA"])
    path = _samples_of(place, 1)
    path.write_text(path.read_text().replace("q3_id", "z3_id"))
    with pytest.raises(
        RunError,
        match=r"run_1 and run_0: .*tiny_colours_id.jsonl:4.*'z3_id'",
    ):
        import_sea_helm(Path("out"), Path("runs"))
    path.write_text(path.read_text().replace("z3_id", "q4_id"))
    with pytest.raises(
        RunError, match=r":4 has the id 'q4_id', and that line is 'q3_id'"
    ):
        import_sea_helm(Path("out"), Path("runs"))
