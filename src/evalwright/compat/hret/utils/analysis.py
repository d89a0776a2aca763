"""HRET's report of an analysis, in its five sections, made of our own analysis of answers (`analysis/answers.py`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.analysis.answers import Item, words_of
from evalwright.analysis.answers import analyse as analysed
from evalwright.compat.hret.rows import input_of
from evalwright.compat.hret.settings import Given

_SHOWN = 300


def analyse(samples: Sequence[Given], metrics: Given, top_n: int) -> dict[str, Any]:
    """The report as data. Samples without a verdict are counted apart."""
    items = [_item(str(place), sample) for place, sample in enumerate(samples)]
    found = analysed(items, top=top_n, examples=1)
    right = [one for one in items if one.score == 1]
    wrong = [one for one in items if one.score == 0]
    judged = found.n_right + found.n_wrong
    accuracy = metrics.get("accuracy", found.n_right / judged if judged else None)
    subsets = {one.name: one.score.value for one in found.subsets} or {
        one.subset: found.score.value for one in items[:1] if one.subset
    }
    sides = (("correct_predictions", right), ("incorrect_predictions", wrong))
    said = Counter(word for one in wrong for word in words_of(one.answer) if len(word) > 1 and word.isalpha())
    empty = sum(not one.answer.strip() for one in wrong)
    errors = {
        "top_error_keywords": dict(said.most_common(top_n)),
        "frequent_confusions": {f"{target} -> {answer}": n for answer, target, n in found.wrong_answers},
        "empty_answers": {"empty": empty} if empty else {},
    }
    return {
        "summary": {
            "total_samples": len(items),
            "num_correct": found.n_right,
            "num_incorrect": found.n_wrong,
            "num_without_verdict": len(items) - judged,
            "accuracy": None if accuracy is None else f"{accuracy:.2%}",
            "other_metrics": {name: value for name, value in metrics.items() if name != "accuracy"},
        },
        "subsets": {name: f"{value:.2%}" for name, value in sorted(subsets.items()) if value == value},
        "linguistic_quality": {
            name: {
                "lexical_diversity_ttr": f"{words.type_token_ratio if words.words else 0.0:.4f}",
                "mean_length": f"{sum(len(one.answer) for one in own) / (len(own) or 1):.1f}",
            }
            for (name, own), words in zip(sides, found.vocabulary, strict=True)
        },
        "error_analysis": errors if wrong else {},
        "examples": {
            name: dict(samples[int(one.id)])
            for name, several in (("best_case", found.examples_right), ("worst_case", found.examples_wrong))
            for one in several
        },
    }


def _item(name: str, sample: Given) -> Item:
    found = sample.get("evaluation")
    evaluation = found if isinstance(found, Mapping) else {}
    verdict = evaluation.get("is_correct") if evaluation else sample.get("judge_correct")
    raw = sample.get("original_prediction", sample.get("prediction"))
    return Item(
        name,
        question=input_of(sample),
        target=str(evaluation.get("normalized_ref", sample.get("reference", ""))),
        answer="" if raw is None else str(raw),
        score=float(verdict) if isinstance(verdict, bool) else None,
        subset=str(sample.get("_subset_name", "")),
    )


def as_markdown(report: Given) -> str:
    """All five sections."""
    lines = ["# LLM Performance Analysis Report", "", "## 1. Overall Performance"]
    summary = dict(report["summary"])
    others = summary.pop("other_metrics")
    lines += [f"- **{_title(key)}**: {'not known' if one is None else one}" for key, one in summary.items()]
    if others:
        lines += ["- **Other Metrics**:", *(f"  - {key}: {value}" for key, value in others.items())]
    lines += ["", "## 2. Subsets"]
    lines += [f"- {_cell(name)}: {value}" for name, value in report["subsets"].items()] or ["- none"]
    lines += ["", "## 3. Linguistic Quality"]
    for name, found in report["linguistic_quality"].items():
        lines.append(f"- **{_title(name)}**: {', '.join(f'{key} {value}' for key, value in found.items())}")
    lines += ["", "## 4. Error Analysis"]
    for name, found in report["error_analysis"].items():
        shown = ", ".join(f"{_cell(key)} ({count})" for key, count in found.items()) or "none"
        lines.append(f"- **{_title(name)}**: {shown}")
    lines += ["", "## 5. Examples"]
    for name, sample in report["examples"].items():
        lines.append(f"- **{_title(name)}**")
        lines += [f"  - {key}: {_cell(sample.get(key))}" for key in ("input", "reference", "prediction")]
    return "\n".join(lines)


def _title(name: str) -> str:
    return name.replace("_", " ").title()


def _cell(value: Any) -> str:
    shown = " ".join(str(value).split())
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
