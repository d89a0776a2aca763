"""The scorer `judge-transcript`: which criteria does what a model did meet, and where is that seen?

The judge reads the whole conversation with the calls of tools and their results, and quotes for
each criterion what it rests on. A quote that is not in the conversation is dropped, and the score
says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from evalwright.core.ask import Ask
from evalwright.core.errors import ScoringError
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Message
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.judge.criteria import Criterion, read_criteria, share_of_points
from evalwright.scorers.judge.forms import (
    BadVerdict,
    Field,
    Form,
    choice,
    group,
    quote_field,
    reason,
)
from evalwright.scorers.judge.judge_questions import (
    MAX_TOKENS,
    build_question,
    request_verdict,
)
from evalwright.scorers.judge.material import Exchange, collect_material
from evalwright.scorers.judge.opinions import (
    Opinion,
    check_parts,
    pass_or_fail,
    score_opinions,
)
from evalwright.scorers.judge.options import (
    SHOWN,
    check_choice,
    check_common,
    check_roles,
    check_whole_number,
)
from evalwright.scorers.judge.panel import Combine
from evalwright.scorers.judge.rubric import collect_criteria
from evalwright.scorers.registry import checked
from evalwright.strategies.several import gather_all

MAX_TEXT_CHARS = 8_000
"""Most characters of one reply, call or result that a judge reads, unless a task says otherwise."""
MAX_ALL_CHARS = 1_000_000
"""Most characters of a whole conversation that a judge reads: longer ones are cut more."""
LEAST_TEXT_CHARS = 200
MAX_QUOTES = 10
"""Most quotes for one criterion that are read."""
MAX_QUOTE_CHARS = 1_000
SHOWN_QUOTE_CHARS = 200
_TASK = """\
You judge how a model did a task by acting with tools. You read the whole conversation, with the \
number of each step: what it
was asked, its replies, its calls of tools, and their results. Judge by what was done, not by \
what the model says of it; a result
shows what a program printed, and the model may have made a program print anything. Judge each \
criterion on its own; one of
several demands is met only where all of them are."""
_BODY = """\
For each criterion quote what your verdict rests on: the number of the step, and the words \
exactly as they are written, no longer
than needed. Give no quote where a verdict rests on something that did not happen."""


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a conversation as a judge reads it.

    Attributes:
        number: of the model's reply that it is or that it follows, from 1; 0 before the first.
        tag: the name of its tag.
        text: its text, cut where it is long.
    """

    number: int
    tag: str
    text: str


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote that is in the conversation.

    Attributes:
        step: the number of the step that has it.
        text: the quote.
    """

    step: int
    text: str


@dataclass(slots=True)
class _Evidence:
    """What one judge quoted, by criterion, and how many quotes are nowhere."""

    quotes: dict[str, list[Quote]] = field(default_factory=dict)
    n_dropped: dict[str, int] = field(default_factory=dict)


def _check_options(options: Mapping[str, Any]) -> None:
    check_common(options)
    check_choice(options["calls"], "calls", ("one", "each"))
    check_whole_number(options["max_chars"], "max_chars", LEAST_TEXT_CHARS)
    if options["criteria"]:
        rubric = read_criteria(
            options["criteria"], "The option 'criteria'", options["classes"]
        )
        names = [criterion.name for criterion in rubric]
        check_parts(names, check_roles(options["judges"]), "last")


@checked(_check_options, able=("generate",))
async def judge_transcript(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    *,
    criteria: Sequence[Any] = (),
    classes: Mapping[str, float] | None = None,
    calls: Literal["one", "each"] = "one",
    threshold: float = 0.5,
    judges: Sequence[str] = ("judge",),
    combine: Combine = "",
    needs: int = 0,
    show: Sequence[str] = SHOWN,
    instructions: str = "",
    max_chars: int = MAX_TEXT_CHARS,
    max_tokens: int = MAX_TOKENS,
    schema: bool = True,
) -> Score:
    """Score the share of a rubric's points that what the model did earns.

    The judge reads the whole conversation, calls of tools and their results, and quotes what each
    verdict rests on. Quotes that are not there are dropped; a criterion that is met by such quotes
    alone makes the score unsure. Labels: "pass" from `threshold` on, else "fail". Parts: the credit
    for each criterion, by its name. With one judge, `item` has the quotes as `evidence`.

    Args:
        criteria: as of `judge-rubric`, those in the sample's metadata `criteria` added.
        classes: default classes of criteria; without it "not met" and "met".
        calls: one request for all criteria, or one for each.
        threshold: the least score at which the answer passes.
        judges: roles of the judges.
        combine: by the "mean" of the judges' scores or by "majority"; by default the mean.
        needs: how many judges must give a verdict; 0 for all.
        show: parts of the sample that the judge sees beside the conversation.
        instructions: added to the judge's task.
        max_chars: most characters of one reply, call or result; the middle of a longer one is cut.
        max_tokens: limit on a verdict's length.
        schema: send a JSON schema if the provider enforces it.

    Raises:
        RequestFailed: a judge failed, or its verdict cannot be read.
    """
    rubric = collect_criteria(sample, criteria, classes)
    steps = list_steps(answer, max_chars)
    if not steps:
        raise ScoringError("The answer has no conversation that a judge could read.")
    shown = collect_material(
        sample,
        Exchange((), "", answer.text),
        [name for name in show if name != "question"],
    )
    material = [*shown, *((step.tag, step.text) for step in steps)]
    evidence: dict[str, _Evidence] = {}

    async def opinion(role: str, _: Exchange) -> Opinion:
        batches = (
            [[criterion] for criterion in rubric] if calls == "each" else [list(rubric)]
        )
        verdicts = await gather_all(
            [
                request_verdict(
                    role,
                    _question(batch, material, instructions),
                    ask,
                    max_tokens,
                    schema=schema,
                )
                for batch in batches
            ]
        )
        by_name = {
            name: verdict for batch in verdicts for name, verdict in batch.items()
        }
        evidence[role] = _checked_quotes(by_name, steps)
        return _opinion_of(rubric, by_name, evidence[role], threshold)

    roles = check_roles(judges)
    score = await score_opinions(
        roles,
        [Exchange((), "", "")],
        opinion,
        pass_or_fail(threshold, combine),
        needs,
    )
    return _with_evidence(score, evidence)


@dataclass(frozen=True, slots=True)
class _Verdict:
    class_name: str
    reason: str
    quotes: tuple[Quote, ...]


def _question(
    batch: Sequence[Criterion],
    material: Sequence[tuple[str, str]],
    instructions: str,
) -> Any:
    keys = {f"c{number}": criterion for number, criterion in enumerate(batch, 1)}
    listed = "\n".join(f"{key}: {criterion.text}" for key, criterion in keys.items())
    fields = [
        group(key, [_quotes(), reason(), choice("class", list(criterion.classes))])
        for key, criterion in keys.items()
    ]

    def parse(fields_by_key: dict[str, Any]) -> dict[str, _Verdict]:
        return {
            criterion.name: _Verdict(
                fields_by_key[key]["class"],
                fields_by_key[key]["reason"],
                fields_by_key[key]["evidence"],
            )
            for key, criterion in keys.items()
        }

    which = "this criterion" if len(batch) == 1 else "these criteria"
    body = f"Judge what the model did by {which}:\n{listed}\n\n{_BODY}"
    body += f"\n\n{instructions}" if instructions else ""
    return build_question(_TASK, material, body, Form(tuple(fields)), parse)


def _quotes() -> Field:
    """Make the field for quotes: a list of step numbers with words."""
    schema = {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"step": {"type": "integer"}, "quote": {"type": "string"}},
            "required": ["step", "quote"],
            "additionalProperties": False,
        },
    }

    def read(listed: Any) -> tuple[Quote, ...]:
        if not isinstance(listed, list):
            raise BadVerdict(f"the evidence is {quote_field(listed)}, not a list")
        quotes: list[Quote] = []
        for entry in listed[:MAX_QUOTES]:
            text = entry.get("quote") if isinstance(entry, dict) else entry
            step: Any = entry.get("step") if isinstance(entry, dict) else None
            if not isinstance(text, str):
                raise BadVerdict(
                    f"a quote is {quote_field(entry)}, not a step and words"
                )
            is_number = isinstance(step, int) and not isinstance(step, bool)
            quotes.append(Quote(step if is_number else -1, text[:MAX_QUOTE_CHARS]))
        return tuple(quotes)

    return Field("evidence", '[{"step": 1, "quote": "words"}]', schema, read)


def list_steps(answer: Answer, max_chars: int = MAX_TEXT_CHARS) -> list[Step]:
    """Return a conversation as a judge reads it, with the numbers of the model's replies.

    Args:
        answer: the answer that it led to.
        max_chars: most characters of one part.
    """
    messages: list[Message] = (
        [Message("user", answer.prompt)]
        if isinstance(answer.prompt, str)
        else list(answer.prompt)
    )
    n_replies = sum(message.role == "assistant" for message in messages)
    if answer.responses and n_replies < len(answer.responses):
        last = answer.responses[-1]
        messages.append(
            Message(
                "assistant",
                separate_reasoning(last).answer,
                tool_calls=last.tool_calls,
            )
        )
    parts = _parts(messages)
    if not any(tag.startswith("reply") for _, tag, _ in parts):
        return []
    total = sum(len(text) for _, _, text in parts)
    if total > MAX_ALL_CHARS:
        max_chars = min(max_chars, max(LEAST_TEXT_CHARS, MAX_ALL_CHARS // len(parts)))
    return [Step(number, tag, _cut(text, max_chars)) for number, tag, text in parts]


def _parts(messages: Sequence[Message]) -> list[tuple[int, str, str]]:
    parts: list[tuple[int, str, str]] = []
    number = 0
    n_results = 0
    for message in messages:
        if message.role == "assistant":
            number += 1
            n_results = 0
            parts.append((number, f"reply-{number}", message.text))
            parts += [
                (number, f"call-{number}-{index}", f"{call.name} {call.arguments}")
                for index, call in enumerate(message.tool_calls, 1)
            ]
        elif message.role == "tool":
            n_results += 1
            kind = "error" if message.is_error else "result"
            parts.append((number, f"{kind}-{number}-{n_results}", message.text))
        else:
            parts.append((number, message.role, message.text))
    return parts


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[{left_out:,} characters left out]\n{text[-half:]}"


def _checked_quotes(
    verdicts: Mapping[str, _Verdict], steps: Sequence[Step]
) -> _Evidence:
    """Keep the quotes that are in the conversation, with the numbers of their steps."""
    texts = [(step.number, _plain(step.text)) for step in steps]
    evidence = _Evidence()
    for name, verdict in verdicts.items():
        for quote in verdict.quotes:
            words = _plain(quote.text)
            holding = [number for number, text in texts if words and words in text]
            if not holding:
                evidence.n_dropped[name] = evidence.n_dropped.get(name, 0) + 1
                continue
            step = quote.step if quote.step in holding else holding[0]
            evidence.quotes.setdefault(name, []).append(Quote(step, quote.text))
    return evidence


def _plain(text: str) -> str:
    return " ".join(text.split())


def _opinion_of(
    criteria: Sequence[Criterion],
    verdicts: Mapping[str, _Verdict],
    evidence: _Evidence,
    threshold: float,
) -> Opinion:
    credits = {
        criterion.name: criterion.classes[verdicts[criterion.name].class_name]
        for criterion in criteria
    }
    share = share_of_points(criteria, credits)
    explanation = "; ".join(
        _explained(criterion.name, verdicts[criterion.name], evidence)
        for criterion in criteria
    )
    label = "pass" if share >= threshold else "fail"
    return Opinion(share, label, explanation, credits)


def _explained(name: str, verdict: _Verdict, evidence: _Evidence) -> str:
    text = f"{name.rstrip('.')}: {verdict.class_name}"
    text += f" - {verdict.reason}" if verdict.reason else ""
    quotes = [
        f'step {quote.step}: "{_plain(quote.text)[:SHOWN_QUOTE_CHARS]}"'
        for quote in evidence.quotes.get(name, ())
    ]
    text += f" [{', '.join(quotes)}]" if quotes else ""
    n_dropped = evidence.n_dropped.get(name, 0)
    if n_dropped:
        verb = "is" if n_dropped == 1 else "are"
        text += f" ({n_dropped} of its quotes {verb} not in the conversation)"
    return text


def _with_evidence(score: Score, evidence: Mapping[str, _Evidence]) -> Score:
    """Add the quotes to a score, and note verdicts that rest on quotes that are nowhere."""
    baseless = [
        f"{name} ({role})" if len(evidence) > 1 else name
        for role, quoted in evidence.items()
        for name in quoted.n_dropped
        if not quoted.quotes.get(name)
    ]
    unsure = (
        f"all quotes of the judge for {', '.join(baseless)} are not in the conversation"
        if baseless
        else ""
    )
    item = score.item
    if len(evidence) == 1 and item is None:
        (quoted,) = evidence.values()
        listed = [
            {"criterion": name, "step": quote.step, "quote": quote.text}
            for name, quotes in quoted.quotes.items()
            for quote in quotes
        ]
        item = {"evidence": listed} if listed else None
    return replace(score, unsure=unsure, item=item)
