"""Checks that prompts are rendered completely and, with a model, fit its context with one BOS."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from evalwright.analysis.task_checks.findings import Check, Finding, quoted
from evalwright.analysis.task_checks.material import (
    Material,
    as_messages,
    prompt_text,
    request_prompt,
)
from evalwright.analysis.words import counted
from evalwright.core.errors import EvalwrightError
from evalwright.core.requests import Generate, LogLikelihood, Prompt, Request
from evalwright.models.local.tokens import Reader
from evalwright.models.model_interface import Model

_PROMPTS = Check("prompts")
_CONTEXT = Check("context")
_UNRENDERED = re.compile(
    r"(?<![\\\^_\w}])\{\{-?\s*[A-Za-z_][\w.\[\]'\"|() ]*-?\}\}|\{%-?\s*[a-z]+[^%]*%\}"
)
_OBJECT = re.compile(
    r"\[object \w+\]|<[\w.]+ object at 0x[0-9a-f]+>|<bound method |<built-in method "
)
_MISSING = re.compile(
    r"(?:^|[:=]\s)\s*(?:None|nan|NaN|undefined|null)[.,;]?\s*$", re.MULTILINE
)
_BEGINNINGS = (
    "<s>",
    "<bos>",
    "[BOS]",
    "<|begin_of_text|>",
    "<|startoftext|>",
    "<|endoftext|>",
    "<｜begin▁of▁sentence｜>",
)
"""Spellings of the BOS token, which tokenizers add themselves."""


def check_prompts(material: Material) -> Iterator[Finding]:
    """Report findings on the requests of all samples."""
    yield from _PROMPTS.verdicts(
        list(_find_faults(material)),
        "all prompts render, and join their continuations correctly",
    )


def _find_faults(material: Material) -> Iterator[Finding]:
    broken = list(material.broken)
    if broken:
        reason = quoted(next(iter(material.broken.values())))
        yield _PROMPTS.fault(
            f"{counted(len(broken), 'sample')} have no request ({reason})", broken
        )
    for fault, show in _KINDS.items():
        example_by_sample = dict[str, str]()
        for sample, sent in zip(material.samples, material.requests, strict=True):
            text = show(sent) if sent else ""
            if text:
                example_by_sample[sample.id] = text

        yield from _report_fault(fault, example_by_sample)
    # Only the question is searched: a shot's answer, or an option, may be "None".
    missing = {}
    for sample, question in zip(material.samples, material.questions, strict=True):
        text = question
        for choice in sample.choices:
            text = text.replace(choice, "option") if len(choice) > 1 else text
        if match := _MISSING.search(text):
            missing[sample.id] = match.group().strip()
    yield from _report_fault("a missing value is rendered as words", missing)


def _report_fault(
    fault: str, example_by_sample: Mapping[str, str]
) -> Iterator[Finding]:
    """Report a fault, with the first of the texts that show it."""
    if example_by_sample:
        first = quoted(next(iter(example_by_sample.values())))
        yield _PROMPTS.fault(
            f"{fault} in {counted(len(example_by_sample), 'sample')} ({first})",
            list(example_by_sample),
        )


def _distinct_prompts(sent: tuple[Request, ...]) -> list[Prompt]:
    return list(dict.fromkeys(request_prompt(request) for request in sent))


def _find_pattern(pattern: re.Pattern[str], sent: tuple[Request, ...]) -> str:
    for prompt in _distinct_prompts(sent):
        if match := pattern.search(prompt_text(prompt)):
            return match.group()
    return ""


def _begins_twice(sent: tuple[Request, ...]) -> str:
    firsts = [
        as_messages(prompt)[0].text.lstrip()
        for prompt in _distinct_prompts(sent)
        if prompt
    ]
    return next(
        (mark for first in firsts for mark in _BEGINNINGS if first.startswith(mark)), ""
    )


def _ends_in_space(sent: tuple[Request, ...]) -> str:
    """Return the end of a generation prompt, or of a prefilled answer, if it is a space."""
    for request in sent:
        if isinstance(request, Generate) and request.prompt:
            last = as_messages(request.prompt)[-1]
            open_ended = isinstance(request.prompt, str) or last.role == "assistant"
            if open_ended and last.text.endswith((" ", "\t")):
                return last.text[-30:] + "|"
    return ""


def _two_spaces(sent: tuple[Request, ...]) -> str:
    for request in sent:
        if isinstance(request, LogLikelihood):
            before = prompt_text(request.context)[-30:]
            after = request.continuation
            if (before.endswith(" ") and after.startswith(" ")) or after.startswith(
                "  "
            ):
                return f"{before}|{after[:30]}"
    return ""


_KINDS: Mapping[str, Callable[[tuple[Request, ...]], str]] = {
    "a template is left unrendered": lambda sent: _find_pattern(_UNRENDERED, sent),
    "an object is rendered in place of its text": lambda sent: _find_pattern(
        _OBJECT, sent
    ),
    "the prompt begins with a token that tokenizers add themselves (two BOS)": (
        _begins_twice
    ),
    "the prompt ends with a space, which splits the next word's token": _ends_in_space,
    "two spaces meet where the prompt ends and the continuation begins": _two_spaces,
    "the prompt is empty": lambda sent: (
        "" if prompt_text(request_prompt(sent[0])).strip() else "(empty)"
    ),
    "the continuation that is scored is empty": lambda sent: (
        "(empty)"
        if any(
            isinstance(request, LogLikelihood) and not request.continuation.strip()
            for request in sent
        )
        else ""
    ),
}
"""Possible faults of a sample's requests, each with a function that returns the evidence, or ""."""


# -- with a model ----------------------------------------------------------------------


def check_window(material: Material, model: Model) -> Iterator[Finding]:
    """Report findings on the requests as this model would read them.

    A model without an accessible tokenizer is skipped.
    """
    reader = model.reader()
    if reader is None:
        yield _CONTEXT.skipped(
            f"{model.name} has no tokenizer here, so it is unknown what fits into its"
            " context"
        )
        return
    cut = list[str]()
    short = list[str]()
    twice = list[str]()
    refused: dict[str, str] = {}
    longest = 0
    limit = reader.rules.max_length
    n = len(material.samples)
    for sample, sent in zip(material.samples, material.requests, strict=True):
        try:
            lengths = [
                _measure_request(reader, request)
                for request in sent
                if isinstance(request, Generate | LogLikelihood)
            ]
        except EvalwrightError as error:
            refused[sample.id] = str(error)
            continue
        longest = max([longest, *(tokens for tokens, _, _ in lengths)])
        if any(tokens > limit for tokens, _, _ in lengths):
            cut.append(sample.id)
        elif any(tokens + room > limit for tokens, room, _ in lengths):
            short.append(sample.id)
        if any(double for _, _, double in lengths):
            twice.append(sample.id)
    holds = (
        f"the context of {model.name} holds {limit:,} tokens, the longest prompt has"
        f" {longest:,}"
    )
    if cut:
        yield _CONTEXT.fault(
            f"{holds}: {len(cut):,} of {counted(n, 'sample')} are cut or refused", cut
        )
    if short:
        text = (
            f"{holds}: with the answer's token limit, {len(short):,} of"
            f" {counted(n, 'sample')} do not fit"
        )
        yield _CONTEXT.fault(text, short)
    if not cut and not short:
        yield _CONTEXT.ok(holds)
    firsts = [sent[0] for sent in material.requests if sent]
    if any(
        isinstance(request, Generate) and request.max_tokens is None
        for request in firsts
    ):
        yield _CONTEXT.note(
            "the task leaves the answer's length to the model, so it is not counted"
        )
    if twice:
        yield _CONTEXT.fault(
            f"{counted(len(twice), 'prompt')} would begin with two BOS tokens", twice
        )
    if refused:
        reason = quoted(next(iter(refused.values())))
        text = f"{model.name} cannot take {counted(len(refused), 'sample')} ({reason})"
        yield _CONTEXT.fault(text, list(refused))


def _measure_request(
    reader: Reader, request: Generate | LogLikelihood
) -> tuple[int, int, bool]:
    """Count tokens before the answer and room for it, and tell whether BOS is doubled."""
    from evalwright.models.local.tokens import encode_pair, encode_text

    prompt = request.prompt if isinstance(request, Generate) else request.context
    text, rules = reader.render(prompt)
    bos = rules.bos_token
    doubled = bos is not None and reader.encoder.encode(text, rules.add_special_tokens)[
        :2
    ] == [bos, bos]
    if isinstance(request, Generate):
        return (
            len(encode_text(reader.encoder, rules, text)),
            request.max_tokens or 0,
            doubled,
        )
    context, continuation = encode_pair(
        reader.encoder, rules, text, request.continuation
    )
    # The last token is predicted and never fed to the model.
    return len(context) + len(continuation) - 1, 0, doubled
