"""Makes runs of SEA-HELM's result folders: one for each model, whose numbered runs are its repeats.

Eight runs of a model are eight answers to each question: as repeats they stand in one row of a
board, are compared question by question, and count as one unit each, which runs of their own would
not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from statistics import fmean
from typing import Any

from evalwright import (
    Column,
    EvalwrightError,
    Failure,
    Run,
    Sample,
    SampleRecord,
    Score,
    UsageError,
)
from evalwright.compat import recording
from evalwright.compat.recording import as_mapping, not_scored, number
from evalwright.compat.sea_helm.compiling import OF_TREE
from evalwright.compat.sea_helm.config import Tree, tree_of
from evalwright.compat.sea_helm.conversations import shots_of
from evalwright.compat.sea_helm.metric_classes import METRICS, slices_of
from evalwright.compat.sea_helm.published.scoring import (
    INDIVIDUAL,
    as_published,
    published_metrics,
)
from evalwright.compat.sea_helm.result_rows import (
    answer_of,
    at,
    entries,
    prompt_of,
    score_of,
)
from evalwright.compat.sea_helm.results import (
    NumberedRun,
    check_one_scoring,
    data_of,
    find_runs,
)
from evalwright.compat.sea_helm.samples import Samples
from evalwright.compat.sea_helm.scoring import scoring_of
from evalwright.compat.sea_helm.sea_task import DIALECT, PREFIX, SCORER, Row, SeaTask
from evalwright.extend import (
    ImportDestination,
    ImportFolder,
    MetricSpec,
    RunError,
    RunFacts,
    Scorer,
    TaskTally,
)
from evalwright.statistics import Estimate

_BROKEN = (EvalwrightError, KeyError, TypeError, ValueError, AttributeError, IndexError)
"""What a row of any shape may raise where texts are made of it."""
_ROUNDED = 1e-6
"""How far a recorded number may be from the mean of its rows."""


def import_sea_helm(
    path: Path,
    runs_folder: Path,
    name: str = "",
    *,
    scoring: str = "published",
    task_root: Path | None = None,
) -> tuple[list[Run], list[str]]:
    """Make a run of every model in `path`, under `runs_folder`.

    Returns them, and a sentence for each that was left out.

    path: a results folder, a model's folder in it, or one numbered run. scoring: "published" takes
    scores and numbers as recorded, "corrected" scores the recorded answers again, which is also
    done where the scores are corrected ones of an export of ours. task_root: SEA-HELM's own folder,
    whose rows then stand in the run, so that it is scored again and paired with runs of ours by the
    same rows. Raises RunError where nothing can be imported.
    """
    recording.check_scoring(scoring)
    tree = tree_of([task_root]) if task_root else None
    models = find_runs(path)
    runs = []
    left_out = []
    destination = ImportDestination(runs_folder, name, alone=len(models) == 1)
    for numbered_runs in models:
        try:
            check_one_scoring(numbered_runs)
            files = [file for run in numbered_runs for file in run.files]
            model_scoring = (
                "corrected"
                if any(run.scoring == "corrected" for run in numbered_runs)
                else scoring
            )
            made_from = [
                recording.hash_files(files),
                [file.name for file in files],
                model_scoring,
                bool(tree),
            ]
            parts = [
                numbered_runs[0].stamp[:16],
                *([model_scoring] if model_scoring == "corrected" else ()),
            ]
            place = destination.place(
                numbered_runs[0].model, parts, {"imported": made_from}
            )
            runs.append(_import(numbered_runs, place, model_scoring, tree))
        except RunError as error:
            if destination.alone:
                raise
            left_out.append(str(error))
    if not runs:
        raise RunError(f"Nothing in '{path}' can be imported: {left_out[0]}")
    return runs, left_out


def _import(
    numbered_runs: Sequence[NumberedRun],
    place: ImportFolder,
    scoring: str,
    tree: Tree | None,
) -> Run:
    first = numbered_runs[0]
    model = numbered_runs[0].model
    imported_tasks: list[_Task] = []
    missing: list[dict[str, Any]] = []

    def records() -> Iterator[SampleRecord]:
        # A task at a time: eight runs of everything do not fit in memory.
        for pair in dict.fromkeys(
            pair for run in numbered_runs for pair in run.pairs()
        ):
            task = _Task(numbered_runs, *pair, scoring, tree)
            if not task.samples:
                missing.append(task.facts)
                continue
            imported_tasks.append(task)
            yield from task.records()
            del task.rows, task.samples, task.source
        if not imported_tasks:
            raise RunError(
                f"'{first.folder}' has no samples of a task: nothing in inferences/."
            )

    def finished() -> RunFacts:
        task_records = [task.as_dict(missing) for task in imported_tasks]
        tallies = {task.name: task.tally for task in imported_tasks}
        notes = [note for task in imported_tasks for note in task.notes]
        if missing:
            notes.append(
                f"no samples and no number: {', '.join(facts['name'] for facts in missing)}"
            )
        imported = {
            "format": DIALECT,
            "scoring": scoring,
            "model_name": model,
            "runs": [run.number for run in numbered_runs],
            "notes": notes,
            "published": {task.name: task.recorded for task in imported_tasks},
            "as_recorded": [
                task.name for task in imported_tasks if task.number_is_recorded
            ],
            "totals": {
                f"run_{run.number}": total
                for run in numbered_runs
                if (total := run.total()) is not None
            },
            "git": sorted(
                {
                    str(as_mapping(run.config.get("run_env")).get("seahelm_git_hash"))
                    for run in numbered_runs
                }
            ),
        }
        configuration = {
            "limit": first.arguments.get("limit"),
            "seed": first.config.get("seed"),
            "imported": imported,
            **({"dialect": {"task_root": [str(tree.root)]}} if tree else {}),
        }
        code = {
            "imported": DIALECT,
            "name": model,
            "base": bool(first.arguments.get("is_base_model")),
        }
        began = recording.start_time(
            [first.stamp], [file for run in numbered_runs for file in run.files]
        )
        return RunFacts(
            started=began,
            model=model,
            code=code,
            tasks=task_records,
            configuration=configuration,
            tallies=tallies,
        )

    return place.write(records(), finished)


class _Task:
    """One task in one language over all runs: its rows, its records, and what they add up to."""

    def __init__(
        self,
        numbered_runs: Sequence[NumberedRun],
        task: str,
        language: str,
        scoring: str,
        tree: Tree | None,
    ) -> None:
        pair = task, language
        self.name = f"{PREFIX}{task}/{language}"
        self.scoring = scoring
        self.tree = tree
        self.runs = [run for run in numbered_runs if pair in set(run.pairs())]
        config = dict(self.runs[-1].config["tasks"][task])
        config["languages"] = {language: config["languages"][language]}
        root, constants = (tree.root, tree.constants) if tree else (None, {})
        base = bool(self.runs[0].arguments.get("is_base_model"))
        self.sea = SeaTask(*pair, config, root, base, scoring == "published")
        self.shots = shots_of(self.sea, None, constants) or 0
        self.rows = [run.rows(*pair) for run in self.runs]
        results = [run.numbers(*pair) for run in self.runs]
        self.raised = {
            draw: str(numbers["error"])
            for draw, numbers in enumerate(results)
            if "error" in numbers
        }
        self.numbers = list(map(_flat, results))
        self.recorded = [numbers.get(self.sea.metric) for numbers in self.numbers]
        """The number of each run as published, 0 where its code raised."""
        of_tree = {key: config[key] for key in OF_TREE if config.get(key)}
        self.facts = {"name": self.name, "task": task, "language": language, **of_tree}
        self.errors = 0
        self.notes: list[str] = []
        self.samples, self.source = self._samples()
        for draw, (run, rows) in enumerate(zip(self.runs, self.rows, strict=True)):
            if draw in self.raised:
                continue
            n = len(self.samples)
            lacks = [] if self.numbers[draw] else ["no results"]
            if len(rows) < n:
                lacks.append(f"{len(rows)} of {n} answers")
            if lacks:
                self.notes.append(
                    f"{self.name}: run {run.number} has {' and '.join(lacks)}; what is"
                    " there counts"
                )
        self.content_hash = self.source.content_hash if self.samples else ""
        self._note_rows()
        self.row_factor = 1.0
        self.number_is_recorded = False
        self.scorer, self.specs = self._rules()
        self.tally = TaskTally([self.scorer.name], slices_of(self.sea))

    def _samples(self) -> tuple[list[Sample], Samples]:
        longest = max(
            self.rows, key=lambda rows: (bool(rows and data_of(rows[0])), len(rows))
        )
        own_source = Samples(self.sea, 0, "")
        own_source.rows = rows = [data_of(row) for row in longest]
        place_of = {
            name: row_index for row_index, row in enumerate(rows) if (name := _id(row))
        }
        if len(place_of) == len(
            rows
        ):  # without an id, or with one twice, rows are known by their places alone
            self.rows = [_in_order_of(place_of, draw_rows) for draw_rows in self.rows]
        for draw, draw_rows in enumerate(self.rows):
            for row_index, row in enumerate(draw_rows):
                if _id(data_of(row)) not in ("", _id(rows[row_index])):
                    raise self._other_rows(draw, row_index, longest)
        source = (self._today(rows) if rows or self.raised else None) or own_source
        if rows or not self.raised:
            return [
                _sample(source, index, self.rows) for index in range(len(rows))
            ], source
        if source is own_source:
            return [
                Sample("all rows")
            ], own_source  # nothing was answered, and one failure stands for all
        limit = self.runs[0].arguments.get("limit")
        return list(islice(source, limit if isinstance(limit, int) else None)), source

    def _other_rows(self, draw: int, place: int, longest: Sequence[Row]) -> RunError:
        """The error for a row that is not that of another run at its place."""
        with_most = next(
            at for at, rows in enumerate(self.rows) if len(rows) == len(longest)
        )
        run = self.runs[draw]
        longest_run = self.runs[with_most]
        row_id = _id(data_of(self.rows[draw][place]))
        longest_id = _id(data_of(longest[place]))
        often = Counter(_id(data_of(row)) for row in longest)
        twice = [name for name, count in often.items() if count > 1][:3]
        named = (
            f" The ids {', '.join(map(repr, twice))} are there twice, so rows are not"
            " matched by id."
        )
        pair = self.sea.name, self.sea.language
        return RunError(
            f"'{run.folder.parent}': the rows of '{self.name}' differ between"
            f" run_{run.number} and run_{longest_run.number}: {run.file(*pair)}:{place + 1}"
            f" has the id '{row_id}', and that line is '{longest_id}' in"
            f" run_{longest_run.number}.{named if twice else ''} Import one run by itself"
            f" (its folder run_{run.number}), or move that file of the task out of the"
            " folder, which leaves it out of that run."
        )

    def _note_rows(self) -> None:
        """Say which runs lack rows, and how many rows have an id that another one has."""
        for draw, (run, rows) in enumerate(zip(self.runs, self.rows, strict=True)):
            lost = len(self.samples) - len(rows)
            if lost > 0 and draw not in self.raised:
                self.notes.append(
                    f"{self.name}: run {run.number} lacks {lost} of {len(self.samples)}"
                    " samples"
                )
        often = Counter(
            name for row in max(self.rows, key=len) if (name := _id(data_of(row)))
        )
        if repeated := sum(count for count in often.values() if count > 1):
            twice = ", ".join(
                repr(name) for name, count in often.most_common(3) if count > 1
            )
            self.notes.append(
                f"{self.name}: {repeated} rows share their id with another ({twice});"
                " each is a sample"
            )

    def _today(self, rows: Sequence[Row]) -> Samples | None:
        """The rows of SEA-HELM's folder, where they are those of the files."""
        if self.tree is None:
            return None
        try:
            if self.sea.language not in self.tree.languages(self.sea.name):
                raise KeyError(self.sea.language)
            today = Samples(self.sea, self.shots, "")
            if all(
                not row or _content(row) == _content(today.rows[row_index])
                for row_index, row in enumerate(rows)
            ):
                return today
            why = "the rows of --task-root are others, so those of the files are kept"
        except _BROKEN as error:
            why = f"its rows cannot be read in --task-root ({error})"
        self.notes.append(f"{self.name}: {why}")
        return None

    def _rules(self) -> tuple[Scorer, list[MetricSpec]]:
        """Corrected: scorers and metrics of ours, but for those that send requests; published: what
        is recorded.
        """
        recorded_scorer = Scorer(
            SCORER, DIALECT, {"scoring": self.scoring, "recorded": True}, not_scored
        )
        if self.scoring == "published":
            names = [self.sea.metric, *chain.from_iterable(self.numbers)]
            return recorded_scorer, [
                *published_metrics(names, self._estimate),
                INDIVIDUAL,
            ]
        is_share = self.sea.scored_by in METRICS or self.sea.metric.startswith(
            "normalized_"
        )
        of_rows = MetricSpec(
            self.sea.metric, "accuracy" if is_share else "mean", SCORER
        )
        try:
            (scorer,), specs = scoring_of(self.sea, self.source.rows)
            if not scorer.asks:
                return scorer, list(specs)
            why = "come from another model, and are those recorded"
            of_rows = specs[0]
        except (*_BROKEN, UsageError) as error:
            why = f"are those recorded ({error})"
        scale, self.number_is_recorded = self._scale_of_rows(of_rows)
        if self.number_is_recorded:
            why += (
                "; its number is the recorded one, without an interval: it is not their"
                " mean"
            )
        self.notes.append(f"{self.name}: its scores {why}")
        greatest = 100.0 if is_share else 1.0
        self.row_factor = 1.0 if self.number_is_recorded else scale
        if is_share:
            self.row_factor = scale / 100
        if self.number_is_recorded:
            of_rows = replace(
                of_rows, function=partial(self._recorded_estimate, greatest)
            )
        return recorded_scorer, [of_rows]

    def _scale_of_rows(self, of_rows: MetricSpec) -> tuple[float, bool]:
        """By what a recorded row's score is multiplied to be on the number's scale, and whether the
        number is no mean of them.
        """
        means: list[tuple[float, float]] = []
        highest = 0.0
        for draw, rows in enumerate(self.rows):
            groups: dict[str, list[float]] = {}
            for row in rows:
                score = score_of(row, self.sea.metric)
                if isinstance(score, Failure):
                    continue
                over = str(of_rows.options.get("over", ""))
                groups.setdefault(
                    str(as_mapping(row.get("metadata")).get(over)), []
                ).append(score.value)
                highest = max(highest, score.value)
            recorded = self.recorded[draw]
            if groups and recorded is not None and draw not in self.raised:
                means.append((fmean(map(fmean, groups.values())), recorded))
        if not means:  # no results beside them
            return 100.0 if highest <= 1 else 1.0, self.sea.scored_by not in METRICS
        for scale in (100.0, 1.0):
            if all(
                math.isclose(scale * mean, recorded, abs_tol=_ROUNDED)
                for mean, recorded in means
            ):
                return scale, False
        return 100.0 if highest <= 1 else 1.0, True

    def _recorded_estimate(self, greatest: float, column: Column) -> Estimate:
        """The mean of what the runs recorded, as a share of `greatest`; none where the code raised
        in all of them.
        """
        worked = [
            number_of_run
            for draw, number_of_run in enumerate(self.recorded)
            if draw not in self.raised and number_of_run is not None
        ]
        n = len(column.values)
        lost = column.n_missing
        if not worked:
            return as_published(math.nan, n, lost)
        return as_published(
            fmean(worked) / greatest, n, lost, "no interval (as recorded)"
        )

    def _estimate(self, label: str, column: Column) -> Estimate:
        """The mean of what the runs recorded, without those whose code raised."""
        worked = [
            numbers
            for draw, numbers in enumerate(self.numbers)
            if draw not in self.raised
        ]
        labelled = [numbers[label] for numbers in worked if label in numbers]
        n = len(column.values)
        lost = column.n_missing
        if not labelled and self.raised and label == self.sea.metric:
            first = next(iter(self.raised.values()))
            return as_published(0.0, 0, n + lost, f"failed, published as 0: {first}")
        return as_published(
            sum(labelled) / len(labelled) if labelled else math.nan, n, lost
        )

    def records(self) -> Iterator[SampleRecord]:
        """The records in the order of rows and runs."""
        for sample_index, sample in enumerate(self.samples):
            for draw, rows in enumerate(self.rows):
                if sample_index < len(rows) or draw in self.raised:
                    empty = SampleRecord(
                        self.name, sample_index, draw, sample, None, {}
                    )
                    record = self._record(empty, at(rows, sample_index))
                    self.tally.add(record)
                    yield record

    def _record(
        self, empty: SampleRecord, row: Mapping[str, Any] | None
    ) -> SampleRecord:
        """A record with what became of its sample. row: None where nothing was written."""
        raised = None
        if why := self.raised.get(empty.draw):
            raised = Failure(
                "SEA-HELM's own code raised",
                "task",
                f"{why}. The published number is 0.",
            )
        if row is None:
            return replace(empty, failure=raised)
        answer = answer_of(row)
        if isinstance(answer, Failure):
            self.errors += 1
            return replace(empty, failure=answer)
        score: Any
        try:
            if self.scorer.function is not_scored:
                score = raised or self._scaled(score_of(row, self.sea.metric))
            else:
                score = self.scorer.function(empty.sample, answer)
        except _BROKEN as wrong:
            kind = getattr(wrong, "kind", "scoring failed")
            score = Failure(kind, "scorer", str(wrong) or type(wrong).__name__)
        answered = replace(empty, answer=answer)
        named = {self.scorer.name: score}
        if isinstance(score, Failure):
            return replace(answered, score_failures=named)
        return replace(answered, scores=named)

    def _scaled(self, score: Score | Failure) -> Score | Failure:
        """A recorded score on the scale of the metric."""
        if isinstance(score, Failure) or self.row_factor == 1.0:
            return score
        parts = {name: value * self.row_factor for name, value in score.parts.items()}
        return replace(score, value=score.value * self.row_factor, parts=parts)

    def as_dict(self, missing: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The task's part of `run.json`."""
        config = self.sea.config
        args = self.runs[0].arguments
        if self.raised:
            runs = ", ".join(str(self.runs[draw].number) for draw in self.raised)
            self.notes.append(
                f"{self.name}: SEA-HELM's code raised in run {runs}: failed, published"
                " as 0"
            )
        if self.errors:
            lost = f"{self.errors} without a reply: failed, published as empty answers"
            self.notes.append(f"{self.name}: {lost}")
        version = str(as_mapping(config.get("metadata")).get("version", "1"))
        definition = {
            **self.facts,
            "left_out": list(missing),
            "set": "",
            "scoring": self.scoring,
            "base_model": self.sea.base,
            "reasoning": bool(args.get("is_reasoning_model")),
            "num_fewshot": self.shots,
            "runs": len(self.runs),
            "seeds": [run.config.get("seed") for run in self.runs],
            "generation": {},
            "max_tokens": self.sea.language_settings.get("max_tokens"),
            "tokenizer": "",
            "config": config,
            "fails": "",
        }
        subject = (
            f"{config.get('name', self.sea.name)} ({self.sea.language}),"
            f" {config['competency']}"
        )
        return recording.task_record(
            self.tally.result(self.name, version, self.specs),
            DIALECT,
            description=f"{subject}; imported from SEA-HELM",
            definition=definition,
            content_hash=self.content_hash,
            scorers=[(self.scorer.name, self.scorer.kind, self.scorer.options)],
            metrics=self.specs,
            slice_keys=slices_of(self.sea),
            metadata={
                "dialect": DIALECT,
                "scoring": self.scoring,
                "language": self.sea.language,
            },
            draws=len(self.runs),
        )


# -- rows ------------------------------------------------------------------------------


def _id(row: Row) -> str:
    return "" if row.get("id") is None else str(row["id"])


def _in_order_of(
    place_of: Mapping[str, int], rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The rows in the order of others with the same ids; as they are where an id is another one or
    there twice.
    """
    places = [place_of.get(_id(data_of(row)), -1) for row in rows]
    if (
        -1 in places
        or len(set(places)) < len(places)
        or sorted(places) != list(range(len(places)))
    ):
        return rows
    return [
        row
        for _, row in sorted(zip(places, rows, strict=True), key=lambda pair: pair[0])
    ]


def _content(row: Row) -> tuple[Any, ...]:
    """What makes two rows the same: their id, label and texts."""
    turns = row.get("prompts") or ()
    texts = [
        {key: str(value) for key, value in turn.items() if value is not None}
        for turn in turns
    ]
    return _id(row), row.get("label"), texts


def _sample(
    source: Samples, place: int, rows: Sequence[Sequence[Mapping[str, Any]]]
) -> Sample:
    """The sample as a run of ours has it; where its texts cannot be made, by what was sent."""
    try:
        return source[place]
    except _BROKEN:
        row = next(run_rows[place] for run_rows in rows if place < len(run_rows))
    sent = prompt_of(row)
    task = source.task
    targets = tuple(str(label) for label in entries(row, "label") if label is not None)
    facts = {
        "language": task.language,
        "competency": str(task.config["competency"]),
        "index": place,
    }
    question = sent[-1].text if sent else ""
    return Sample(
        _id(row) or f"#{place}",
        question,
        targets,
        metadata={**facts, "row": data_of(row)},
    )


def _flat(numbers: Mapping[str, Any], ahead: str = "") -> dict[str, float]:
    """Numbers by name, what is nested with dots, [right, all] as two; seconds are none."""
    flat: dict[str, float] = {}
    for key, value in numbers.items():
        if key == "inference_time_taken":
            continue
        if isinstance(value, list) and len(value) == 2:
            value = dict(zip(("correct", "total"), value, strict=True))
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{ahead}{key}.")
        elif (figure := number(value)) is not None:
            flat[f"{ahead}{key}"] = figure
    return flat
