"""Samples of a run: a line for each, or everything that is recorded of each."""

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

_LONGEST_CELL = 160
_WIDEST_NAMES = 36
"""Cells that ids and tasks may take in a table, so that the rest fits beside them into 80."""


def samples_document(
    run: Run,
    matches: Sequence[Found],
    against: Run | None = None,
    *,
    in_full: bool = False,
    most: int | None = None,
    hints: Sequence[str] = (),
) -> doc.Document:
    """What was found. against: the run that scored these items differently; whole: all that is
    recorded of each.

    most: how many were asked for. hints: why there is none.
    """
    if not matches:
        which = (
            f" No item has another score in '{against.name}'."
            if against is not None
            else ""
        )
        return doc.Document(
            f"Samples of {run.name}",
            [doc.Note(" ".join((f"No samples match.{which}", *hints)))],
        )
    if in_full:
        blocks = [block for match in matches for block in _full_story(match, against)]
    else:
        blocks = list(_lines(matches, against))
    if most is not None and len(matches) == most:
        blocks.append(
            doc.Note(
                f"The first {f'{most:,} are' if most > 1 else 'one is'} shown; --limit"
                " N shows more.",
                "quiet",
            )
        )
    if not in_full and (sample_id := str(matches[0].row["id"])).isprintable():
        command = (
            f"evalwright runs samples {quote(run.name)}"
            f" {'-- ' * sample_id.startswith('-')}{quote(sample_id)}"
        )
        blocks.append(doc.Note(f"One sample in full: {command}", "quiet"))
    return doc.Document(f"Samples of {run.name}", blocks)


def _lines(matches: Sequence[Found], against: Run | None) -> Iterator[doc.Block]:
    """A table, its names never folded.

    Long ones stand above what belongs to them: tasks above a table for each, ids above the facts.
    """
    tasks = dict.fromkeys(str(match.row["task"]) for match in matches)
    ids = max(cell_width(inert(match.row["id"])) for match in matches)
    if ids > _WIDEST_NAMES:
        for match in matches:
            yield doc.Heading(shorten(inert(match.row["id"]), 300))
            named = [("Task", match.row["task"])] if len(tasks) > 1 else []
            other_score = [("Other run", _number(match.other))] if against else []
            result_facts = [("Result", _result_text(match)), *other_score]
            yield doc.Facts(
                [
                    *named,
                    *result_facts,
                    ("Answer", _answer(match.row)),
                    ("Expected", _expected(match.row)),
                ]
            )
    elif (
        len(tasks) > 1 and ids + max(map(cell_width, map(inert, tasks))) > _WIDEST_NAMES
    ):
        for task in tasks:
            yield doc.Heading(inert(task))
            yield _table(
                [match for match in matches if match.row["task"] == task], against
            )
    else:
        yield _table(matches, against, tasks=len(tasks) > 1)


def _table(
    matches: Sequence[Found], against: Run | None, *, tasks: bool = False
) -> doc.Table:
    rows: list[list[doc.Content]] = []
    for match in matches:
        row = match.row
        rows.append(
            [
                doc.Cell(str(row["id"]), "strong", name=True),
                *([doc.Cell(str(row["task"]), name=True)] if tasks else []),
                doc.Cell(_result_text(match), "bad" if _failed(row) else ""),
                *([_number(match.other)] if against else []),
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


def _result_text(match: Found) -> str:
    """The main score and its label, or why there is none."""
    score = "" if math.isnan(match.score) else _number(match.score)
    return (
        " ".join(filter(None, (score, _verdict(match.row, match.scorer)))) or "no score"
    )


def _answer(row: Mapping[str, Any]) -> str:
    return shorten(" ".join(str(row.get("answer", "")).split()), _LONGEST_CELL)


def _expected(row: Mapping[str, Any]) -> str:
    texts = [" ".join(text.split()) for text in expected_of(row)]
    remaining = f" (+{len(texts) - 1} more)" if len(texts) > 1 else ""
    return (
        shorten(texts[0], _LONGEST_CELL - len(remaining)) + remaining if texts else ""
    )


def expected_of(row: Mapping[str, Any]) -> list[str]:
    """The right answers of a record: its targets, else the choices that are right."""
    if row["targets"]:
        return [str(target) for target in row["targets"]]
    choices = row.get("choices") or ()
    gold = row.get("gold") or ()
    return [
        str(choices[i]) for i in gold if isinstance(i, int) and 0 <= i < len(choices)
    ]


def _full_story(match: Found, against: Run | None) -> Iterator[doc.Block]:
    row = match.row
    repeat = f", repeat {row['draw']}" if row.get("draw") else ""
    yield doc.Heading(f"{shorten(str(row['id']), 100)}{repeat}")
    facts = [
        ("Task", row["task"]),
        ("Outcome", row["outcome"]),
        ("Score", _number(match.score)),
    ]
    if against is not None:
        facts.append((f"Score of {shorten(against.name, 40)}", _number(match.other)))
    usage = [
        response["usage"]
        for response in row.get("responses", ())
        if response.get("usage")
    ]
    if usage:
        sums = [
            sum(counts.get(name, 0) for counts in usage)
            for name in ("input_tokens", "output_tokens")
        ]
        facts.append(("Tokens", f"{sums[0]:,} in, {sums[1]:,} out"))
    if latency := [
        seconds for seconds in row.get("timing", {}).get("latency", ()) if seconds
    ]:
        # Options that were scored together have one time.
        facts.append(
            (
                "Latency",
                ", ".join(dict.fromkeys(f"{seconds:.2f} s" for seconds in latency)),
            )
        )
    facts += [
        (name, shorten(str(metadata_value), _LONGEST_CELL))
        for name, metadata_value in row.get("metadata", {}).items()
        if name not in ("doc", "row")
    ]
    yield doc.Facts(facts)
    yield from _prompt_blocks(row)
    yield from _answered(row, "")
    if len(row.get("choices") or ()) > 1:
        yield doc.Text("Choices", "\n".join(_choices(row)))
    if expected := expected_of(row):
        yield doc.Text("Expected", "\n".join(expected))
    yield from _scored(row, "")
    if against is not None and match.theirs:
        name = f"{shorten(against.name, 60)}: "
        yield from _answered(match.theirs, name)
        yield from _scored(match.theirs, name)


def _choices(row: Mapping[str, Any]) -> Iterator[str]:
    """A line for each choice, with its log-likelihood where there is one."""
    log_likelihoods = row.get("log_likelihoods") or ()
    for index, choice in enumerate(row["choices"]):
        suffix = (
            f" (log-likelihood {_number(log_likelihoods[index])})"
            if index < len(log_likelihoods)
            else ""
        )
        yield (
            f"{chr(65 + index)}. {choice}{suffix}"
            if index < 26
            else f"{choice}{suffix}"
        )


def _answered(row: Mapping[str, Any], whose: str) -> Iterator[doc.Block]:
    for index, response in enumerate(row.get("responses", ()), 1):
        number = (
            f" {index} of {len(row['responses'])}" if len(row["responses"]) > 1 else ""
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
        response.get("text") for response in row.get("responses", ())
    ]:
        yield doc.Text(f"{whose}Answer as scored", row["answer"])


def _scored(row: Mapping[str, Any], whose: str) -> Iterator[doc.Block]:
    for name, score in row["scores"].items():
        verdict = f"{whose}{name}: {_number(score['value'])} {score.get('label', '')}".rstrip()
        excerpts = [
            row.get("answer", "")[begin:end] for begin, end in score.get("evidence", ())
        ]
        unsure = score.get("unsure", "")
        words = [
            score.get("explanation", ""),
            *(f"Evidence: {excerpt}" for excerpt in excerpts),
        ]
        if unsure:
            words.append(f"Unsure: {unsure}")
        yield doc.Text(verdict, "\n".join(filter(None, words)))
    failures = [("failed", row["failure"])] if row.get("failure") else []
    for name, record in [*failures, *row.get("score_failures", {}).items()]:
        yield doc.Text(
            f"{whose}{name}: {record['kind']} ({record['party']})", record["message"]
        )
    for name, exchanges in row.get("exchanges", {}).items():
        for record in exchanges:
            yield from _exchanged(f"{whose}{name}: ", record)


def _exchanged(whose: str, exchange: Mapping[str, Any]) -> Iterator[doc.Block]:
    """What a scorer asked a model, such as a judge, and what that replied."""
    request = exchange["request"]
    response = exchange.get("response", {})
    texts = [request[name] for name in _REQUEST_TYPES if name in request]
    for title, text in _turns(
        texts[0] if texts else "", f"{whose}sent to {exchange['role']}"
    ):
        yield doc.Text(title, text)
    reply = response.get("text") or ", ".join(
        f"{number:.4g}" for number in response.get("values", ())
    )
    yield doc.Text(f"{whose}{exchange['role']} replied", reply or "nothing")


_REQUEST_TYPES = (
    "generate",
    "log_likelihood",
    "rolling",
    "embed",
    "classify",
    "reward",
)
"""Under what a request has its text."""


def _prompt_blocks(row: Mapping[str, Any]) -> Iterator[doc.Block]:
    for title, text in _turns(row.get("prompt") or row["input"], "Prompt"):
        yield doc.Text(title, text)


def _turns(prompt: Any, title: str) -> Iterator[tuple[str, str]]:
    """What was sent, by turns."""
    if isinstance(prompt, str):
        yield title, prompt
        return
    for turn in prompt:
        role, content = turn if isinstance(turn, list) else ("", turn)
        pieces = [content] if isinstance(content, str) else content
        text = "\n".join(
            piece if isinstance(piece, str) else f"[image {piece}]" for piece in pieces
        )
        yield f"{title}, {role}" if role else title, text


def _verdict(row: Mapping[str, Any], main: str) -> str:
    """The main scorer's label, then those of others that say something else, with their names."""
    if row.get("failure"):
        return f"missing: {row['failure']['kind']}"
    labels = {
        name: (
            f"{score.get('label', '')} (unsure)".strip()
            if score.get("unsure")
            else score.get("label", "")
        )
        for name, score in row["scores"].items()
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


def _number(number: float | None) -> str:
    return "none" if number is None or math.isnan(number) else f"{number:.4g}"
