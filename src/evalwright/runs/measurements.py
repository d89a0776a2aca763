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

    def add(self, row: Mapping[str, Any]) -> None:
        ItemRows.add(self, row)
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
        *(table[:, column] for column in range(4)),
    )
