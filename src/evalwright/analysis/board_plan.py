"""What a leaderboard shows, before models are ranked: its tasks by unit, its tree, its numbers.

All numbers are in the order of the runs here; `board` ranks the models and puts them in order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from evalwright.analysis.board_nodes import find_node, split_keys, unknown_node
from evalwright.analysis.board_ranks import (
    Cells,
    NodeScores,
    rank_nodes,
    read_scores,
)
from evalwright.analysis.board_rows import BoardTask
from evalwright.analysis.board_slices import SliceMaker, SliceScores, check_keys
from evalwright.analysis.board_tree import (
    OVERALL,
    BoardNode,
    TreeMaker,
    UnitScores,
    dimension_title,
    find_in,
    replace_node,
    task_node,
)
from evalwright.analysis.node_ranks import MOST_PAIR_TERMS, NodeRanks
from evalwright.analysis.trees import (
    Average,
    common_trees,
    make_average,
    outer_first,
    overall_node,
)
from evalwright.analysis.words import normalise_label
from evalwright.core.errors import ConfigurationError
from evalwright.core.tasks import metadata_texts
from evalwright.metrics.dimension_titles import value_title
from evalwright.metrics.tree import Level, Node, distinct, with_shared_keys
from evalwright.runs.reader import Run
from evalwright.runs.regrouping import (
    declared_tree,
    task_metadata,
    tree_by,
    with_trees,
)
from evalwright.runs.results import MetricResult
from evalwright.statistics import Estimate
from evalwright.statistics.macro import TasksAre

SAME_NUMBER = 1e-6
"""How far an average may be from that of the items' scores to count as the same number."""

AS_PUBLISHED = (
    "another program published this average, and the items' scores do not give the same"
    " number"
)

Unit = tuple[bool, bool, str]
"""Whether values are bounded, whether lower ones are better, and the metric if not bounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPlan:
    """The tasks that share a unit, and how models are ranked on them.

    Args:
        tasks: the columns.
        cells: each run's metric by task.
        node: the node of the runs' tree that stands for all tasks, if there is one.
        overall: each run's mean over the tasks; empty if there is no such mean.
        scores: the item scores by which models are ranked, all of the tasks or some.
        all_scores: those of all tasks, of the runs that have all of them.
        ranked_node: id of the node at which they are ranked, "" for none.
        sorted_by: the number of each run by which the rows are sorted.
        lower_is_better: whether lower ones are better.
        ranked_tasks: the tasks that the rank is about.
        is_mixed: whether the tasks have metrics that cannot be averaged, so that there is no rank.
        why_unranked: why models are sorted without a rank, "" if they have one.
        notes: what must be said of how models are sorted.
    """

    tasks: tuple[BoardTask, ...]
    cells: tuple[Cells, ...]
    node: Node | None
    overall: tuple[Estimate | None, ...]
    scores: NodeScores
    all_scores: NodeScores
    ranked_node: str = ""
    sorted_by: tuple[Estimate | None, ...] = ()
    lower_is_better: bool
    ranked_tasks: tuple[str, ...] = ()
    is_mixed: bool
    why_unranked: str = ""
    notes: tuple[str, ...] = ()

    @property
    def is_unranked(self) -> bool:
        """Whether no model has a rank."""
        return self.is_mixed or bool(self.why_unranked)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardPlan:
    """The numbers of a board, in the order of the runs.

    Args:
        runs: the runs, with the averages of the board's tree.
        units: the tasks by unit, that of the ranked node first.
        roots: the tree.
        target: the node by which models are sorted and ranked.
        trees: the trees of the board's tasks.
        sources: by id of a node of `roots`, the node of these trees.
        task_keys: the metadata keys by which the tasks differ, fewest values first.
        made_by: whether the board's tree was made from metadata.
        metric: the metric shown, None for the main ones.
        tasks_are: as in `compare_runs`.
    """

    runs: Sequence[Run]
    units: tuple[UnitPlan, ...]
    roots: tuple[BoardNode, ...]
    target: BoardNode
    trees: tuple[Node, ...]
    sources: Mapping[str, Node]
    task_keys: tuple[str, ...]
    made_by: bool
    metric: str | None
    tasks_are: TasksAre

    def inner_nodes(self, unit: UnitPlan) -> list[Node]:
        """List the averages that a table shows beside the overall score, outer ones first."""
        trees = self.trees
        if self.made_by:
            names = {task.name for task in unit.tasks}
            trees = tuple(tree for tree in trees if names & {*tree.tasks})
        return [node for node in distinct(outer_first(trees)) if node != unit.node]


def plan_board(
    runs: Sequence[Run],
    columns: Sequence[BoardTask],
    metric: str | None,
    tasks_are: TasksAre,
    by: Sequence[str] = (),
    rank_by: str = "",
    beside: Sequence[str] = (),
    means: Mapping[str, Sequence[str]] | None = None,
    by_beside: Sequence[str] = (),
) -> BoardPlan:
    """Work out what a board shows.

    Args:
        runs: the runs.
        columns: its tasks.
        metric: the metric to show, None for the main ones.
        tasks_are: as in `compare_runs`.
        by: metadata keys that the tree is made of.
        rank_by: the node to rank by, "" for the headline score.
        beside: labels of further metrics of the tasks that the tree has as roots.
        means: by name, the tasks of further means that the tree has as roots.
        by_beside: metadata keys of tasks by which a further root is made, outermost first.

    Raises:
        UnknownName: there is no such metadata key or node.
        UsageError: several nodes fit `rank_by`.
    """
    planner = _Planner(runs, columns, metric, tasks_are, by, rank_by)
    planner.beside = tuple(beside)
    planner.means = means or {}
    planner.by_beside = tuple(by_beside)
    return planner.plan()


def collect_cells(
    run: Run, tasks: Sequence[BoardTask], metric: str | None
) -> dict[str, MetricResult]:
    """Collect a run's scores on the tasks of the board, by task."""
    names = {task.name for task in tasks}
    cells = {task.name: task.metric(metric) for task in run.tasks if task.name in names}
    return {name: cell for name, cell in cells.items() if cell is not None}


class _Planner:
    def __init__(
        self,
        runs: Sequence[Run],
        columns: Sequence[BoardTask],
        metric: str | None,
        tasks_are: TasksAre,
        by: Sequence[str],
        rank_by: str,
    ) -> None:
        self.runs = list(runs)
        self.columns = columns
        self.metric = metric
        self.tasks_are = tasks_are
        self.by = [key.strip() for key in by if key.strip()]
        self.rank_by = rank_by.strip()
        self.beside: tuple[str, ...] = ()
        self.means: Mapping[str, Sequence[str]] = {}
        self.by_beside: tuple[str, ...] = ()
        self.metadata = task_metadata(runs)
        self.task_keys = {
            key
            for values in self.metadata.values()
            for key, value in values.items()
            if metadata_texts(value)
        }
        self.cells = tuple(collect_cells(run, columns, metric) for run in runs)
        self.units = _group_by_unit(columns)
        self.trees: list[Node] = []
        self.cells_by_node: dict[str, Sequence[Cells]] = {}

    def plan(self) -> BoardPlan:
        nodes = self._make_trees()
        made_by = bool(nodes)
        if not nodes:
            nodes = {
                unit: self._with_keys(
                    overall_node(self.runs, [task.name for task in tasks])
                )
                for unit, tasks in self.units.items()
            }
        self._add_means()
        self._add_tree_beside()
        self._add_selected_tree()
        drafts = [self._draft(unit, nodes.get(unit)) for unit in self.units]
        is_without_trees = self.metric is not None and not self.trees
        trees = [] if is_without_trees else self._all_trees()
        unit_scores = [_scores_of(draft) for draft in drafts]
        maker = TreeMaker(self.runs, unit_scores, trees, self.metric)
        roots = (*self._add_slices(maker), *self._beside_nodes(maker))
        units = [self._rank_default(draft, roots) for draft in drafts]
        target = (
            find_node(roots, self._without_main_metric()) if self.rank_by else roots[0]
        )
        if target is None:
            target = self._metric_target(maker, roots)
            roots = (*roots, target)
        cells = self.cells_by_node.get(target.id, self.cells)
        if self.rank_by:
            units = self._rank_at(target, cells, units, maker.sources.get(target.id))
        return BoardPlan(
            runs=self.runs,
            units=tuple(units),
            roots=roots,
            target=target,
            trees=tuple(trees),
            sources=maker.sources,
            task_keys=self._dividing_keys(),
            made_by=made_by,
            metric=self.metric,
            tasks_are=self.tasks_are,
        )

    def _without_main_metric(self) -> str:
        """Return the node to rank by; a task alone where its metric is the one that is shown."""
        for column in self.columns:
            if self.rank_by == f"{column.name}.{column.metric}":
                return column.name
        return self.rank_by

    def _dividing_keys(self) -> tuple[str, ...]:
        """List the metadata keys by which the tasks fall into groups, fewest values first."""
        n_values: dict[str, int] = {}
        for key in sorted(self.task_keys):
            texts = [
                metadata_texts(values.get(key)) for values in self.metadata.values()
            ]
            n_different = len({text for task_texts in texts for text in task_texts})
            n_tasks = sum(map(bool, texts))
            if 1 < n_different < n_tasks:
                n_values[key] = n_different
        return tuple(sorted(n_values, key=lambda key: n_values[key]))

    # -- trees -------------------------------------------------------------------------

    def _make_trees(self) -> dict[Unit, Node | None]:
        """Make the trees that `by` asks for, or that suites ask for, over the tasks of all runs.

        Returns the node that stands for all tasks of each unit; nothing if the runs' trees do.
        """
        if not self.by:
            declared = declared_tree(self.runs)
            if declared is None or declared in common_trees(self.runs):
                return {}
            self._regroup([declared])
            names = {*declared.tasks}
            return {
                unit: declared if names & {task.name for task in tasks} else None
                for unit, tasks in self.units.items()
            }
        levels = [Level(key) for key in self.by if key in self.task_keys]
        nodes: dict[Unit, Node | None] = {}
        used_names = {*self.metadata}
        for unit, tasks in self.units.items():
            metadata = {task.name: self.metadata[task.name] for task in tasks}
            name = OVERALL if not nodes else f"{OVERALL} ({tasks[0].metric})"
            tree = (
                tree_by(metadata, levels, name=name, used_names=used_names)
                if levels
                else None
            )
            nodes[unit] = tree
            if tree is not None:
                used_names |= {node.name for node in tree.nodes()}
        trees = [tree for tree in nodes.values() if tree is not None]
        if trees:
            self._regroup(trees)
        return nodes if trees else {}

    def _regroup(self, trees: Sequence[Node], *, replaces: bool = True) -> None:
        self.runs = [
            with_trees(run, trees, self.metric, replaces=replaces) for run in self.runs
        ]
        self.trees += trees

    def _add_selected_tree(self) -> None:
        """Add the average of the tasks that `key=value` selects, where no level has that key."""
        value_by_key = split_keys(self.rank_by)
        if not value_by_key or not {*value_by_key} <= self.task_keys:
            return
        for tree in self._all_trees():
            if any(dict(node.keys).keys() == {*value_by_key} for node in tree.nodes()):
                return
        members = [
            column.name
            for column in self.columns
            if _has_values(self.metadata[column.name], value_by_key)
        ]
        if members:
            values = {
                key: metadata_texts(self.metadata[members[0]][key])[0]
                for key in value_by_key
            }
            node = Node(self.rank_by, tuple(members), keys=tuple(values.items()))
            self._regroup([node], replaces=False)

    def _add_means(self) -> None:
        """Add means over tasks that were asked for by name, unless a node has that name."""
        names = {column.name for column in self.columns}
        used_names = names | {
            node.name for tree in self._all_trees() for node in tree.nodes()
        }
        for name, tasks in self.means.items():
            members = tuple(task for task in tasks if task in names)
            if name not in used_names and len(members) > 1:
                self._regroup([Node(name, members)], replaces=False)

    def _add_tree_beside(self) -> None:
        """Add the tree by further metadata keys over the tasks of the headline's unit."""
        levels = [Level(key) for key in self.by_beside if key in self.task_keys]
        if not levels:
            return
        unit_tasks = next(iter(self.units.values()))
        metadata = {task.name: self.metadata[task.name] for task in unit_tasks}
        used_names = {*self.metadata} | {
            node.name for tree in self._all_trees() for node in tree.nodes()
        }
        name = f"By {dimension_title(levels[0].key).lower()}"
        tree = tree_by(metadata, levels, name=name, used_names=used_names)
        if tree is not None and len(tree.parts) > 1:
            self._regroup([tree], replaces=False)

    def _all_trees(self) -> list[Node]:
        return [*self.trees, *self._common_trees()]

    def _with_keys(self, node: Node | None) -> Node | None:
        return None if node is None else with_shared_keys(node, self.metadata)

    def _common_trees(self) -> list[Node]:
        """List the trees that all runs have, with the metadata that dialects' nodes select."""
        return [
            with_shared_keys(tree, self.metadata)
            for tree in common_trees(self.runs)
            if tree not in self.trees
        ]

    def _add_slices(self, maker: TreeMaker) -> tuple[BoardNode, ...]:
        """Build the tree, with slices by the keys that are no task's.

        Slices stand in the innermost groups that `by` makes of the tasks, else in the roots.
        """
        roots = maker.roots()
        slice_keys = tuple(key for key in self.by if key not in self.task_keys)
        selected_keys = tuple(split_keys(self.rank_by))
        is_known = bool(selected_keys) and find_node(roots, self.rank_by) is not None
        if is_known or {*selected_keys} & self.task_keys:
            selected_keys = ()
        keys = tuple(dict.fromkeys([*slice_keys, *selected_keys]))
        if not keys:
            return roots
        scores = SliceScores(self.runs, self.cells, keys)
        tasks = [column.name for column in self.columns]
        check_keys(self.runs, keys, self.task_keys, scores, tasks)
        slices = SliceMaker(scores, maker.ids)
        goes_by_tasks = len(slice_keys) < len(self.by)
        if slice_keys:
            add_slices = slices.below if goes_by_tasks else slices.at
            roots = tuple(add_slices(root, slice_keys) for root in roots)
        has_selected = any(
            part.keys.keys() == {*selected_keys} for part in roots[0].parts
        )
        if selected_keys and not has_selected:
            roots = (slices.at(roots[0], selected_keys), *roots[1:])
        return roots

    # -- numbers -----------------------------------------------------------------------

    def _draft(self, unit: Unit, node: Node | None) -> UnitPlan:
        """Read the scores of a unit's tasks, and average them."""
        tasks = tuple(self.units[unit])
        names = {task.name for task in tasks}
        cells = tuple(
            {name: cell for name, cell in run_cells.items() if name in names}
            for run_cells in self.cells
        )
        is_mixed = len(tasks) > 1 and not tasks[0].bounded
        scores = NodeScores({}, (), None, self.tasks_are)
        if not is_mixed:
            scores = read_scores(
                self.runs,
                cells,
                [task.name for task in tasks],
                node,
                self.tasks_are,
            )
        return UnitPlan(
            tasks=tasks,
            cells=cells,
            node=node,
            overall=_overall_scores(scores, cells),
            scores=scores,
            all_scores=scores,
            lower_is_better=tasks[0].lower_is_better,
            is_mixed=is_mixed,
        )

    def _rank_default(self, draft: UnitPlan, roots: Sequence[BoardNode]) -> UnitPlan:
        """Rank by the overall score, or by the only task."""
        first_task = draft.tasks[0].name
        first_scores = [cells.get(first_task) for cells in draft.cells]
        overall = draft.overall or (None,) * len(self.runs)
        names = {task.name for task in draft.tasks}
        rankable_ids = (
            node.id
            for node in find_in(roots)
            if draft.scores.average
            and names & {*node.tasks}
            and _gives(draft.scores, node)
        )
        return replace(
            draft,
            ranked_node=next(rankable_ids, ""),
            sorted_by=tuple(
                headline or (score.estimate if score else None)
                for headline, score in zip(overall, first_scores, strict=True)
            ),
        )

    def _metric_target(self, maker: TreeMaker, roots: Sequence[BoardNode]) -> BoardNode:
        """Find a metric of a task that the board does not show, as TASK.METRIC."""
        for column in self.columns:
            label = self.rank_by.removeprefix(f"{column.name}.")
            if label != self.rank_by:
                node = self._metric_node(maker, column.name, label, exactly=True)
                if node is not None:
                    return node
        others = dict.fromkeys(
            f"{task.name}.{metric.label}"
            for run in self.runs
            for task in run.tasks
            for metric in task.metrics
        )
        raise unknown_node(roots, self.rank_by, others)

    def _beside_nodes(self, maker: TreeMaker) -> Iterator[BoardNode]:
        """Build the roots of further metrics of the tasks."""
        for column in self.columns:
            for label in self.beside:
                node = self._metric_node(maker, column.name, label, exactly=False)
                if node is None:
                    continue
                title = normalise_label(label).capitalize()
                if len(self.columns) > 1:
                    title = f"{column.name}: {title}"
                yield replace(node, title=title)

    def _metric_node(
        self, maker: TreeMaker, task_name: str, label: str, *, exactly: bool
    ) -> BoardNode | None:
        """Build the node of another metric of a task; None if no run has it.

        Args:
            maker: gives the node its id, TASK.METRIC.
            task_name: the task.
            label: of the metric.
            exactly: whether case, spaces and dashes of the label count.
        """
        normalised = label if exactly else normalise_label(label)
        cells: list[Cells] = []
        for run in self.runs:
            metrics = next(
                (task.metrics for task in run.tasks if task.name == task_name), ()
            )
            matching = [
                metric
                for metric in metrics
                if normalised
                == (metric.label if exactly else normalise_label(metric.label))
            ]
            cells.append({task_name: matching[0]} if matching else {})
        labels = [
            run_cells[task_name].label for run_cells in cells if task_name in run_cells
        ]
        if not labels:
            return None
        node_id = maker.ids.new("", f"{task_name}.{labels[0]}")
        node = task_node(
            node_id, task_name, [run_cells.get(task_name) for run_cells in cells]
        )
        self.cells_by_node[node_id] = cells
        return replace(node, title=f"{task_name}.{labels[0]}")

    def _rank_at(
        self,
        target: BoardNode,
        cells: Sequence[Cells],
        units: Sequence[UnitPlan],
        source: Node | None,
    ) -> list[UnitPlan]:
        """Rank at a node, and put its unit first."""
        names = [column.name for column in self.columns if column.name in target.tasks]
        unit = next(
            (unit for unit in units if {*names} & {task.name for task in unit.tasks}),
            units[0],
        )
        others = [further_unit for further_unit in units if further_unit is not unit]
        if target.id == unit.ranked_node:
            return [unit, *others]
        scores, reason = self._target_scores(
            target, cells, names, source, unit.all_scores
        )
        ranked_by = f"'{target.title}'"
        if target.metric and target.metric not in target.title:
            ranked_by += f" ({target.metric})"
        note = f"Models are sorted and ranked by {ranked_by}."
        if reason:
            note = f"Models are sorted by {ranked_by}, without ranks: {reason}."
        ranked_unit = replace(
            unit,
            scores=scores,
            ranked_node="" if reason else target.id,
            sorted_by=target.estimates,
            lower_is_better=bool(target.lower_is_better),
            ranked_tasks=tuple(names),
            is_mixed=False,
            why_unranked=reason,
            notes=(note,),
        )
        return [ranked_unit, *others]

    def _target_scores(
        self,
        target: BoardNode,
        cells: Sequence[Cells],
        names: Sequence[str],
        source: Node | None,
        read_already: NodeScores,
    ) -> tuple[NodeScores, str]:
        """Read the item scores at a node, and say why there are no ranks.

        The scores that are known already are those of the metrics that the board shows.
        """
        nothing = NodeScores({}, (), None, self.tasks_are)
        if target.kind == "group" and source is None:
            return nothing, AS_PUBLISHED
        if target.lower_is_better is None and any(target.estimates):
            return nothing, "neither higher nor lower values are better"
        slices = (
            {
                key: value
                for key, value in target.keys.items()
                if key not in self.task_keys
            }
            if target.kind == "slice"
            else {}
        )
        if cells is not self.cells:
            read_already = NodeScores({}, (), None)
        scores = read_scores(
            self.runs, cells, names, source, self.tasks_are, slices, read_already
        )
        if scores.average is None:
            if not scores.positions:
                return scores, "no model has a number on all of its tasks"
            return scores, "its tasks have different units or directions, or no average"
        if not _gives(scores, target):
            return nothing, AS_PUBLISHED
        return scores, ""


def rank_plan(
    plan: BoardPlan, further: bool, most_pair_terms: int = MOST_PAIR_TERMS
) -> tuple[BoardPlan, list[NodeRanks | None]]:
    """Rank the models at the nodes that sort the boards of a plan, and at further nodes.

    Further nodes are taken outer ones first, while that is cheap. A node is left without ranks
    where the models that have its number are not those that are ranked on the board, so that
    their item scores would have to be read again.

    Args:
        plan: the board.
        further: whether to rank at further nodes.
        most_pair_terms: the work allowed for them, as of `rank_many`.

    Returns:
        The plan with the ranks of further nodes in its tree, and the ranks of each unit's board,
        None where it has none.
    """
    boards = [None if unit.why_unranked else unit.scores for unit in plan.units]
    candidates = _further_nodes(plan) if further else []
    averages = [average for _, _, average in candidates]
    ranks_by_unit, further_ranks = rank_nodes(boards, averages, most_pair_terms)
    replacements = {}
    for (node, scores, _), node_ranks in zip(candidates, further_ranks, strict=True):
        if node_ranks is not None:
            rows = [scores.positions.get(index) for index in range(len(plan.runs))]
            replacements[node.id] = _with_ranks(node, node_ranks, rows)
    roots = replace_node(plan.roots, replacements)
    return replace(plan, roots=roots), ranks_by_unit


def _further_nodes(plan: BoardPlan) -> list[tuple[BoardNode, NodeScores, Average]]:
    """List the nodes that no board is sorted by, with their averages; outer nodes first."""
    sorting = {unit.ranked_node for unit in plan.units}
    known_scores = [
        scores for unit in plan.units for scores in (unit.scores, unit.all_scores)
    ]
    further = []
    level = list(plan.roots)
    while level:
        for node in level:
            if node.id in sorting or node.kind == "slice":
                continue
            scores = _scores_with(known_scores, node)
            average = _average_at(node, scores, plan) if scores else None
            if scores is not None and average is not None:
                further.append((node, scores, average))
        level = [part for node in level for part in node.parts]
    return further


def _scores_with(
    known_scores: Sequence[NodeScores], node: BoardNode
) -> NodeScores | None:
    """Find the item scores of a node's tasks, of exactly the runs that have its number."""
    with_number = {
        index for index, estimate in enumerate(node.estimates) if estimate is not None
    }
    for scores in known_scores:
        tasks = {sample.measure.task for sample in scores.samples}
        if {*node.tasks} <= tasks and with_number == {*scores.positions}:
            return scores
    return None


def _average_at(node: BoardNode, scores: NodeScores, plan: BoardPlan) -> Average | None:
    """Average the item scores of a node's tasks; None if that does not give its number."""
    samples = {sample.measure.task: sample for sample in scores.samples}
    average: Average | None = Average((samples[node.tasks[0]],))
    if node.kind == "group":
        try:
            average = make_average(
                [samples[name] for name in node.tasks],
                plan.sources.get(node.id),
                plan.tasks_are,
            )
        except ConfigurationError:
            return None
    at_node = NodeScores(scores.positions, (), average, plan.tasks_are)
    return average if _gives(at_node, node) else None


def _with_ranks(
    node: BoardNode, node_ranks: NodeRanks, rows: Sequence[int | None]
) -> BoardNode:
    letters = node_ranks.letters or ("",) * len(node_ranks.ranks)
    return replace(
        node,
        ranks=tuple(None if row is None else node_ranks.ranks[row] for row in rows),
        letters=tuple("" if row is None else letters[row] for row in rows),
    )


def _has_values(
    metadata: Mapping[str, object], value_by_key: Mapping[str, str]
) -> bool:
    """Return whether a task's metadata has these values, as they are written or shown."""
    for key, value in value_by_key.items():
        texts = metadata_texts(metadata.get(key, ""))
        titles = [value_title(key, text) for text in texts]
        if value.lower() not in {text.lower() for text in (*texts, *titles)}:
            return False
    return True


def _gives(scores: NodeScores, node: BoardNode) -> bool:
    """Tell whether the items' scores have the numbers of a node as their average."""
    samples = scores.average.samples if scores.average else ()
    tolerance = max([1e-9, *(sample.measure.rounding for sample in samples)])
    for index, row in scores.positions.items():
        estimate = node.estimates[index]
        if estimate is None or scores.average is None:
            return False
        average = _mean_value(scores.average, row)
        if not math.isclose(
            average, estimate.value, rel_tol=SAME_NUMBER, abs_tol=tolerance
        ):
            return False
    return True


def _mean_value(average: Average, row: int) -> float:
    values = []
    for sample in average.samples:
        if sample.estimates:
            values.append(sample.estimates[row].value)
            continue
        scores = sample.values[row]
        scored = scores[~(scores != scores)]
        values.append(float(scored.mean()) if len(scored) else math.nan)
    weights = average.weights or (1.0,) * len(values)
    return math.fsum(
        weight * value for weight, value in zip(weights, values, strict=True)
    ) / math.fsum(weights)


def _overall_scores(
    scores: NodeScores, cells: Sequence[Cells]
) -> tuple[Estimate | None, ...]:
    """Compute each run's mean over the tasks; () if there is none."""
    average = scores.average
    if average is None:
        return ()
    overall: list[Estimate | None] = [None] * len(cells)
    for index, row in scores.positions.items():
        overall[index] = _overall_score(average, cells[index], row)
    return tuple(overall)


def _overall_score(average: Average, cells: Cells, row: int) -> Estimate:
    """The weighted mean of a run's own metrics, with the covariance of tasks that share units."""
    tasks = [matrix.measure.task for matrix in average.samples]
    if any(name not in cells for name in tasks):
        return average.mean(row)
    return average.mean(row, estimates=[cells[name].estimate for name in tasks])


def _scores_of(draft: UnitPlan) -> UnitScores:
    is_mean = len(draft.tasks) > 1 or draft.node is not None
    overall = draft.overall if is_mean else ()
    return UnitScores(draft.tasks, draft.cells, overall, draft.node)


def _group_by_unit(columns: Sequence[BoardTask]) -> dict[Unit, list[BoardTask]]:
    units: dict[Unit, list[BoardTask]] = {}
    for task in columns:
        unit = (task.bounded, task.lower_is_better, "" if task.bounded else task.metric)
        units.setdefault(unit, []).append(task)
    return units
