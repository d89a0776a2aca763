"""Samples of a run: a line for each, or the whole story of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

from evalwright.reports import document as doc
from evalwright.reports.text import cell_width, inert, shorten

if TYPE_CHECKING:
    from evalwright.analysis.sample_search import Found
    from evalwright.runs.reader import Run

_LONGEST = 160
_NAMES = 36
"""Cells that ids and tasks may take in a table, so that the rest fits beside them into 80."""


def samples_document(
    run: Run,
    found: Sequence[Found],
    against: Run | None = None,
    *,
    whole: bool = False,
    most: int | None = None,
    hints: Sequence[str] = (),
) -> doc.Document:
    """What was found. against: the run that scored these items differently; whole: all that is
    recorded of each.

    most: how many were asked for. hints: why there is none.
    """
    if not found:
        which = (
            f" No item has another score in '{against.name}'."
            if against is not None
            else ""
        )
        return doc.Document(
            f"Samples of {run.name}",
            [doc.Note(" ".join((f"No samples match.{which}", *hints)))],
        )
    if whole:
        blocks = [block for one in found for block in _whole(one, against)]
    else:
        blocks = list(_lines(found, against))
    if most is not None and len(found) == most:
        blocks.append(
            doc.Note(
                f"The first {f'{most:,} are' if most > 1 else 'one is'} shown; --limit"
                " N shows more.",
                "quiet",
            )
        )
    if not whole and (one := str(found[0].row["id"])).isprintable():
        command = (
            f"evalwright runs samples {quote(run.name)}"
            f" {'-- ' * one.startswith('-')}{quote(one)}"
        )
        blocks.append(doc.Note(f"One sample in full: {command}", "quiet"))
    return doc.Document(f"Samples of {run.name}", blocks)


def _lines(found: Sequence[Found], against: Run | None) -> Iterator[doc.Block]:
    """A table, its names never folded.

    Long ones stand above what belongs to them: tasks above a table for each, ids above the facts.
    """
    tasks = dict.fromkeys(str(one.row["task"]) for one in found)
    ids = max(cell_width(inert(one.row["id"])) for one in found)
    if ids > _NAMES:
        for one in found:
            yield doc.Heading(shorten(inert(one.row["id"]), 300))
            named = [("Task", one.row["task"])] if len(tasks) > 1 else []
            other = [("Other run", _number(one.other_score))] if against else []
            told = [("Result", _result(one)), *other]
            yield doc.Facts(
                [
                    *named,
                    *told,
                    ("Answer", _answer(one.row)),
                    ("Expected", _expected(one.row)),
                ]
            )
    elif len(tasks) > 1 and ids + max(map(cell_width, map(inert, tasks))) > _NAMES:
        for task in tasks:
            yield doc.Heading(inert(task))
            yield _table([one for one in found if one.row["task"] == task], against)
    else:
        yield _table(found, against, tasks=len(tasks) > 1)


def _table(
    found: Sequence[Found], against: Run | None, *, tasks: bool = False
) -> doc.Table:
    rows: list[list[doc.Content]] = []
    for one in found:
        row = one.row
        rows.append(
            [
                doc.Cell(str(row["id"]), "strong", name=True),
                *([doc.Cell(str(row["task"]), name=True)] if tasks else []),
                doc.Cell(_result(one), "bad" if _failed(row) else ""),
                *([_number(one.other_score)] if against else []),
                _answer(row),
                _expected(row),
            ]
        )
    titles = [
        *(["Task"] if tasks else []),
        "Result~",
        *(["Other run>"] if against else []),
    ]
    return doc.Table(
        doc.columns("Sample", *titles, "Answer~", "Expected~"), rows, "Samples"
    )


def _result(found: Found) -> str:
    """The main score and its label, or why there is none."""
    score = "" if math.isnan(found.score) else _number(found.score)
    return (
        " ".join(filter(None, (score, _verdict(found.row, found.scorer)))) or "no score"
    )


def _answer(row: Mapping[str, Any]) -> str:
    return shorten(" ".join(str(row.get("answer", "")).split()), _LONGEST)


def _expected(row: Mapping[str, Any]) -> str:
    texts = [" ".join(one.split()) for one in expected_of(row)]
    more = f" (+{len(texts) - 1} more)" if len(texts) > 1 else ""
    return shorten(texts[0], _LONGEST - len(more)) + more if texts else ""


def expected_of(row: Mapping[str, Any]) -> list[str]:
    """The right answers of a record: its targets, else the choices that are right."""
    if row["targets"]:
        return [str(one) for one in row["targets"]]
    choices = row.get("choices") or ()
    gold = row.get("gold") or ()
    return [
        str(choices[i]) for i in gold if isinstance(i, int) and 0 <= i < len(choices)
    ]


def _whole(found: Found, against: Run | None) -> Iterator[doc.Block]:
    row = found.row
    repeat = f", repeat {row['draw']}" if row.get("draw") else ""
    yield doc.Heading(f"{shorten(str(row['id']), 100)}{repeat}")
    facts = [
        ("Task", row["task"]),
        ("Outcome", row["outcome"]),
        ("Score", _number(found.score)),
    ]
    if against is not None:
        facts.append(
            (f"Score of {shorten(against.name, 40)}", _number(found.other_score))
        )
    usage = [one["usage"] for one in row.get("responses", ()) if one.get("usage")]
    if usage:
        sums = [
            sum(one.get(name, 0) for one in usage)
            for name in ("input_tokens", "output_tokens")
        ]
        facts.append(("Tokens", f"{sums[0]:,} in, {sums[1]:,} out"))
    if latency := [one for one in row.get("timing", {}).get("latency", ()) if one]:
        # Options that were scored together have one time.
        facts.append(
            ("Latency", ", ".join(dict.fromkeys(f"{one:.2f} s" for one in latency)))
        )
    facts += [
        (name, shorten(str(value), _LONGEST))
        for name, value in row.get("metadata", {}).items()
        if name not in ("doc", "row")
    ]
    yield doc.Facts(facts)
    yield from _asked(row)
    yield from _answered(row, "")
    if len(row.get("choices") or ()) > 1:
        yield doc.Text("Choices", "\n".join(_choices(row)))
    if expected := expected_of(row):
        yield doc.Text("Expected", "\n".join(expected))
    yield from _scored(row, "")
    if against is not None and found.theirs:
        name = f"{shorten(against.name, 60)}: "
        yield from _answered(found.theirs, name)
        yield from _scored(found.theirs, name)


def _choices(row: Mapping[str, Any]) -> Iterator[str]:
    """A line for each choice, with its log-likelihood where there is one."""
    found = row.get("log_likelihoods") or ()
    for place, choice in enumerate(row["choices"]):
        said = (
            f" (log-likelihood {_number(found[place])})" if place < len(found) else ""
        )
        yield f"{chr(65 + place)}. {choice}{said}" if place < 26 else f"{choice}{said}"


def _answered(row: Mapping[str, Any], whose: str) -> Iterator[doc.Block]:
    for place, response in enumerate(row.get("responses", ()), 1):
        number = (
            f" {place} of {len(row['responses'])}" if len(row["responses"]) > 1 else ""
        )
        ended = (
            f" (ended by {response['finish_reason']})"
            if response.get("finish_reason")
            else ""
        )
        if response.get("reasoning"):
            yield doc.Text(f"{whose}Reasoning{number}", response["reasoning"])
        if response.get("text"):
            yield doc.Text(f"{whose}Reply{number}{ended}", response["text"])
    if "answer" in row and [row["answer"]] != [
        one.get("text") for one in row.get("responses", ())
    ]:
        yield doc.Text(f"{whose}Answer as scored", row["answer"])


def _scored(row: Mapping[str, Any], whose: str) -> Iterator[doc.Block]:
    for name, score in row["scores"].items():
        verdict = f"{whose}{name}: {_number(score['value'])} {score.get('label', '')}".rstrip()
        rests = [
            row.get("answer", "")[begin:end] for begin, end in score.get("evidence", ())
        ]
        unsure = score.get("unsure", "")
        words = [score.get("explanation", ""), *(f"Evidence: {one}" for one in rests)]
        if unsure:
            words.append(f"Unsure: {unsure}")
        yield doc.Text(verdict, "\n".join(filter(None, words)))
    failures = [("failed", row["failure"])] if row.get("failure") else []
    for name, one in [*failures, *row.get("score_failures", {}).items()]:
        yield doc.Text(f"{whose}{name}: {one['kind']} ({one['party']})", one["message"])
    for name, exchanges in row.get("exchanges", {}).items():
        for one in exchanges:
            yield from _exchanged(f"{whose}{name}: ", one)


def _exchanged(whose: str, exchange: Mapping[str, Any]) -> Iterator[doc.Block]:
    """What a scorer asked a model, such as a judge, and what that replied."""
    request = exchange["request"]
    response = exchange.get("response", {})
    texts = [request[name] for name in _SENT if name in request]
    for title, text in _turns(
        texts[0] if texts else "", f"{whose}sent to {exchange['role']}"
    ):
        yield doc.Text(title, text)
    reply = response.get("text") or ", ".join(
        f"{one:.4g}" for one in response.get("values", ())
    )
    yield doc.Text(f"{whose}{exchange['role']} replied", reply or "nothing")


_SENT = ("generate", "log_likelihood", "rolling", "embed", "classify", "reward")
"""Under what a request has its text."""


def _asked(row: Mapping[str, Any]) -> Iterator[doc.Block]:
    for title, text in _turns(row.get("prompt") or row["input"], "Prompt"):
        yield doc.Text(title, text)


def _turns(prompt: Any, title: str) -> Iterator[tuple[str, str]]:
    """What was sent, by turns."""
    if isinstance(prompt, str):
        yield title, prompt
        return
    for turn in prompt:
        role, content = turn if isinstance(turn, list) else ("", turn)
        parts = [content] if isinstance(content, str) else content
        shown = "\n".join(
            one if isinstance(one, str) else f"[image {one}]" for one in parts
        )
        yield f"{title}, {role}" if role else title, shown


def _verdict(row: Mapping[str, Any], main: str) -> str:
    """The main scorer's label, then those of others that say something else, with their names."""
    if row.get("failure"):
        return f"missing: {row['failure']['kind']}"
    labels = {
        name: (
            f"{one.get('label', '')} (unsure)".strip()
            if one.get("unsure")
            else one.get("label", "")
        )
        for name, one in row["scores"].items()
    }
    if not labels and row["outcome"] != "answered":
        return str(row["outcome"]).replace("_", " ")
    first = labels.get(main, "")
    others = [
        f"{name} {label}"
        for name, label in labels.items()
        if name != main and label not in ("", first)
    ]
    return ", ".join(
        filter(
            None,
            [
                first,
                *others,
                *(f"{name} failed" for name in row.get("score_failures", ())),
            ],
        )
    )


def _failed(row: Mapping[str, Any]) -> bool:
    return bool(row.get("failure") or row.get("score_failures"))


def _number(value: float | None) -> str:
    return "none" if value is None or math.isnan(value) else f"{value:.4g}"
