"""Reads run folders: `Run` gives access to the record's parts, and to its samples one by one.

Samples are hashed while they are read, and if the file is not the one that `run.json`
describes, there is an error at its end, so no number is computed from it. Code that stops
before the end may show texts, but no numbers unless it has called `verify`.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import (
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache, reduce
from operator import getitem
from pathlib import Path
from shlex import quote
from typing import IO, TYPE_CHECKING, Any, Literal

from evalwright.bounded import from_json
from evalwright.core.errors import ConfigurationError, RunError, UnknownName
from evalwright.core.file_hashes import file_state
from evalwright.core.local_paths import scheme_of
from evalwright.core.private import check_ordinary, lines_of
from evalwright.core.samples import SampleRecord
from evalwright.core.secrets import mask, without_address, without_login
from evalwright.core.shown import Shown
from evalwright.core.tasks import MetricSpec
from evalwright.core.text import printable
from evalwright.runs.impossible import impossible_figure
from evalwright.runs.older_records import UNDECIDED, left_out, upgrade_row, upgrade_run
from evalwright.runs.records import TOOL_CALLS, record_from
from evalwright.runs.results import GroupResult, TaskResult
from evalwright.runs.writer import (
    RUN_FILE,
    SAMPLES_FILE,
    SCHEMA_VERSION,
    Growing,
    growing,
)
from evalwright.tasks.safe_files import failing_as, read_json
from evalwright.tasks.yaml_files import kind_of

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

    from evalwright.statistics import Estimate

_RUN_KEYS = {"id", "model", "configuration", "usage", "started", "tasks", "samples"}
SCORES_FILE = "scores.jsonl"
"""The table of scores by item of a run that is published without its samples."""
SCORES_FORMAT = 1
_LINE_KEYS = {"task", "index", "id", "draw", "input", "targets", "scores"}


@dataclass(frozen=True, slots=True, repr=False)
class Run(Shown):
    """A finished run: one model evaluated on one or more tasks.

    Made by `evaluate` or `open_run`. `print` shows its scores; `to_frame`, `plot`, `report` and
    `save` show more of it.

    Args:
        folder: the run's folder.
        data: the content of `run.json`.
        numbers_from: what the numbers in `data` were recomputed from; None where they are as
            recorded.
    """

    folder: Path
    data: Mapping[str, Any]
    numbers_from: NumbersFrom | None = field(default=None, compare=False, repr=False)
    """What the numbers in `data` were recomputed from (`confirmed.confirm`).

    None if as recorded.
    """
    _digests: dict[tuple[int, ...], str] = field(
        default_factory=dict, compare=False, repr=False
    )
    """SHA-256 of verified files of scores, by the file's state."""
    _confirmed: dict[str, Run] = field(default_factory=dict, compare=False, repr=False)
    """This run with recomputed numbers, by the SHA-256 of the file that they were computed from."""
    _results: dict[str, tuple[Any, Any]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """By key of `data`: the part of `data` there, and the results that were built from it."""

    @property
    def id(self) -> str:
        """The run's name, unique in its parent folder."""
        return str(self.data["id"])

    @property
    def name(self) -> str:
        """The name by which `open_run` finds the run: that of its folder.

        In a copy, it differs from the id.
        """
        return self.folder.resolve().name

    @property
    def model(self) -> str:
        """The name of the model under test."""
        return str(self.data["model"]["name"])

    @property
    def shown_model(self) -> str:
        """The model's name without the address of a server, as pages show it."""
        return without_address(self.model)

    @property
    def label(self) -> str:
        """The name on boards: the configured label, else the model's name without an address."""
        label = str(self.data["model"].get("label") or self.shown_model)
        label += " (SIMULATION)" if self.simulated else ""
        return f"{label} ({self.part})" if self.part else label

    @property
    def prompt(self) -> dict[str, str]:
        """Name and SHA-256 of the prompt in place of the tasks' own; empty without one."""
        recorded = self.data.get("prompt")
        if not isinstance(recorded, Mapping):
            return {}
        return {key: str(recorded[key]) for key in ("name", "hash") if key in recorded}

    @property
    def part(self) -> str:
        """Which shard of a run this is, as in "shard 2 of 8"; "" for a whole run.

        The numbers of a shard mean nothing until the shards are merged.
        """
        shard = self.data.get("shard")
        return (
            f"shard {shard.get('number')} of {shard.get('of')}"
            if isinstance(shard, Mapping)
            else ""
        )

    @property
    def simulated(self) -> bool:
        """Whether the run is a simulation: its answers were generated from the gold answers."""
        return bool(self.data["model"].get("simulation"))

    @property
    def tasks(self) -> tuple[TaskResult, ...]:
        """Results by task, in the order of the configuration."""
        tasks: tuple[TaskResult, ...] = self._built("tasks", TaskResult.from_dict)
        return tasks

    @property
    def groups(self) -> tuple[GroupResult, ...]:
        """Averages over groups of tasks, inner groups first; empty if no group was requested."""
        groups: tuple[GroupResult, ...] = self._built("groups", GroupResult.from_dict)
        return groups

    def _built(self, key: str, build: Callable[[Any], Any]) -> tuple[Any, ...]:
        """Build results from the records in a part of `data`, once.

        A board asks each of its runs a dozen times, and a run may have hundreds of results.
        """
        records = self.data.get(key, ()) if key == "groups" else self.data[key]
        if key not in self._results or self._results[key][0] is not records:
            self._results[key] = records, tuple(build(record) for record in records)
        built: tuple[Any, ...] = self._results[key][1]
        return built

    @property
    def n_missing(self) -> int:
        """Samples without an answer or score through no fault of the model, over all tasks."""
        return sum(task["n_missing"] for task in self.data["tasks"])

    @property
    def n_unsure(self) -> int:
        """Samples with a score that a careful reader might dispute, over all tasks."""
        return sum(task.get("n_unsure", 0) for task in self.data["tasks"])

    @property
    def n_left_out(self) -> int:
        """Answers that an earlier version recorded without a score.

        `evalwright score` gives them one.
        """
        return left_out(self.data)

    @property
    def cost(self) -> float | None:
        """US dollars that the answers cost, no matter which command paid for them.

        For runs of older versions, what the run paid. None where the price of any answer is
        unknown.
        """
        usage = self.data["usage"]
        answers = usage.get("answers", {})
        if answers.get("unpriced"):
            return None
        cost = (
            answers.get("cost")
            if "estimated" in usage or "cost" in answers
            else usage.get("cost")
        )
        return (
            float(cost)
            if isinstance(cost, (int, float)) and 0 <= cost < math.inf
            else None
        )

    def is_as_published(self, task: str, label: str) -> bool:
        """Whether a task's or group's number stays as recorded, because it was not recomputed."""
        return (
            self.numbers_from is not None
            and f"{task}: {label}" in self.numbers_from.as_published
        )

    @property
    def score(self) -> Estimate:
        """The number that stands for the run: its mean over all tasks, or that of its only task.

        Raises:
            RunError: the run has several tasks and no mean over them, or no number at all.
        """
        names = {task.name for task in self.tasks}
        overall = [
            group.metrics[0]
            for group in self.groups
            if group.metrics and names <= set(group.tasks)
        ]
        if overall:
            return overall[-1].estimate
        if len(names) != 1:
            raise RunError(
                f"The run '{self.id}' has {len(names)} tasks and no mean over them:"
                ' choose one, as in run["TASK"].main.estimate, or run with tree={}.'
            )
        main = self.tasks[0].main
        if main is None:
            raise RunError(f"The run '{self.id}' has no metric.")
        return main.estimate

    def __getitem__(self, name: str) -> TaskResult:
        """Return one task's results; raises UnknownName with the closest ones."""
        return self.task(name)

    def task(self, name: str) -> TaskResult:
        """Return one task's results; raises UnknownName with the closest ones."""
        by_name = {task.name: task for task in self.tasks}
        if name in by_name:
            return by_name[name]
        return TaskResult.from_dict(self.record(name))

    def metric_specs(self, name: str) -> tuple[MetricSpec, ...]:
        """Return the metrics of a task as they were defined."""
        return tuple(MetricSpec(**spec) for spec in self.record(name)["metric_specs"])

    def record(self, name: str) -> Mapping[str, Any]:
        """Return the part of `run.json` about one task.

        Raises UnknownName with the closest ones.
        """
        records: dict[str, Mapping[str, Any]] = {
            task["name"]: task for task in self.data["tasks"]
        }
        if name not in records:
            record_sentence = f"The run '{self.id}' has {', '.join(records) or 'none'}."
            raise UnknownName("task", name, list(records), record_sentence)
        return records[name]

    def samples(self) -> Iterator[SampleRecord]:
        """Iterate over the records in the order of task, index and draw."""
        for number, row in enumerate(self.rows(), 1):
            try:
                record = record_from(row)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                why = printable(f"{type(error).__name__}: {error}")[:200]
                raise RunError(
                    f"{self.samples_file}, line {number} is not a sample record"
                    f" ({why})."
                ) from error
            yield record

    def rows(self) -> Iterator[dict[str, Any]]:
        """Iterate over the records as plain mappings.

        Raises:
            RunError: the run was published without its samples; a line is broken or has a score
                that is no number (the message names the line); or, after the last line, the file
                was changed after the run.
        """
        self.require_samples()
        return self.score_rows()

    def score_rows(self) -> Iterator[dict[str, Any]]:
        """Like `rows`, but falls back on the published table of scores where there are no samples.

        Rows of such a table have no texts.
        """
        for number, (_, row) in enumerate(self._lines(), 1):
            for name, score in row["scores"].items():
                if reason := score_fault(name, score):
                    raise RunError(f"{self.scores_file}, line {number}: {reason}.")
            yield row

    def lines(self) -> Iterator[tuple[bytes, dict[str, Any]]]:
        """Iterate over the raw lines with the records in them; scores are not checked."""
        self.require_samples()
        return self._lines()

    def _lines(self) -> Iterator[tuple[bytes, dict[str, Any]]]:
        path = self.scores_file
        with (
            self._reading(path),
            _Hashed(check_ordinary(path)) as file,
            io.BufferedReader(file, _BLOCK) as lines,
        ):
            numbered_lines = enumerate(lines_of(lines), 1)
            if self.has_published_scores:
                _check_head(next(numbered_lines, (1, b""))[1], self, path)
            for number, line in numbered_lines:
                yield line, row_of(line, f"{path}, line {number}")
            self._check(path, file)

    def require_samples(self) -> None:
        """Raise RunError for a run that was published without its samples."""
        if self.has_published_scores:
            raise RunError(
                f"The run '{self.id}' was published without its samples:"
                f" {self.scores_file} has scores by item, and no questions or answers."
                " Boards and comparisons can be made of it; ask its publisher for"
                f" {SAMPLES_FILE} to do more."
            )

    @property
    def samples_file(self) -> Path:
        """The path of the samples."""
        named = self.folder / str(self.data["samples"]["file"])
        # A writer that was stopped at its last step has already moved the file to its final name,
        # but not yet updated the record.
        return named if named.is_file() else self.folder / SAMPLES_FILE

    @property
    def has_published_scores(self) -> bool:
        """Whether the run was published with a table of its scores in place of samples."""
        return not self.samples_file.exists() and (self.folder / SCORES_FILE).is_file()

    @property
    def scores_file(self) -> Path:
        """The file that scores are read from: the samples, else the published table of scores."""
        return (
            self.folder / SCORES_FILE
            if self.has_published_scores
            else self.samples_file
        )

    @property
    def samples_sha256(self) -> str:
        """The SHA-256 of the samples: as recorded, else of the file. Raises RunError."""
        if recorded := self.data["samples"].get("sha256"):
            return str(recorded)
        return self.verify()

    def verify(self) -> str:
        """Compute the SHA-256 of the file that scores are read from.

        Raises RunError if it is not the one that `run.json` records, if any.
        """
        steps = self.verify_in_steps()
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return str(end.value)

    def verify_in_steps(self) -> Generator[None, None, str]:
        """Like `verify`, for callers that do something else meanwhile: a step is a block."""
        path = self.scores_file
        with self._reading(path), _Hashed(check_ordinary(path)) as file:
            if file.version not in self._digests:
                if self.has_published_scores:
                    with path.open("rb") as table:
                        _check_head(table.readline(LARGEST_HEAD), self, path)
                yield from file.read_blocks()
                self._check(path, file)
            return self._digests[file.version]

    def verified_digest(self, file: IO[bytes]) -> str | None:
        """Return the SHA-256 of an open file of scores, if it was verified in its present state."""
        return self._digests.get(tuple(file_state(file.fileno())))

    def _check(self, path: Path, file: _Hashed) -> None:
        """Compare the hash of a file that was read to its end with the recorded one."""
        recorded = self.data["samples"].get("sha256")
        computed = file.digest.hexdigest()
        if (
            recorded is not None
            and not self.has_published_scores
            and computed != recorded
        ):
            raise RunError(
                f"{path} was changed after the run: its SHA-256 is not the one in"
                f" {RUN_FILE}, so no numbers are made of it. Restore the file, or make"
                " the run again; stored responses are used."
            )
        self._digests[file.version] = computed

    def _reading(self, path: Path) -> AbstractContextManager[None]:
        return failing_as(
            RunError, f"The samples of run '{self.id}' cannot be read: {path}"
        )


_BLOCK = 1 << 20
LARGEST_HEAD = 1 << 16
"""Limit for the first line of a published table of scores, in bytes."""


@dataclass(frozen=True, slots=True)
class NumbersFrom:
    """What the numbers of a run were recomputed from.

    Attributes:
        source: the samples, a table of their scores that this machine kept, or the table of scores
            that was published in place of the samples.
        as_published: the numbers that could not be recomputed and stay as recorded, as "task:
            metric".
    """

    source: Source = "samples"
    as_published: tuple[str, ...] = ()


Source = Literal["samples", "kept table", "published table"]


def _check_head(line: bytes, run: Run, path: Path) -> None:
    """Raise RunError if the first line of a table of scores does not name the run's samples."""
    try:
        head = from_json(line)
    except ValueError:
        head = None
    if not isinstance(head, dict) or head.get("scores_by_item") != SCORES_FORMAT:
        raise RunError(f"{path} is no table of scores by item that this version reads.")
    if not head.get("samples_sha256") or head["samples_sha256"] != run.data[
        "samples"
    ].get("sha256"):
        raise RunError(
            f"{path} is not of the samples that {RUN_FILE} describes: their SHA-256"
            " differ. Ask for the table of this run."
        )


class _Hashed(io.FileIO):
    """A file whose bytes are hashed while they are read.

    version: size, times and inode when it was opened, which differ if the content was changed.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.digest = hashlib.sha256()
        self.version = tuple(file_state(self.fileno()))

    def readinto(self, buffer: Any, /) -> int:
        """Read a block into a buffer, and hash it."""
        n = super().readinto(buffer)
        self.digest.update(memoryview(buffer)[:n])
        return n

    def read_blocks(self) -> Iterator[None]:
        """Read and hash the rest of the file, a block for each step."""
        block = bytearray(_BLOCK)
        while self.readinto(block):
            yield


def row_of(line: bytes, where: str) -> dict[str, Any]:
    """Parse a line of samples into a plain mapping.

    Args:
        line: the line.
        where: what the line is called in the RunError that is raised if it is invalid.
    """
    # It takes less than half the time of the standard library's parser.
    from pydantic_core import ValidationError
    from pydantic_core import from_json as fast

    try:
        row = fast(line, cache_strings="keys")
    except ValueError:  # half a surrogate pair, or not JSON at all
        try:
            row = from_json(line)
        except ValueError as error:
            raise RunError(f"{where} is not valid JSON: {error}.") from error
    if not isinstance(row, dict) or not row.keys() >= _LINE_KEYS:
        raise RunError(f"{where} is not a sample record.")
    try:
        _line_parts().validate_python(row, strict=True)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        path = printable(".".join(map(str, fault["loc"])))[:60]
        if fault["type"] in _IMPOSSIBLE:
            figure = printable(repr(fault["input"]))[:60]
            raise RunError(
                f"{where} has a figure that cannot be: '{path}' is {figure},"
                f" {_IMPOSSIBLE[fault['type']]}."
            ) from None
        problem = "missing" if fault["type"] == "missing" else kind_of(fault["input"])
        raise RunError(
            f"{where} is not a sample record: '{path}' is {problem}."
        ) from None
    if isinstance(row.get("prompt"), list) and not all(map(_is_turn, row["prompt"])):
        raise RunError(
            f"{where} is not a sample record: 'prompt' has a turn with malformed calls."
        )
    return upgrade_row(row)


def _is_turn(turn: Any) -> bool:
    """Return whether the calls of a conversation's turn, if it has any, can be read as such."""
    marks = turn[2] if isinstance(turn, list) and len(turn) > 2 else None
    if not isinstance(marks, dict) or TOOL_CALLS not in marks:
        return True
    calls = marks[TOOL_CALLS]
    return isinstance(calls, list) and all(
        isinstance(call, dict)
        and isinstance(call.get("name"), str)
        and isinstance(call.get("arguments"), str)
        for call in calls
    )


_IMPOSSIBLE = {
    "greater_than_equal": "which is below 0",
    "finite_number": "which is not finite",
}
"""Names of pydantic's errors for impossible values, and our words for them."""


@cache
def _line_parts() -> SchemaValidator:
    """Build a validator for the keys of a line and the types of their values.

    After it, code that reads a line need not check these again.
    """
    from pydantic_core import SchemaValidator
    from pydantic_core import core_schema as form

    text, mapping, sequence = map(form.is_instance_schema, (str, dict, list))
    kinds = {
        "object": mapping,
        "array": sequence,
        "string": text,
        "integer": form.int_schema(),
    }
    named = {
        key: property_schema.get("type")
        for key, property_schema in _schema("sample")["properties"].items()
    }

    def typed_dict(needed: bool, **of: form.CoreSchema) -> form.CoreSchema:
        fields = {
            name: form.typed_dict_field(field_schema, required=needed)
            for name, field_schema in of.items()
        }
        return form.typed_dict_schema(fields, extra_behavior="ignore")

    amount = form.nullable_schema(form.float_schema(ge=0, allow_inf_nan=False))
    failed = typed_dict(True, kind=text, party=text, message=text)
    usage = form.nullable_schema(form.dict_schema(values_schema=amount))
    count = form.int_schema(ge=0)
    inner_schemas = {
        "index": count,
        "draw": count,
        "gold": form.list_schema(form.int_schema()),
        "log_likelihoods": form.list_schema(form.float_schema()),
        "passages": form.list_schema(typed_dict(True, text=text)),
        "responses": form.list_schema(
            typed_dict(
                False,
                usage=usage,
                cost=amount,
                tool_calls=form.list_schema(
                    typed_dict(True, name=text, arguments=text)
                ),
            )
        ),
        "strategy": typed_dict(False, tool_calls=form.list_schema(mapping)),
        "timing": typed_dict(
            False,
            latency=form.list_schema(amount),
            tool_calls=form.list_schema(amount),
        ),
        "tools": form.list_schema(typed_dict(True, name=text, parameters=mapping)),
        "failure": form.nullable_schema(failed),
        "score_failures": form.dict_schema(values_schema=failed),
        UNDECIDED: form.dict_schema(values_schema=mapping),
        "exchanges": form.dict_schema(
            values_schema=form.list_schema(typed_dict(True, role=text, request=mapping))
        ),
    }
    return SchemaValidator(
        typed_dict(
            False,
            **{key: kinds[kind] for key, kind in named.items() if kind in kinds}
            | inner_schemas,
        )
    )


def score_fault(name: str, score: Any) -> str:
    """Say why a recorded score is invalid; "" where it is valid.

    Infinities are valid, and so is no number (null).
    """
    if not isinstance(score, dict):
        return f"the score '{printable(name)[:60]}' is {kind_of(score)}, not a mapping"
    value = score.get("value", "")
    label = score.get("label")
    if not (label is None or isinstance(label, str)):
        return (
            f"the label of the score '{printable(name)[:60]}' is {kind_of(label)}, not"
            " text"
        )
    unsure = score.get("unsure", "")
    if not isinstance(unsure, str):
        return (
            f"'unsure' of the score '{printable(name)[:60]}' is {kind_of(unsure)}, not"
            " text"
        )
    if isinstance(value, float) and value == value:
        return ""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return ""
    return (
        f"the score '{printable(name)[:60]}' is {printable(repr(value))[:60]}, not a"
        " number"
    )


def open_run(name: str | Path, runs_folder: Path | None = None) -> Run:
    """Open the run at a folder, at its `run.json`, or with that name in `runs_folder`.

    Raises UnknownName where there is none, and RunError where it cannot be read.
    """
    if scheme_of(name).lower() == "s3":
        address = printable(mask(without_login(str(name))))
        raise RunError(
            f"'{address}' is in a bucket: bring it here with `evalwright runs pull"
            " ADDRESS`, and name it by its name."
        )
    path = Path(name)
    candidates = [path, *([runs_folder / str(name)] if runs_folder else [])]
    for candidate in candidates:
        file = candidate if candidate.name == RUN_FILE else candidate / RUN_FILE
        if file.is_file():
            return _read(file)
    for folder in candidates:
        if folder.is_dir():
            raise RunError(_why_unfinished(folder))
    known_ids = [run.id for run in list_runs(runs_folder)] if runs_folder else []
    where = f" There is none of that name in '{runs_folder}'." if runs_folder else ""
    raise UnknownName(
        "run",
        str(name),
        known_ids,
        f"{where} `evalwright runs list` shows what there is.".strip(),
    )


def _why_unfinished(folder: Path) -> str:
    """Say why a folder holds no finished run, and how to get one."""
    unfinished = growing(folder)
    if unfinished is None:
        return (
            f"The folder '{folder}' has no {RUN_FILE}: it is not a finished run. If one"
            " was interrupted there, start the same command again to continue it."
        )
    if unfinished.running:
        return (
            f"The run '{folder.name}' is still going on: wait until it is finished, or"
            f" watch it with `evalwright view {quote(str(folder))}`."
        )
    return (
        f"The run '{folder.name}' was interrupted before it was finished. Start the same"
        " command again to continue it: answers that it had received are kept."
        f" `evalwright view {quote(str(folder))}` shows those so far."
    )


def list_unfinished(folder: Path) -> list[tuple[Path, Growing]]:
    """List the runs directly under `folder` that are going on or were interrupted, by name."""
    if not folder.is_dir():
        return []
    unfinished = []
    for run_folder in sorted(folder.iterdir()):
        if not run_folder.is_dir() or (run_folder / RUN_FILE).is_file():
            continue
        growing_run = growing(run_folder)
        if growing_run is not None:
            unfinished.append((run_folder, growing_run))
    return unfinished


def check_named_once(runs: Sequence[Run]) -> None:
    """Raise RunError if a run is listed twice."""
    folders = [run.folder.resolve() for run in runs]
    if twice := [
        run.id
        for run, folder in zip(runs, folders, strict=True)
        if folders.count(folder) > 1
    ]:
        raise RunError(
            f"The run '{twice[0]}' is named more than once. Name each run once."
        )


def called(runs: Sequence[Run]) -> list[str]:
    """Return the runs' labels, with the run's name added where two share one."""
    labels = [run.label for run in runs]
    return [
        run.label if labels.count(run.label) == 1 else f"{run.label} ({name})"
        for run, name in zip(
            runs, ids_or_folders(runs, [run.name for run in runs]), strict=True
        )
    ]


def ids_or_folders(runs: Sequence[Run], names: Sequence[str] = ()) -> list[str]:
    """Return the runs' ids, or `names`; the folder where two runs of two folders share one."""
    names = names or [run.id for run in runs]
    return [
        name if names.count(name) == 1 else str(run.folder)
        for run, name in zip(runs, names, strict=True)
    ]


def list_runs(folder: Path | None, damaged: dict[Path, str] | None = None) -> list[Run]:
    """List all readable runs directly under `folder`, oldest first.

    Args:
        folder: the folder of runs; None gives no runs.
        damaged: receives the folders that cannot be read, each with the reason.
    """
    if folder is None or not folder.is_dir():
        return []
    runs = []
    for file in folder.glob(f"*/{RUN_FILE}"):
        try:
            runs.append(_read(file))
        except RunError as error:
            # A damaged record must not hide the others.
            if damaged is not None:
                damaged[file.parent] = str(error)
    return sorted(runs, key=lambda run: (str(run.data["started"]), run.id))


def _read(file: Path) -> Run:
    data = read_json(file, RunError, str(file))
    if not isinstance(data, dict) or not isinstance(data.get("schema"), int):
        raise RunError(f"{file} is not the record of an Evalwright run.")
    if data["schema"] > SCHEMA_VERSION:
        raise RunError(
            f"{file} has schema {data['schema']}, and this version reads up to"
            f" {SCHEMA_VERSION}. Upgrade evalwright."
        )
    missing = sorted(_RUN_KEYS - data.keys())
    if missing:
        raise RunError(
            f"{file} is not the record of an Evalwright run: '{missing[0]}' is missing."
        )
    name = (
        str(data["samples"].get("file", ""))
        if isinstance(data["samples"], dict)
        else ""
    )
    if name in ("", ".", "..") or Path(name).name != name:
        raise RunError(f"{file} does not name a samples file in its folder.")
    # What a shard says of itself matters only where shards are merged, and is checked there.
    without_shard = {key: data[key] for key in data if key != "shard"}
    misfit = ""
    if not _certainly_fits(without_shard):
        misfit = _misfit(without_shard, _schema("run"), "")
    if misfit:
        raise RunError(f"{file} is not as records of runs are: {misfit}.")
    data = upgrade_run(data)
    if fault := _metric_spec_fault(data):
        raise RunError(f"{file} is not as records of runs are: {fault}.")
    if fault := impossible_figure(data):
        raise RunError(
            f"{file} has a figure that cannot be: {fault}. Restore the file, or make"
            " the run again."
        )
    run = Run(file.parent, data)
    try:
        _ = run.tasks, run.groups, run.label, run.n_missing, run.cost
    except (
        KeyError,
        TypeError,
        AttributeError,
        ValueError,
        IndexError,
        RecursionError,
    ) as error:
        raise RunError(
            f"{file} is not as records of runs are ({type(error).__name__}:"
            f" {printable(str(error))[:200]})."
        ) from error
    run._results.clear()  # most commands use the confirmed run, which has results of its own
    return run


def _metric_spec_fault(data: Mapping[str, Any]) -> str:
    """Describe the first invalid metric definition of a task; "" for none.

    It lacks a required key, has an unknown one, or a range that is none.
    """
    form = _schema("run")["properties"]["tasks"]["items"]["properties"]["metric_specs"][
        "items"
    ]
    for task_number, task in enumerate(data["tasks"]):
        for number, spec in enumerate(task.get("metric_specs") or ()):
            location = f"'tasks[{task_number}].metric_specs[{number}]'"
            for key in spec.keys() - form["properties"].keys():
                return (
                    f"{location} has '{printable(str(key))[:60]}', which no metric has"
                )
            for key in ("label", "kind", "scorer"):
                if key not in spec:
                    return f"{location} has no '{key}'"
            try:
                MetricSpec(**{"options": {}, **spec})
            except ConfigurationError as error:
                return f"{location}: {str(error).removesuffix('.')}"
    return ""


def _certainly_fits(record: Mapping[str, Any]) -> bool:
    """Tell quickly whether `_misfit` finds nothing; where this is false, `_misfit` decides.

    A board of 500 runs checks 3 million values.
    """
    from pydantic_core import ValidationError

    try:
        _run_validator().validate_python(record, strict=True)
    except ValidationError:
        return False
    return True


@cache
def _run_validator() -> SchemaValidator:
    """Build a validator of types from the published schema of a run."""
    from pydantic_core import SchemaValidator
    from pydantic_core import core_schema as form

    schema = _schema("run")
    simple_schemas: dict[str, form.CoreSchema] = {
        "string": form.str_schema(strict=True),
        "integer": form.float_schema(strict=True),
        "number": form.float_schema(strict=True),
        "boolean": form.bool_schema(strict=True),
        "null": form.none_schema(),
        "array": form.is_instance_schema(list),
        "object": form.is_instance_schema(dict),
    }

    def validator_of(part: Mapping[str, Any]) -> form.CoreSchema:
        if "$ref" in part:
            return form.definition_reference_schema(part["$ref"])
        if "anyOf" in part:
            return union_of(map(validator_of, part["anyOf"]))
        kinds = part.get("type")
        if kinds is None:
            return form.any_schema()
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return union_of(of_kind(kind, part) for kind in kinds)

    def union_of(choices: Iterable[form.CoreSchema]) -> form.CoreSchema:
        every: list[form.CoreSchema | tuple[form.CoreSchema, str]] = [*choices]
        return form.union_schema(every, mode="left_to_right")

    def of_kind(kind: str, part: Mapping[str, Any]) -> form.CoreSchema:
        if kind == "array" and "items" in part:
            return form.list_schema(validator_of(part["items"]), strict=True)
        if kind != "object":
            return simple_schemas[kind]
        named = part.get("properties", {})
        additional = part.get("additionalProperties")
        default = validator_of(additional) if isinstance(additional, dict) else None
        if not named and default is None:
            return simple_schemas[kind]
        if not named:
            return form.dict_schema(form.any_schema(), default, strict=True)
        return form.typed_dict_schema(
            {
                key: form.typed_dict_field(validator_of(inner), required=False)
                for key, inner in named.items()
            },
            extra_behavior="ignore" if default is None else "allow",
            extras_schema=default,
            strict=True,
        )

    definitions: list[form.CoreSchema] = [
        {**validator_of(part), "ref": f"#/$defs/{name}"}
        for name, part in schema.get("$defs", {}).items()
    ]
    return SchemaValidator(form.definitions_schema(validator_of(schema), definitions))


_TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": (int, float),
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


@cache
def _schema(name: str) -> Mapping[str, Any]:
    """Read the published schema of a record."""
    file = Path(__file__).parent / "schemas" / f"{name}.schema.json"
    schema: Mapping[str, Any] = from_json(file.read_bytes())
    return schema


def _misfit(value: Any, schema: Mapping[str, Any], where: str) -> str:
    """Describe the first value whose type differs from the schema; "" for none.

    Missing and unknown keys are allowed, because records of other versions are read too.
    """
    if "$ref" in schema:
        return _misfit(
            value, reduce(getitem, schema["$ref"].split("/")[1:], _schema("run")), where
        )
    if "anyOf" in schema:
        faults = [_misfit(value, alternative, where) for alternative in schema["anyOf"]]
        return "" if "" in faults else faults[0]
    kinds = schema.get("type", [*_TYPES])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(
        isinstance(value, _TYPES[json_type])
        and (json_type == "boolean" or not isinstance(value, bool))
        for json_type in kinds
    ):
        return (
            f"'{printable(where)[:200]}' is {kind_of(value)}, not {' or '.join(kinds)}"
        )
    inner: Iterable[tuple[Any, Any, Mapping[str, Any]]] = ()
    if isinstance(value, dict):
        named = schema.get("properties", {})
        additional = schema.get("additionalProperties")
        default_schema = additional if isinstance(additional, dict) else {}
        inner = (
            (key, member, named.get(key, default_schema))
            for key, member in value.items()
        )
    elif isinstance(value, list) and "items" in schema:
        inner = (
            (position, element, schema["items"])
            for position, element in enumerate(value)
        )
    faults_inside = (
        _misfit(inner_value, of, f"{where}.{key}" if where else str(key))
        for key, inner_value, of in inner
        if of
    )
    return next(filter(None, faults_inside), "")


@contextmanager
def as_recorded(run: Run) -> Iterator[None]:
    """Convert errors from broken task definitions to RunError.

    For code that reads the definitions of a run's tasks without checking them.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"The definition of a task in {run.folder / RUN_FILE} is broken, so its"
            f" answers cannot be scored or averaged again ({type(error).__name__}:"
            f" {error}). Restore the file, or make the run again: its answers are in"
            " the store."
        ) from error
