"""The page of one model on a board: its numbers at every node, the samples behind them, its run.

Each node of the board's tree has an anchor on the page (`board_nodes`), so that a board can link
every number to the samples that it is made of.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.analysis.board import Board
from evalwright.analysis.board_tree import BoardNode
from evalwright.analysis.extra_columns import fact_text, fact_title
from evalwright.metrics.registry import RATES_OF_ALL
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.axis import Axis, axis_of
from evalwright.reports.board_nodes import (
    PlacedNode,
    letters_at,
    place_nodes,
    rank_at,
    reason_at,
)
from evalwright.reports.columns import HALLUCINATION, ScoreColumn, shown_columns
from evalwright.reports.documents.board import board_labels, coverage, score_note
from evalwright.reports.documents.history import history_blocks
from evalwright.reports.documents.run import run_blocks
from evalwright.reports.documents.sentences import judge_names, sentence_blocks
from evalwright.reports.model_samples import (
    DISPUTED,
    LOW,
    LOWEST_OF_SLICE,
    UNSURE,
    JudgeCounts,
    JudgeVerdict,
    Outcomes,
    ShownSample,
    SliceKeys,
    TaskSamples,
    read_samples,
)
from evalwright.runs.reader import Run
from evalwright.runs.recorded_answers import (
    expected_calls,
    loop_words,
    whole_answer,
)
from evalwright.runs.results import TaskResult

LONGEST_TEXT_CHARS = 700
"""Longest text on a page, in characters."""
MOST_COLUMNS = 4
MOST_VALUES = 200
"""Most rows in a table of slices; `run.json` has all."""
MAX_UNFOLDED_TASKS = 3
"""Most tasks whose sections are unfolded when the page opens."""
MAX_UNFOLDED_SCORES = 20
"""Most rows of the table of scores; with more, what is below the second level folds by group."""
INDENT = "\u00a0\u00a0\u00a0"
"""Before a node's title, for each node above it: spaces that HTML neither collapses nor breaks."""

REASON_WORDS: Mapping[str, str] = {
    LOW: "scored low",
    UNSURE: "unsure",
    DISPUTED: "the judges disagree",
    LOWEST_OF_SLICE: "lowest of its slice",
}
"""Why a sample is shown, in the words of the page."""


@dataclass(frozen=True, slots=True)
class BoardContext:
    """What the pages of all models of a board share, so that it is computed once.

    Attributes:
        board: The board.
        title: Its title.
        nodes: The nodes of its tree.
        columns: The columns that become cards.
        labels: The models' labels.
        n_ranked: By node, how many models have a rank.
        usual_metric: The metric of most tasks, which is not named at each.
    """

    board: Board
    title: str
    nodes: Sequence[PlacedNode]
    columns: Sequence[ScoreColumn]
    labels: Sequence[str]
    n_ranked: Sequence[int]
    usual_metric: str


def board_context(board: Board, title: str) -> BoardContext:
    """Compute what the pages of all models of a board share."""
    nodes = place_nodes(board)
    metrics = Counter(
        placed.node.metric for placed in nodes if placed.node.kind != "group"
    )
    return BoardContext(
        board=board,
        title=title,
        nodes=nodes,
        columns=shown_columns(board).columns[:MOST_COLUMNS],
        labels=board_labels(board),
        n_ranked=[
            sum(ranks is not None for ranks in placed.node.ranks) for placed in nodes
        ],
        usual_metric=metrics.most_common(1)[0][0] if metrics else "",
    )


def model_document(
    context: BoardContext,
    row_index: int,
    run: Run,
    back: str = "",
    examples: int = 5,
    neighbours: Sequence[tuple[str, str]] = (),
) -> doc.Document:
    """Build the page of one row of a board.

    Args:
        context: The board, with what its pages share.
        row_index: The row's index on the board.
        run: The run behind the row.
        back: The address of the board's page.
        examples: How many low-scored samples of each task to show.
        neighbours: Titles and addresses of the pages of the models above and below on the board.
    """
    return _ModelPage(context, row_index, run, examples).document(back, neighbours)


class _ModelPage:
    """Builds the page of one model; the run's samples are read once."""

    def __init__(
        self, context: BoardContext, row_index: int, run: Run, examples: int
    ) -> None:
        self._context = context
        self._board = context.board
        self._nodes = context.nodes
        self._row = row_index
        self._run = run
        # `run.tasks` rebuilds all results each time.
        self._results = {task.name: task for task in run.tasks}
        self._samples = read_samples(run, examples, list(self._slices()))
        self._lowest_by_task = self._lowest_samples()

    def _slices(self) -> Iterator[SliceKeys]:
        """List the slices of the board, with the keys that a task's samples have."""
        slice_keys = {
            str(task["name"]): {str(key) for key in task.get("slice_keys") or ()}
            for task in self._run.data["tasks"]
        }
        for placed in self._nodes:
            node = placed.node
            if node.kind != "slice":
                continue
            for task in node.tasks:
                sample_keys = slice_keys.get(task, set())
                keys = {
                    key: text for key, text in node.keys.items() if key in sample_keys
                }
                if keys:
                    yield SliceKeys(placed.anchor, task, keys)

    def document(
        self, back: str, neighbours: Sequence[tuple[str, str]]
    ) -> doc.Document:
        """Put the page together."""
        blocks: list[doc.Block] = [
            doc.Cards([_card(column, self._row) for column in self._context.columns])
        ]
        blocks += self._score_table()
        blocks += self._facts()
        blocks += history_blocks(self._board.rows[self._row].history)
        blocks += self._task_sections()
        blocks += self._run_section()
        return doc.Document(
            self._context.labels[self._row],
            blocks,
            _lede(self._board, self._row),
            (self._context.title, back),
            neighbours,
        )

    # -- the numbers -------------------------------------------------------------------

    def _score_table(self) -> Iterator[doc.Block]:
        """Build the table of all averages and tasks, indented as the tree is."""
        sections = self._sections()
        with_section = {placed.index for placed, _ in sections}
        below = {inner.index for _, slices in sections for inner in slices}
        outer_nodes = [placed for placed in self._nodes if placed.index not in below]
        if not outer_nodes:
            return
        if len(outer_nodes) == 1 and outer_nodes[0].index in with_section:
            return  # its section has everything
        yield doc.Heading("Scores")
        is_long = len(outer_nodes) > MAX_UNFOLDED_SCORES
        top = [placed for placed in outer_nodes if placed.depth < 2 or not is_long]
        yield self._number_table(top, with_section, "Scores, as the tasks are grouped")
        if self._context.usual_metric:
            yield doc.Note(
                f"{self._context.usual_metric.capitalize()} where no metric is named. Ranks are"
                " of the models of the board, as ranges that hold together at 95%.",
                "quiet",
            )
        if is_long:
            yield from self._folded_groups(outer_nodes, with_section)

    def _folded_groups(
        self, outer_nodes: Sequence[PlacedNode], with_section: set[int]
    ) -> Iterator[doc.Block]:
        """Fold what is below each node of the second level."""
        below: dict[int, list[PlacedNode]] = {}
        groups: dict[int, PlacedNode] = {}
        current = -1
        for placed in outer_nodes:
            if placed.depth < 2:
                current = placed.index
                groups[current] = placed
            else:
                below.setdefault(current, []).append(placed)
        for index, parts in below.items():
            group = groups[index]
            title = f"Parts of {group.node.title}"
            score = numbers.score(group.node.estimates[self._row], group.unit)
            table = self._number_table(parts, with_section, title, indent=2)
            yield doc.Fold(index, title, ("", score), [table], f"g-{index}")

    def _number_table(
        self,
        nodes: Sequence[PlacedNode],
        with_section: set[int],
        caption: str,
        indent: int = 0,
    ) -> doc.Table:
        """Build a table of numbers; those of tasks with a section link to it.

        Args:
            nodes: The nodes, each after the one above it.
            with_section: The indices of the nodes that have a section.
            caption: What the table shows.
            indent: The depth of the nodes that are not indented.
        """
        rows = [
            self._number_row(
                placed,
                link=f"#{placed.anchor}" if placed.index in with_section else "",
                anchor="" if placed.index in with_section else placed.anchor,
                indent=placed.depth - indent,
                lowest=self._lowest_sample(placed.node),
            )
            for placed in nodes
        ]
        return doc.Table(self._number_columns(nodes), rows, caption)

    def _lowest_sample(self, node: BoardNode) -> doc.Content:
        """Link to the lowest-scored sample that the page shows of a node's tasks."""
        shown_samples = [
            self._lowest_by_task[task]
            for task in node.tasks
            if task in self._lowest_by_task
        ]
        if not shown_samples:
            return ""
        _, anchor, sample_id = min(shown_samples)
        return doc.Cell(sample_id, name=True, link=f"#{anchor}")

    def _lowest_samples(self) -> dict[str, tuple[float, str, str]]:
        """By task, the score, anchor and id of the lowest-scored sample with texts."""
        lowest: dict[str, tuple[float, str, str]] = {}
        for placed, _ in self._sections():
            task = placed.node.tasks[0]
            samples = self._samples[task]
            anchors = self._sample_anchors(placed, samples)
            for sample, anchor in zip(samples.samples, anchors, strict=True):
                if not math.isnan(sample.score) and sample_texts(sample):
                    lowest[task] = (sample.score, anchor, sample.id)
                    break
        return lowest

    def _number_columns(self, nodes: Sequence[PlacedNode]) -> list[doc.Column]:
        return [
            doc.Column("Score", folds=True, key=True),
            doc.Column("Value", "with its 95% interval", axis=self._axis(nodes)),
            doc.Column("Metric", folds=True),
            doc.Column("Rank", right=True),
            doc.Column("Tied"),
            doc.Column("Items", right=True),
            doc.Column("Missing", right=True),
            doc.Column("Why", "no number or no interval", folds=True),
            doc.Column("Lowest sample", folds=True),
        ]

    def _axis(self, nodes: Sequence[PlacedNode]) -> Axis | None:
        """Return one axis for all numbers; None where they have different units."""
        if not all(placed.node.bounded for placed in nodes):
            return None
        estimates = [placed.node.estimates[self._row] for placed in nodes]
        return axis_of([estimate for estimate in estimates if estimate], "points")

    def _number_row(
        self,
        placed: PlacedNode,
        *,
        title: str = "",
        link: str = "",
        anchor: str = "",
        indent: int | None = None,
        lowest: doc.Content = "",
    ) -> Sequence[doc.Content]:
        node = placed.node
        estimate = node.estimates[self._row]
        depth = placed.depth if indent is None else indent
        metric = "" if node.metric == self._context.usual_metric else node.metric
        direction = "lower is better" if node.lower_is_better else ""
        return (
            doc.Cell(
                f"{INDENT * depth}{title or node.title}",
                "strong" if node.kind == "group" else "",
                name=True,
                link=link,
                anchor=anchor,
            ),
            doc.Cell(doc.Number(estimate, placed.unit), "strong"),
            ", ".join(phrase for phrase in (metric, direction) if phrase),
            self._rank_text(placed),
            letters_at(node, self._row),
            numbers.count(estimate.n) if estimate else "",
            numbers.count(estimate.n_missing) if estimate else "",
            reason_at(node, self._row),
            lowest,
        )

    def _rank_text(self, placed: PlacedNode) -> str:
        ranks = rank_at(placed.node, self._row)
        if ranks is None or self._context.n_ranked[placed.index] < 2:
            return ""
        return f"{numbers.ranks(ranks)} of {self._context.n_ranked[placed.index]}"

    def _facts(self) -> Iterator[doc.Block]:
        """Show what is known of the model, such as its size and licence."""
        facts: Mapping[str, Any] = getattr(self._board.rows[self._row], "facts", {})
        texts = [
            (fact_title(key), fact_text(key, fact))
            for key, fact in facts.items()
            if fact is not None and fact != ""
        ]
        if texts:
            yield doc.Heading("The model")
            yield doc.Facts(texts)

    # -- the tasks ---------------------------------------------------------------------

    def _sections(self) -> list[tuple[PlacedNode, list[PlacedNode]]]:
        """List the tasks that the run has, each at its first node, with the task's slices."""
        sections: dict[str, tuple[PlacedNode, list[PlacedNode]]] = {}
        for placed in self._nodes:
            node = placed.node
            if node.kind == "task" and node.title in self._samples:
                sections.setdefault(node.title, (placed, []))
        for placed in self._nodes:
            node = placed.node
            if node.kind == "slice" and len(node.tasks) == 1:
                (task,) = node.tasks
                if task in sections:
                    sections[task][1].append(placed)
        return list(sections.values())

    def _task_sections(self) -> Iterator[doc.Block]:
        sections = self._sections()
        if not sections:
            return
        has_samples = any(samples.samples for samples in self._samples.values())
        yield doc.Heading("Samples to look at" if has_samples else "Task by task")
        if has_samples:
            yield doc.Note(self._selection_text(), "quiet")
        for placed, slices in sections:
            node = placed.node
            samples = self._samples[node.tasks[0]]
            blocks = list(self._task_blocks(placed, slices, samples))
            estimate = node.estimates[self._row]
            if len(sections) <= MAX_UNFOLDED_TASKS:
                yield doc.Heading(node.title, 3, placed.anchor)
                yield from blocks
                continue
            score = numbers.score(estimate, placed.unit)
            if samples.samples:
                score += f", {numbers.counted(len(samples.samples), 'sample')}"
            marks = ("", score)
            yield doc.Fold(placed.index, node.title, marks, blocks, placed.anchor)

    def _selection_text(self) -> str:
        run_name = self._run.name
        return (
            "Of each task: the lowest scores, the scores that a careful reader might"
            " dispute, and the answers on which judges differ most. All samples:"
            f" `evalwright runs samples {run_name}`, or `evalwright view {run_name}`."
        )

    def _task_blocks(
        self, placed: PlacedNode, slices: Sequence[PlacedNode], samples: TaskSamples
    ) -> Iterator[doc.Block]:
        yield doc.Note(self._number_sentence(placed))
        yield from self._slice_table(placed, slices, samples)
        many = len(self._board.tasks) > 1
        for outcomes in samples.outcomes:
            if len(outcomes.counts) > 1 or many:
                yield doc.Heading(f"{outcomes.task}, by {outcomes.scorer}", 4)
                yield _outcomes(outcomes, self._results.get(outcomes.task))
        yield from _judge_blocks(samples)
        anchors = self._sample_anchors(placed, samples)
        yield from _samples_section(
            samples, anchors, self._input_title(), judge_names(self._run)
        )

    def _input_title(self) -> str:
        cells = self._board.rows[self._row].cells.values()
        judged = any(cell.kind == HALLUCINATION for cell in cells)
        return "Source" if judged else "Input"

    def _number_sentence(self, placed: PlacedNode) -> str:
        node = placed.node
        estimate = node.estimates[self._row]
        score = numbers.score(estimate, placed.unit)
        phrases = [f"{node.metric or node.title}: {score}"]
        if estimate:
            phrases.append(numbers.counted(estimate.n, "item"))
        if estimate and estimate.n_missing:
            phrases.append(f"{numbers.count(estimate.n_missing)} missing")
        if rank := self._rank_text(placed):
            phrases.append(f"rank {rank}")
        if reason := reason_at(node, self._row):
            phrases.append(reason)
        return f"{', '.join(phrases)}."

    def _sample_anchors(
        self, placed: PlacedNode, samples: TaskSamples
    ) -> Sequence[str]:
        return [f"s-{placed.index}-{i}" for i in range(len(samples.samples))]

    def _slice_table(
        self, placed: PlacedNode, slices: Sequence[PlacedNode], samples: TaskSamples
    ) -> Iterator[doc.Block]:
        """Build the table of a task's slices, each with an anchor and its lowest sample."""
        if not slices:
            return
        anchors = self._sample_anchors(placed, samples)
        rows = []
        for inner in slices:
            lowest: doc.Content = ""
            position = samples.lowest_by_slice.get(inner.anchor)
            if position is not None and sample_texts(samples.samples[position]):
                lowest = doc.Cell(
                    samples.samples[position].id,
                    name=True,
                    link=f"#{anchors[position]}",
                )
            rows.append(
                self._number_row(
                    inner,
                    title=_slice_title(inner, placed.node.title),
                    anchor=inner.anchor,
                    indent=0,
                    lowest=lowest,
                )
            )
        yield doc.Table(
            self._number_columns(slices), rows, f"Slices of {placed.node.title}"
        )

    # -- the run -----------------------------------------------------------------------

    def _run_section(self) -> Iterator[doc.Block]:
        """Show all metrics of the run, how it was made, and what it used."""
        blocks = run_blocks(self._run, MOST_VALUES, MOST_COLUMNS)
        notes = [str(note) for note in _imported(self._run).get("notes", ())]
        blocks += [doc.Notes(notes)] if notes else []
        settings = list(_settings(self._run))
        prompts = list(_prompts(self._run))
        blocks += [doc.Heading("Settings"), doc.Facts(settings)] if settings else []
        blocks += [doc.Heading("Prompts"), *prompts] if prompts else []
        yield doc.Heading("The run")
        if len(self._results) <= MAX_UNFOLDED_TASKS:
            yield from blocks
            return
        title = "All metrics and slices, settings, prompts and usage"
        yield doc.Fold(0, title, ("", ""), blocks, "run-0")


def _slice_title(placed: PlacedNode, task: str) -> str:
    """Name a slice of a task: its title, or its keys where its title is that of the task."""
    if placed.node.title != task:
        return placed.node.title
    return ", ".join(f"{key} {text}" for key, text in placed.node.keys.items())


def _lede(board: Board, row_index: int) -> str:
    row = board.rows[row_index]
    total = sum(other_row.ranks is not None for other_row in board.rows)
    rank = (
        [f"rank {numbers.ranks(row.ranks)} of {total}"]
        if row.ranks and total > 1
        else []
    )
    return ", ".join([*rank, f"{coverage(row)} items scored", row.date])


def _card(column: ScoreColumn, row_index: int) -> doc.Card:
    estimates = [estimate for estimate in column.estimates if estimate]
    others = [
        estimate.value
        for i, estimate in enumerate(column.estimates)
        if estimate and i != row_index and estimate.value == estimate.value
    ]
    number = doc.Number(column.estimates[row_index], column.unit)
    return doc.Card(
        column.title,
        score_note(column),
        number,
        axis_of(estimates, column.unit),
        others,
    )


def _outcomes(outcomes: Outcomes, task: TaskResult | None) -> doc.Table:
    """Build the table of one scorer's outcomes, each as a share of the rates' denominator."""
    n_labelled = sum(count for _, count in outcomes.counts)
    n_unlabelled = max(0, task.n_samples - n_labelled) if task else 0
    # Samples without a label failed before they were scored, or the scorer does not apply to them.
    n_missing = min(task.n_missing, n_unlabelled) if task else 0
    kinds = (
        {metric.kind for metric in task.metrics if metric.scorer == outcomes.scorer}
        if task
        else set()
    )
    base = n_labelled + n_missing if kinds & RATES_OF_ALL else n_labelled
    share_title = f"Share of {numbers.count(base)}"
    columns = [
        *doc.columns("Outcome*", "Samples>"),
        doc.Column(share_title, "counted, so without interval", right=True),
        doc.Column(""),
    ]
    rows: list[Sequence[doc.Content]] = [
        _share_row(label, count, base) for label, count in outcomes.counts
    ]
    if n_missing and kinds & RATES_OF_ALL:
        rows.append(_share_row("missing", n_missing, base))
    elif n_missing:
        rows.append(("missing", numbers.count(n_missing), "", ""))
    if n_without_score := n_unlabelled - n_missing:
        rows.append(("no score", numbers.count(n_without_score), "", ""))
    return doc.Table(columns, rows, f"Outcomes of {outcomes.task} by {outcomes.scorer}")


def _share_row(label: str, count: int, base: int) -> Sequence[doc.Content]:
    share = count / base
    return (
        label,
        numbers.count(count),
        f"{100 * share:.1f}%",
        doc.Cell(stretch=(0.0, share)),
    )


# -- samples ---------------------------------------------------------------------------


def _judge_blocks(samples: TaskSamples) -> Iterator[doc.Block]:
    """Count on how many answers the judges differ, and how often each is alone."""
    if not samples.n_judged:
        return
    share = 100 * samples.n_disputed / samples.n_judged
    yield doc.Heading("Judges", 4)
    yield doc.Note(
        f"The judges disagree on {numbers.count(samples.n_disputed)} of"
        f" {numbers.counted(samples.n_judged, 'answer')} that at least two of them read"
        f" ({share:.1f}%)."
    )
    columns = [
        *doc.columns("Judge*", "Scorer~", "Answers>", "Passed>"),
        doc.Column("Alone", "all others say the opposite", right=True),
    ]
    yield doc.Table(
        columns, [_judge_row(counts) for counts in samples.judges], "Judges' verdicts"
    )


def _judge_row(counts: JudgeCounts) -> Sequence[doc.Content]:
    return (
        doc.Cell(counts.judge, name=True),
        doc.Cell(counts.scorer, name=True),
        numbers.count(counts.n),
        numbers.count(counts.n_passed),
        numbers.count(counts.n_alone),
    )


def _samples_section(
    samples: TaskSamples,
    anchors: Sequence[str],
    input_title: str,
    judges: Mapping[str, str],
) -> Iterator[doc.Block]:
    """Show the chosen samples of a task; of those without texts, only the ids and scores."""
    judged = input_title == "Source"
    if samples.samples:
        title = "Judged inconsistent with the source" if judged else "Scored low"
        yield doc.Heading(f"{title}, unsure or disputed: examples", 4)
    without_texts = []
    for sample, anchor in zip(samples.samples, anchors, strict=True):
        if sample_texts(sample, input_title):
            yield from sample_blocks(sample, anchor, input_title, judges)
        else:
            without_texts.append(f"{sample.id} ({sample.score:.3g})")
    if without_texts:
        yield doc.Note(
            "The record has no texts, only scores. Samples worth a look, with their scores:"
            f" {', '.join(without_texts)}.",
            "quiet",
        )


def sample_blocks(
    sample: ShownSample,
    anchor: str,
    input_title: str = "Input",
    judges: Mapping[str, str] | None = None,
) -> Iterator[doc.Block]:
    """Show one sample: why it is here, its texts, and what each judge said of its sentences.

    Args:
        sample: The sample; `sample.record` is its whole record.
        anchor: The name by which the page links to it.
        input_title: What the page calls the sample's input.
        judges: The judges' names by role.
    """
    yield doc.Heading(sample.id, 4, anchor)
    phrases = [
        *([f"draw {sample.draw + 1}"] if sample.draw else []),
        *([] if math.isnan(sample.score) else [f"score {sample.score:.3g}"]),
        *([sample.label] if sample.label else []),
        *(REASON_WORDS[reason] for reason in sample.reasons),
    ]
    yield doc.Note(", ".join(phrases), "quiet")
    if sample.unsure:
        yield doc.Note(f"Unsure: {_clip(sample.unsure)}", "warn")
    if sample.verdicts:
        yield doc.Text("Judges", "\n".join(map(_verdict_line, sample.verdicts)))
    for title, text in sample_texts(sample, input_title):
        yield doc.Text(title, text)
    yield from sentence_blocks(sample.record, judges or {})


def _verdict_line(verdict: JudgeVerdict) -> str:
    vote = verdict.label or ("pass" if verdict.passes else "fail")
    return f"{verdict.judge} ({verdict.scorer}): {vote}, {verdict.number:.3g}"


def sample_texts(
    sample: ShownSample, input_title: str = "Input"
) -> tuple[tuple[str, str], ...]:
    """Return the titles and shortened texts of a sample; empty ones are left out."""
    record = sample.record
    score = record["scores"].get(sample.scorer) or {}
    return tuple(
        (title, _clip(text.strip()))
        for title, text in _texts(record, score, input_title)
        if text.strip()
    )


def _clip(text: str) -> str:
    if len(text) <= LONGEST_TEXT_CHARS:
        return text
    return f"{text[:LONGEST_TEXT_CHARS].rstrip()} …"


def _texts(
    row: Mapping[str, Any], score: Mapping[str, Any], input_title: str
) -> Iterator[tuple[str, str]]:
    passages: Sequence[Mapping[str, Any]] = row.get("passages", ())
    for passage in passages:
        yield "Source", str(passage.get("text", ""))
    if row["input"] and not any(
        row["input"] == passage.get("text") for passage in passages
    ):
        # Beside passages an input is a question or an id, not the source.
        yield ("Input" if passages else input_title), str(row["input"])
    if row["targets"]:
        yield "Target", ", ".join(map(str, row["targets"][:5]))
    elif (calls := expected_calls(row)) is not None:
        yield "Target", calls
    yield "Steps", loop_words(row)
    yield "Answer", whole_answer(row)
    yield "Explanation", str(score.get("explanation", ""))


# -- the run's settings ----------------------------------------------------------------


def _imported(run: Run) -> Mapping[str, Any]:
    imported = run.data["configuration"].get("imported", {})
    return imported if isinstance(imported, Mapping) else {}


def _settings(run: Run) -> Iterator[tuple[str, str]]:
    """List the model's arguments, and how each task draws answers."""
    for key, setting in _imported(run).get("settings", {}).items():
        if key != "prompt" and setting is not None:
            yield key, str(setting)
    for model in run.data["configuration"].get("models", ()):
        if isinstance(model, Mapping):
            for key, setting in model.get("arguments", {}).items():
                yield key, str(setting)
    many_tasks = len(run.data["tasks"]) > 1
    for task in run.data["tasks"]:
        definition = task.get("definition", {})
        answer = definition.get("answer")
        for key, setting in answer.items() if isinstance(answer, Mapping) else ():
            yield (f"{task['name']}: {key}" if many_tasks else key), str(setting)
        for key in ("judge", "threshold"):
            if key in definition:
                yield key, str(definition[key])


def _prompts(run: Run) -> Iterator[doc.Text]:
    many_tasks = len(run.data["tasks"]) > 1
    for task in run.data["tasks"]:
        definition = task.get("definition", {})
        prompt = definition.get("prompt")
        templates = prompt if isinstance(prompt, Mapping) else {}
        texts = [("System", templates.get("system")), ("User", templates.get("user"))]
        texts.append(("Prompt", definition.get("summary_prompt")))
        for name, text in texts:
            if isinstance(text, str) and text.strip():
                yield doc.Text(
                    f"{task['name']}, {name.lower()}" if many_tasks else name,
                    text.strip(),
                )
