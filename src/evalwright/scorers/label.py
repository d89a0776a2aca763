"""Reads one of a fixed set of labels after a response's last answer tag, or from another claim."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.answers.option_reader import NOT_EXTRACTED, extract_option
from evalwright.scorers.registry import checked
from evalwright.scorers.text.evidence import with_evidence
from evalwright.scorers.text.languages import language_of
from evalwright.scorers.text.marks import SPACELESS
from evalwright.scorers.text.tokens import fold

NULL = "null"
"""The label of an answer from which no label could be read."""
_AROUND = " \t\r\n*_`\"'“”‘’「」『』()[]【】<>《》{}$\\.:;。、-~#"
_COMMANDS = re.compile(r"\\(?:boxed|fbox|text\w*|math\w+)\s*\{")
_ALSO = re.compile(
    r"\W*(?:(?:or|and|atau|dan|o|at|hoặc|và|utawa|lan|sareng|หรือ|และ|或|和|သို့မဟုတ်|நாம்"
    r"|அல்லது)(?!\w))?\W*",
    re.IGNORECASE,
)
_NEAR = 400
_MOST_TAGS = 50
MOST_CHARACTERS = 50_000


def behind_tag(tag: str, text: str) -> str:
    """Find what a response gives as its answer.

    Args:
        tag: the text before the answer that the prompt asks for, such as "Answer:".
        text: the response.

    Returns:
        What follows the last tag, its colon of any width, all lines of it; the whole text where it
        has no tag.
    """
    core = tag.strip().rstrip(":： ")
    if not core:
        return text.strip()
    colon = r"\s?[*_`]{0,3}\s?[:：]" if tag.strip()[-1] in ":：" else ""
    places = [
        match.end()
        for match in re.finditer(re.escape(core) + colon, text, re.IGNORECASE)
    ]
    rests = (
        text[position : position + MOST_CHARACTERS].strip().strip("*`").strip()
        for position in reversed(places[-_MOST_TAGS:])
    )
    return next((tail for tail in rests if tail), "" if places else text.strip())


def _check(options: Mapping[str, Any]) -> None:
    labels = options["labels"]
    tag = options["tag"]
    good = isinstance(labels, list | tuple) and all(
        isinstance(label, str) and label for label in labels
    )
    if not good or len(set(labels)) != len(labels) or len(labels) < 2:
        raise ConfigurationError(
            "The option 'labels' must be a list of at least two different texts, not"
            f" {labels!r}."
        )
    if not isinstance(tag, str):
        raise ConfigurationError(
            "The option 'tag' must be the text before an answer, such as 'Answer:',"
            f" not {tag!r}."
        )


@checked(_check)
def label(
    sample: Sample, answer: Answer, *, labels: Sequence[str], tag: str = ""
) -> Score:
    """Score 1.0 if the label that the answer gives is the target, else 0.0.

    The score's label is that of the answer, or "null" if no single one can be read, which is wrong.
    Parts: "gold" and "predicted", indices in `labels` (-1 for none), which metrics over classes
    read, and "read", 1 if there is a label.

    Args:
        labels: the labels that an answer can give.
        tag: the text that the prompt asks for before the answer; without it any claim is read.

    Raises:
        ScoringError: the target is not one of the labels.
    """
    language = language_of(sample) or "en"
    return score_label(sample, answer.text, labels, tag, (), language)


def score_label(
    sample: Sample,
    text: str,
    labels: Sequence[str],
    tag: str = "",
    choices: Sequence[str] = (),
    language: str = "en",
) -> Score:
    """Score the label that a response gives as its answer, as the scorer `label` does.

    Args:
        sample: its target is the right label.
        text: the response.
        labels: those that an answer can have.
        tag: the text before the answer that the prompt asks for; without it any claim is read.
        choices: the texts of the labels' options, which an answer may give too.
        language: of the response.

    Returns:
        1 or 0 with the label read, "null" for none; parts "gold", "predicted" and "read".

    Raises:
        ScoringError: the target is no label.
    """
    if sample.target not in labels:
        raise ScoringError(
            f"The target of the sample '{sample.id}' is '{sample.target[:60]}', and no"
            " label of the task."
        )
    gold = list(labels).index(sample.target)
    label_index, how, unsure = last_label(
        tag, labels, text, choices, language, sample.input
    )
    right = float(label_index == gold)
    label_text = labels[label_index] if label_index != NOT_EXTRACTED else NULL
    parts = {
        "gold": float(gold),
        "predicted": float(label_index),
        "read": float(label_index != NOT_EXTRACTED),
    }
    score = Score(right, label_text, how, parts, unsure=unsure)
    if label_index == NOT_EXTRACTED:
        return score
    names = [labels[label_index], *([choices[label_index]] if choices else [])]
    return with_evidence(score, text, behind_tag(tag, text)[:_NEAR], names)


def last_label(
    tag: str,
    labels: Sequence[str],
    text: str,
    choices: Sequence[str] = (),
    language: str = "en",
    question: str = "",
) -> tuple[int, str, str]:
    """Read the label that a response gives as its answer.

    The last answer tag counts, then any other claim in the response (`answers/option_reader.py`),
    by the label or the text of its option.

    Returns:
        The label's index (NOT_EXTRACTED for none), how it was read, and why a reader might argue.
    """
    tail = behind_tag(tag, text)
    head = unicodedata.normalize("NFKC", tail[:_NEAR])
    label_index, following = _label_at(_COMMANDS.sub("", head), labels)
    if label_index != NOT_EXTRACTED:
        joined = _ALSO.match(following)
        also, _ = _label_at(following[joined.end() :] if joined else following, labels)
        if also in (NOT_EXTRACTED, label_index):
            return (
                label_index,
                "behind the answer tag" if tail != text.strip() else "the response",
                "",
            )
        return NOT_EXTRACTED, "several labels", "several labels"
    chosen = extract_option(text, tuple(choices or labels), language, question)
    if (
        not choices
        and chosen.option != NOT_EXTRACTED
        and not _occurs(labels[chosen.option], text)
    ):
        # Labels have no order to which a letter or a number in a reply could refer.
        return NOT_EXTRACTED, "a letter or a number that is no label", ""
    return chosen.option, chosen.why, chosen.unsure


def _occurs(label: str, text: str) -> bool:
    """Return whether a label occurs in a text; as a whole word in scripts that separate words."""
    folded_label, text = (
        fold(unicodedata.normalize("NFKC", string).casefold())
        for string in (label, text)
    )
    joined = re.search(f"[{SPACELESS}가-힣]", folded_label)
    return (
        re.search(
            re.escape(folded_label)
            if joined
            else rf"(?<!\w){re.escape(folded_label)}(?!\w)",
            text,
        )
        is not None
    )


def _label_at(text: str, labels: Sequence[str]) -> tuple[int, str]:
    """Return the label that a text begins with, ignoring punctuation, and the text after it."""
    text = text.lstrip(_AROUND)
    folded = text.casefold()
    for label in sorted(labels, key=len, reverse=True):
        folded_label = unicodedata.normalize("NFKC", label).casefold()
        behind = text[len(folded_label) :]
        if (
            folded_label
            and folded.startswith(folded_label)
            and not _word_continues(folded_label[-1], behind[:1])
        ):
            return list(labels).index(label), behind
    return NOT_EXTRACTED, text


def _word_continues(last: str, following: str) -> bool:
    """Return whether the word continues after the label."""
    if not following or re.match(f"[{SPACELESS}]", last + following):
        return unicodedata.category(following or " ")[0] == "M"
    return following.isalnum() or unicodedata.category(following)[0] == "M"
