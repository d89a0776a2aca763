"""`EvaluationResult`: metrics, samples and info of an evaluation, with access like a dict, a table,
JSON, citations and a report.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright import Run
from evalwright.compat.hret.internal.benchhub_info import citation_report
from evalwright.compat.hret.row_samples import Given, Rows, input_of, plain
from evalwright.extend import (
    AnsweredItem,
    analyse_answers,
    split_words,
    write_text,
)

_FIELDS = ("metrics", "samples", "info")


@dataclass(eq=False, repr=False)
class EvaluationResult:
    """metrics: by name. samples: a dict for each, with `prediction`, `evaluation` and more. info:
    about the evaluation. run: its record, None for a result that no run stands behind.
    """

    metrics: dict[str, Any]
    samples: Rows
    info: dict[str, Any]
    run: Run | None = None

    def to_dict(self) -> dict[str, Any]:
        """The three parts."""
        return {name: getattr(self, name) for name in _FIELDS}

    def to_dataframe(self) -> Any:
        """A pandas table with a row for each sample; what `evaluation` holds becomes columns
        `eval_...`.
        """
        import pandas as pd

        rows = []
        for sample in self.samples:
            row = dict(sample)
            evaluation = row.pop("evaluation", None)
            inner = evaluation if isinstance(evaluation, Mapping) else {}
            rows.append(
                {**row, **{f"eval_{key}": value for key, value in inner.items()}}
            )
        return pd.DataFrame(rows)

    def save_json(self, path: str | os.PathLike[str]) -> None:
        """Write the three parts as JSON; what JSON does not know becomes its text.

        The file is there whole, or as it was before.
        """
        write_text(Path(path), as_json(self.to_dict()))

    def benchhub_citation_report(self, output_path: str | os.PathLike[str]) -> None:
        """Write a LaTeX table of the benchmarks with their numbers of samples, and the BibTeX
        entries.

        Raises ValueError where the samples are not BenchHub's.
        """
        if "benchmark_details" not in self.info:
            raise ValueError(
                "This report needs the result of a BenchHub evaluation: the benchmarks"
                " of its samples are not known ('benchmark_details' is not in its"
                " info)."
            )
        write_text(Path(output_path), citation_report(self.samples))

    def analysis_report(
        self, top_n: int = 5, output_format: str = "markdown"
    ) -> str | dict[str, Any]:
        """Whole, by subset, in words, errors and examples, as Markdown or as a dict.

        Needs no language model.

        Raises ValueError for another format.
        """
        if output_format not in ("markdown", "dict"):
            raise ValueError(
                f"Unsupported output format: {output_format}. Use 'markdown' or 'dict'."
            )
        if not self.samples:
            return "No samples available for analysis."
        report = _analyse(self.samples, self.metrics, top_n)
        return report if output_format == "dict" else _as_markdown(report)

    def __repr__(self) -> str:
        return (
            f"EvaluationResult(metrics={self.metrics}, info={self.info}, samples=[...])"
        )

    def __getitem__(self, key: str) -> Any:
        if key not in _FIELDS:
            raise KeyError(
                f"'{key}' is not a valid key. Use 'metrics', 'samples', or 'info'."
            )
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


# -- the analysis, in the five sections of HRET's report --

_SHOWN = 300


def _analyse(samples: Sequence[Given], metrics: Given, top_n: int) -> dict[str, Any]:
    """The report as data. Samples without a verdict are counted apart."""
    items = [
        _item(str(sample_index), sample) for sample_index, sample in enumerate(samples)
    ]
    analysis = analyse_answers(items, top=top_n, examples=1)
    right = [sample_item for sample_item in items if sample_item.score == 1]
    wrong = [sample_item for sample_item in items if sample_item.score == 0]
    judged = analysis.n_right + analysis.n_wrong
    accuracy = metrics.get("accuracy", analysis.n_right / judged if judged else None)
    subsets = {subset.name: subset.score.value for subset in analysis.subsets} or {
        sample_item.subset: analysis.score.value
        for sample_item in items[:1]
        if sample_item.subset
    }
    sides = (("correct_predictions", right), ("incorrect_predictions", wrong))
    words_in_wrong = Counter(
        word
        for sample_item in wrong
        for word in split_words(sample_item.answer)
        if len(word) > 1 and word.isalpha()
    )
    empty = sum(not sample_item.answer.strip() for sample_item in wrong)
    errors = {
        "top_error_keywords": dict(words_in_wrong.most_common(top_n)),
        "frequent_confusions": {
            f"{target} -> {answer}": n for answer, target, n in analysis.wrong_answers
        },
        "empty_answers": {"empty": empty} if empty else {},
    }
    return {
        "summary": {
            "total_samples": len(items),
            "num_correct": analysis.n_right,
            "num_incorrect": analysis.n_wrong,
            "num_without_verdict": len(items) - judged,
            "accuracy": None if accuracy is None else f"{accuracy:.2%}",
            "other_metrics": {
                name: value for name, value in metrics.items() if name != "accuracy"
            },
        },
        "subsets": {
            name: f"{value:.2%}"
            for name, value in sorted(subsets.items())
            if value == value
        },
        "linguistic_quality": {
            name: {
                "lexical_diversity_ttr": (
                    f"{words.type_token_ratio if words.words else 0.0:.4f}"
                ),
                "mean_length": (f"{_mean_answer_length(side_items):.1f}"),
            }
            for (name, side_items), words in zip(
                sides, analysis.vocabulary, strict=True
            )
        },
        "error_analysis": errors if wrong else {},
        "examples": {
            name: dict(samples[int(example.id)])
            for name, example_items in (
                ("best_case", analysis.examples_right),
                ("worst_case", analysis.examples_wrong),
            )
            for example in example_items
        },
    }


def _mean_answer_length(items: Sequence[AnsweredItem]) -> float:
    """In characters; 0 of nothing."""
    return sum(len(item.answer) for item in items) / (len(items) or 1)


def _item(name: str, sample: Given) -> AnsweredItem:
    evaluation_field = sample.get("evaluation")
    evaluation = evaluation_field if isinstance(evaluation_field, Mapping) else {}
    verdict = (
        evaluation.get("is_correct") if evaluation else sample.get("judge_correct")
    )
    raw = sample.get("original_prediction", sample.get("prediction"))
    return AnsweredItem(
        name,
        question=input_of(sample),
        target=str(evaluation.get("normalized_ref", sample.get("reference", ""))),
        answer="" if raw is None else str(raw),
        score=float(verdict) if isinstance(verdict, bool) else None,
        subset=str(sample.get("_subset_name", "")),
    )


def _as_markdown(report: Given) -> str:
    """All five sections."""
    lines = ["# LLM Performance Analysis Report", "", "## 1. Overall Performance"]
    summary = dict(report["summary"])
    others = summary.pop("other_metrics")
    lines += [
        f"- **{_title(key)}**: {'not known' if figure is None else figure}"
        for key, figure in summary.items()
    ]
    if others:
        lines += [
            "- **Other Metrics**:",
            *(f"  - {key}: {value}" for key, value in others.items()),
        ]
    lines += ["", "## 2. Subsets"]
    lines += [
        f"- {_cell(name)}: {value}" for name, value in report["subsets"].items()
    ] or ["- none"]
    lines += ["", "## 3. Linguistic Quality"]
    for name, quality in report["linguistic_quality"].items():
        lines.append(
            f"- **{_title(name)}**:"
            f" {', '.join(f'{key} {value}' for key, value in quality.items())}"
        )
    lines += ["", "## 4. Error Analysis"]
    for name, quality in report["error_analysis"].items():
        listing = (
            ", ".join(f"{_cell(key)} ({count})" for key, count in quality.items())
            or "none"
        )
        lines.append(f"- **{_title(name)}**: {listing}")
    lines += ["", "## 5. Examples"]
    for name, sample in report["examples"].items():
        lines.append(f"- **{_title(name)}**")
        lines += [
            f"  - {key}: {_cell(sample.get(key))}"
            for key in ("input", "reference", "prediction")
        ]
    return "\n".join(lines)


def _title(name: str) -> str:
    return name.replace("_", " ").title()


def _cell(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
