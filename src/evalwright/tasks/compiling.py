"""From a definition to a Task: validates it, opens the data, checks each row, makes the parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalwright.core.errors import DatasetError, MissingExtra, OutOfReach
from evalwright.core.samples import Sample
from evalwright.core.tasks import MetricSpec, SampleSource, Scorer, Strategy, Task
from evalwright.metrics.registry import slice_keys
from evalwright.strategies.likelihood import RecordedColumn
from evalwright.tasks import schema
from evalwright.tasks.answering import (
    PromptFormat,
    check_mode,
    drawing_of,
    form_of,
    recorded_drawing,
    recorded_strategy,
    sample_check,
    shot_template,
    strategy_of,
    user_template,
    with_mode_of_strategy,
)
from evalwright.tasks.datasets.copies import FIRST_FETCH, first_fetched
from evalwright.tasks.datasets.opening import Filter, open_rows
from evalwright.tasks.definitions import Definition
from evalwright.tasks.few_shot import Shots
from evalwright.tasks.offered_tools import read_tools
from evalwright.tasks.prompt_files import with_prompt_file
from evalwright.tasks.prompts import Form, Renderer
from evalwright.tasks.samples import (
    KNOWN_METADATA,
    FileSamples,
    RowError,
    SampleMaker,
    load_samples,
)
from evalwright.tasks.sandbox_keys import (
    KEYS,
    TaskSandbox,
    check_acting,
    recorded_acting,
    with_default_tools,
    with_effort,
)
from evalwright.tasks.scorer_sandboxes import ScorerSandboxes, kept_columns
from evalwright.tasks.scoring import metrics_of, scorers_check, scorers_of
from evalwright.tasks.unreachable import AllRows, Unreachable
from evalwright.tasks.validation import validated
from evalwright.tasks.yaml_files import Document, KeyPath, plain

_ROWS_SHOWN = 50


def compile_task(
    definition: Definition,
    *,
    prompt_format: PromptFormat = "auto",
    chat: bool = False,
    may_fail_alone: bool = False,
    may_lack_data: bool = False,
    samples: SampleSource | None = None,
    strategy: Strategy | None = None,
) -> Task:
    """Make the Task of one definition. Its data are read once, and every row is checked.

    Args:
        definition: the definition.
        prompt_format: "auto", "chat" or "text", in place of the file's own.
        chat: whether the model takes messages.
        may_fail_alone: whether unreachable data make a task whose only sample fails, instead of an
            error.
        may_lack_data: the same, and also where a library is missing that would fetch the data; for
            a look at the definition.
        samples: the samples of a dialect, in place of the definition's data.
        strategy: how a dialect forms answers, in place of the definition's.

    Raises:
        TaskError: the definition cannot be used; the message has file and line.
        DatasetError: the data cannot be read; the message has file and row.
        UnknownName: a name in the definition does not exist.
        MissingExtra: a library is not installed.
    """
    document = with_prompt_file(definition.document, definition.variables)
    file = with_mode_of_strategy(validated(document), document)
    check_acting(file, document)
    file = with_effort(with_default_tools(file))
    file = _with_kept_columns(file, definition.variables)
    out_of_reach = (OutOfReach, MissingExtra) if may_lack_data else (OutOfReach,)
    lost: OutOfReach | MissingExtra | None = None
    try:
        file = _with_revisions(file)
    except out_of_reach as error:
        lost = error
    form = form_of(file, document, prompt_format, chat)
    drawing = drawing_of(file, form)
    check_mode(file, document, drawing)
    scorers = scorers_of(file, document)
    metrics = metrics_of(file, document, scorers)
    renderer = Renderer(
        file.prompt,
        document,
        form,
        dataset=file.dataset,
        user=user_template(file),
        assistant=shot_template(file),
        variables=definition.variables,
        open_ended=file.answer.mode == "generate",
        exact=file.answer.mode in ("perplexity", "classify"),
    )
    offered = read_tools(file.tools, document, renderer)
    if offered is not None:
        file = file.model_copy(update={"tools": offered.recorded})
    sandbox = None if file.sandbox is None else TaskSandbox(file, document, renderer)
    scorer_sandboxes = ScorerSandboxes(sandbox, document, scorers)
    scorers = scorer_sandboxes.scorers
    if strategy is None:
        tools = None if offered is None else offered.tools
        strategy = strategy_of(
            file, document, form, drawing, renderer, scorers, tools, sandbox
        )
    pool: FileSamples | None = None
    try:
        if lost is not None:
            raise lost
        if samples is None:
            samples, pool = _Data(
                file,
                document,
                definition.variables,
                renderer,
                scorers,
                strategy,
                sandbox,
                scorer_sandboxes,
            ).load()
    except out_of_reach as error:
        message = f"{error}{copies_hint(file)}"
        may_fail = may_fail_alone or may_lack_data
        if not may_fail or isinstance(strategy, RecordedColumn):
            raise OutOfReach(message) from error
        samples = AllRows(message)
        strategy = Unreachable(strategy, message)
    return Task(
        name=file.task,
        samples=samples,
        strategy=strategy,
        scorers=scorers,
        metrics=metrics,
        version=file.version,
        description=file.description,
        draws=file.answer.draws,
        slices=tuple(
            dict.fromkeys(
                [
                    *file.slices,
                    *(
                        key
                        for metric in metrics
                        for key in slice_keys(metric.kind, metric.options)
                    ),
                ]
            )
        ),
        score_as_empty=tuple(file.score_as_empty or ()),
        no_answer=file.no_answer,
        metadata={
            **plain(file.metadata),
            **file.board,
            **getattr(samples, "metadata", {}),
        },
        definition=_resolved(
            definition, file, form, drawing, samples, pool, scorers, metrics, sandbox
        ),
        sandbox=sandbox,
        source=str(document.files[0]) if document.files else "",
    )


def copies_hint(file: schema.TaskFile) -> str:
    """Say in a sentence how to use own copies instead of data of the hub.

    It is "" for a task without data of the hub.
    """
    settings = ["-T dataset.path=FILE"] if file.dataset.hub is not None else []
    shots = file.prompt.few_shot
    if (
        shots is not None
        and shots.count
        and shots.dataset is not None
        and shots.dataset.hub is not None
    ):
        settings.append("-T prompt.few_shot.dataset.path=FILE")
    return (
        f" To use your own copy, with the same columns: {' '.join(settings)}."
        if settings
        else ""
    )


def _with_kept_columns(
    file: schema.TaskFile, variables: Mapping[str, Any]
) -> schema.TaskFile:
    """Keep the columns that scorers of a sandbox read, so that runs can be scored again."""
    columns = kept_columns(file, variables)
    if not columns:
        return file
    metadata = {**file.sample.metadata, **columns}
    sample = file.sample.model_copy(update={"metadata": metadata})
    return file.model_copy(update={"sample": sample})


def _with_revisions(file: schema.TaskFile) -> schema.TaskFile:
    """Fill in the commits of datasets that are pinned to their first fetch."""

    def pinned(dataset: schema.Dataset) -> schema.Dataset:
        if dataset.hub is None or dataset.revision != FIRST_FETCH:
            return dataset
        return dataset.model_copy(update={"revision": first_fetched(dataset.hub)})

    prompt = file.prompt
    shots = file.prompt.few_shot
    if shots is not None and shots.dataset is not None:
        prompt = prompt.model_copy(
            update={
                "few_shot": shots.model_copy(update={"dataset": pinned(shots.dataset)})
            }
        )
    return file.model_copy(update={"dataset": pinned(file.dataset), "prompt": prompt})


class _Data:
    """Opens a task's samples and the pool of its shots; passes the shots to the renderer."""

    def __init__(
        self,
        file: schema.TaskFile,
        document: Document,
        variables: Mapping[str, Any],
        renderer: Renderer,
        scorers: tuple[Scorer, ...],
        strategy: Strategy,
        sandbox: TaskSandbox | None,
        scorer_sandboxes: ScorerSandboxes,
    ) -> None:
        self.file = file
        self.document = document
        self.variables = variables
        self.renderer = renderer
        self.check_answer = sample_check(file.answer, strategy)
        self.sandbox = sandbox
        self.check_scorers = scorers_check(scorers)
        self.scorer_sandboxes = scorer_sandboxes
        metadata = plain(file.metadata)
        self.defaults = {
            name: metadata[name]
            for name in KNOWN_METADATA
            if isinstance(metadata.get(name), str | int | float)
        }

    def load(self) -> tuple[FileSamples, FileSamples | None]:
        """Return the samples, and the pool if there are shots."""
        samples, pool = self._loaded()
        for source in (samples, pool):
            if source is not None:
                source.keep()
        return samples, pool

    def _loaded(self) -> tuple[FileSamples, FileSamples | None]:
        file = self.file
        shots = self.file.prompt.few_shot
        own_paths: tuple[KeyPath, ...] = (("dataset",), ("where",), ("sample",))
        if shots is None or shots.count == 0:
            return (
                self._opened(
                    file.dataset, file.where, file.sample, own_paths, self._check
                ),
                None,
            )
        if shots.dataset is None and shots.where is None:
            samples = self._opened(
                file.dataset, file.where, file.sample, own_paths, self._check
            )
            self._draw_from(samples, shots)
            if not samples.known:
                self._check_own_pool(samples)
            return samples, samples
        at: KeyPath = ("prompt", "few_shot")
        places = (
            (*at, "dataset") if shots.dataset else ("dataset",),
            (*at, "where"),
            (*at, "sample") if shots.sample else ("sample",),
        )
        dataset = shots.dataset or file.dataset
        sample = shots.sample or file.sample
        pool = self._opened(dataset, shots.where, sample, places, self.renderer.shot)
        self._draw_from(pool, shots)
        return (
            self._opened(
                file.dataset, file.where, file.sample, own_paths, self._check, pool
            ),
            pool,
        )

    def _check(self, sample: Sample) -> bytes:
        self.check_answer(sample)
        self.check_scorers(sample)
        self.scorer_sandboxes.check(sample)
        more = self.renderer.check(sample)
        if self.renderer.shots is not None:
            self.renderer.shots.check(sample)
        return more if self.sandbox is None else more + self.sandbox.check(sample)

    def _opened(
        self,
        dataset: schema.Dataset,
        where: schema.Where,
        sample: schema.Sample,
        places: Sequence[KeyPath],
        check: Callable[[Sample], object],
        pool: FileSamples | None = None,
    ) -> FileSamples:
        """Open and check samples.

        `places` are where dataset, filter and sample are written in the file. `pool` is the pool of
        shots, which must suffice for each sample.
        """
        recipe = [sample.model_dump(), where, dict(self.variables), self.defaults]
        dataset_at, where_at, sample_at = places
        shots = self.file.prompt.few_shot
        return load_samples(
            open_rows(dataset, self.document, dataset_at),
            SampleMaker(
                sample,
                self.document,
                sample_at,
                self.variables,
                self.defaults,
                dataset.each,
                () if shots is None else shots.same,
            ),
            Filter(where, self.variables, self.document, where_at),
            check=check,
            duplicates=dataset.duplicates,
            fresh=self.file.prompt.images is not None
            or (self.sandbox is not None and self.sandbox.varies),
            recipe=plain(recipe),
            task=lambda: [
                places,
                self.renderer.form,
                plain(
                    {
                        **_identifying(self.file),
                        **recorded_strategy(self.file),
                        **recorded_acting(self.file, self.sandbox),
                    }
                ),
                pool.content_hash if pool else "",
            ],
            empty=self.document.at(where_at if where else dataset_at),
        )

    def _draw_from(self, pool: FileSamples, shots: schema.FewShot) -> None:
        at: KeyPath = ("prompt", "few_shot")
        if len(pool) < shots.count:
            message = (
                f"{shots.count} shots are needed, and the pool has {len(pool)} rows."
            )
            raise self.document.error((*at, "count"), message)
        try:
            self.renderer.shots = Shots(
                pool,
                self.renderer.shot,
                count=shots.count,
                select=shots.select,
                same=shots.same,
                seed=shots.seed,
            )
        except RowError as error:
            raise self.document.error((*at, "same"), f"{error}.") from None

    def _check_own_pool(self, samples: FileSamples) -> None:
        shots = self.renderer.shots
        for index, sample in enumerate(samples):
            try:
                self.renderer.shot(sample)
                if shots is not None:
                    shots.check(sample, n_own=1)
            except RowError as error:
                raise DatasetError(f"{samples.where(index)}: {error}.") from None


def _identifying(file: schema.TaskFile) -> dict[str, Any]:
    """Return what identifies a task's checked rows; keys added later only where they are used."""
    values = file.model_dump(exclude={"strategy", "board"})
    for key in ("tools", *KEYS):
        if values[key] is None:
            del values[key]
    for drawing in (
        values["answer"],
        values["answer"]["text"],
        values["answer"]["chat"],
    ):
        for name in ("tool_choice", "parallel_tool_calls"):
            if drawing is not None and drawing[name] is None:
                del drawing[name]
    return values


def _resolved(
    definition: Definition,
    file: schema.TaskFile,
    form: Form,
    drawing: schema.Drawing,
    samples: SampleSource,
    pool: FileSamples | None,
    scorers: tuple[Scorer, ...],
    metrics: tuple[MetricSpec, ...],
    sandbox: TaskSandbox | None,
) -> dict[str, Any]:
    """Return everything that decides prompts and scores, with defaults filled in, as plain JSON."""
    resolved = file.model_dump(exclude_none=True, exclude={"board"})
    resolved["dataset"] = _data(resolved["dataset"], samples)
    prompt = resolved["prompt"]
    if not prompt["fields"]:
        del prompt["fields"]
    prompt.update(user=user_template(file), assistant=shot_template(file), format=form)
    if pool is None:
        prompt.pop("few_shot", None)
    else:
        prompt["few_shot"]["dataset"] = _data(
            prompt["few_shot"].get("dataset", {}), pool
        )
    resolved["answer"] = {"mode": file.answer.mode}
    if file.answer.column is not None:
        resolved["answer"]["column"] = file.answer.column
    if file.answer.mode == "generate":
        resolved["answer"] |= {"draws": file.answer.draws, **recorded_drawing(drawing)}
    resolved.pop("strategy", None)
    resolved |= recorded_strategy(file)
    resolved |= recorded_acting(file, sandbox)
    resolved["scorers"] = [
        {"name": scorer.name, "use": scorer.kind, "options": dict(scorer.options)}
        for scorer in scorers
    ]
    resolved["metrics"] = [
        {
            "name": metric.label,
            "use": metric.kind,
            "scorer": metric.scorer,
            "options": dict(metric.options),
        }
        for metric in metrics
    ]
    if definition.variables:
        resolved["variables"] = dict(definition.variables)
    return dict(plain(resolved))


def _data(dataset: dict[str, Any], samples: SampleSource) -> dict[str, Any]:
    dataset = {
        name: value for name, value in dataset.items() if name != "each" or value
    }
    rows = dataset.get("rows")
    if rows is not None and len(rows) > _ROWS_SHOWN:
        dataset = {name: value for name, value in dataset.items() if name != "rows"}
    return {**dataset, "samples": len(samples), "content_hash": samples.content_hash}
