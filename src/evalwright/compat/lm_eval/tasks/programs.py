"""The metric `code_eval` of the library `evaluate`, run in our sandbox.

Modules of humaneval, mbpp and similar tasks load that metric on import and call it for each row.
They get this one, which runs nothing in this process: a candidate and its tests run as in
`scorers.code`.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import comb
from types import ModuleType
from typing import Any

from evalwright.extend import run_program

CODE_METRIC = "code_eval"
SECONDS = 10.0
"""Time limit of a candidate and its tests; 3 in `evaluate`.

Tests call a program in another process here, which takes longer.
"""


class SandboxedCodeEval:
    """Replaces `evaluate.load("code_eval")`."""

    name = CODE_METRIC

    def compute(
        self,
        *,
        references: Sequence[str],
        predictions: Sequence[Sequence[str]],
        k: Sequence[int] = (1, 10, 100),
        **ignored: Any,
    ) -> tuple[dict[str, float], dict[int, list[Any]]]:
        """Run candidates with their tests.

        Args:
            references: for each problem its tests, a program.
            predictions: for each problem its candidates, programs.
            k: of which pass@k is estimated, where every problem has as many candidates.
            ignored: numbers of processes and limits, which are the sandbox's here.

        Returns:
            pass@k by name, and for each problem (candidate, what became of it).

        Raises:
            ScoringError: there is no sandbox here.
        """
        outcomes: dict[int, list[Any]] = {}
        passed: list[tuple[int, int]] = []
        for problem, (candidates, tests) in enumerate(
            zip(predictions, references, strict=True)
        ):
            labels = [
                run_program(candidate, tests, seconds=SECONDS).label
                for candidate in candidates
            ]
            outcomes[problem] = [
                (
                    number,
                    {
                        "task_id": problem,
                        "passed": label == "passed",
                        "result": label,
                        "completion_id": number,
                    },
                )
                for number, label in enumerate(labels)
            ]
            passed.append((len(labels), labels.count("passed")))
        estimates = {}
        for size in k:
            if all(total >= size for total, _ in passed):
                chances = [pass_at_k(total, right, size) for total, right in passed]
                estimates[f"pass@{size}"] = sum(chances) / len(passed)
        return estimates, outcomes


def pass_at_k(total: int, right: int, size: int) -> float:
    """The chance that one of `size` candidates drawn from `total` passes, if `right` of them do.

    Chen et al. 2021.
    """
    return 1.0 - comb(total - right, size) / comb(total, size)


@contextmanager
def code_metric_in_sandbox() -> Iterator[None]:
    """Make `evaluate.load("code_eval")` return the sandboxed metric within the block.

    Works whether or not `evaluate` is installed.
    """
    if importlib.util.find_spec("evaluate") is None and "evaluate" not in sys.modules:
        stand_in = ModuleType("evaluate")
        stand_in.__dict__["load"] = _intercept_load(_not_installed)
        sys.modules["evaluate"] = stand_in
        try:
            yield
        finally:
            sys.modules.pop("evaluate", None)
        return
    library: Any = importlib.import_module("evaluate")
    load = library.load
    library.load = _intercept_load(load)
    try:
        yield
    finally:
        library.load = load


def _intercept_load(load: Callable[..., Any]) -> Callable[..., Any]:
    def loaded(path: str, *arguments: Any, **options: Any) -> Any:
        return (
            SandboxedCodeEval()
            if path == CODE_METRIC
            else load(path, *arguments, **options)
        )

    return loaded


def _not_installed(path: str, *arguments: Any, **options: Any) -> Any:
    raise ModuleNotFoundError("No module named 'evaluate'", name="evaluate")


def runs_in_sandbox(functions: Iterator[Callable[..., Any]]) -> bool:
    """Whether a module of one of a task's functions uses the sandboxed metric."""
    return any(
        _has_sandboxed_metric(getattr(function, "__globals__", None) or {})
        for function in functions
    )


def _has_sandboxed_metric(names: Mapping[str, Any]) -> bool:
    return any(
        isinstance(attribute, SandboxedCodeEval) for attribute in list(names.values())
    )
