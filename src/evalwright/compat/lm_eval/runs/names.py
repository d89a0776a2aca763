"""Names that lm-evaluation-harness gives to metrics, files and hashes, and how ours map to them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from evalwright.extend import LOWER_IS_BETTER_METRICS

NO_FILTER = "none"
NOT_AVAILABLE = "N/A"

MODEL_NAME_ARGUMENTS = ("peft", "delta", "pretrained", "model", "path", "engine")
"""Model arguments that name the model in the results; the first one present counts."""
PROMPT_FACTS = (
    "system_instruction",
    "system_instruction_sha",
    "fewshot_as_multiturn",
    "chat_template",
    "chat_template_sha",
)
"""Keys of the results that say how prompts were made."""

COUNT_UNITS = {
    "bits_per_byte": "bytes",
    "byte_perplexity": "bytes",
    "token_perplexity": "tokens",
    "word_perplexity": "words",
}
"""Metrics whose items are pairs (log-likelihood, count), with the unit of the count.

The metric per token exists only here.
"""

_KIND_BY_METRIC = {
    **dict.fromkeys(
        ("acc", "acc_all", "acc_bytes", "acc_mutual_info", "acc_norm"), "accuracy"
    ),
    "exact_match": "exact-match",
}
_NORMALISED = {"characters": "acc_norm", "bytes": "acc_bytes"}


def our_kind(metric: str) -> str:
    """Our name of a metric; names without a counterpart are kept, with dashes."""
    return _KIND_BY_METRIC.get(metric, metric.replace("_", "-"))


def their_metric(label: str, kind: str, scorer: Mapping[str, Any]) -> str:
    """lm_eval's name of one of our metrics.

    scorer: the record of the scorer that the metric summarises. A metric with a label of its own
    ("mean politeness") keeps it: `mean_politeness`.
    """
    normalised = scorer.get("options", {}).get("normalise", "none")
    if (
        label == kind == "accuracy"
        and scorer.get("kind") == "choice"
        and normalised in _NORMALISED
    ):
        return _NORMALISED[normalised]
    if label == kind == "accuracy" and scorer.get("kind") == "exact-match":
        return "exact_match"
    name = "acc" if label == kind == "accuracy" else label
    return re.sub(r"[,\s-]+", "_", name)


def higher_is_better(kind: str) -> bool:
    """Whether higher is better for a kind of metric."""
    return kind not in LOWER_IS_BETTER_METRICS


def digest(text: str) -> str:
    """SHA-256 of a text, as lm_eval's hashes are made."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def doc_digest(doc: Any) -> str:
    """lm_eval's `doc_hash`: the digest of the row as indented JSON."""
    return digest(json.dumps(doc, indent=2, ensure_ascii=False, default=str))


def file_safe(model: str) -> str:
    """Turn a model's name into a folder name that cannot leave its parent folder."""
    name = re.sub(r'["<>:/|\\?*\[\]\x00]+', "__", model)
    return name if name.strip(". ") else "model"


def depths(
    children: Mapping[str, Sequence[str]], names: Collection[str]
) -> Iterator[tuple[str, int]]:
    """Yield names with their depth in the tree of groups, outer groups first.

    Names outside every tree come last.
    """
    inner = {child for members in children.values() for child in members}
    seen: set[str] = set()
    # Not by calls: a stranger's tree may be deeper than those may be.
    waiting = [(name, 0) for name in names if name not in inner][::-1]
    while waiting:
        name, depth = waiting.pop()
        if name in names and name not in seen:
            seen.add(name)
            yield name, depth
            waiting += [
                (child, depth + 1) for child in reversed(children.get(name, ()))
            ]
    yield from ((name, 0) for name in names if name not in seen)
