"""What is known of the benchmarks that BenchHub gathers, in HRET's shape, and its report of
citations.

The facts stand in one table (`tasks/library/korean/benchmarks.toml`) and one .bib file, so that a
key and its entry cannot differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evalwright.compat.hret.row_samples import Given
from evalwright.extend import citation_of, citation_table, known_benchmarks

TOOLS = ("kim2025benchhub", "lee2025hret", "evalwright")
"""What every report cites beside the benchmarks."""


@dataclass
class DatasetEntry:
    """A benchmark: its name in BenchHub's rows, its repository, its BibTeX entry and that entry's
    key, languages and licence.
    """

    dataset: str
    dataset_key: str
    citation_key: str
    citation: str
    anthology: str | None
    languages: list[str]
    license: str


def _entry(name: str, table: Given) -> DatasetEntry:
    key = table["bibtex"]
    languages = list(table["languages"])
    cited = citation_of(name, table).entries[key]
    return DatasetEntry(
        name,
        table["dataset"],
        key,
        cited,
        table.get("anthology"),
        languages,
        table["licence"],
    )


DATASETS: list[DatasetEntry] = [
    _entry(name, table) for name, table in known_benchmarks().items()
]


def benchmark_details(samples: Iterable[Given]) -> dict[str, dict[str, Any]]:
    """`info["benchmark_details"]`: what is known of each benchmark that the samples are of, in the
    order of their first rows.
    """
    entry_by_dataset = {entry.dataset: entry for entry in DATASETS}
    columns = ("citation_key", "citation", "license", "anthology", "languages")
    dataset_names = (name for name in _counted(samples) if name in entry_by_dataset)
    return {
        name: {key: getattr(entry_by_dataset[name], key) for key in columns}
        for name in dataset_names
    }


def citation_report(samples: Iterable[Given]) -> str:
    """LaTeX table (`tab:eval-dataset`) and BibTeX for these samples.

    A benchmark that nothing is known of stands in it as "citation missing".
    """
    benchmarks = known_benchmarks()
    rows = [
        citation_of(name, benchmarks.get(name, {}), count)
        for name, count in sorted(_counted(samples).items())
    ]
    entries = dict(citation_of("", {"bibtex": TOOLS}).entries)
    for row in rows:
        entries |= row.entries
    return "\n".join(
        [
            (
                r"% Needs \usepackage{booktabs} and \usepackage{longtable}; the entries"
                r" below belong into a .bib file."
            ),
            (
                r"The questions are chosen with BenchHub~\cite{kim2025benchhub} and the"
                r" calls are those of HRET~\cite{lee2025hret}, run by"
            ),
            (
                r"Evalwright~\cite{evalwright}. Table~\ref{tab:eval-dataset} lists the"
                r" benchmarks that they are of."
            ),
            "",
            citation_table(rows, caption="The benchmarks of the evaluation set."),
            "",
            "% BibTeX",
            "",
            "\n\n".join(entries.values()),
            "",
        ]
    )


def _counted(samples: Iterable[Given]) -> Counter[str]:
    """How many samples each benchmark has."""
    about = (sample.get("metadata") for sample in samples)
    names = (
        metadata.get("benchmark_name")
        for metadata in about
        if isinstance(metadata, Mapping)
    )
    return Counter(str(name) for name in names if name)
