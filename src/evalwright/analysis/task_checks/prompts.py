"""What is sent is whole: no template left unrendered, no missing value in words, no broken join of prompt and continuation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from evalwright.analysis.task_checks.findings import Finding, counted, fault, ok, quoted
from evalwright.analysis.task_checks.material import Material, prompt_text, request_prompt, turns
from evalwright.core.requests import Generate, LogLikelihood, Prompt, Request

_UNRENDERED = re.compile(r"(?<![\\\^_\w}])\{\{-?\s*[A-Za-z_][\w.\[\]'\"|() ]*-?\}\}|\{%-?\s*[a-z]+[^%]*%\}")
_OBJECT = re.compile(r"\[object \w+\]|<[\w.]+ object at 0x[0-9a-f]+>|<bound method |<built-in method ")
_MISSING = re.compile(r"(?:^|[:=]\s)\s*(?:None|nan|NaN|undefined|null)[.,;]?\s*$", re.MULTILINE)
_BEGINNINGS = (
    "<s>", "<bos>", "[BOS]", "<|begin_of_text|>", "<|startoftext|>", "<|endoftext|>", "<｜begin▁of▁sentence｜>",
)  # fmt: skip
"""How tokenizers write the token that begins a text, and that they put there themselves."""


def check_prompts(material: Material) -> Iterator[Finding]:
    """Verdicts on the requests of all samples."""
    broken = list(material.broken)
    if broken:
        reason = quoted(next(iter(material.broken.values())))
        yield fault("prompts", f"{counted(len(broken), 'sample')} have no request ({reason})", broken)
    kinds: list[tuple[str, Callable[[tuple[Request, ...]], str]]] = [
        ("a template is left unrendered", lambda asked: _matched(_UNRENDERED, asked)),
        ("an object is rendered in place of its text", lambda asked: _matched(_OBJECT, asked)),
        ("the prompt begins with a token that tokenizers add themselves (two BOS)", _begins_twice),
        ("the prompt ends with a space, which splits the next word's token", _ends_in_space),
        ("two spaces meet where the prompt ends and the continuation begins", _two_spaces),
        ("the prompt is empty", _empty),
        ("the continuation that is scored is empty", _empty_continuation),
    ]
    clean = not broken
    for what, show in kinds:
        found = {
            sample.id: shown
            for sample, asked in zip(material.samples, material.requests, strict=True)
            if asked and (shown := show(asked))
        }
        if found:
            clean = False
            first = quoted(next(iter(found.values())))
            ids = list(found)
            yield fault("prompts", f"{what} in {counted(len(ids), 'sample')} ({first})", ids)
    missing = _missing_values(material)
    yield from missing
    if clean and not missing:
        yield ok("prompts", "all prompts render, and join their continuations correctly")


def _missing_values(material: Material) -> list[Finding]:
    """Looked for in the question alone: a shot's answer, or an option, may be "None" """
    found = {}
    for sample, question in zip(material.samples, material.questions, strict=True):
        text = question
        for choice in sample.choices:
            text = text.replace(choice, "option") if len(choice) > 1 else text
        if match := _MISSING.search(text):
            found[sample.id] = match.group().strip()
    if not found:
        return []
    shown = quoted(next(iter(found.values())))
    ids = list(found)
    return [
        fault(
            "prompts", f"a missing value is rendered as words in {counted(len(ids), 'sample')} ({shown})", ids
        )
    ]


def _prompts(asked: tuple[Request, ...]) -> list[Prompt]:
    return list(dict.fromkeys(request_prompt(request) for request in asked))


def _matched(pattern: re.Pattern[str], asked: tuple[Request, ...]) -> str:
    for prompt in _prompts(asked):
        if found := pattern.search(prompt_text(prompt)):
            return found.group()
    return ""


def _begins_twice(asked: tuple[Request, ...]) -> str:
    for prompt in _prompts(asked):
        first = turns(prompt)[0].content.lstrip() if prompt else ""
        for beginning in _BEGINNINGS:
            if first.startswith(beginning):
                return beginning
    return ""


def _ends_in_space(asked: tuple[Request, ...]) -> str:
    """A text to generate from, or an answer begun for the model."""
    for request in asked:
        if isinstance(request, Generate) and request.prompt:
            last = turns(request.prompt)[-1]
            open_ended = isinstance(request.prompt, str) or last.role == "assistant"
            if open_ended and last.content.endswith((" ", "\t")):
                return last.content[-30:] + "|"
    return ""


def _two_spaces(asked: tuple[Request, ...]) -> str:
    for request in asked:
        if isinstance(request, LogLikelihood):
            before = prompt_text(request.context)[-30:]
            after = request.continuation
            if (before.endswith(" ") and after.startswith(" ")) or after.startswith("  "):
                return f"{before}|{after[:30]}"
    return ""


def _empty(asked: tuple[Request, ...]) -> str:
    first = request_prompt(asked[0])
    return "" if prompt_text(first).strip() else "(empty)"


def _empty_continuation(asked: tuple[Request, ...]) -> str:
    empty = any(isinstance(request, LogLikelihood) and not request.continuation.strip() for request in asked)
    return "(empty)" if empty else ""
