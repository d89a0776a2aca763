"""The news of a board as an Atom feed (RFC 4287): new models, new results, verdicts of new judges.

The same runs give the same bytes: dates are those of the runs, and ids are made of the board's
title or address, the model and the hash of the samples.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit
from xml.sax.saxutils import escape, quoteattr

from evalwright.analysis.history import (
    EarlierVerdict,
    HistoryEntry,
)
from evalwright.analysis.words import listed
from evalwright.core.errors import ConfigurationError
from evalwright.core.text import printable
from evalwright.reports import numbers
from evalwright.reports.documents.history import change_text
from evalwright.reports.text import inert
from evalwright.statistics import Estimate

MOST_ENTRIES = 100
"""Newest entries of a feed; readers keep those they have seen."""
_IDS = uuid.UUID("6f6d6f3e-6a7c-5b59-8a8d-3f0c6f9b2f10")
"""The namespace of the ids; changing it makes every entry new to every reader."""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class FeedModel:
    """A model of the board.

    Attributes:
        label: its label.
        prompt: the name of its prompt, where it has one of its own.
        history: its results, the oldest first.
        page: the address of its page relative to the feed; "" for none.
    """

    label: str
    prompt: str
    history: Sequence[HistoryEntry]
    page: str = ""


@dataclass(frozen=True, slots=True)
class _News:
    day: str
    label: str
    title: str
    sentences: Sequence[str]
    sha256: str
    page: str


def check_feed_address(url: str) -> None:
    """Raise ConfigurationError for an address that a feed cannot have."""
    parts = urlsplit(url)
    is_plain = not re.search(r"[\s<>\"{}|\\^`]", url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise ConfigurationError(
            "--url takes the address of the folder in which the feed is published, such as"
            f" https://example.org/board/, not '{printable(url)[:80]}'."
        )
    if parts.username or parts.password:
        raise ConfigurationError("--url must not have a user name or a password.")


def atom_feed(
    models: Sequence[FeedModel], *, title: str, url: str = "", file_name: str = ""
) -> str:
    """Write the news of a board as an Atom feed.

    Args:
        models: the models with their histories.
        title: the board's title.
        url: the address of the folder in which the feed is published; "" where it is unknown.
        file_name: the feed's name in it.
    """
    base = url if not url or url.endswith("/") else f"{url}/"
    news = sorted(
        (piece for model in models for piece in _news_of(model)),
        key=lambda piece: (piece.day, piece.label, piece.sha256),
        reverse=True,
    )[:MOST_ENTRIES]
    about = base or title
    updated = news[0].day if news else "1970-01-01"
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<title>{_text(title)}</title>",
        f"<id>{_id('feed', about)}</id>",
        f"<updated>{_moment(updated)}</updated>",
        f"<author><name>{_text(title)}</name></author>",
        "<generator>evalwright</generator>",
    ]
    if base:
        own_address = urljoin(base, file_name)
        lines.append(f"<link rel={quoteattr('self')} href={quoteattr(own_address)}/>")
        lines.append(f"<link rel={quoteattr('alternate')} href={quoteattr(base)}/>")
    for piece in news:
        lines += _entry_lines(piece, about, base)
    lines.append("</feed>")
    return "\n".join(lines) + "\n"


def _entry_lines(piece: _News, about: str, base: str) -> Iterator[str]:
    yield "<entry>"
    yield f"<title>{_text(piece.title)}</title>"
    yield f"<id>{_id(about, piece.label, piece.sha256)}</id>"
    yield f"<published>{_moment(piece.day)}</published>"
    yield f"<updated>{_moment(piece.day)}</updated>"
    if base:
        address = urljoin(base, piece.page) if piece.page else base
        yield f"<link rel={quoteattr('alternate')} href={quoteattr(address)}/>"
    yield f'<content type="text">{_text(" ".join(piece.sentences))}</content>'
    yield "</entry>"


def _news_of(model: FeedModel) -> Iterator[_News]:
    """Iterate over what happened to a model: its first result, further ones, new verdicts."""
    label = f"{model.label} ({model.prompt})" if model.prompt else model.label
    for index, entry in enumerate(model.history):
        newest = EarlierVerdict(
            entry.run,
            entry.samples_sha256,
            entry.scored or entry.date,
            entry.judge,
            entry.score,
        )
        verdicts = [*entry.earlier_verdicts, newest]
        for number, verdict in enumerate(verdicts):
            score = _score(entry, verdict.score)
            by_judge = f" by {verdict.judge}" if verdict.judge else ""
            sentences = [f"{entry.measure}: {score}{by_judge}."]
            if number:
                before = _score(entry, verdicts[number - 1].score)
                title = f"{label}: scored again{by_judge}, {score}"
                sentences.append(f"The answers of {entry.date} had {before} before.")
            elif index:
                title = f"{label}: new result, {score}"
                if len(verdicts) == 1:
                    sentences += _change_sentences(entry)
            else:
                title = f"{label}: new on the board, {score}"
            yield _News(
                verdict.date,
                label,
                title,
                sentences,
                verdict.samples_sha256,
                model.page,
            )


def _change_sentences(entry: HistoryEntry) -> Iterator[str]:
    change = change_text(entry.score_change, bounded=entry.bounded)
    if change:
        yield f"Change: {change}."
    if entry.confounded_by and entry.score_change is not None:
        yield f"It is not a change of the model alone: {listed(entry.confounded_by)}."
    for record in entry.changes:
        yield f"Changed: {record.what}: {record.text}."


def _score(entry: HistoryEntry, score: Estimate | None) -> str:
    return numbers.score(score, "points" if entry.bounded else "plain")


def _moment(day: str) -> str:
    return f"{day}T00:00:00Z"


def _id(*parts: str) -> str:
    content = "\0".join(parts).encode("utf-8", "surrogatepass").hex()
    return f"urn:uuid:{uuid.uuid5(_IDS, content)}"


def _text(content: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", inert(content)))
