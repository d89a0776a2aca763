"""An analysis of samples: whole, by subset, their words, their errors, an example of each kind. Without a language model of its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_WORD = re.compile(r"[^\W\d_]{2,}")
_PARTICLES = re.compile(
    r"(?<=[가-힣]{2})(?:으로부터|에게서|이라는|이라고|으로서|으로써|입니다|습니다|에서|에게|까지|부터|처럼|보다|라고|이다|하다|은|는|이|가|을|를|에|의|로|와|과|도|만)$"
)
_SHOWN = 300


def analyse(samples: Sequence[Mapping[str, Any]], metrics: Mapping[str, Any], top_n: int) -> dict[str, Any]:
    """The report as data. Samples without a verdict are counted apart."""
    verdicts = [_verdict(sample) for sample in samples]
    right = [sample for sample, one in zip(samples, verdicts, strict=True) if one is True]
    wrong = [sample for sample, one in zip(samples, verdicts, strict=True) if one is False]
    judged = len(right) + len(wrong)
    accuracy = metrics.get("accuracy", len(right) / judged if judged else None)
    return {
        "summary": {
            "total_samples": len(samples),
            "num_correct": len(right),
            "num_incorrect": len(wrong),
            "num_without_verdict": len(samples) - judged,
            "accuracy": None if accuracy is None else f"{accuracy:.2%}",
            "other_metrics": {name: value for name, value in metrics.items() if name != "accuracy"},
        },
        "subsets": _subsets(samples, verdicts),
        "linguistic_quality": {
            "correct_predictions": _language(right),
            "incorrect_predictions": _language(wrong),
        },
        "error_analysis": _errors(wrong, top_n),
        "examples": {
            name: dict(found[0]) for name, found in (("best_case", right), ("worst_case", wrong)) if found
        },
    }


def as_markdown(report: Mapping[str, Any]) -> str:
    """All five sections."""
    lines = ["# LLM Performance Analysis Report", "", "## 1. Overall Performance"]
    for key, value in report["summary"].items():
        if key != "other_metrics":
            lines.append(f"- **{key.replace('_', ' ').title()}**: {'not known' if value is None else value}")
    if report["summary"]["other_metrics"]:
        lines.append("- **Other Metrics**:")
        lines += [f"  - {key}: {value}" for key, value in report["summary"]["other_metrics"].items()]
    lines += ["", "## 2. Subsets"]
    lines += [f"- {_cell(name)}: {value}" for name, value in report["subsets"].items()] or ["- none"]
    lines += ["", "## 3. Linguistic Quality"]
    for name, found in report["linguistic_quality"].items():
        lines.append(
            f"- **{name.replace('_', ' ').title()}**: " + ", ".join(f"{k} {v}" for k, v in found.items())
        )
    lines += ["", "## 4. Error Analysis"]
    for name, found in report["error_analysis"].items():
        shown = ", ".join(f"{_cell(key)} ({count})" for key, count in found.items()) or "none"
        lines.append(f"- **{name.replace('_', ' ').title()}**: {shown}")
    lines += ["", "## 5. Examples"]
    for name, sample in report["examples"].items():
        lines.append(f"- **{name.replace('_', ' ').title()}**")
        lines += [f"  - {key}: {_cell(sample.get(key))}" for key in ("input", "reference", "prediction")]
    return "\n".join(lines)


def _verdict(sample: Mapping[str, Any]) -> bool | None:
    found = sample.get("evaluation")
    verdict = found.get("is_correct") if isinstance(found, Mapping) else sample.get("judge_correct")
    return verdict if isinstance(verdict, bool) else None


def _subsets(samples: Sequence[Mapping[str, Any]], verdicts: Sequence[bool | None]) -> dict[str, str]:
    found: dict[str, list[bool]] = {}
    for sample, verdict in zip(samples, verdicts, strict=True):
        if "_subset_name" in sample and verdict is not None:
            found.setdefault(str(sample["_subset_name"]), []).append(verdict)
    return {name: f"{sum(one) / len(one):.2%}" for name, one in sorted(found.items())}


def _language(samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    texts = [_text(sample) for sample in samples]
    words = list(_words(texts))
    return {
        "lexical_diversity_ttr": f"{len(set(words)) / len(words) if words else 0.0:.4f}",
        "mean_length": f"{sum(map(len, texts)) / len(texts) if texts else 0.0:.1f}",
    }


def _errors(wrong: Sequence[Mapping[str, Any]], top_n: int) -> dict[str, dict[str, int]]:
    """Frequent words of wrong answers, and frequent confusions: what was said for what was right."""
    if not wrong:
        return {}
    confusions = Counter[str]()
    empty = 0
    for sample in wrong:
        found = sample.get("evaluation")
        said = str(found.get("normalized_pred", "")) if isinstance(found, Mapping) else ""
        right = str(found.get("normalized_ref", "")) if isinstance(found, Mapping) else ""
        empty += not _text(sample).strip()
        if said and right and len(said) <= 40:
            confusions[f"{right} -> {said}"] += 1
    return {
        "top_error_keywords": dict(Counter(_words(map(_text, wrong))).most_common(top_n)),
        "frequent_confusions": dict(confusions.most_common(top_n)),
        "empty_answers": {"empty": empty} if empty else {},
    }


def _text(sample: Mapping[str, Any]) -> str:
    said = sample.get("original_prediction", sample.get("prediction"))
    return "" if said is None else str(said)


def _words(texts: Iterable[str]) -> Iterable[str]:
    """Words in lower case, Korean ones without their particles."""
    for text in texts:
        for word in _WORD.findall(text.lower()):
            yield _PARTICLES.sub("", word)


def _cell(value: Any) -> str:
    shown = " ".join(str(value).split())
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
