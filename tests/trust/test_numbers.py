"""Numbers that a handed-over `run.json` says, and its samples do not: no board, comparison or
gate takes them.
"""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from evalwright import compare, leaderboard
from evalwright.analysis.gate import judge, parse_gate_rule
from evalwright.core.errors import RunError
from evalwright.core.sealed_files import KEY_FILE
from evalwright.runs import confirmed, score_tables
from evalwright.runs.confirmed import confirm
from evalwright.runs.reader import Run, open_run
from support.runs import edited, make_run, rewrite
from support.typed import typed

N = 40
NUMBER_MAKERS = (
    ("leaderboard", "theirs", "ours"),
    ("leaderboard", "ours", "theirs", "--ratings"),
    ("compare", "ours", "theirs"),
    ("compare", "ours", "theirs", "third"),
    ("compare", "ours", "theirs", "--fail-if", "accuracy is below 0.1"),
    ("compare", "ours", "theirs", "--fail-if", "n_missing is above 30"),
    ("plan", "factual", "--from", "theirs"),
    ("plot", "scores", "theirs", "--into", "p.svg"),
    ("plot", "cost", "theirs", "--into", "p.svg"),
    ("runs", "submit", "make", "theirs", "--into", "sent.json"),
    ("export", "scores", "theirs"),
    ("export", "every-eval-ever", "theirs"),
    ("export", "inspect", "theirs"),
    ("export", "parquet", "theirs"),
    ("export", "hf-results", "theirs"),
    ("export", "eval-results", "theirs", "--dataset", "x/y", "--task-id", "t"),
)


@pytest.fixture(autouse=True)
def _own_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, a home and settings of this test's own, with the runs "theirs", "ours" and
    "third".
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    shares = {"theirs": 0.75, "ours": 0.5, "third": 0.25}
    for name, share in shares.items():
        n_right = round(N * share)
        scores = [1.0] * n_right + [0.0] * (N - n_right)
        make_run(
            tmp_path / "runs",
            scores=scores,
            name=name,
            model=f"demo/{name}",
            domains=["a", "b"],
        )


def main_metric(data: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = data["tasks"][0]["metrics"][0]
    return found


def better(data: dict[str, Any]) -> None:
    """What the issue's forger did: 75.0 becomes 99.0 [99.0, 99.0]."""
    main_metric(data).update(value=0.99, low=0.99, high=0.99)


@pytest.mark.parametrize("words", NUMBER_MAKERS, ids=" ".join)
def test_no_command_takes_a_number_that_the_samples_do_not_give(
    words: tuple[str, ...],
) -> None:
    with edited("runs/theirs") as data:
        better(data)
    before = {path for path in Path().rglob("*") if "home" not in path.parts}
    done = typed(*words)
    assert done.code == 2, done.text
    assert (
        "Run 'theirs', task 'factual': accuracy is 0.99 in run.json, 0.75 from the samples"
        in done.err
    )
    assert "evalwright runs aggregate runs/theirs" in done.err
    assert "99.0" not in done.out
    left = {
        path
        for path in Path().rglob("*")
        if "home" not in path.parts and path.is_file()
    } - before
    assert not left


def test_the_way_out_that_is_named_works() -> None:
    with edited("runs/theirs") as data:
        better(data)
    assert typed("runs", "aggregate", "runs/theirs", "--name", "again").code == 0
    done = typed("leaderboard", "again", "ours", "--json")
    assert done.code == 0
    assert json.loads(done.out)["rows"][0]["tasks"]["factual"]["value"] == 0.75


FORGERIES: dict[str, Any] = {
    "value": lambda data: main_metric(data).update(value=0.99),
    "n": lambda data: main_metric(data).update(n=4000),
    "n_missing of the metric": lambda data: main_metric(data).update(n_missing=7),
    "n_unsure of the metric": lambda data: main_metric(data).update(n_unsure=7),
    "n_samples": lambda data: data["tasks"][0].update(n_samples=4000),
    "n_missing": lambda data: data["tasks"][0].update(n_missing=3),
    "n_unsure": lambda data: data["tasks"][0].update(n_unsure=3),
    "n_judged": lambda data: data["tasks"][0].update(n_judged=3),
    "outcomes": lambda data: data["tasks"][0].update(outcomes={"answered": N + 1}),
    "a slice": lambda data: data["tasks"][0]["slices"]["domain"]["a"][0].update(
        value=0.99
    ),
    "the cost": lambda data: data["usage"].update(answers={"cost": 0.0001}),
}


@pytest.mark.parametrize("kind", [*FORGERIES])
def test_each_figure_of_the_record_is_held_against_the_samples(kind: str) -> None:
    with edited("runs/theirs") as data:
        FORGERIES[kind](data)
    theirs = open_run("runs/theirs")
    ours = open_run("runs/ours")
    for made in (
        lambda: leaderboard([theirs, ours]),
        lambda: compare(theirs, ours),
        lambda: judge(ours, theirs, [parse_gate_rule("accuracy is below 0.1")]),
    ):
        with pytest.raises(RunError, match=r"in run\.json, .* from the samples"):
            made()
    checked = typed("runs", "check", "theirs")
    assert checked.code == 1 and "numbers that its samples do not give" in " ".join(
        checked.out.split()
    )
    shown = typed("runs", "show", "theirs")
    assert shown.code == 0 and "Warning: Run 'theirs'" in shown.err


def test_an_interval_is_the_one_that_the_samples_give() -> None:
    before = leaderboard([open_run("runs/theirs"), open_run("runs/ours")])
    with edited("runs/theirs") as data:
        main_metric(data).update(low=0.7499, high=0.7501, standard_error=0.0001)
        main_metric(data).update(lower_is_better=True)
    assert leaderboard([open_run("runs/theirs"), open_run("runs/ours")]) == before


def test_a_metric_that_no_definition_names_is_not_taken_for_the_samples() -> None:
    with edited("runs/theirs") as data:
        data["tasks"][0]["metrics"].insert(
            0, {**main_metric(data), "label": "truth", "value": 0.99, "n": 40}
        )
    board = leaderboard(
        [open_run("runs/theirs"), open_run("runs/ours")], metric="factual.truth"
    )
    assert board.numbers_from == {
        "theirs": "figures as published, not computed here (factual: truth)"
    }
    assert (
        "demo/theirs: figures as published, not computed here (factual: truth)."
        in board.notes
    )


def text_of(file: Path) -> str:
    """What a file says; of an archive, what is in it."""
    if not zipfile.is_zipfile(file):
        return file.read_text(encoding="utf-8")
    with zipfile.ZipFile(file) as archive:
        return "".join(archive.read(name).decode() for name in archive.namelist())


def test_exports_mark_a_figure_that_is_not_computed_here() -> None:
    """A metric that is not known here stands as recorded: each file says so, without an interval
    or the words of its writer.
    """
    with edited("runs/theirs") as data:
        task = data["tasks"][0]
        for metric in task["metrics"]:
            metric.update(
                kind="our-accuracy",
                value=0.99,
                low=0.98,
                high=0.999,
                standard_error=0.004,
                method="checked by hand",
            )
        for spec in task["metric_specs"]:
            spec.update(kind="our-accuracy")
        data["groups"] = []
    said = "figures as published, not computed here"
    exports = {
        "eval-results": ("--dataset", "x/y", "--task-id", "t"),
        "hf-results": (),
        "every-eval-ever": (),
        "lm-eval": (),
        "inspect": (),
    }
    for name, more in exports.items():
        done = typed("export", name, "theirs", "--out", f"out-{name}", *more)
        assert done.code == 0, done.text
        assert said in " ".join(done.err.split())
        files = [path for path in Path(f"out-{name}").rglob("*") if path.is_file()]
        texts = [" ".join(text.split()) for text in map(text_of, files)]
        (text,) = [text for text in texts if said in text]
        assert "0.99" in text or "99.0" in text, name
        for forged in ("checked by hand", "0.004", "0.98", "0.999", "98.0", "99.9"):
            assert forged not in text, (name, forged)


def test_exports_say_nothing_of_figures_that_are_computed_here() -> None:
    for name in ("hf-results", "every-eval-ever", "lm-eval"):
        assert typed("export", name, "theirs", "--out", "out").code == 0
    for path in Path("out").rglob("*.json"):
        assert (
            "as published" not in path.read_text()
            and "as_published" not in path.read_text()
        )


@pytest.mark.parametrize("score", [5.0, 1.0000001, -0.001])
def test_every_command_says_that_a_score_cannot_be(score: float) -> None:
    rewrite(
        open_run("runs/theirs"),
        lambda row, place: (
            row["scores"]["score"].update(value=score) if place < 5 else None
        ),
    )
    said = "scores of 'score' outside of 0 to 1, which 'accuracy' cannot have"
    for words in (
        ("aggregate", "theirs"),
        ("leaderboard", "theirs"),
        ("runs", "check", "theirs"),
    ):
        done = typed(*words)
        assert done.code == (1 if words[0] == "runs" else 2), done.text
        assert said.split(", which")[0] in " ".join(done.text.split()), done.text
    assert not Path("runs/theirs.aggregated/run.json").exists()


def aggregates_only(name: str) -> None:
    """A run as an import of aggregate results leaves it: numbers of another program, and no
    samples.
    """
    run = open_run(f"runs/{name}")
    rewrite(run, lambda row, place: None)
    run.samples_file.write_text("", encoding="utf-8")
    with edited(run.folder) as data:
        data["samples"] |= {
            "records": 0,
            "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        }
        data["tasks"][0]["definition"]["dialect"] = "another-program"
        data["tasks"][0]["metadata"]["imported"] = "another-program"


def test_imports_of_aggregates_alone_are_marked() -> None:
    aggregates_only("theirs")
    done = typed("leaderboard", "theirs", "ours")
    assert done.code == 0, done.text
    said = "demo/theirs: figures as published, not computed here (factual: accuracy)."
    assert said in " ".join(done.text.split())
    found = json.loads(typed("leaderboard", "theirs", "ours", "--json").out)
    assert found["numbers_from"] == {
        "theirs": said.removeprefix("demo/theirs: ").removesuffix(".")
    }
    assert (
        typed(
            "leaderboard", "theirs", "ours", "--csv", "b.csv", "--json-file", "b.json"
        ).code
        == 0
    )
    assert (
        "figures as published" in Path("b.csv").read_text()
        and "numbers_from" in Path("b.json").read_text()
    )
    assert said in " ".join(typed("runs", "show", "theirs").err.split())
    comparison = typed("compare", "ours", "theirs", "--json")
    assert comparison.code == 0 and "numbers_from" in json.loads(comparison.out)


def test_a_run_of_ours_without_samples_is_refused() -> None:
    aggregates_only("theirs")
    with edited("runs/theirs") as data:
        del data["tasks"][0]["definition"]["dialect"]
    done = typed("leaderboard", "theirs", "ours")
    assert (
        done.code == 2 and "n_samples is 40 in run.json, 0 from the samples" in done.err
    )


# -- tables of this machine
# ---------------------------------------------------------------------------------------------


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run is large enough to be kept."""
    monkeypatch.setattr(score_tables, "LARGE", 1)


@pytest.mark.usefixtures("large")
def test_a_kept_table_saves_reading_and_is_named() -> None:
    first = typed("leaderboard", "theirs", "ours", "--json")
    assert "numbers_from" not in json.loads(first.out)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Run, "score_rows", lambda self: pytest.fail("the samples were read again")
        )
        second = typed("leaderboard", "theirs", "ours", "--json")
    found = json.loads(second.out)
    said = "scores from this machine's table of the same samples"
    assert found.pop("numbers_from") == {"theirs": said, "ours": said}
    assert found == json.loads(first.out)
    assert "2 runs: scores looked up on this machine" in second.err


@pytest.mark.usefixtures("large")
def test_what_is_published_has_the_same_bytes_with_a_kept_table() -> None:
    for name in ("first", "second"):
        files = [f"{name}.{end}" for end in ("md", "html", "csv", "json")]
        options = zip(
            ("--markdown", "--html", "--csv", "--json-file"), files, strict=True
        )
        assert (
            typed(
                "leaderboard",
                "theirs",
                "ours",
                *(word for pair in options for word in pair),
            ).code
            == 0
        )
    for end in ("md", "html", "csv", "json"):
        assert Path(f"first.{end}").read_bytes() == Path(f"second.{end}").read_bytes()


@pytest.mark.usefixtures("large")
def test_a_kept_table_is_of_one_record_and_of_one_content() -> None:
    confirm(open_run("runs/theirs"))
    with edited("runs/theirs") as data:
        better(data)
    with pytest.raises(RunError, match=r"accuracy is 0\.99 in run\.json"):
        confirm(open_run("runs/theirs"))
    # The hash of other samples, which this machine knows, does not make them those of this run.
    with edited("runs/theirs") as data:
        data["samples"]["sha256"] = open_run("runs/ours").verify()
    with pytest.raises(RunError, match="was changed after the run"):
        confirm(open_run("runs/theirs"))


@pytest.mark.usefixtures("large")
def test_size_and_time_that_were_put_back_hide_nothing() -> None:
    file = open_run("runs/theirs").samples_file
    confirm(open_run("runs/theirs"))
    state = file.stat()
    changed = file.read_text().replace('"value":0.0', '"value":1.0')
    with file.open("r+") as opened:
        opened.write(changed)
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert file.stat().st_size == state.st_size and file.stat().st_ino == state.st_ino
    done = typed("leaderboard", "theirs", "ours")
    assert done.code == 2 and "was changed after the run" in done.err


@pytest.mark.usefixtures("large")
def test_a_home_that_came_with_the_runs_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forger runs our own program over a forged record, with his own key, and hands over
    what it kept.
    """
    with edited("runs/theirs") as data:
        better(data)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "the forger's"))
    forged = open_run("runs/theirs")
    confirmed.remember_numbers(forged)
    assert (
        main_metric(dict(confirm(forged).data))["value"] == 0.99
    )  # his machine believes it
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for with_key in (False, True):
        if with_key:
            confirm(open_run("runs/ours"))
            assert (
                tmp_path / "config" / "evalwright" / KEY_FILE
            ).stat().st_mode & 0o777 == 0o600
        done = typed("leaderboard", "theirs", "ours")
        assert (
            done.code == 2
            and "accuracy is 0.99 in run.json, 0.75 from the samples" in done.err
        )


def test_a_table_beside_the_run_is_not_read() -> None:
    """Earlier versions kept `.scores.npz` in the run's folder."""
    Path("runs/theirs/.scores.npz").write_bytes(b"whatever its sender likes")
    assert typed("leaderboard", "theirs", "ours").code == 0
    shutil.rmtree("home", ignore_errors=True)
    assert sorted(path.name for path in Path("runs/theirs").iterdir()) == [
        ".scores.npz", "run.json", "samples.jsonl",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"weight": 2}, "'tasks[0].metric_specs[0]' has 'weight', which no metric has"),
        (
            {"function": "x"},
            "'tasks[0].metric_specs[0]' has 'function', which no metric has",
        ),
        ({"kind": None}, "'tasks[0].metric_specs[0]' has no 'kind'"),
    ],
    ids=str,
)
def test_a_metric_that_is_not_described_as_metrics_are_is_refused(
    change: dict[str, Any], said: str
) -> None:
    with edited(Path("runs/theirs")) as data:
        spec = data["tasks"][0]["metric_specs"][0]
        spec.update(change)
        for key in [key for key in change if change[key] is None]:
            del spec[key]
    for words in (
        ("leaderboard", "theirs", "ours"),
        ("compare", "ours", "theirs"),
        ("aggregate", "theirs"),
    ):
        done = typed(*words)
        assert done.code == 2 and said in done.err and "theirs/run.json" in done.err, (
            done.text
        )
    done = typed("runs", "check", "theirs")
    assert done.code == 1 and said in " ".join(done.text.split()), done.text


def test_a_record_without_its_metrics_is_not_whole() -> None:
    with edited(Path("runs/theirs")) as data:
        data["tasks"][0]["metrics"] = []
    (checked,) = json.loads(typed("runs", "check", "theirs", "--json").out)["runs"]
    assert "metrics missing: factual (accuracy)" in "; ".join(checked["problems"])
    assert typed("runs", "check", "theirs").code == 1


# -- published tables
# -----------------------------------------------------------------------------------------------------


def published(name: str) -> Path:
    done = typed("export", "scores", name)
    assert done.code == 0, done.text
    return Path("published") / name


@pytest.mark.parametrize("metric", ["accuracy", "macro-f1"])
def test_a_published_table_tells_no_right_option_unless_a_metric_is_made_of_it(
    metric: str,
) -> None:
    rows = ", ".join(
        f"{{id: i{n}, q: 'Question {n}?', a: {('red', 'green', 'blue')[n % 3]}}}"
        for n in range(12)
    )
    Path("options.yaml").write_text(
        f"task: options\ndataset: {{rows: [{rows}]}}\n"
        "sample: {input: '{{ q }}', choices: [red, green, blue], target: '{{ a }}'}\n"
        f"scorers: [choice]\nmetrics: [{metric}]\n"
    )
    done = typed(
        "run",
        "options.yaml",
        "--model",
        "scripted/constant",
        "-M",
        "text=B",
        "--name",
        "options",
        "--quiet",
    )
    assert done.code == 0, done.text
    folder = published("options")
    _, *lines = (folder / "scores.jsonl").read_text().splitlines()
    parts = [json.loads(line)["scores"]["choice"].get("parts", {}) for line in lines]
    expected = {"gold", "predicted"} if metric == "macro-f1" else set()
    assert all(
        one.keys() & {"gold", "predicted", "probability"} == expected for one in parts
    )
    before = leaderboard([open_run("runs/options")])
    after = leaderboard([open_run(folder)])
    assert (before.rows[0].overall, before.tasks) == (
        after.rows[0].overall,
        after.tasks,
    )


def test_a_published_table_gives_the_same_numbers_and_is_named() -> None:
    folder = published("theirs")
    assert sorted(path.name for path in folder.iterdir()) == [
        "run.json",
        "scores.jsonl",
    ]
    text = (folder / "scores.jsonl").read_text()
    assert "Question" not in text and "an answer" not in text
    said = "demo/theirs: scores from a published table, not from samples."
    whole = json.loads(
        typed("compare", "ours", "theirs", "--slice", "domain", "--json").out
    )
    done = typed("compare", "ours", str(folder), "--slice", "domain", "--json")
    found = json.loads(done.out)
    assert found.pop("numbers_from") == {
        "theirs": "scores from a published table, not from samples"
    }
    assert found.pop("caveats") == [said]
    assert found == whole
    board = typed("leaderboard", "ours", str(folder))
    assert board.code == 0 and said in " ".join(board.text.split())


@pytest.mark.parametrize(
    "words",
    [
        ("runs", "samples"), ("score",), ("aggregate",), ("view", "--html", "p.html"), ("export", "parquet"),
        ("export", "scores"), ("calibration",), ("runs", "show", "--analysis"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_needs_the_samples_says_that_they_were_not_published(
    words: tuple[str, ...],
) -> None:
    folder = published("theirs")
    done = (
        typed(*words[:2], str(folder), *words[2:])
        if words[0] in ("runs", "export")
        else typed(words[0], str(folder), *words[1:])
    )
    assert done.code == 2, done.text
    assert "was published without its samples" in done.err, done.text


def test_a_published_table_that_does_not_fit_its_record_is_refused() -> None:
    folder = published("theirs")
    with edited(folder) as data:
        better(data)
    done = typed("leaderboard", str(folder), "ours")
    assert (
        done.code == 2
        and "accuracy is 0.99 in run.json, 0.75 from the samples" in done.err
    )
    assert "Ask its publisher" in done.err
    other = published("third")
    shutil.copy(other / "scores.jsonl", folder / "scores.jsonl")
    done = typed("leaderboard", str(folder), "ours")
    assert (
        done.code == 2 and "is not of the samples that run.json describes" in done.err
    )
    (folder / "scores.jsonl").write_text("[]\n")
    done = typed("leaderboard", str(folder), "ours")
    assert done.code == 2 and "is no table of scores by item" in done.err


def test_a_folder_with_samples_is_not_published_into() -> None:
    done = typed("export", "scores", "theirs", "--out", "runs")
    assert done.code == 2 and "has samples" in done.err
