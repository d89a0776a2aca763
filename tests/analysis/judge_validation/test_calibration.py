"""Judges that err at known rates: the corrected interval covers the truth, and the faults that
were put in are found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from evalwright import (
    Generate,
    Pacing,
    Run,
    ScriptedModel,
    UsageError,
    evaluate,
    score_run,
)
from evalwright.analysis.judge_validation.calibration import (
    calibrate_difference,
    calibrate_judge,
)
from evalwright.analysis.judge_validation.drawing import (
    LabelSet,
    draw_set,
    draw_sets,
    sheet_rows,
    write_set,
)
from evalwright.analysis.judge_validation.verdicts import read_verdicts
from evalwright.core.errors import Overloaded
from evalwright.reports.documents.judges import (
    calibration_document,
    difference_document,
)
from evalwright.reports.labelling import sheet_csv
from evalwright.statistics import brier_score, cohen_kappa, corrected_mean
from evalwright.tasks.loading import task_from_definition
from support.judging import fill_in, judged_run, read_table, simulate
from support.runs import make_run, rewritten

pytestmark = pytest.mark.usefixtures("own_folder")

Labeller = Callable[[Mapping[str, str]], object]


def drawn(
    run: Run, size: int, *, design: str = "random", seed: int = 0
) -> tuple[LabelSet, list[dict[str, str]]]:
    """A set of the run, kept, and its table as people get it."""
    found = draw_set(read_verdicts(run), size, design, seed)  # type: ignore[arg-type]
    write_set(run.folder, found)
    return found, table([(run, found)])


def table(pairs: list[tuple[Run, LabelSet]]) -> list[dict[str, str]]:
    Path("table.csv").write_bytes(sheet_csv(sheet_rows(pairs)).encode())
    return read_table("table.csv")


def labelled(
    rows: list[dict[str, str]],
    label: Labeller,
    file: str = "done.csv",
    labeller: str = "",
) -> str:
    Path(file).write_text(fill_in(rows, label, labeller=labeller))
    return file


def of(truth: list[float]) -> Labeller:
    """A person who is always right about item-0, item-1 ..."""
    return lambda row: f"{truth[int(row['id'].rpartition('-')[2])]:g}"


def test_the_corrected_interval_covers_the_truth_where_the_judge_is_off(
    tmp_path: Path,
) -> None:
    covered = raw = 0
    widths = []
    for seed in range(8):
        truth, judge = simulate(
            1000, rate=0.55, false_yes=0.35, false_no=0.03, seed=seed
        )
        run = make_run(tmp_path / "runs", scores=judge, name=f"run-{seed}")
        _, rows = drawn(run, 150, seed=seed)
        found = calibrate_judge(run, [labelled(rows, of(truth))])
        covered += found.corrected.low <= 0.55 <= found.corrected.high
        raw += found.judge.low <= 0.55 <= found.judge.high
        widths.append(found.narrower)
        assert found.excess.value > 0
        assert found.counts.labelled == 150
    # The seeds are fixed; benchmarks/coverage.py measures the coverage itself.
    assert covered >= 7
    assert raw == 0
    assert 0.05 < float(np.mean(widths)) < 0.5


def test_the_numbers_are_those_of_the_statistics(tmp_path: Path) -> None:
    truth, judge = simulate(400, rate=0.6, false_yes=0.3, false_no=0.1, seed=7)
    run = make_run(tmp_path / "runs", scores=judge, name="run")
    picked, rows = drawn(run, 120)
    found = calibrate_judge(run, [labelled(rows, of(truth))])
    human = np.full(400, np.nan)
    human[list(picked.rows)] = np.array(truth)[list(picked.rows)]
    wanted = corrected_mean(judge, human)
    assert found.corrected == wanted
    assert found.labels_alone.value == pytest.approx(np.nanmean(human))
    kappa = cohen_kappa(
        np.array(judge)[list(picked.rows)], np.array(truth)[list(picked.rows)]
    )
    assert found.faults["agreement"].judge.kappa.value == pytest.approx(kappa.value)
    excess = found.faults["acquiescence"]
    seen = np.array(truth)[list(picked.rows)]
    said = np.array(judge)[list(picked.rows)]
    assert excess.false_yes.value == pytest.approx(said[seen == 0].mean())
    assert excess.false_no.value == pytest.approx(1 - said[seen == 1].mean())
    rates = found.faults["rogan_gladen"]
    assert (rates.sensitivity, rates.n_judged) == (
        pytest.approx(said[seen == 1].mean()),
        280,
    )


def test_what_is_missing_and_what_is_unsure_are_counted_apart_and_full_labels_leave_no_rate() -> (
    None
):
    """Every verdict has a label, so no verdict is left whose rate could be corrected: that is
    the reason given.
    """
    replies = ["7", "8"] * 20 + ["7 or 8"] * 3 + ["broken"] * 2

    def says(request: Generate) -> str:
        return replies[int(str(request.prompt).rpartition("-")[2])]

    def fails(request: Generate, asked: int) -> Exception | None:
        return Overloaded("no") if says(request) == "broken" else None

    model = ScriptedModel(
        says,  # type: ignore[arg-type]
        version="1",
        failures=fails,  # type: ignore[arg-type]
        pacing=Pacing(max_attempts=1),
    )
    rows = [
        {"id": f"item-{i}", "input": f"item-{i}", "target": "7"}
        for i in range(len(replies))
    ]
    task = task_from_definition(
        {"task": "asked", "dataset": {"rows": rows}, "scorers": ["numeric"]}
    )
    (run,) = evaluate(task, model, name="run")
    _, sheet = drawn(run, 43)
    found = calibrate_judge(
        run, [labelled(sheet, lambda row: "1" if row["answer"] == "7" else "0")]
    )
    own = found.as_dict()["judge"]
    assert (own["n"], own["n_missing"], own["n_unsure"]) == (43, 2, 3)
    assert "beside the labelled" in found.unknown["rogan_gladen"]
    assert "judged nothing" not in found.unknown["rogan_gladen"]


def test_stratified_labels_are_weighted(tmp_path: Path) -> None:
    """Graded verdicts near one half are drawn more often, and the mean is right all the same."""
    covered = 0
    plain: list[float] = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        truth = (rng.random(1500) < 0.3).astype(float)
        graded = np.where(
            truth == 1,
            rng.beta(6, 3, 1500),
            np.where(rng.random(1500) < 0.5, 0.01, rng.beta(3, 4, 1500)),
        )
        run = make_run(tmp_path / "runs", scores=graded.tolist(), name=f"run-{seed}")
        picked, rows = drawn(run, 150, design="stratified", seed=seed)
        assert max(picked.probabilities) > 1.5 * min(picked.probabilities)
        found = calibrate_judge(run, [labelled(rows, of(truth.tolist()))])
        covered += found.corrected.low <= 0.3 <= found.corrected.high
        plain.append(float(np.mean(truth[list(picked.rows)])))
        assert "unequal chances" in found.unknown["agreement"]
        assert "unequal chances" in found.unknown["brier"]
    assert covered >= 4
    assert (
        np.mean(plain) - 0.3 > 0.03
    )  # unweighted, the doubtful ones would count too much


def test_graded_verdicts_are_checked_as_probabilities(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    sure = rng.random(600)
    truth = (rng.random(600) < sure).astype(float)
    run = make_run(tmp_path / "runs", scores=sure.tolist(), name="run")
    picked, rows = drawn(run, 200)
    found = calibrate_judge(run, [labelled(rows, of(truth.tolist()))])
    chosen = list(picked.rows)
    assert found.faults["brier"].score.value == pytest.approx(
        brier_score(sure[chosen], truth[chosen]).score.value
    )
    assert not found.faults["calibration_error"].miscalibrated
    assert found.faults["auroc"].value > 0.7
    assert "right or wrong" in found.unknown["acquiescence"]
    assert found.faults["agreement"].ceiling_alpha is None
    json.dumps(found.as_dict(), allow_nan=False)


def test_two_people_and_the_ceiling(tmp_path: Path) -> None:
    truth, judge = simulate(500, rate=0.6, false_yes=0.3, false_no=0.1, seed=2)
    run = make_run(tmp_path / "runs", scores=judge, name="run")
    _, rows = drawn(run, 200)
    rng = np.random.default_rng(0)
    ann = labelled(rows, of(truth), "ann.csv", "Ann")
    bob = labelled(
        rows,
        lambda row: f"{abs(float(str(of(truth)(row))) - (rng.random() < 0.1)):g}",
        "bob.csv",
        "Bob",
    )
    found = calibrate_judge(run, [ann, bob])
    agreement = found.faults["agreement"]
    assert found.counts.labellers == {"Ann": 200, "Bob": 200}
    assert 0.84 < agreement.ceiling.raw.value < 0.96
    assert agreement.gap.value < 0
    assert "several people" in found.unknown["rogan_gladen"]
    assert not [
        note
        for note in calibration_document(found).words()["notes"]
        if "One person" in note
    ]
    assert [file["file"] for file in found.labels] == ["ann.csv", "bob.csv"]


def test_unlabelled_rows_are_counted_and_few_labels_warned_of(tmp_path: Path) -> None:
    truth, judge = simulate(300, rate=0.6, false_yes=0.3, false_no=0.1, seed=2)
    run = make_run(tmp_path / "runs", scores=[*judge, None, None], name="run")
    _, rows = drawn(run, 100)
    names = {row["row"] for row in rows[:20]}
    found = calibrate_judge(
        run, [labelled(rows, lambda row: of(truth)(row) if row["row"] in names else "")]
    )
    assert (found.counts.labelled, found.counts.unlabelled, found.counts.verdicts) == (
        20,
        80,
        300,
    )
    assert any(
        "80 of 100 rows have no label" in note
        for note in calibration_document(found).words()["notes"]
    )
    assert any(
        "20 labels are few" in note
        for note in calibration_document(found).words()["notes"]
    )
    assert any(
        "2 answers could not be drawn" in note
        for note in calibration_document(found).words()["notes"]
    )
    assert found.judge.n_missing == 2


def test_a_judge_that_likes_length_and_wavers() -> None:
    """Draws: two equal answers and a longer one; the judge flips on equal ones and says yes to
    long ones.
    """
    rng = np.random.default_rng(0)
    answers = {
        f"item-{i}": ["short answer", "x" * int(rng.integers(20, 900))]
        for i in range(150)
    }

    def verdict(item: str, text: str) -> str:
        return f"{float(rng.random() < (0.9 if len(text) > 300 else 0.3)):g} 0.9"

    run = judged_run(answers, verdict, name="long")
    _, rows = drawn(run, 200)
    found = calibrate_judge(run, [labelled(rows, lambda row: int(rng.random() < 0.5))])
    effect = found.faults["length"].effects[1]
    assert effect.low > 0
    people = found.faults["length_of_people"].effects[1]
    assert people.low < 0 < people.high
    assert found.faults["brier"].score.n == 200  # the judge's stated confidence
    assert found.corrected.n_clusters == 150  # draws of an item are not independent
    assert "more than once" in found.unknown["repeats"]


def test_equal_answers_that_are_judged_again(tmp_path: Path) -> None:
    """Records of a program without a store: one answer, several verdicts."""
    answers = {f"item-{i}": ["same", "same", "same"] for i in range(40)}
    run = judged_run(answers, lambda item, text: "1", name="again")
    lines = [json.loads(line) for line in run.samples_file.read_text().splitlines()]
    for line in lines:
        line["scores"]["test-scripted-judge"]["value"] = float(
            line["draw"] > 0 or int(line["id"][5:]) % 4 > 0
        )
    run = rewritten(run, "".join(json.dumps(line) + "\n" for line in lines))
    _, rows = drawn(run, 60)
    found = calibrate_judge(run, [labelled(rows, lambda row: 1)])
    assert found.faults["repeats"].unstable.value == pytest.approx(0.25)
    assert found.faults["repeats"].flip_rate.value == pytest.approx(0.25 * 2 / 3)


def test_position_where_both_orders_were_asked(tmp_path: Path) -> None:
    truth, judge = simulate(60, rate=0.6, false_yes=0, false_no=0, seed=2)
    run = make_run(tmp_path / "runs", scores=judge, name="run")
    lines = [json.loads(line) for line in run.samples_file.read_text().splitlines()]
    for number, line in enumerate(lines):
        line["scores"]["score"]["parts"] = {
            "answer_first": 1.0,
            "answer_second": float(number % 3 == 0),
        }
    run = rewritten(run, "".join(json.dumps(line) + "\n" for line in lines))
    _, rows = drawn(run, 30)
    found = calibrate_judge(run, [labelled(rows, of(truth))])
    probe = found.faults["position"]
    assert (probe.both_first, probe.both_second) == (40, 0)


def test_labels_serve_another_judge_of_the_same_answers(tmp_path: Path) -> None:
    truth, judge = simulate(120, rate=0.5, false_yes=0.3, false_no=0.1, seed=2)
    answers = {f"item-{i}": f"answer {value:g}" for i, value in enumerate(truth)}
    run = judged_run(
        answers, lambda item, text: f"{judge[int(item[5:])]:g}", name="first"
    )
    _, rows = drawn(run, 100)
    file = labelled(rows, of(truth))
    again = score_run(run, scorers=["exact-match"], name="second")
    found = calibrate_judge(again, [file])
    assert found.scorer == "exact-match"
    assert found.counts.labelled == 100
    assert any(
        "the run 'first', which has the same answers" in note
        for note in calibration_document(found).words()["notes"]
    )
    other = judged_run(
        {**answers, "item-0": "changed"}, lambda item, text: "1", name="third"
    )
    with pytest.raises(
        UsageError,
        match=r"done.csv, line 2: .* 'third'",
    ):
        calibrate_judge(other, [file])


def pair(
    tmp_path: Path, rates: tuple[float, float], seed: int, design: str = "random"
) -> tuple[Run, Run, str]:
    """Two runs, of which the judge favours the second; both answers of 150 items labelled."""
    truth: list[list[float]] = []
    runs: list[Run] = []
    for name, rate, false_yes in (("a", rates[0], 0.05), ("b", rates[1], 0.6)):
        own, judge = simulate(
            800,
            rate=rate,
            false_yes=false_yes,
            false_no=0.02,
            seed=seed * 2 + len(runs),
        )
        truth.append(own)
        runs.append(
            make_run(
                tmp_path / f"{seed}", scores=judge, name=name, model=f"demo/{name}"
            )
        )
    a, b = runs
    sets = draw_sets(read_verdicts(a), read_verdicts(b), 150, design, seed)  # type: ignore[arg-type]
    for run, found in zip(runs, sets, strict=True):
        write_set(run.folder, found)
    rows = table([(a, sets[0]), (b, sets[1])])
    names = [found.name for found in sets]

    def label(row: Mapping[str, str]) -> str:
        return (
            f"{truth[names.index(row['row'].partition('-')[0])][int(row['id'][5:])]:g}"
        )

    return a, b, labelled(rows, label)


@pytest.mark.parametrize("design", ["random", "stratified"])
def test_the_difference_of_two_runs_where_the_judge_favours_one(
    tmp_path: Path, design: str
) -> None:
    covered = 0
    for seed in range(4):
        a, b, file = pair(tmp_path, (0.7, 0.5), seed, design)
        found = calibrate_difference(a, b, [file])
        assert (
            found.judge.difference < 0.05
        )  # by the judge the two are alike, or b is better
        covered += found.corrected.low <= 0.2 <= found.corrected.high
        assert found.favour.high < 0
        assert found.labelled == 150
        json.dumps(found.as_dict(), allow_nan=False)
    assert covered >= 3
    assert (
        "By people's standards demo/a scores"
        in difference_document(found).words()["conclusion"]
    )


def test_the_table_mixes_two_runs_and_names_neither(tmp_path: Path) -> None:
    _a, _b, file = pair(tmp_path, (0.7, 0.5), 1)
    rows = read_table(file)
    names = [row["row"].partition("-")[0] for row in rows]
    assert len(set(names)) == 2
    assert names[:20] != sorted(names[:20])
    for start in range(0, 300, 20):  # whoever stops early has labelled pairs
        block = [row["id"] for row in rows[start : start + 20]]
        assert all(block.count(item) == 2 for item in block)
    beside = sum(rows[i]["id"] == rows[i + 1]["id"] for i in range(299))
    assert beside < 40
    assert "demo/" not in Path("table.csv").read_text()
