"""What the rules read out of labelled answers, against a careful reader: agreement, how many are decided, how many of these rightly.

    python benchmarks/answers.py FILE... [--judge provider/name] [--show 20] [--json]

A FILE has a JSON object a line: `kind` (choice, number, match, math, yes_no, date; else a short answer), `lang`, `question`, `choices`,
`gold` (an option's letter or place, or targets), `answer`, and the reader's `verdict` (correct, incorrect, not_attempted, unclear). The
spellings of other tables are read too (`language`, `options`, `targets`, `reference`, `reply`, `label`).

"With a judge": rules where they decide, else a judge, on the answers that the reader calls clear. Without --judge it is the highest that a judge can
reach: what rules decide wrongly is lost. An answer that the reader calls unclear agrees where it is undecided.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evalwright import open_model
from evalwright.core.errors import EvalwrightError, RequestFailed
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.core.samples import UNDECIDED, Answer, Sample, Undecided
from evalwright.models.base import LocalModel, RemoteModel
from evalwright.scorers.registry import bind

SCORERS = {
    "choice": ("choice", {}), "number": ("numeric", {}), "math": ("final-answer", {"kind": "math"}),
}  # fmt: skip
TYPES = {"date": "date", "yes_no": "yes_no"}
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Row(NamedTuple):
    """One answer: by which scorer it is read, what it is asked, and what the reader says of it."""

    kind: str
    sample: Sample
    text: str
    wanted: str


def read(row: Mapping[str, Any], place: int) -> Row:
    """A line of a table."""
    kind = str(row.get("kind") or "match")
    language = str(row.get("lang") or row.get("language") or "en")
    known = {"language": language, **({"answer_type": TYPES[kind]} if kind in TYPES else {})}
    known |= row.get("metadata") or {}
    right = row.get("targets", row.get("gold", row.get("reference")))
    right = (right,) if isinstance(right, str | int) else tuple(right or ())
    options = row.get("choices") or row.get("options") or ()
    options = tuple(options.values()) if isinstance(options, Mapping) else tuple(options)
    gold = tuple(one if isinstance(one, int) else LETTERS.index(one) for one in right) if options else ()
    sample = Sample(
        str(row.get("id", place)),
        str(row.get("question", "")),
        () if options else right,
        options,
        gold,
        metadata=known,
    )
    text = separate_reasoning(Response(str(row["answer"] if "answer" in row else row["reply"]))).answer
    label = str(row.get("verdict") or row["label"])
    return Row(kind, sample, text, UNDECIDED if label == "unclear" else label)


def verdict(row: Row) -> tuple[str, str]:
    """The label that the rules give, "incorrect" where they find nothing to compare, and why."""
    name, options = SCORERS.get(row.kind, ("short-answer", {}))
    found: Any = bind(name, options).function(row.sample, Answer(row.text))
    if isinstance(found, Undecided):
        return UNDECIDED, found.explanation
    return "incorrect" if found.label == "not_extracted" else found.label, found.explanation


class Shares(NamedTuple):
    """Of the answers the share where rules and reader agree, the share decided, of these the share that is right; with a judge."""

    answers: int
    agree: float
    decided: float
    right: float
    with_judge: float


def shares(rows: Iterable[tuple[Row, str]], judged: Mapping[int, str] | None = None) -> Shares:
    """The shares of rows with the rules' labels. judged: a judge's labels of undecided ones by the row's `id()`."""
    found = list(rows)
    decided = [(row, label) for row, label in found if label != UNDECIDED]
    clear = [(row, label) for row, label in found if row.wanted != UNDECIDED]
    right = sum(row.wanted == label for row, label in decided)
    last = [
        label == row.wanted
        if label != UNDECIDED
        else judged is None or judged.get(id(row.sample)) == row.wanted
        for row, label in clear
    ]
    agree = sum(row.wanted == label for row, label in found)
    return Shares(
        len(found),
        agree / max(len(found), 1),
        len(decided) / max(len(found), 1),
        right / max(len(decided), 1),
        sum(last) / max(len(last), 1),
    )


async def judge(rows: Iterable[Row], name: str) -> dict[int, str]:
    """What a judge says of answers; nothing of one whose verdict fails."""
    model = open_model(name)
    if not isinstance(model, LocalModel | RemoteModel):
        raise SystemExit(f"'{name}' cannot judge.")
    scorer: Any = bind("judge-correct")

    async def ask(role: str, request: Request) -> Response:
        if isinstance(model, LocalModel):
            ((_, answer),) = await asyncio.to_thread(lambda: list(model.answer_batch([request])))
        else:
            answer = await model.answer(request)
        if not isinstance(answer, Response):
            raise RequestFailed(answer)
        return answer

    async def one(row: Row) -> tuple[int, str]:
        sample = row.sample
        if sample.choices:
            listed = "\n".join(
                f"{letter}. {text}" for letter, text in zip(LETTERS, sample.choices, strict=False)
            )
            right = tuple(f"{LETTERS[at]}. {sample.choices[at]}" for at in sample.gold)
            sample = Sample(sample.id, f"{sample.input}\n{listed}", right, metadata=sample.metadata)
        try:
            return id(row.sample), (await scorer.function(sample, Answer(row.text), ask)).label
        except EvalwrightError as error:
            print(f"{sample.id}: {error}")
            return id(row.sample), "failed"

    limit = asyncio.Semaphore(8)

    async def bounded(row: Row) -> tuple[int, str]:
        async with limit:
            return await one(row)

    return dict(await asyncio.gather(*(bounded(row) for row in rows)))


def table(found: list[tuple[Row, str]], judged: Mapping[int, str] | None) -> dict[str, Shares]:
    """The shares of all, of each kind and of each language."""
    groups: dict[str, list[tuple[Row, str]]] = defaultdict(list)
    for row, label in found:
        for name in ("all", f"kind {row.kind}", f"language {row.sample.metadata['language']}"):
            groups[name].append((row, label))
    order = sorted(groups, key=lambda name: (name != "all", not name.startswith("kind"), -len(groups[name])))
    return {name: shares(groups[name], judged) for name in order}


def main() -> None:
    """Measure tables of answers and print the shares."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--judge", help="a model that decides what the rules leave open")
    parser.add_argument(
        "--show", type=int, default=0, metavar="N", help="show N answers that are decided wrongly"
    )
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    lines = [line for file in given.files for line in file.read_text("utf-8").splitlines() if line.strip()]
    rows = [read(json.loads(line), place) for place, line in enumerate(lines)]
    said = [(row, *verdict(row)) for row in rows]
    found = [(row, label) for row, label, _ in said]
    judged = None
    if given.judge:
        judged = asyncio.run(judge([row for row, label in found if label == UNDECIDED], given.judge))
    made = table(found, judged)
    if given.json:
        print(json.dumps({name: one._asdict() for name, one in made.items()}, indent=1))
        return
    print(f"{'':16}{'answers':>8}{'agree':>8}{'decided':>9}{'right':>8}{'with a judge':>14}")
    for name, one in made.items():
        print(
            f"{name:16}{one.answers:8}{one.agree:8.1%}{one.decided:9.1%}{one.right:8.1%}{one.with_judge:14.1%}"
        )
    wrong = [(row, label, why) for row, label, why in said if label not in (row.wanted, UNDECIDED)]
    for row, label, why in wrong[: given.show]:
        print(
            f"\n{row.sample.id} {row.kind}: {label} ({why}), the reader says {row.wanted}: {row.text[:300]!r}"
        )


if __name__ == "__main__":
    main()
