"""What lm-evaluation-harness calls things: metrics, files and hashes, beside our names."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from evalwright.metrics.registry import LOWER_IS_BETTER

NO_FILTER = "none"
NOT_AVAILABLE = "N/A"

MODEL_NAME_ARGUMENTS = ("peft", "delta", "pretrained", "model", "path", "engine")
"""Arguments that name the model in its results, the first that is there."""
PROMPT_FACTS = (
    "system_instruction",
    "system_instruction_sha",
    "fewshot_as_multiturn",
    "chat_template",
    "chat_template_sha",
)
"""What results say of how prompts were made."""

COUNT_UNITS = {
    "bits_per_byte": "bytes",
    "byte_perplexity": "bytes",
    "token_perplexity": "tokens",
    "word_perplexity": "words",
}
"""Metrics whose items are pairs: a log-likelihood, and the number of these.

The one per token is ours alone.
"""

_KIND_BY_METRIC = {
    **dict.fromkeys(
        ("acc", "acc_all", "acc_bytes", "acc_mutual_info", "acc_norm"), "accuracy"
    ),
    "exact_match": "exact-match",
}
_NORMALISED = {"characters": "acc_norm", "bytes": "acc_bytes"}


def our_kind(metric: str) -> str:
    """Our metric of that name; names without a counterpart are kept, with dashes."""
    return _KIND_BY_METRIC.get(metric, metric.replace("_", "-"))


def their_metric(label: str, kind: str, scorer: Mapping[str, Any]) -> str:
    """Their name of a metric of ours. scorer: the record of the scorer whose scores it summarises.

    A metric that has a name of its own (`mean politeness`) keeps it: `mean_politeness`.
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
    name = label if label != kind else "acc" if kind == "accuracy" else kind
    return re.sub(r"[,\s-]+", "_", name)


def higher_is_better(kind: str) -> bool:
    """Whether more of a metric is better."""
    return kind not in LOWER_IS_BETTER


def digest(text: str) -> str:
    """The SHA-256 of a text, as their hashes are made."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def doc_digest(doc: Any) -> str:
    """Their `doc_hash`: over the row as indented JSON."""
    return digest(json.dumps(doc, indent=2, ensure_ascii=False, default=str))


def file_safe(model: str) -> str:
    """A model's name as that of its folder. Nothing leads out of the parent folder."""
    name = re.sub(r'["<>:/|\\?*\[\]]+', "__", model)
    return name if name.strip(". ") else "model"


def stringify(response: Any) -> Any:
    """Every number and truth value in nested lists as text, which is how they write responses."""
    if isinstance(response, (list, tuple)):
        return [stringify(element) for element in response]
    return str(response)


def depths(
    children: Mapping[str, Sequence[str]], names: Collection[str]
) -> Iterator[tuple[str, int]]:
    """Names with how deep each is below its groups, outer ones first, in the order of the tree;
    what no tree reaches comes last.
    """
    inner = {child for below in children.values() for child in below}
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
