"""What the rules read in labelled answers, against careful readers: agreement over all answers, how
sure, how far the mean is off.

    python -m benchmarks answers FILE... [--judge provider/name] [--show 20]

A FILE has a JSON object a line: `kind` (choice, number, match, math, yes_no, date, premise; else a
short answer), `lang`, `question`, `choices`, `gold` (an option's letter or place, or targets),
`answer`, and the reader's `verdict` (correct, incorrect, not_attempted, unclear). The spellings of
other tables are read too (`language`, `options`, `targets`, `reference`, `reply`, `label`), and
`model_kind` (base, small, chat). An answer is right or not: not attempted and unreadable ones are
wrong. Answers that the reader calls unclear are left out, and counted.

With --judge a model reads the answers of which the rules are unsure, and its verdict replaces
theirs.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright import open_model
from evalwright.core.errors import EvalwrightError, RequestFailed
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.models.model_interface import LocalModel, RemoteModel
from evalwright.scorers.registry import bind
from measuring import Table, option_parser

SCORERS = {
    "choice": ("choice", {}),
    "number": ("numeric", {}),
    "math": ("final-answer", {"kind": "math"}),
    "formula": ("final-answer", {"kind": "math"}),
    "premise": ("stress", {}),
}
RIGHT_LABELS = ("correct", "refusal", "correction")
"""What scorers call a right answer; of a question with a false premise, to decline it or to put it
right.
"""
TYPES = {"date": "date", "yes_no": "yes_no"}
UNCLEAR = ("unclear", "undecided")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class LabelledAnswer:
    """An answer, what it was asked, and what the reader says of it."""

    kind: str
    model_kind: str
    sample: Sample
    text: str
    label: str

    @property
    def is_right(self) -> bool:
        """Whether the reader calls it right."""
        return self.label == "correct"


@dataclass(frozen=True)
class Reading:
    """What the rules say of an answer."""

    answer: LabelledAnswer
    label: str
    explanation: str
    unsure: str

    @property
    def is_right(self) -> bool:
        """Whether the rules call it right."""
        return self.label in RIGHT_LABELS

    @property
    def agrees(self) -> bool:
        """Whether rules and reader agree on right or wrong."""
        return self.is_right == self.answer.is_right


@dataclass(frozen=True)
class Shares:
    """How well the rules read a group of answers; each a share of 1, but `bias`.

    missed: right answers that are called wrong. invented: wrong answers that are called right.
    bias: the rules' mean score less the reader's, in points.
    """

    answers: int
    right_share: float
    agree: float
    missed: float
    invented: float
    sure: float
    sure_agree: float
    unsure_agree: float
    bias: float


def read_row(row: Mapping[str, Any], place: int) -> LabelledAnswer:
    """Parse one row of a table."""
    kind = str(row.get("kind") or "match")
    language = str(row.get("lang") or row.get("language") or "en")
    metadata = {
        "language": language,
        **({"answer_type": TYPES[kind]} if kind in TYPES else {}),
    }
    if "answer_type" in row:
        metadata["answer_type"] = row["answer_type"]
    metadata |= {
        key: row[key]
        for key in ("premise", "corrections", "fabrications")
        if row.get(key)
    }
    metadata |= row.get("metadata") or {}

    targets = row.get("targets", row.get("gold", row.get("reference")))
    targets = (targets,) if isinstance(targets, str | int) else tuple(targets or ())
    options = row.get("choices") or row.get("options") or ()
    options = (
        tuple(options.values()) if isinstance(options, Mapping) else tuple(options)
    )
    gold: tuple[int, ...] = ()
    if options:
        gold = tuple(
            mark if isinstance(mark, int) else LETTERS.index(mark) for mark in targets
        )
        targets = ()
    sample = Sample(
        str(row.get("id", place)),
        str(row.get("question", "")),
        tuple(map(str, targets)),
        options,
        gold,
        metadata=metadata,
    )
    reply = str(row["answer"] if "answer" in row else row["reply"])
    return LabelledAnswer(
        kind=kind,
        model_kind=str(row.get("model_kind") or row.get("model") or ""),
        sample=sample,
        text=separate_reasoning(Response(reply)).answer,
        label=str(row.get("verdict") or row["label"]),
    )


def read_by_rules(answer: LabelledAnswer) -> Reading:
    """Score an answer by the rules."""
    name, options = SCORERS.get(answer.kind, ("short-answer", {}))
    scorer: Any = bind(name, options)
    score = scorer.function(answer.sample, Answer(answer.text))
    return Reading(answer, score.label, score.explanation, score.unsure)


def shares_of(readings: Iterable[Reading]) -> Shares:
    """Compute the shares of a group; 0 for an empty one."""
    group = list(readings)

    def share(part: list[Reading], of: list[Reading]) -> float:
        return len(part) / max(len(of), 1)

    right = [reading for reading in group if reading.answer.is_right]
    wrong = [reading for reading in group if not reading.answer.is_right]
    sure = [reading for reading in group if not reading.unsure]
    unsure = [reading for reading in group if reading.unsure]
    called_right = [reading for reading in group if reading.is_right]
    return Shares(
        answers=len(group),
        right_share=share(right, group),
        agree=share([reading for reading in group if reading.agrees], group),
        missed=share([reading for reading in right if not reading.agrees], right),
        invented=share([reading for reading in wrong if not reading.agrees], wrong),
        sure=share(sure, group),
        sure_agree=share([reading for reading in sure if reading.agrees], sure),
        unsure_agree=share([reading for reading in unsure if reading.agrees], unsure),
        bias=100 * (share(called_right, group) - share(right, group)),
    )


def shares_by_group(readings: Iterable[Reading]) -> dict[str, Shares]:
    """The shares of all, by kind of answer, by kind of model and by language."""
    groups: dict[str, list[Reading]] = defaultdict(list)
    for reading in readings:
        answer = reading.answer
        names = [
            "all",
            f"kind {answer.kind}",
            f"language {answer.sample.metadata['language']}",
        ]
        if answer.model_kind:
            names += [
                f"model {answer.model_kind}",
                f"{answer.kind}, {answer.model_kind}",
            ]
        for name in names:
            groups[name].append(reading)
    order = ("all", "kind", "model", "", "language")

    def place(name: str) -> tuple[int, int]:
        word = name.partition(" ")[0]
        return order.index(word if word in order else ""), -len(groups[name])

    return {name: shares_of(groups[name]) for name in sorted(groups, key=place)}


async def read_by_judge(readings: Iterable[Reading], name: str) -> dict[str, str]:
    """A judge's labels by the sample's id; none of one whose verdict fails."""
    model = open_model(name)
    if not isinstance(model, LocalModel | RemoteModel):
        raise SystemExit(f"'{name}' cannot judge.")
    scorer: Any = bind("judge-correct")
    slots = asyncio.Semaphore(8)

    async def ask(role: str, request: Request) -> Response:
        if isinstance(model, LocalModel):
            ((_, response),) = await asyncio.to_thread(
                lambda: list(model.answer_batch([request]))
            )
        else:
            response = await model.answer(request)
        if not isinstance(response, Response):
            raise RequestFailed(response)
        return response

    async def label_of(answer: LabelledAnswer) -> tuple[str, str]:
        sample = answer.sample
        if sample.choices:
            letters = zip(LETTERS, sample.choices, strict=False)
            listed = "\n".join(f"{letter}. {text}" for letter, text in letters)
            right = tuple(
                f"{LETTERS[index]}. {sample.choices[index]}" for index in sample.gold
            )
            sample = Sample(
                sample.id, f"{sample.input}\n{listed}", right, metadata=sample.metadata
            )
        async with slots:
            try:
                score = await scorer.function(sample, Answer(answer.text), ask)
            except EvalwrightError as error:
                print(f"{sample.id}: {error}")
                return sample.id, ""
        return sample.id, str(score.label)

    labels = dict(
        await asyncio.gather(*(label_of(reading.answer) for reading in readings))
    )
    return {sample_id: label for sample_id, label in labels.items() if label}


def print_table(table: Mapping[str, Shares]) -> None:
    """Print the shares, a row for each group."""
    heads = (
        "answers",
        "right",
        "agree",
        "missed",
        "invented",
        "sure",
        "of sure",
        "of unsure",
        "bias",
    )
    shares_table = Table(["group", *heads])
    for name, shares in table.items():
        percents = [
            f"{share:.1%}"
            for share in (
                shares.right_share,
                shares.agree,
                shares.missed,
                shares.invented,
                shares.sure,
                shares.sure_agree,
                shares.unsure_agree,
            )
        ]
        shares_table.add(name, shares.answers, *percents, f"{shares.bias:+.1f}")


def read_answers(
    files: Sequence[Path], kinds: Sequence[str] | None
) -> list[LabelledAnswer]:
    """Read tables of answers, all kinds or only some."""
    lines = [
        line
        for file in files
        for line in file.read_text("utf-8").splitlines()
        if line.strip()
    ]
    answers = [read_row(json.loads(line), place) for place, line in enumerate(lines)]
    return [answer for answer in answers if not kinds or answer.kind in kinds]


def judged(reading: Reading, labels: Mapping[str, str]) -> Reading:
    """Return the judge's reading of an unsure answer, where there is one."""
    label = labels.get(reading.answer.sample.id)
    if not reading.unsure or label is None:
        return reading
    return Reading(reading.answer, label, "the judge's verdict", "")


def show(reading: Reading) -> None:
    """Print an answer that is read wrongly."""
    answer = reading.answer
    sample = answer.sample
    certainty = f"unsure: {reading.unsure}" if reading.unsure else "sure"
    print(
        f"\n{sample.id} {answer.kind} {sample.metadata['language']}: {reading.label}"
        f" ({certainty}; {reading.explanation}), the reader says {answer.label}"
        f"\n  Q {sample.input[-200:]!r}\n  T {sample.targets}\n  A {answer.text[:400]!r}"
    )


def main(words: Sequence[str] | None = None) -> int:
    """Measure tables of answers and print the shares."""
    parser = option_parser(__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument(
        "--judge", help="a model that reads what the rules are unsure of"
    )
    parser.add_argument("--kind", action="append", help="only answers of this kind")
    parser.add_argument(
        "--show",
        type=int,
        default=0,
        metavar="N",
        help="show N answers that are read wrongly",
    )
    arguments = parser.parse_args(words)

    answers = read_answers(arguments.files, arguments.kind)
    clear = [answer for answer in answers if answer.label not in UNCLEAR]
    readings = [read_by_rules(answer) for answer in clear]
    if arguments.judge:
        unsure = [reading for reading in readings if reading.unsure]
        labels = asyncio.run(read_by_judge(unsure, arguments.judge))
        readings = [judged(reading, labels) for reading in readings]
    print_table(shares_by_group(readings))
    n_unclear = len(answers) - len(clear)
    print(f"{n_unclear} answers that the reader calls unclear are left out.")
    wrong = [reading for reading in readings if not reading.agrees]
    wrong.sort(key=lambda reading: bool(reading.unsure))
    for reading in wrong[: arguments.show]:
        show(reading)
    return 0


if __name__ == "__main__":
    sys.exit(main())
