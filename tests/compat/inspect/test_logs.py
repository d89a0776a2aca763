"""Logs that inspect_ai wrote become runs, and runs become such logs; the files are real (see
tests/data/inspect).
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright.analysis.comparison import compare_runs
from evalwright.compat.inspect import log_files as files
from evalwright.compat.inspect.exporting import export_inspect
from evalwright.compat.inspect.importing import import_inspect
from evalwright.compat.inspect.log_files import read_log
from evalwright.compat.inspect.scores import scores_by_scorer
from evalwright.core.errors import RunError
from evalwright.core.samples import SampleRecord
from evalwright.runs.reader import Run, open_run
from evalwright.runs.records import record_row
from support.calling_runs import calling_run
from support.runs import make_run
from support.trajectory_runs import Acted, Reply, bash, fixing, trajectory_run
from support.typed import typed

LOGS = Path(__file__).parents[2] / "data" / "inspect"
pytest.importorskip("pyarrow", reason="the logs are compressed with zstandard")


def imported(name: str, out: Path) -> Run:
    (run,), left = import_inspect(LOGS / name, out)
    assert not left
    return run


def numbers(run: Run) -> dict[str, float]:
    return {
        metric.label: round(metric.estimate.value, 6) for metric in run.tasks[0].metrics
    }


def notes(run: Run) -> str:
    return " ".join(run.data["configuration"]["imported"]["notes"])


def records(run: Run) -> dict[tuple[str, int], SampleRecord]:
    return {(sample.sample.id, sample.draw): sample for sample in run.samples()}


@pytest.mark.parametrize(
    "name",
    [
        "sums",
        "judged",
        "reduced",
        "tools",
        "pictures",
        "errors",
        "letters",
        "first_version",
        "values",
    ],
)
def test_numbers_are_those_of_the_log(name: str, tmp_path: Path) -> None:
    """Made again from the samples' scores; the only one that differs is said, with the reason."""
    file = next(LOGS.glob(f"{name}.*"))
    run = imported(file.name, tmp_path)
    header = read_log(file).header
    results = header["results"]
    scores = results.get("scores") or [{"metrics": results["metrics"]}]
    theirs = sorted(
        round(metric["value"], 6)
        for score in scores
        for metric in score["metrics"].values()
        if metric["name"] in ("accuracy", "mean")
    )
    ours = sorted(numbers(run).values())
    if name == "values":
        theirs.remove(0.833333)
        ours.remove(1.0)
        assert "inspect_ai counts a missing value (null) as 0" in notes(run)
    assert ours == theirs
    assert "in the log and" not in notes(run) or name == "values"


def test_a_sample_is_there_with_all_it_has(tmp_path: Path) -> None:
    run = imported("sums.eval", tmp_path)
    record = records(run)["5", 1]
    assert (record.sample.input, record.sample.targets) == ("What is 10 / 5?", ("2",))
    assert record.sample.metadata["kind"] == "other"
    assert record.answer is not None
    assert record.answer.reasoning == "10 / 5 needs thought"
    assert [
        turn["role"]
        for turn in map(dict, [{"role": turn.role} for turn in _turns(record)])
    ] == [
        "system",
        "user",
    ]
    response = record.answer.responses[-1]
    assert (response.finish_reason, response.usage.reasoning_tokens) == ("length", 3)
    score = record.scores["match"]
    assert (score.value, score.label) in ((1.0, "correct"), (0.0, "incorrect"))
    assert run.data["tasks"][0]["draws"] == 2
    assert run.data["usage"]["usage"]["output_tokens"] == 84
    assert run.data["environment"]["libraries"] == {"inspect_ai": "0.3.285"}
    assert list(run.tasks[0].slices) == ["kind", "level"]


def _turns(record: SampleRecord) -> Any:
    assert record.answer is not None
    return record.answer.prompt


def test_every_kind_of_value(tmp_path: Path) -> None:
    run = imported("values.eval", tmp_path)
    found = records(run)
    words = {
        int(name): (one.scores["words"].value, one.scores["words"].label)
        for (name, _), one in found.items()
    }
    assert words == {
        1: (0.0, "no"), 2: (0.0, "not_attempted"), 3: (0.5, "partial"), 4: (0.25, "0.25"), 5: (0.0, "perhaps"), 6: (1.0, "yes"),
    }  # fmt: skip
    assert "aspects.known" in found["3", 0].score_failures
    failure = found["2", 0].score_failures["points"]
    assert (failure.kind, failure.party, failure.message) == (
        "grader_failed",
        "judge",
        "nothing to grade",
    )
    assert "'perhaps'" in notes(run)
    assert "points.sum 35.0" in notes(run)


def test_reducers(tmp_path: Path) -> None:
    found = numbers(imported("reduced.eval", tmp_path))
    assert found == {
        "accuracy[mean]": 0.708333, "accuracy[pass_at_2]": 0.972222, "accuracy[max]": 1.0, "accuracy[mode]": 0.833333,
        "accuracy[at_least_3]": 0.833333,
    }  # fmt: skip


def test_tools_choices_and_images(tmp_path: Path) -> None:
    called = records(imported("tools.eval", tmp_path))["1", 0]
    turns = _turns(called)
    (call,) = turns[1].tool_calls
    assert (call.name, call.parsed()) == ("add", {"x": 2, "y": 3})
    assert (turns[2].role, turns[2].tool_name, turns[2].text) == ("tool", "add", "5")
    chosen = records(imported("letters.json", tmp_path))["set/1", 0]
    assert (chosen.sample.choices[1], chosen.sample.gold, chosen.sample.targets) == (
        "two",
        (1,),
        ("B",),
    )
    assert chosen.answer is not None and chosen.answer.choice is not None
    image = records(imported("pictures.eval", tmp_path))["p1", 0]
    assert image.sample.targets == ("2", "two")
    assert [image.media_type for turn in _turns(image) for image in turn.images] == [
        "image/png"
    ]


def test_what_failed_and_what_was_cut_short(tmp_path: Path) -> None:
    run = imported("errors.eval", tmp_path)
    failure = records(run)["2", 0].failure
    assert failure is not None
    assert (failure.kind, failure.party) == ("RuntimeError", "task")
    assert run.tasks[0].n_missing == 1
    cancelled = imported("cancelled.eval", tmp_path)
    assert "Its status is 'cancelled', with 4 of 6 samples." in notes(cancelled)
    assert numbers(cancelled) == {"accuracy": 0.666667}
    killed = imported("killed.eval", tmp_path)
    assert "Its status is 'started', with 2 of 6 samples." in notes(killed)


def test_runs_of_logs_are_compared_and_looked_into(tmp_path: Path) -> None:
    done = typed(
        "import", "inspect", str(LOGS / "sums.eval"), "--name", "one", folder=tmp_path
    )
    assert done.code == 0, done.text
    typed(
        "import", "inspect", str(LOGS / "sums.eval"), "--name", "two", folder=tmp_path
    )
    for command in (
        ["runs", "samples", "one"],
        ["runs", "show", "one", "--verify"],
        ["leaderboard", "one", "two"],
    ):
        done = typed(*command, folder=tmp_path)
        assert done.code == 0, done.text
    one, two = (open_run(tmp_path / "runs" / name) for name in ("one", "two"))
    assert compare_runs(one, two).tasks[0].n_differing == 0


@pytest.mark.parametrize(
    "name",
    sorted(path.name for path in LOGS.iterdir() if path.suffix in (".eval", ".json")),
)
def test_round_trip_of_their_logs(name: str, tmp_path: Path) -> None:
    """A log, exported from its run and imported again, gives the same records and numbers."""
    first = imported(name, tmp_path / "one")
    (file,), _ = export_inspect([first], tmp_path / "logs")
    (second,), _ = import_inspect(file, tmp_path / "two")
    assert numbers(second) == numbers(first)
    for key, one in records(first).items():
        again = records(second)[key]
        assert (again.sample.input, again.sample.targets, again.sample.choices) == (
            one.sample.input, one.sample.targets, one.sample.choices,
        )  # fmt: skip
        assert again.scores == one.scores
        assert again.failure == one.failure
        assert again.score_failures == one.score_failures
        assert (again.answer and again.answer.text) == (one.answer and one.answer.text)
    theirs, ours = (
        [_plain(sample) for _, sample in log.samples()]
        for log in map(read_log, (LOGS / name, file))
    )
    assert sorted(ours, key=repr) == sorted(theirs, key=repr)


def _plain(sample: Any) -> Any:
    """What a sample of a log has, as far as both hold it."""
    scores = {
        name: (one["value"], one.get("answer"))
        for name, one in scores_by_scorer(sample).items()
    }
    empty = {} if sample.error else scores
    return (
        str(sample.id),
        sample.epoch,
        sample.target,
        sample.choices,
        str(sorted(empty.items())).replace("nan", "None").replace(".0", ""),
    )


def test_round_trip_of_our_runs(tmp_path: Path) -> None:
    run = make_run(
        tmp_path, scores=[1, 0, None, 0.5], domains=["a", "b"], cluster_size=2
    )
    (file,), _ = export_inspect([run], tmp_path / "logs")
    before = file.read_bytes()
    assert export_inspect([run], tmp_path / "logs")[0] == [file]
    assert file.read_bytes() == before
    header = read_log(file).header
    (score,) = header["results"]["scores"]
    assert (
        score["metrics"]["accuracy"]["value"] == run.tasks[0].metrics[0].estimate.value
    )
    (again,), _ = import_inspect(file, tmp_path / "again")
    assert again.tasks[0].metrics == run.tasks[0].metrics
    assert again.model == run.model
    for one, other in zip(run.samples(), again.samples(), strict=True):
        ours = _held(record_row(one))
        theirs = _held(record_row(other))
        assert theirs == ours


def _held(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = {
        key: value
        for key, value in row.items()
        if key not in ("prompt", "timing", "responses", "strategy")
    }
    failure = (
        {key: row["failure"][key] for key in ("kind", "party", "message")}
        if "failure" in row
        else None
    )
    return {**kept, "failure": failure}


def test_of_several_tries_the_last_is_taken(tmp_path: Path) -> None:
    for place, day in enumerate(("02", "01")):
        data = json.loads((LOGS / "letters.json").read_text(encoding="utf-8"))
        data["eval"]["created"] = f"2026-01-{day}T00:00:00+00:00"
        (tmp_path / f"{place}.json").write_text(json.dumps(data), encoding="utf-8")
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    runs, left = import_inspect(tmp_path, tmp_path / "runs")
    assert [run.data["configuration"]["imported"]["file"] for run in runs] == ["0.json"]
    assert len(left) == 2


def test_a_log_that_cannot_be_read_does_not_keep_the_others_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "letters.json").write_bytes((LOGS / "letters.json").read_bytes())
    (logs / "cut.eval").write_bytes((LOGS / "sums.eval").read_bytes()[:9000])
    done = typed("import", "inspect", "logs")
    assert done.code == 1, done.text
    assert "Not imported: logs/cut.eval cannot be read as an archive" in done.err
    assert len(list((tmp_path / "runs").glob("*/run.json"))) == 1

    (logs / "letters.json").unlink()
    only_broken = typed("import", "inspect", "logs", "--out", "none")
    assert only_broken.code == 2
    assert "cut.eval cannot be read" in only_broken.err
    assert not (tmp_path / "none").exists()


@pytest.mark.skipif(
    hasattr(zipfile, "ZIP_ZSTANDARD"), reason="this Python reads zstandard by itself"
)
def test_a_log_that_needs_a_library_does_not_keep_the_others_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in ("letters.json", "sums.eval"):
        (logs / name).write_bytes((LOGS / name).read_bytes())
    done = typed("import", "inspect", "logs", "--json")
    assert done.code == 1, done.text
    assert "Not imported: Reading logs/sums.eval" in done.err
    assert "pip install" in done.err
    assert len(json.loads(done.out)["runs"]) == 1


LONG_ERROR = (
    "ConnectionError: HTTPConnectionPool(host='models.invalid', port=80): Max retries"
    ' exceeded with url: /v1/chat (Caused by NameResolutionError("Failed to resolve'
    " 'models.invalid' ([Errno -2] Name or service not known)\"))"
)


def test_samples_that_all_failed_are_missing_and_the_error_is_whole(
    tmp_path: Path,
) -> None:
    log = json.loads((LOGS / "letters.json").read_text(encoding="utf-8"))
    log |= {"status": "error", "error": {"message": LONG_ERROR}}
    log.pop("results", None)
    log.pop("reductions", None)
    for logged_sample in log["samples"]:
        logged_sample["scores"] = {}
        logged_sample["error"] = {"message": LONG_ERROR}
    file = tmp_path / "failed.json"
    file.write_text(json.dumps(log), encoding="utf-8")
    (run,), _ = import_inspect(file, tmp_path / "runs")
    assert run.tasks[0].n_samples == run.n_missing > 0
    assert LONG_ERROR in notes(run)
    listed = typed("runs", "list", "--out", str(tmp_path / "runs")).out
    assert f"  {run.n_missing}  " in listed


def hostile(folder: Path, parts: Mapping[str, bytes], name: str = "bad.eval") -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, data in parts.items():
            archive.writestr(part, data)
    return path


HEADER = json.dumps(
    {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}
).encode()
SAMPLE: dict[str, Any] = {
    "id": "a",
    "epoch": 1,
    "input": "?",
    "target": "x",
    "output": {},
    "scores": {},
}


def sample(**more: Any) -> bytes:
    return json.dumps({**SAMPLE, **more}).encode()


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({}, "no header"),
        ({"header.json": b"[]"}, "no log of inspect_ai"),
        (
            {"header.json": b'{"eval": {"task": 3, "model": "m"}}'},
            "names a task and a model",
        ),
        (
            {"header.json": HEADER, "samples/a.json": b"{"},
            "samples/a.json is not valid JSON",
        ),
        (
            {"header.json": HEADER, "samples/a.json": b"[" * 100_000},
            "samples/a.json is not valid JSON",
        ),
        (
            {
                "header.json": HEADER,
                "samples/a.json": sample(
                    metadata=json.loads('{"x":' * 300 + "1" + "}" * 300)
                ),
            },
            "samples/a.json is nested too deeply",
        ),
        (
            {"header.json": HEADER, "samples/a.json": b"[]"},
            "samples/a.json is not an object",
        ),
        (
            {"header.json": HEADER, "samples/a.json": sample(epoch=0)},
            "'epoch' must be a whole number",
        ),
        (
            {"header.json": HEADER, "samples/a.json": sample(id=[1])},
            "'id' must be text",
        ),
        (
            {"header.json": HEADER, "samples/a.json": sample(scores=[])},
            "'scores' must be an object",
        ),
        (
            {
                "header.json": HEADER,
                "samples/a.json": sample(),
                "samples/b.json": sample(),
            },
            "its epoch 1 twice",
        ),
        (
            {"header.json": HEADER, "samples/a/sample.json": sample()},
            "samples in parts",
        ),
        (
            {"header.json": HEADER, "samples/a.json": b" " * (2 << 20)},
            "unpacks to more than",
        ),
        (
            {
                "header.json": HEADER,
                "samples/a.json": sample(
                    attachments={"k": "y" * 10**5}, input=["attachment://k"] * 50
                ),
            },
            "its attachments are more than",
        ),
    ],
)
def test_broken_logs_are_named(
    parts: Mapping[str, bytes],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "MAX_PART_BYTES", 1 << 20)
    path = hostile(tmp_path, parts)
    with pytest.raises(RunError, match=r"bad\.eval") as raised:
        import_inspect(path, tmp_path / "runs")
    assert told in str(raised.value)


def test_a_bomb_of_many_parts_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_LOG_BYTES", 1 << 20)
    parts = {
        f"samples/{place}.json": sample(id=str(place), x="y" * 10**6)
        for place in range(8)
    }
    path = hostile(tmp_path, {"header.json": HEADER, **parts})
    with pytest.raises(RunError, match="unpacks to more than"):
        import_inspect(path, tmp_path / "runs")


def test_a_cut_file_and_one_that_is_no_archive(tmp_path: Path) -> None:
    whole = (LOGS / "sums.eval").read_bytes()
    (tmp_path / "cut.eval").write_bytes(whole[:9000])
    (tmp_path / "text.eval").write_text("hello", encoding="utf-8")
    flipped = bytearray(whole)
    flipped[800:1400] = bytes(600)
    (tmp_path / "flipped.eval").write_bytes(bytes(flipped))
    for name in ("cut.eval", "text.eval", "flipped.eval", "absent.eval"):
        done = typed("import", "inspect", name, folder=tmp_path)
        assert done.code == 2, done.text
        assert name.partition(".")[0] in done.text
        assert "Traceback" not in done.text
    assert not list((tmp_path / "runs").glob("*/run.json"))


def test_hostile_values_stay_values(tmp_path: Path) -> None:
    """Names that lead elsewhere, numbers that are none, control characters, half surrogates."""
    odd = sample(
        id="../../\x1b[31m\ud800",
        metadata={
            "evalwright": {"passages": "x", "failure": 3},
            "inspect_ai": "theirs",
            "n": 1e999,
        },
        scores={
            "s": {"value": float("nan")},
            "t": {"value": float("inf")},
            "u": 7,
            "\u202e": {"value": "\x00"},
        },
        output={
            "choices": [
                {"message": {"content": [3, {"type": []}, "\ud800"]}, "stop_reason": {}}
            ],
            "usage": {"input_tokens": -5},
        },
        error={"message": 9},
        limit={},
    )
    path = hostile(
        tmp_path,
        {
            "header.json": HEADER,
            "samples/../../../../x.json": odd,
            "../evil.json": b"{}",
        },
    )
    (run,), _ = import_inspect(path, tmp_path / "runs")
    assert run.tasks[0].n_samples == 1
    assert not (tmp_path.parent / "evil.json").exists()
    (file,), _ = export_inspect([run], tmp_path / "logs")
    assert file.parent == tmp_path / "logs"
    assert import_inspect(file, tmp_path / "again")[0][0].tasks[0].n_samples == 1


def test_an_unknown_version_of_the_format_is_said(tmp_path: Path) -> None:
    data = json.loads((LOGS / "letters.json").read_text(encoding="utf-8"))
    assert "version" not in notes(imported("letters.json", tmp_path / "known"))
    for version in (99, "two\x1b[31m"):
        (tmp_path / "new.json").write_text(
            json.dumps({**data, "version": version}), encoding="utf-8"
        )
        done = typed(
            "import",
            "inspect",
            "new.json",
            "--name",
            f"new-{len(str(version))}",
            folder=tmp_path,
        )
        assert done.code == 0 and "1 and 2 are known" in " ".join(done.text.split()), (
            done.text
        )
        assert "\x1b" not in done.text


def test_calls_of_tools_are_exported_with_their_results(tmp_path: Path) -> None:
    run = calling_run(tmp_path)
    (file,), _ = export_inspect([run], tmp_path / "logs")
    with zipfile.ZipFile(file) as archive:
        [name] = [name for name in archive.namelist() if name.startswith("samples/")]
        sample = json.loads(archive.read(name))
    roles = [message["role"] for message in sample["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    [call] = sample["messages"][1]["tool_calls"]
    assert (call["function"], call["arguments"]) == ("look_up", {"word": "tide"})
    assert sample["messages"][2]["tool_call_id"] == call["id"]
    assert "error" not in sample["messages"][2]
    assert sample["messages"][4]["error"]["type"] == "unknown"
    [last] = sample["messages"][5]["tool_calls"]
    assert last["arguments"] == {"word": "ebb"}
    assert sample["output"]["choices"][0]["stop_reason"] == "tool_calls"


def test_trajectories_are_exported_with_events_limits_and_times(tmp_path: Path) -> None:
    limited = Acted([Reply("again", [bash("ls", "a")])] * 3, ended="messages")
    run = trajectory_run(tmp_path, [fixing(), limited])
    (file,), _ = export_inspect([run], tmp_path / "logs")
    with zipfile.ZipFile(file) as archive:
        names = sorted(name for name in archive.namelist() if name[:8] == "samples/")
        done, stopped = (json.loads(archive.read(name)) for name in names)
    # The submitting reply is in the conversation already.
    roles = [message["role"] for message in done["messages"]]
    assert roles.count("assistant") == 5
    assert roles[-2:] == ["assistant", "tool"]
    assert [event["function"] for event in done["events"]] == [
        "bash",
        "bash",
        "read_file",
        "write_file",
        "bash",
        "submit",
    ]
    failed = done["events"][1]
    assert failed["working_time"] == 0.4
    assert failed["error"]["type"] == "unknown"
    assert failed["arguments"] == {"command": "python3 -m pytest -q"}
    assert done["total_time"] == done["working_time"] == pytest.approx(8.4)
    assert "limit" not in done
    ours = done["metadata"]["evalwright"]["strategy"]
    assert (ours["ended"], ours["attempts"]) == ("submit", 2)
    assert ours["started_anew"][0]["dollars"] == 0.02
    assert ours["sandbox"] == {"backend": "jail"}
    assert stopped["limit"]["type"] == "message"
    assert len(stopped["events"]) == 3
