"""Writes runs of SEA-HELM's tasks as SEA-HELM writes its own results, so that its notebooks and its
Elo read them.

A repeat is a numbered run. Numbers are on SEA-HELM's scale, 0 to 100; totals are by its arithmetic.
What failed has a null where its score would be, and a task without a number 0 and an error, as
there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from evalwright import Message, Run, SampleRecord, __version__
from evalwright.compat.recording import writing
from evalwright.compat.sea_helm.aggregation import ERROR, result_of, with_totals
from evalwright.compat.sea_helm.metric_classes import METRICS
from evalwright.compat.sea_helm.over_runs import write_over_runs
from evalwright.compat.sea_helm.result_rows import REPLY, USAGE, at
from evalwright.compat.sea_helm.results import NumberedRun, check_names, file_of
from evalwright.compat.sea_helm.scoring import scoring_of
from evalwright.compat.sea_helm.sea_task import DIALECT, SCORER, SeaTask
from evalwright.extend import (
    ExportSummary,
    MetricSpec,
    RunError,
    TaskTally,
    require_scores,
    resolve_path,
    to_json,
    write_text,
)


def export_sea_helm(
    runs: Sequence[Run], out: Path, *, over_runs: bool = False
) -> ExportSummary:
    """Write runs under `out/{organisation}/{model}/run_{n}`; return the files and what to know.

    Raises RunError.

    over_runs: whether the numbers of SEA-HELM's notebook over all numbered runs of a model stand
    beside them. Several runs of one model, and the repeats of each, are numbered in the order
    given.
    """
    require_scores(runs, "export")
    _check_one_scoring(runs)
    if over_runs:
        _check_samples(runs)
    files: list[Path] = []
    notes: list[str] = []
    models: dict[Path, tuple[str, int]] = {}
    for run in runs:
        with _whole_definitions(run):
            sea_helm_tasks = [
                task
                for task in run.data["tasks"]
                if task["definition"].get("dialect") == DIALECT
            ]
            if not sea_helm_tasks:
                raise RunError(
                    f"The run '{run.id}' has no task of SEA-HELM, so there is nothing"
                    " to write."
                )
            if others := len(run.data["tasks"]) - len(sea_helm_tasks):
                notes.append(
                    f"{run.id}: {others} of its tasks are no tasks of SEA-HELM and are"
                    " left out."
                )
            organisation, model = ("models", *PurePosixPath(run.model).parts)[-2:]
            check_names(run.folder, organisation, model)
            folder = out / organisation / model
            name, start = models.get(folder, (run.model, 0))
            if name != run.model:
                two_models = f"'{name}' and '{run.model}'"
                raise RunError(
                    f"{two_models} have one folder there, '{folder}': export them to two with"
                    " --out."
                )
            written = _Export(run, sea_helm_tasks, folder, start)
            with writing(folder):
                files += written.write()
        models[folder] = run.model, start + written.draws
        notes += written.notes
    for folder, (_, count) in models.items() if over_runs else ():
        numbered = [NumberedRun(folder / f"run_{number}") for number in range(count)]
        path = folder / f"{folder.name}_scores.yaml"
        notes += write_over_runs(numbered, path)
        files.append(path)
    return ExportSummary(files, notes)


@contextmanager
def _whole_definitions(run: Run) -> Iterator[None]:
    """Around what takes the definitions of a run's tasks at their word.

    Raises RunError where one is not whole.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"The definition of a task in {run.folder / 'run.json'} is broken, so its"
            f" answers cannot be scored or averaged again ({type(error).__name__}:"
            f" {error}). Restore the file, or make the run again: its answers are in"
            " the store."
        ) from error


def _check_one_scoring(runs: Sequence[Run]) -> None:
    """Raise RunError where published and corrected runs of one model would be numbered together."""
    by_model: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        for task in run.data["tasks"]:
            facts = task["definition"]
            if facts.get("dialect") == DIALECT:
                named = by_model.setdefault(run.model, {}).setdefault(
                    str(facts.get("scoring")), []
                )
                named += [] if run.id in named else [run.id]
    for model, by_scoring in by_model.items():
        if len(by_scoring) > 1:
            which = " and ".join(
                f"{', '.join(names)} ({scoring})"
                for scoring, names in by_scoring.items()
            )
            raise RunError(
                f"The runs of '{model}' are of both scorings, {which}, and their"
                " numbers are not made in the same way. Export each scoring by itself,"
                " to a folder of its own (--out)."
            )


def _check_samples(runs: Sequence[Run]) -> None:
    """Raise RunError where the runs of one model have not as many samples of a task, over which the
    notebook has no numbers.
    """
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for run in runs:
        for task in run.data["tasks"]:
            if task["definition"].get("dialect") == DIALECT and task["n_samples"]:
                counts.setdefault((run.model, task["name"]), {})[run.id] = int(
                    task["n_samples"]
                )
    for (model, name), by_run in counts.items():
        if len(set(by_run.values())) > 1:
            which = ", ".join(f"'{run}' has {n:,}" for run, n in by_run.items())
            raise RunError(
                f"The numbers over runs of '{model}' cannot be made: of {name} {which}"
                " samples. Complete the run that lacks samples, leave it out, or leave"
                " out --over-runs."
            )


class _Export:
    """One run. start: the number of its first repeat."""

    def __init__(
        self, run: Run, tasks: Sequence[Mapping[str, Any]], folder: Path, start: int
    ) -> None:
        self.run = run
        self.folder = folder
        self.start = start
        self.tasks = {task["name"]: task for task in tasks}
        self.draws = max(int(task["draws"]) for task in tasks)
        began = datetime.fromisoformat(str(run.data["started"])).replace(tzinfo=None)
        self.stamp = began.isoformat(timespec="microseconds")
        self.results: list[dict[str, Any]] = [{} for _ in range(self.draws)]
        self.notes: list[str] = []

    def write(self) -> list[Path]:
        """Write everything, a run's results last."""
        files = [self._config(draw) for draw in range(self.draws)]
        for name, records in groupby(
            self.run.samples(), key=lambda record: record.task
        ):
            if name in self.tasks:
                files += self._task(self.tasks[name], list(records))
        for draw, numbers in enumerate(self.results):
            results, raised = with_totals(numbers, list(self.tasks.values()))
            if raised:
                why = f"SEA-HELM's own aggregation raises {raised}"
                self.notes.append(f"{self.run.id}: no totals, because {why}.")
            files.append(
                self._put(
                    draw,
                    "results",
                    "seahelm_results",
                    "json",
                    to_json(results, indent=2),
                )
            )
        return files

    def _at(self, draw: int) -> Path:
        return self.folder / f"run_{self.start + draw}"

    def _put(self, draw: int, part: str, what: str, ending: str, text: str) -> Path:
        path = (
            self._at(draw) / part / f"{self.folder.name}_{what}_{self.stamp}.{ending}"
        )
        others = [
            path_there.name
            for path_there in path.parent.glob(f"*.{ending}")
            if path_there != path
        ]
        if others:
            raise RunError(
                f"'{path.parent}' has the files of another run ({others[0]}): choose"
                " another --out."
            )
        return _written(path, text)

    def _config(self, draw: int) -> Path:
        tasks: dict[str, Any] = {}
        for task in self.tasks.values():
            facts = task["definition"]
            config = task["definition"]["config"]
            group = config.get("aggregation_group") or facts["task"]
            check_names(self.run.folder, facts["task"], facts["language"], group)
            if draw < task["draws"]:
                task_entry = tasks.setdefault(
                    facts["task"], {**config, "languages": {}}
                )
                task_entry["languages"] |= config["languages"]
        first = next(iter(self.tasks.values()))["definition"]
        configuration = self.run.data["configuration"]
        seeds = first.get("seeds") or [configuration.get("seed")]
        config = {
            "tasks": tasks,
            "seed": seeds[min(draw, len(seeds) - 1)],
            "run_number": self.start + draw,
            "run_env": {
                "env_info": f"evalwright {__version__}",
                "seahelm_git_hash": None,
                "scoring": first["scoring"],
            },
            "run_args": {
                "model_name": self.run.model,
                "inference_strategy": None,
                "is_base_model": bool(first.get("base_model")),
                "is_vision_model": False,
                "is_reasoning_model": bool(first.get("reasoning")),
                "fewshot_as_multiturn": True,
                "tokenize_prompts": False,
                "skip_task": [],
                "limit": configuration.get("limit"),
                "no_batching": False,
                "sandbox_type": None,
            },
        }
        text = yaml.safe_dump(config, allow_unicode=True, sort_keys=False, width=10**6)
        return self._put(draw, "configs", "run_config", "yaml", text)

    def _task(
        self, task: Mapping[str, Any], records: Sequence[SampleRecord]
    ) -> Iterator[Path]:
        """Its samples, its replies turn by turn, and its numbers, of each repeat."""
        facts = task["definition"]
        config = task["definition"]["config"]
        specs = _specs(task, records)
        for draw in range(int(task["draws"])):
            draw_records = [record for record in records if record.draw == draw]
            numbers = self._numbers(task, draw_records, draw, specs)
            place = (
                self.results[draw]
                .setdefault(facts["language"], {})
                .setdefault(config["competency"], {})
            )
            place[facts["task"]] = {
                **numbers,
                "inference_time_taken": [None],
                "is_cached": [True],
            }
            file = partial(
                file_of,
                self._at(draw),
                self.folder.name,
                facts["task"],
                facts["language"],
                config,
            )
            lines = [_line(record, config) for record in draw_records]
            for turn in range(
                max((len(line["responses"]) for line in lines), default=1)
            ):
                replies = [
                    {key: at(line[key], turn) for key in _OF_TURNS} for line in lines
                ]
                yield _written(file(turn + 1), _text(replies))
            yield _written(file(), _text(lines))

    def _numbers(
        self,
        task: Mapping[str, Any],
        records: Sequence[SampleRecord],
        draw: int,
        specs: Sequence[MetricSpec],
    ) -> dict[str, Any]:
        metric: str = task["definition"]["config"]["metric"]
        imported = self.run.data["configuration"].get("imported") or {}
        recorded = (imported.get("published") or {}).get(task["name"])
        is_recorded = task["name"] in imported.get("as_recorded", ())
        if recorded and (is_recorded or imported.get("scoring") == "published"):
            numbers: dict[str, Any] = (
                {metric: recorded[draw]} if recorded[draw] is not None else {}
            )
        elif not specs:
            numbers = result_of(task)
        else:
            tally = TaskTally([SCORER], task["slice_keys"], records)
            numbers = result_of(
                tally.result(task["name"], task["version"], specs).as_dict()
            )
        return (
            numbers
            if any(record.scores for record in records)
            else {**numbers, metric: 0, "error": ERROR}
        )


def _specs(
    task: Mapping[str, Any], records: Sequence[SampleRecord]
) -> Sequence[MetricSpec]:
    """What makes the numbers of one repeat; nothing where those of all repeats do."""
    facts = task["definition"]
    if task["draws"] == 1 or any(
        scorer["name"] != SCORER for scorer in task["scorers"]
    ):
        return ()
    if facts["scoring"] != "published":
        return [MetricSpec(**spec) for spec in task["metric_specs"]]
    sea = SeaTask(
        facts["task"],
        facts["language"],
        facts["config"],
        None,
        facts["base_model"],
        True,
    )
    rows = {
        record.index: record.sample.metadata["row"]
        for record in records
        if "row" in record.sample.metadata
    }
    return scoring_of(sea, list(rows.values()))[1]


_OF_TURNS = (
    *REPLY,
    "custom_ids",
    "token_usages",
    "function_calls",
    "tool_calls",
    "logprobs",
    "errors",
)
"""Columns with an entry for each turn."""


def _line(record: SampleRecord, config: Mapping[str, Any]) -> dict[str, Any]:
    """A row as SEA-HELM writes it: the data's, what was sent, a list over turns of what came back,
    and its score.
    """
    sample = record.sample
    answer = record.answer
    row = sample.metadata.get("row")
    if not isinstance(row, Mapping):
        row = {
            "id": sample.id,
            "label": sample.target,
            "prompts": [{"text": sample.input}],
            "metadata": {},
        }
    responses = (
        answer.responses if answer is not None and record.failure is None else ()
    )
    failure = record.failure or record.score_failures.get(SCORER)
    score = record.scores.get(SCORER) or next(iter(record.scores.values()), None)
    entry = METRICS.get((config["metric_file"], config["metric_class"]), {})
    part: str = entry.get("part", config["metric"])
    scores = {part: None if score is None else score.parts.get(part, score.value)}
    if "logprob" in record.task:  # of 0 to 1, or of 0 to 100, as the second
        probability = (
            score.parts.get("probabilities_accuracy", 100 * score.value)
            if score
            else None
        )
        scores["probabilities_accuracy"] = probability
    prompt = answer.prompt if answer else ()
    messages = [Message("user", prompt)] if isinstance(prompt, str) else prompt
    line = {
        **row,
        "conversations": [
            {"role": message.role, "content": message.text} for message in messages
        ],
        **{key: [None] * (len(responses) or 1) for key in _OF_TURNS},
        "cleaned_responses": (
            ((not entry.get("reads_labels") and score.explanation) or score.label)
            if score
            else None
        ),
        "individual_scores": scores,
    }
    if responses:
        line |= {
            key: [getattr(response, ours) or None for response in responses]
            for key, ours in REPLY.items()
        }
        line["responses"] = [response.text for response in responses]
        used = [
            {
                theirs: int(getattr(response.usage, ours))
                for theirs, ours in USAGE.items()
            }
            for response in responses
        ]
        line["token_usages"] = [
            {**counts, "total_tokens": sum(counts.values())} for counts in used
        ]
    elif failure:
        line["errors"] = [f"{failure.kind}: {failure.message}"]
    if answer is not None and answer.log_likelihoods:
        gold = (
            sample.gold[0]
            if sample.gold and sample.gold[0] < len(answer.log_likelihoods)
            else 0
        )
        line["cumulative_logprobs"] = [answer.log_likelihoods[gold]]
    return line


def _text(rows: Sequence[Mapping[str, Any]]) -> str:
    return "".join(f"{to_json(row)}\n" for row in rows)


def _written(path: Path, text: str) -> Path:
    resolve_path(path.parent).mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return path
