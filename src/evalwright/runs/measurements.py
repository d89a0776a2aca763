"""What a run reveals for planning others: scores by item and draw, tokens, cost and times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalwright.runs.reader import Run
from evalwright.runs.scores import NAN, ItemRows, padded, read_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_UNDER_TEST = "target"
"""The role of the model under test, which scorers can also ask."""


@dataclass(frozen=True, slots=True)
class RoleRequests:
    """What scoring took of the model in a role, one number per record of a sample.

    Attributes:
        requests: number of requests.
        input_tokens: tokens read.
        output_tokens: tokens written.
        cost: US dollars, nan where a reply gave no cost.
    """

    requests: NDArray[np.float64]
    input_tokens: NDArray[np.float64]
    output_tokens: NDArray[np.float64]
    cost: NDArray[np.float64]

    @property
    def counts_tokens(self) -> bool:
        """Whether the replies reported their token counts."""
        return bool(self.input_tokens.sum() > 0)


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of one task of one run, over n items.

    Attributes:
        run: the run.
        task: the task's name.
        metric: kind of the main metric.
        ids: (n,), the items in the order of the record.
        scores: (n, draws), of the main metric, nan is missing.
        clusters: (n,), a code for each item's cluster; None where every item is independent.
        requests: one per answer, like the next three: number of requests.
        input_tokens: tokens read.
        output_tokens: tokens written.
        cost: US dollars, nan where no reply gave a cost.
        roles: what each answer took of the models in roles, such as a judge, by role.
    """

    run: Run
    task: str
    metric: str
    ids: tuple[str, ...]
    scores: NDArray[np.float64]
    clusters: NDArray[np.int64] | None
    requests: NDArray[np.float64]
    input_tokens: NDArray[np.float64]
    output_tokens: NDArray[np.float64]
    cost: NDArray[np.float64]
    roles: Mapping[str, RoleRequests] = field(default_factory=dict)

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean score by item, shape (n,); nan where an item has none."""
        from evalwright.statistics.units import row_means

        return row_means(self.scores)

    @property
    def counts_tokens(self) -> bool:
        """Whether the replies reported their token counts."""
        return bool(self.input_tokens.sum() > 0)


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a run went.

    Attributes:
        requests: number of requests sent.
        seconds: duration of the run.
        latency: mean seconds of one answer.
    """

    requests: int
    seconds: float
    latency: float


@dataclass(slots=True)
class _Rows(ItemRows):
    answers: list[tuple[float, float, float, float]] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    by_role: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    n_scored: int = 0

    def add(self, row: Mapping[str, Any]) -> None:
        ItemRows.add(self, row)
        if not row.get("failure"):
            self._add_roles(row)
        responses = row.get("responses", ())
        if not responses:
            return
        usage = [response.get("usage", {}) for response in responses]
        costs = [response.get("cost") for response in responses]
        cost = NAN if None in costs else sum(map(float, costs))
        read, written = (
            sum(used.get(f"{way}_tokens", 0) for used in usage)
            for way in ("input", "output")
        )
        self.answers.append((len(responses), read, written, cost))
        self.latencies.extend(row.get("timing", {}).get("latency", ()))

    def _add_roles(self, row: Mapping[str, Any]) -> None:
        """Add up what the scorers of a record sent to other models, by role."""
        for exchanges in (row.get("exchanges") or {}).values():
            for exchange in exchanges:
                if exchange["role"] == _UNDER_TEST:
                    continue
                sums = self.by_role.setdefault(exchange["role"], {})
                row_sums = sums.setdefault(self.n_scored, [0.0] * 4)
                row_sums[0] += 1
                response = exchange.get("response")
                if response is None:  # it failed, and cost nothing that is known
                    continue
                usage = response.get("usage") or {}
                cost = response.get("cost")
                row_sums[1] += usage.get("input_tokens", 0)
                row_sums[2] += usage.get("output_tokens", 0)
                row_sums[3] += NAN if cost is None else float(cost)
        self.n_scored += 1

    def roles(self) -> dict[str, RoleRequests]:
        """What each record took of every role; zeros where it took nothing."""
        import numpy as np

        tables = {}
        for role, sums in self.by_role.items():
            table = np.zeros((self.n_scored, 4))
            for row_index, row_sums in sums.items():
                table[row_index] = row_sums
            tables[role] = RoleRequests(*(table[:, column] for column in range(4)))
        return tables


def measure(run: Run) -> tuple[dict[str, Measured], Pace]:
    """Measure the tasks of a run, by name, and its pace.

    Raises RunError where the records cannot be read.
    """
    import numpy as np

    mains = {task.name: task.main for task in run.tasks if task.main}
    rows = {name: _Rows(main.scorer) for name, main in mains.items()}
    read_rows(run, rows)
    latencies = [
        latency for task_rows in rows.values() for latency in task_rows.latencies
    ]
    usage = run.data["usage"]
    latency = float(np.mean(latencies)) if latencies else NAN
    pace = Pace(
        int(usage.get("asked", 0)), float(run.data.get("seconds", 0.0)), latency
    )
    return {
        name: _measured(run, name, mains[name].kind, task_rows)
        for name, task_rows in rows.items()
    }, pace


def judges_share(run: Run, answered: float) -> float:
    """Requests of other roles (judges) per request to the model under test.

    Args:
        run: the run.
        answered: number of requests to the model under test in the records.
    """
    usage = run.data["usage"]
    others = float(usage.get("requested", 0)) - float(usage.get("failed", 0)) - answered
    return max(0.0, others) / answered if run.data.get("roles") and answered else 0.0


def _measured(run: Run, task: str, metric: str, rows: _Rows) -> Measured:
    import numpy as np

    names = [
        cluster or f"\0{row_index}" for row_index, cluster in enumerate(rows.clusters)
    ]
    codes = (
        np.unique(np.array(names, dtype=object), return_inverse=True)[1]
        if any(rows.clusters)
        else None
    )
    table = np.array(rows.answers, dtype=np.float64).reshape(-1, 4)
    return Measured(
        run,
        task,
        metric,
        tuple(rows.ids),
        padded(rows.draws),
        None if codes is None else codes.astype(np.int64).reshape(-1),
        requests=table[:, 0],
        input_tokens=table[:, 1],
        output_tokens=table[:, 2],
        cost=table[:, 3],
        roles=rows.roles(),
    )
