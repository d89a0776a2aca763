"""Finds n-grams of questions in a corpus: files of any size, read once, in constant memory.

Texts are compared by their words: NFKC, case-folded, without punctuation; a Han, Kana, Hangul
or Thai character is a word. An n-gram never spans two documents, which are whole text files or
the lines of JSON Lines.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from evalwright.core.errors import ConfigurationError

N = 13
"""Words in an n-gram, as in Brown et al. 2020 (arXiv:2005.14165, appendix C)."""

LEAST = 5
"""Fewest words of a question that is searched for: shorter word sequences occur anywhere."""

_ALONE = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
_WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+")
_CHUNK = 1 << 20
_LONGEST_LINE = 64 << 20
"""Longest line of a corpus, in characters: a compressed file may contain one that fills memory."""
_MOST_UNPACKED = 200
_UNPACKED_FREELY = 1 << 30
"""Bytes to which any compressed file may expand.

Beyond them, `_MOST_UNPACKED` times its size at most: text expands 3 to 20 times, a zip bomb a
thousand.
"""
_TEXT = (".txt", ".md", ".text")
_LINES = (".jsonl", ".ndjson")
_MULTIPLIER = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class GramCount:
    """The n-grams of one question and how many of them the corpus has.

    Args:
        n: words in an n-gram, 0 if the question is too short to be searched for.
        grams: how many different n-grams the question has.
        found: how many of them occur in the corpus.
        occurrences: how often they occur in all.
    """

    n: int
    grams: int
    found: int
    occurrences: int

    @property
    def share(self) -> float:
        """The share of its n-grams that occur in the corpus."""
        return self.found / self.grams if self.grams else float("nan")


@dataclass(frozen=True, slots=True)
class CorpusScan:
    """How much was read, and the counts of each question, in order."""

    files: int
    words: int
    counts: tuple[GramCount, ...]


def split_words(text: str) -> list[str]:
    """Split a text into the words by which texts are compared."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def scan_corpus(
    questions: Sequence[str], places: Sequence[Path], n: int = N
) -> CorpusScan:
    """Search files and folders for the n-grams of questions.

    Files are .txt, .md, .jsonl and .ndjson, each also as .gz. A question of LEAST to n words is
    searched for as a whole.

    Raises:
        ConfigurationError: n is under LEAST, a path has no such file, or a file cannot be read.
    """
    if n < LEAST:
        raise ConfigurationError(
            f"n-grams need at least {LEAST} words, not {n}: shorter ones occur in any"
            " text."
        )
    index = _GramIndex([split_words(question) for question in questions], n)
    files = [file for path in places for file in _find_files(path)]
    words = 0
    for file in files:
        try:
            words += sum(map(index.read, _read_documents(file)))
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigurationError(
                f"The corpus file '{file}' cannot be read: {reason}."
            ) from error
    return CorpusScan(len(files), words, index.count_grams())


class _GramIndex:
    """The n-grams of all questions by length, with how often each was seen.

    Words are represented by numbers, 0 for words that are in no question.
    """

    def __init__(self, questions: Sequence[Sequence[str]], n: int) -> None:
        self.codes: dict[str, int] = {}
        self.grams_by_question: list[list[tuple[int, ...]]] = []
        by_length: dict[int, set[tuple[int, ...]]] = {}
        for words in questions:
            length = 0 if len(words) < LEAST else min(n, len(words))
            ids = [
                self.codes.setdefault(word, len(self.codes) + 1)
                for word in words
                if length
            ]
            grams = {
                tuple(ids[start : start + length])
                for start in range(len(ids) - length + 1)
            }
            self.grams_by_question.append(list(grams) if length else [])
            by_length.setdefault(length, set()).update(self.grams_by_question[-1])
        by_length.pop(0, None)
        self.hashes = {
            length: np.unique(_hash_rows(np.array(list(grams), np.uint64)))
            for length, grams in by_length.items()
        }
        self.counts: Counter[tuple[int, ...]] = Counter(
            dict.fromkeys(
                (
                    g
                    for question_grams in self.grams_by_question
                    for g in question_grams
                ),
                0,
            )
        )

    def read(self, pieces: Iterator[str]) -> int:
        """Count the n-grams in a document, passed in pieces that end between words.

        Returns:
            How many words the document has.
        """
        longest = max(self.hashes, default=0)
        tail = np.zeros(0, np.uint64)
        total = 0
        for piece in pieces:
            piece_words = split_words(piece)
            total += len(piece_words)
            if not longest or not piece_words:
                continue
            ids = np.concatenate(
                [
                    tail,
                    np.array(
                        [self.codes.get(word, 0) for word in piece_words], np.uint64
                    ),
                ]
            )
            for length, gram_hashes in self.hashes.items():
                # Of the words carried over, only those that an n-gram of this length can still
                # need.
                self._count(ids[max(0, len(tail) - length + 1) :], length, gram_hashes)
            tail = ids[-(longest - 1) :]
        return total

    def _count(
        self, ids: NDArray[np.uint64], length: int, gram_hashes: NDArray[np.uint64]
    ) -> None:
        """Count the windows that are n-grams; equal hashes are verified by comparing the words."""
        if len(ids) < length:
            return
        hashes = _hash_rows(sliding_window_view(ids, length))
        places = np.minimum(np.searchsorted(gram_hashes, hashes), len(gram_hashes) - 1)
        for start in np.flatnonzero(gram_hashes[places] == hashes):
            gram = tuple(ids[start : start + length].tolist())
            if gram in self.counts:
                self.counts[gram] += 1

    def count_grams(self) -> tuple[GramCount, ...]:
        """Return the counts of each question."""
        counts = []
        for question_grams in self.grams_by_question:
            times = [self.counts[gram] for gram in question_grams]
            n = len(question_grams[0]) if question_grams else 0
            counts.append(
                GramCount(
                    n,
                    len(question_grams),
                    sum(count > 0 for count in times),
                    sum(times),
                )
            )
        return tuple(counts)


def _hash_rows(windows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash every row modulo 2^64; (rows, words) -> (rows,)."""
    hashes = np.zeros(len(windows), np.uint64)
    for offset in range(windows.shape[1]):
        hashes = hashes * np.uint64(_MULTIPLIER) + windows[:, offset]
    return hashes


# -- files -----------------------------------------------------------------------------


def _find_files(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(
            path for path in path.rglob("*") if path.is_file() and _file_kind(path)
        )
        if not files:
            kinds = ", ".join((*_TEXT, *_LINES))
            raise ConfigurationError(
                f"The folder '{path}' has no text file: {kinds}, each also with .gz."
            )
        return files
    if not path.is_file():
        raise ConfigurationError(f"The corpus '{path}' does not exist.")
    return [path]


def _file_kind(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(_LINES):
        return "lines"
    return "text" if name.endswith(_TEXT) else ""


def _read_documents(path: Path) -> Iterator[Iterator[str]]:
    """Iterate over the documents of a file, each as pieces; unknown file types are read as text."""
    packed = path.name.lower().endswith(".gz")
    with (
        _BoundedGzipFile(path) if packed else path.open("rb") as raw,
        io.TextIOWrapper(raw, encoding="utf-8", errors="replace") as file,
    ):
        if _file_kind(path) != "lines":
            yield _read_pieces(file)
            return
        while line := file.readline(_LONGEST_LINE):
            if len(line) == _LONGEST_LINE:
                raise ConfigurationError(
                    f"A line of the corpus '{path}' has more than {_LONGEST_LINE:,}"
                    " characters: write one document per line."
                )
            if line.strip():
                yield iter([_text_of_json(line)])


class _BoundedGzipFile(gzip.GzipFile):
    """A gzip file that is read only as far as text can expand. Raises ConfigurationError."""

    def read1(self, size: int = -1) -> bytes:
        unpacked = super().read1(size)
        path = Path(str(self.name))
        if self.tell() > max(_UNPACKED_FREELY, _MOST_UNPACKED * path.stat().st_size):
            raise ConfigurationError(
                f"'{path}' unpacks to more than {_MOST_UNPACKED} times its size, which"
                " no text does. It is not read further."
            )
        return unpacked


def _read_pieces(file: IO[str]) -> Iterator[str]:
    """Read a text in pieces of about a megabyte that end at white space if possible."""
    remainder = ""
    while chunk := file.read(_CHUNK):
        chunk = remainder + chunk
        cut = max(chunk.rfind(" "), chunk.rfind("\n"))
        cut = len(chunk) if cut < len(chunk) - _CHUNK // 4 else cut + 1
        remainder = chunk[cut:]
        yield chunk[:cut]
    if remainder:
        yield remainder


def _text_of_json(line: str) -> str:
    """Collect all strings in a line of JSON; the line itself if it is not JSON."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return line
    texts: list[str] = []
    todo: list[Any] = [document]
    while todo:
        node = todo.pop()
        if isinstance(node, str):
            texts.append(node)
        elif isinstance(node, dict):
            todo.extend(reversed(list(node.values())))
        elif isinstance(node, list):
            todo.extend(reversed(node))
    return "\n".join(texts)
