"""`EvaluationResult`: metrics, samples and info of an evaluation, with access like a dict, a table, JSON, citations and a report."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.compat.hret.internal.benchhub_info import citation_report
from evalwright.compat.hret.rows import plain
from evalwright.compat.hret.settings import Rows
from evalwright.compat.hret.utils.analysis import analyse, as_markdown
from evalwright.tasks.files import write_text

if TYPE_CHECKING:
    from evalwright.runs.reader import Run

_FIELDS = ("metrics", "samples", "info")


@dataclass(eq=False, repr=False)
class EvaluationResult:
    """metrics: by name. samples: a dict for each, with `prediction`, `evaluation` and more. info: about the evaluation. run: its record,
    None for a result that no run stands behind."""

    metrics: dict[str, Any]
    samples: Rows
    info: dict[str, Any]
    run: Run | None = None

    def to_dict(self) -> dict[str, Any]:
        """The three parts."""
        return {name: getattr(self, name) for name in _FIELDS}

    def to_dataframe(self) -> Any:
        """A pandas table with a row for each sample; what `evaluation` holds becomes columns `eval_...`."""
        import pandas as pd

        rows = []
        for sample in self.samples:
            row = dict(sample)
            found = row.pop("evaluation", None)
            inner = found if isinstance(found, Mapping) else {}
            rows.append({**row, **{f"eval_{key}": value for key, value in inner.items()}})
        return pd.DataFrame(rows)

    def save_json(self, path: str | os.PathLike[str]) -> None:
        """Write the three parts as JSON; what JSON does not know becomes its text. The file is there whole, or as it was before."""
        write_text(Path(path), as_json(self.to_dict()))

    def benchhub_citation_report(self, output_path: str | os.PathLike[str]) -> None:
        """Write a LaTeX table of the benchmarks with their numbers of samples, and the BibTeX entries.

        Raises ValueError where the samples are not BenchHub's.
        """
        if "benchmark_details" not in self.info:
            raise ValueError(
                "This report needs the result of a BenchHub evaluation: the benchmarks of its samples are not known "
                "('benchmark_details' is not in its info)."
            )
        write_text(Path(output_path), citation_report(self.samples))

    def analysis_report(self, top_n: int = 5, output_format: str = "markdown") -> str | dict[str, Any]:
        """Whole, by subset, in words, errors and examples, as Markdown or as a dict. Needs no language model.

        Raises ValueError for another format.
        """
        if output_format not in ("markdown", "dict"):
            raise ValueError(f"Unsupported output format: {output_format}. Use 'markdown' or 'dict'.")
        if not self.samples:
            return "No samples available for analysis."
        found = analyse(self.samples, self.metrics, top_n)
        return found if output_format == "dict" else as_markdown(found)

    def __repr__(self) -> str:
        return f"EvaluationResult(metrics={self.metrics}, info={self.info}, samples=[...])"

    def __getitem__(self, key: str) -> Any:
        if key not in _FIELDS:
            raise KeyError(f"'{key}' is not a valid key. Use 'metrics', 'samples', or 'info'.")
        return getattr(self, key)

    def __contains__(self, key: object) -> bool:
        return key in _FIELDS

    def get(self, key: str, default: Any = None) -> Any:
        """As a dict's."""
        return getattr(self, key) if key in _FIELDS else default


def as_json(data: Any) -> str:
    """JSON for people; what JSON does not know becomes its text."""
    import json

    return json.dumps(plain(data), ensure_ascii=False, indent=2)


def _load_function(func_path: str) -> Callable[..., Any]:
    """The function of that dotted name. Raises ImportError, AttributeError or ValueError."""
    module, _, name = func_path.rpartition(".")
    found = getattr(import_module(module), name)
    if not callable(found):
        raise ValueError(f"'{func_path}' is not callable.")
    return found  # type: ignore[no-any-return]
