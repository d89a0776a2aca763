"""What is known of the benchmarks that BenchHub gathers, in HRET's shape, and its report of citations.

The facts stand in one table (`tasks/library/korean/benchmarks.toml`) and one .bib file, so that a key and its entry cannot differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evalwright.tasks.citations import Cited, benchmarks, cited_benchmark, library_entries, tex_table

TOOLS = ("kim2025benchhub", "lee2025hret", "evalwright")
"""What every report cites beside the benchmarks."""


@dataclass
class DatasetEntry:
    """A benchmark: its name in BenchHub's rows, its repository, its BibTeX entry and that entry's key, languages and licence."""

    dataset: str
    dataset_key: str
    citation_key: str
    citation: str
    anthology: str | None
    languages: list[str]
    license: str


DATASETS: list[DatasetEntry] = [
    DatasetEntry(
        name,
        one["dataset"],
        one["bibtex"],
        library_entries()[one["bibtex"]],
        one.get("anthology"),
        list(one["languages"]),
        one["licence"],
    )
    for name, one in benchmarks().items()
]


def benchmark_details(samples: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """`info["benchmark_details"]`: what is known of each benchmark that the samples are of, in the order of their first rows."""
    known = {entry.dataset: entry for entry in DATASETS}
    return {
        name: {
            "citation_key": known[name].citation_key,
            "citation": known[name].citation,
            "license": known[name].license,
            "anthology": known[name].anthology,
            "languages": known[name].languages,
        }
        for name in _counted(samples)
        if name in known
    }


def citation_report(samples: Iterable[Mapping[str, Any]]) -> str:
    """LaTeX table (`tab:eval-dataset`) and BibTeX for these samples. A benchmark that nothing is known of stands in it as "citation missing"."""
    rows: list[Cited] = [cited_benchmark(name, count) for name, count in sorted(_counted(samples).items())]
    entries = {key: library_entries()[key] for key in TOOLS}
    for row in rows:
        entries |= row.entries
    return "\n".join(
        [
            r"% Needs \usepackage{booktabs} and \usepackage{longtable}; the entries below belong into a .bib file.",
            r"The questions are chosen with BenchHub~\cite{kim2025benchhub} and the calls are those of HRET~\cite{lee2025hret}, run by",
            r"Evalwright~\cite{evalwright}. Table~\ref{tab:eval-dataset} lists the benchmarks that they are of.",
            "",
            tex_table(rows, caption="The benchmarks of the evaluation set."),
            "",
            "% BibTeX",
            "",
            "\n\n".join(entries.values()),
            "",
        ]
    )


def _counted(samples: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """How many samples each benchmark has."""
    names: Counter[str] = Counter()
    for sample in samples:
        about = sample.get("metadata")
        name = about.get("benchmark_name") if isinstance(about, Mapping) else None
        if name:
            names[str(name)] += 1
    return names
