"""Every bundled scorer over long texts that were made to be slow to read: CPU seconds at 100 kB,
and whether it grows with the square.

    python -m benchmarks worst_case [--size 100000] [--limit 0.5] [--only choice,...] [--seconds 30]

Each cell is the CPU time of one answer of `--size` characters in a process of its own, which is
ended after `--seconds`. The exit code is 1 where a cell is above `--limit`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright import bounded
from evalwright.core.ask import Ask
from evalwright.core.errors import EvalwrightError, RequestFailed
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Passage, Sample
from evalwright.core.tasks import Scored
from evalwright.scorers import registry
from evalwright.scorers.instructions.checks import ENGLISH
from evalwright.scorers.registry import bind
from measuring import Table, option_parser

SHAPES: Mapping[str, str] = {
    "boxed": "\\boxed{",
    "boxes": "\\boxed{1} ",
    "braces": "{",
    "brackets": "((((",
    "square": "[[[[",
    "digits": "1,234.567 ",
    "one number": "9",
    "separated": "1,",
    "points": "1.1.",
    "list": "A. B. C. ",
    "one word": "a",
    "spaces": " ",
    "lines": "\n",
    "tabs": "\t \n ",
    "scripts": "а日aعا한अ ",
    "names": "Ada Lovelace ",
    "particles": "de la von der ",
    "initials": "J. R. R. ",
    "answer is": "the answer is ",
    "answers": "Answer: A\n",
    "not": "not A, but ",
    "so": "so ",
    "fences": "```python\n",
    "backticks": "```",
    "definitions": "def add",
    "indented": "```\n \n \n \n",
    "stars": "**",
    "bold": "**a** ",
    "tags": "<answer>",
    "open tags": "<answer",
    "quotes": '"',
    "dashes": "- - ",
    "dates": "12 May 1999, ",
    "months": "May ",
    "words of numbers": "one hundred and ",
    "units": "5 km/h^2*s ",
    "powers": "2^",
    "latex": "\\frac{1}{",
    "roots": "\\sqrt",
    "dollars": "$",
    "minus": "-",
    "plus": "1+",
    "slashes": "1/",
    "cannot": "I cannot ",
    "sorry": "I'm sorry, but ",
    "sentences": "No. ",
    "abbreviations": "e.g. ",
    "citations": "[1] ",
    "cites": "[1, ",
    "commas": ", ",
    "colons": "a: ",
    "percent": "50% ",
    "confidence": "confidence: ",
    "combining": "e\u0301",
    "zero width": "\u200b",
    "surrogates": "\ud800",
    "full width": "\uff21\uff0e",
    "json": '{"answer": ',
    "arrays": '{"a":[',
    "urls": "http://",
    "html": "&amp;",
    "hyphens": "a-",
    "apostrophes": "o'",
    "underscores": "_a",
}
"""What is repeated up to the size.

Each stands at the beginning, at the end after a word, and before a word that nearly matches.
"""

_SETTINGS: Mapping[str, Any] = {
    "capital_relation": "at least",
    "capital_frequency": 1,
    "prompt_to_repeat": "a",
    "num_placeholders": 1,
    "postscript_marker": "P.S.",
    "num_sections": 1,
    "section_spliter": "Section",
    "num_bullets": 1,
    "num_highlights": 1,
    "keywords": ["a"],
    "forbidden_words": ["b"],
    "keyword": "a",
    "relation": "at least",
    "frequency": 1,
    "letter": "a",
    "let_relation": "at least",
    "let_frequency": 1,
    "language": "en",
    "num_paragraphs": 2,
    "nth_paragraph": 1,
    "first_word": "a",
    "num_sentences": 2,
    "num_words": 2,
    "end_phrase": "end",
}

_NAME = Sample(
    "1",
    "Who wrote the first program?",
    ("Ada Lovelace", "Augusta Ada King"),
    metadata={"answer_type": "name"},
)
_NUMBER = Sample(
    "1",
    "How fast was it?",
    ("1234.5",),
    metadata={"unit": "km/h", "answer_type": "number"},
)
_DATE = Sample("1", "When was it?", ("12 May 1999",), metadata={"answer_type": "date"})
_CHOICES = Sample(
    "1", "Which is it?", ("Paris",), ("Paris", "London", "Ada Lovelace", "1,234"), (0,)
)
_MATHS = Sample("1", "What is x?", (r"\frac{1}{2}",))
_PASSAGES = Sample(
    "1",
    "Where was Ada Lovelace born?",
    ("London",),
    passages=(
        Passage("1", "Ada Lovelace was born in London in 1815. " * 20),
        Passage("2", "No."),
    ),
    metadata={"citations": ["1"]},
)
_PROGRAM = Sample(
    "1",
    metadata={
        "tests": "assert add(1, 2) == 3",
        "before": "def add(a, b):\n",
        "entry_point": "add",
    },
)
_PREMISE = Sample(
    "1",
    "Why did Ada invent it?",
    ("She did not.",),
    metadata={
        "premise": "Ada invented it",
        "corrections": ["Babbage"],
        "fabrications": ["1840"],
    },
)
_INSTRUCTED = Sample(
    "1",
    metadata={
        "kinds": list(ENGLISH),
        "settings": [
            {name: value for name, value in _SETTINGS.items() if name in names}
            for _, names in ENGLISH.values()
        ],
    },
)

_TRANSLATION = Sample(
    "1", "Translate it.", ("Ada Lovelace wrote the first program in London.",)
)
_JAPANESE = Sample(
    "1", "訳して", ("エイダが最初のプログラムを書いた。",), metadata={"language": "ja"}
)

CASES: Mapping[str, tuple[str, dict[str, Any], Sample]] = {
    "bleu": ("bleu", {}, _TRANSLATION),
    "choice": ("choice", {}, _CHOICES),
    "chrf": ("chrf", {}, _TRANSLATION),
    "chrf++": ("chrf++", {}, _TRANSLATION),
    "citation": ("citation", {}, _PASSAGES),
    "exact-match": ("exact-match", {}, _NAME),
    "final-answer": ("final-answer", {}, _NAME),
    "final-answer of mathematics": ("final-answer", {"kind": "math"}, _MATHS),
    "final-answer of numbers": ("final-answer", {"kind": "number"}, _NUMBER),
    "final-answer of choices": ("final-answer", {"kind": "choice"}, _CHOICES),
    "short-answer of yes or no": ("short-answer", {}, Sample("1", "Is it?", ("yes",))),
    "grounded-answer": ("grounded-answer", {}, _PASSAGES),
    "grounding": ("grounding", {}, _PASSAGES),
    "instructions": ("instructions", {}, _INSTRUCTED),
    "judge-correct": ("judge-correct", {}, _NAME),
    "judge-rating": ("judge-rating", {"question": "How polite is it?"}, _NAME),
    "judge-rubric": (
        "judge-rubric",
        {"criteria": ["It is short.", "It is polite."]},
        _NAME,
    ),
    "language": ("language", {"expected": "id"}, _NAME),
    "numeric": ("numeric", {}, _NUMBER),
    "outcome": ("outcome", {}, _NAME),
    "rouge of lines": ("rouge", {"kind": "rougeLsum"}, _TRANSLATION),
    "bleu of Japanese": ("bleu", {"tokenize": "ja-mecab"}, _JAPANESE),
    "rouge of Japanese": ("rouge", {}, _JAPANESE),
    "short-answer of dates": ("short-answer", {}, _DATE),
    "short-answer of names": ("short-answer", {}, _NAME),
    "short-answer of numbers": ("short-answer", {}, _NUMBER),
    "similarity": (
        "similarity",
        {},
        Sample("1", "Why?", ("Because of Ada Lovelace.",)),
    ),
    "stress": ("stress", {}, _PREMISE),
    "token-f1": ("token-f1", {}, _NAME),
    "unit-tests (reading the program)": ("", {}, _PROGRAM),
    "words": ("words", {}, _NAME),
}
"""By name: the scorer, its options, and what it is asked of."""


def _judge(text: str) -> Ask:
    """A judge that echoes the hostile text."""

    async def ask(role: str, request: Request) -> Response:
        return Response(text=text)

    return ask


def score_text(case: str, text: str) -> Scored | str:
    """Score a text with the scorer of a case."""
    kind, options, sample = CASES[case]
    if not kind:
        from evalwright.scorers.code.unit_tests import assemble_program

        return assemble_program(
            text, str(sample.metadata["before"]), str(sample.metadata["entry_point"])
        )
    # here, and not in a process of its own
    usual = registry.LONG
    registry.LONG = 1 << 60
    scorer = bind(kind, options)
    registry.LONG = usual
    answer = Answer(text, responses=(Response(text=text),))
    returned: Any = (
        scorer.function(sample, answer, _judge(text))
        if scorer.asks
        else scorer.function(sample, answer)
    )
    try:
        score: Scored = asyncio.run(_await_score(returned)) if scorer.asks else returned
    except RequestFailed as error:  # a verdict that cannot be read, as it should be
        return str(error)
    return score


async def _await_score(coroutine: Any) -> Any:
    return await coroutine


def texts(size: int) -> dict[str, str]:
    """The hostile texts of this size, by name."""
    text_by_name = {}
    for name, part in SHAPES.items():
        text = (part * (size // len(part) + 1))[:size]
        text_by_name[name] = text
        text_by_name[f"{name}, then a word"] = f"{text[:-8]} answer!"
        text_by_name[f"a word, then {name}"] = f"Answer: {text[:-8]}"
    return text_by_name


def seconds_of(case: str, text: str) -> float:
    """CPU seconds of one answer, libraries loaded; also what a scorer raises is an error here."""
    score_text(case, text[1:])
    began = time.process_time()
    score_text(case, text)
    return time.process_time() - began


def measure_case(case: str, size: int, seconds: float) -> dict[str, float | str]:
    """Measure CPU seconds by shape; an error's text where the scorer failed."""
    import worst_case  # the process must find the function by its module's name

    seconds_by_shape: dict[str, float | str] = {}
    for name, text in texts(size).items():
        try:
            seconds_by_shape[name] = bounded.call(
                worst_case.seconds_of, case, text, seconds=seconds
            )
        except (bounded.LimitExceeded, bounded.Raised, EvalwrightError) as error:
            seconds_by_shape[name] = f"{type(error).__name__}: {error}"
    return seconds_by_shape


def main(words: Sequence[str] | None = None) -> int:
    """Print the table: for every scorer its three slowest shapes."""
    parser = option_parser(__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--limit", type=float, default=0.5)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args(words)
    bad = 0
    table = Table(["scorer", "CPU seconds", "slowest shapes"])
    for case in CASES:
        if chosen.only and not any(word in case for word in chosen.only.split(",")):
            continue
        seconds_by_shape = measure_case(case, chosen.size, chosen.seconds)
        seconds_of = {
            name: seconds if isinstance(seconds, float) else 1e9
            for name, seconds in seconds_by_shape.items()
        }
        slowest = sorted(seconds_of, key=seconds_of.__getitem__, reverse=True)[:3]
        slowest_shapes = ", ".join(
            (
                f"{name}: {value:.3f}"
                if isinstance(value := seconds_by_shape[name], float)
                else f"{name}: {value}"
            )
            for name in slowest
        )
        bad += seconds_of[slowest[0]] > chosen.limit
        table.add(case, f"{min(seconds_of[slowest[0]], 999.0):.3f}", slowest_shapes)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
