"""Parts of the explorer: how they are packed, and how samples become columns and blocks.

A part is raw deflate of JSON in one line, or of such a line, a line break, and arrays of numbers
that start at multiples of 8 bytes. Samples are added one by one and only the last few thousand are
held, so memory stays flat.
"""

from __future__ import annotations

import math
import re
import sys
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from evalwright.analysis.sample_search import panel_verdicts
from evalwright.core.errors import RunError
from evalwright.core.requests import prompt_from
from evalwright.core.secrets import holds_secret
from evalwright.runs.older_records import UNDECIDED
from evalwright.runs.reader import row_of
from evalwright.runs.recorded_answers import (
    expected_calls,
    is_trajectory,
    loop_facts,
    recorded_uses,
    whole_answer,
)
from evalwright.runs.scores import hashed
from evalwright.runs.writer import to_json

CHUNK_ROWS = 4096
"""Rows in a part of columns or of previews."""
BLOCK_ROWS = 256
BLOCK_BYTES = 4 << 20
"""A block of samples ends after this many rows or bytes."""
LONGEST_LINE_BYTES = 32 << 20
"""Texts in the record of a longer line are cut to LONGEST_TEXT_CHARS."""
LONGEST_TEXT_CHARS = 1 << 20
"""Most characters of a text in such a record."""
WIDEST_REASON = 140
"""Columns that the beginning of a judge's reason takes."""
WIDEST_PREVIEW = (140, 140, 80)
"""Columns of a terminal that the beginnings of a question, of an answer and of what was expected
take; signs of Chinese take two.
"""
MOST_NAMES = 200
"""A metadata key with more different values does not become a column."""
MOST_COLUMNS = 60

MALFORMED = (
    KeyError,
    TypeError,
    AttributeError,
    ValueError,
    IndexError,
    RecursionError,
)
"""Errors that reading a malformed record can raise."""

LONGEST_ID_CHARS = 400
"""Most characters of an id in the index and in addresses.

A browser takes half a minute to open an address with an id of a million characters.
"""

Put = Callable[[str, bytes], None]
"""Receives a part: its key and its packed bytes."""

NAN = math.nan
SMALL_LEVEL = 6
"""Level of compression for files that people send each other."""
FAST_LEVEL = 2
"""Level for what stays on this machine: a third of the time, and a tenth more bytes."""


def pack_part(content: bytes, level: int = SMALL_LEVEL) -> bytes:
    """Compress a part as it is stored and sent."""
    compressor = zlib.compressobj(level, zlib.DEFLATED, -15)
    return compressor.compress(content) + compressor.flush()


def unpack_part(packed: bytes) -> bytes:
    """Decompress a part. Raises zlib.error for what is none."""
    return zlib.decompress(packed, -15)


def json_part(document: Any, level: int = SMALL_LEVEL) -> bytes:
    """Return a part that is only JSON, packed."""
    return pack_part(json_line(document), level)


def json_line(document: Any) -> bytes:
    """Write JSON on one line, with lone surrogates escaped and known secrets masked."""
    return to_json(document, separators=(",", ":")).encode("utf-8", "backslashreplace")


def array_part(
    head: Mapping[str, Any], arrays: Sequence[array[Any]], level: int = SMALL_LEVEL
) -> bytes:
    """Return a part of JSON and arrays of doubles and 32-bit integers, packed.

    The head gets a list "arrays" with the [type, length] of each array.
    """
    kinds = {"d": "f8", "i": "i4"}
    line = json_line(
        {
            **head,
            "arrays": [[kinds[numbers.typecode], len(numbers)] for numbers in arrays],
        }
    )
    pieces = [line, b" " * (-(len(line) + 1) % 8), b"\n"]
    for numbers in arrays:
        if sys.byteorder == "big":
            numbers = array(numbers.typecode, numbers)
            numbers.byteswap()
        content = numbers.tobytes()
        pieces += [content, b"\0" * (-len(content) % 8)]
    return pack_part(b"".join(pieces), level)


def short_id(name: str) -> str:
    """Return an id as the page shows it.

    One longer than LONGEST_ID_CHARS is cut and gets a digest.
    """
    if len(name) <= LONGEST_ID_CHARS:
        return name
    return f"{name[: LONGEST_ID_CHARS - 20]}...{hashed(name) & (1 << 64) - 1:016x}"


Cells = Mapping[str, float | str]
"""The values of one row by column; "" and nan stand for none."""


class Column:
    """One value for each row of the current chunk: a number, or the code of a name.

    Attributes:
        names: Codes by name for a category, over all chunks; None for numbers. There are at most
            MOST_NAMES if the column is limited.
    """

    def __init__(
        self, name: str, title: str, *, category: bool, limited: bool = True
    ) -> None:
        self.name = name
        self.title = title
        self.limited = limited
        self.names: dict[str, int] | None = {} if category else None
        self.values: array[Any] = array("i" if category else "d")
        self.used = False
        """Whether any row has a value."""

    @property
    def is_shown(self) -> bool:
        """Whether the column is worth showing: it has values, and not too many names."""
        return self.used and not (
            self.limited and self.names is not None and len(self.names) > MOST_NAMES
        )

    def extend(self, rows: Sequence[Cells]) -> None:
        """Append the values of further rows, which may lack this column."""
        name = self.name
        if self.names is None:
            numbers = [cells.get(name, NAN) for cells in rows]
            self.values.extend(numbers)
            self.used = self.used or any(number == number for number in numbers)
            return
        known_codes: dict[float | str, int] = {"": -1}
        known_codes.update(self.names)
        codes = [known_codes.get(cells.get(name, "")) for cells in rows]
        if None in codes:
            codes = [self._code(cells.get(name, "")) for cells in rows]
        self.values.extend(codes)
        self.used = bool(self.names)

    def extend_by_none(self, count: int) -> None:
        """Append missing values for so many rows."""
        self.values.extend([NAN if self.names is None else -1] * count)

    def _code(self, cell: float | str) -> int:
        names = self.names
        assert names is not None
        if cell == "" or (self.limited and len(names) > MOST_NAMES):
            return -1
        return names.setdefault(str(cell), len(names))

    def head(self) -> dict[str, Any]:
        """Return the column's entry in the index."""
        column_type = "number" if self.names is None else "category"
        head = {"name": self.name, "title": self.title, "kind": column_type}
        if self.names is None:
            return head
        if self.name in SET_COLUMNS:
            return {**head, **_head_of_sets(list(self.names))}
        return {**head, "names": list(self.names)}


def _head_of_sets(names: Sequence[str]) -> dict[str, Any]:
    """Return the names of sets as they are shown, and which members each has."""
    sets = [name.split(_BETWEEN_MEMBERS) for name in names]
    members = {
        member: index
        for index, member in enumerate(
            dict.fromkeys(member for set_members in sets for member in set_members)
        )
    }
    return {
        "names": [", ".join(set_members) for set_members in sets],
        "sets": {
            "members": list(members),
            "of": [[members[member] for member in set_members] for set_members in sets],
        },
    }


_FIXED_COLUMNS = (
    ("task", "Task", True),
    ("outcome", "Outcome", True),
    ("label", "Label", True),
    ("unsure", "Unsure", True),
    ("judges", "Judges", True),
    ("failure", "Missing", True),
    ("scorer", "Scorer", True),
    ("finish", "Finish reason", True),
    ("score", "Score", False),
    ("repeat", "Repeat", False),
    ("latency", "Seconds", False),
    ("tokens", "Output tokens", False),
    ("input_tokens", "Input tokens", False),
    ("cost", "US dollars", False),
    ("length", "Answer characters", False),
    ("steps", "Steps", False),
    ("tool_calls", "Tool calls", False),
    ("failed_calls", "Failed calls", False),
    ("ended", "Ended by", True),
    ("tools", "Tools used", True),
    ("failed_tools", "Errors in tools", True),
    ("date", "Date", False),
)
"""Columns that any run may have: name, title, and whether it is a category."""
SET_COLUMNS = frozenset({"tools", "failed_tools"})
"""Columns whose values are sets: the filter offers their members."""
_BETWEEN_MEMBERS = "\n"
MAX_MEMBERS = 24
"""Members of a set that are kept: a model may make up any number of tools."""
_DATES = ("created_at", "known_since", "date")


@dataclass(frozen=True, slots=True)
class Blocks:
    """Where the blocks of records are in the file that they were read from.

    Attributes:
        starts: The first row of each block.
        offsets: Where each begins, in bytes, and at the end where the last one ends.
        checksums: CRC-32 of the bytes of each.
    """

    starts: array[int] = field(default_factory=lambda: array("i"))
    offsets: array[int] = field(default_factory=lambda: array("q", [0]))
    checksums: array[int] = field(default_factory=lambda: array("q"))


@dataclass(frozen=True, slots=True)
class RowKeys:
    """Which sample each row is, by which the rows of two runs are paired.

    Attributes:
        task_codes: The code of each task's name.
        keys: The hashed id of each row.
        tasks: The code of each row's task.
        draws: The repeat of each row.
    """

    task_codes: Mapping[str, int]
    keys: array[int]
    tasks: array[int]
    draws: array[int]


class RecordBlocks:
    """Cuts the records of a run into blocks.

    Attributes:
        size: How many records were added.
        blocks: Where the blocks are; the last one may not be complete.
    """

    def __init__(self, put: Put | None, prefix: str = "") -> None:
        """Start without records.

        Args:
            put: Receives each block, packed; None notes only where each is.
            prefix: What the keys of the blocks begin with.
        """
        self._put = put
        self._prefix = prefix
        self.size = 0
        self.blocks = Blocks()
        self._entries: list[tuple[int, bytes]] = []
        self._block_size = 0
        self._checksum = 0

    def add(self, line: bytes, row: Mapping[str, Any]) -> None:
        """Add a record and the line that it was read from. Raises one of MALFORMED."""
        if self._put is not None:
            self._entries.append(block_line(line, row))
        blocks = self.blocks
        if not self._block_size:
            blocks.starts.append(self.size)
            blocks.offsets.append(blocks.offsets[-1])
            blocks.checksums.append(0)
        self._block_size += len(line)
        blocks.offsets[-1] += len(line)
        self._checksum = zlib.crc32(line, self._checksum)
        blocks.checksums[-1] = self._checksum
        self.size += 1
        n_rows = self.size - blocks.starts[-1]
        if n_rows == BLOCK_ROWS or self._block_size >= BLOCK_BYTES:
            self._end_block()

    def finish(self) -> None:
        """Store the last, incomplete block."""
        if self._block_size:
            self._end_block()

    def _end_block(self) -> None:
        if self._put is not None:
            number = len(self.blocks.starts) - 1
            self._put(f"{self._prefix}block/{number}", block_part(self._entries))
            self._entries = []
        self._block_size = 0
        self._checksum = 0


class Samples:
    """Collects the samples of one run; full parts go to `put`.

    Attributes:
        size: How many samples were added.
        columns: The columns by name.
    """

    def __init__(
        self,
        put: Put,
        scorers: Mapping[str, str],
        *,
        prefix: str = "",
        with_records: bool = True,
        level: int = SMALL_LEVEL,
    ) -> None:
        """Start without samples.

        Args:
            put: Receives each full part's key and bytes.
            scorers: The main scorer of each task, where it is known.
            prefix: What the keys of the parts begin with.
            with_records: Whether to store the records themselves, or only where each block is.
            level: Level of compression.
        """
        self._put = put
        self._prefix = prefix
        self._scorers = dict(scorers)
        self._records = RecordBlocks(put if with_records else None, prefix)
        self._level = level
        self.size = 0
        self.columns = {
            name: Column(
                name,
                title,
                category=is_category,
                limited=name not in ("task", "scorer"),
            )
            for name, title, is_category in _FIXED_COLUMNS
        }
        task_codes = self.columns["task"].names
        assert task_codes is not None
        self._task_codes = task_codes
        self._keys = array("q")
        self._tasks = array("i")
        self._draws = array("i")
        self._ids: list[str] = []
        self._pending: list[Cells] = []
        """Rows of the chunk that are not in the columns yet."""
        self._previews: list[tuple[str, str, str, str]] = []
        self._scorer_columns: dict[str, tuple[str, str]] = {}
        """The columns of each scorer's score and label."""
        self.totals = dict.fromkeys(("tokens", "input_tokens", "cost", "unpriced"), 0.0)
        """Tokens and dollars of all responses, and the number of records without a known price."""

    def add(self, line: bytes, row: Mapping[str, Any]) -> None:
        """Add a record and the line that it was read from.

        Raises RunError for a record that is not a sample's.
        """
        try:
            self._add(row)
            self._records.add(line, row)
        except (*MALFORMED, OverflowError) as error:
            raise RunError(
                f"Record {self.size + 1:,} is not that of a sample"
                f" ({type(error).__name__}: {error})."
            ) from error
        self.size += 1
        if self.size % CHUNK_ROWS == 0:
            self._end_chunk()

    @property
    def blocks(self) -> Blocks:
        """Where the blocks of records are; the last one may not be complete."""
        return self._records.blocks

    @property
    def chunks(self) -> int:
        """The number of full chunks."""
        return self.size // CHUNK_ROWS

    def finish(self) -> None:
        """Store the last, incomplete block and chunk, and the index."""
        self._records.finish()
        if self._ids:
            self._end_chunk()
        self._put(f"{self._prefix}index", json_part(self.index()))

    def index(self, generation: int = 0) -> dict[str, Any]:
        """Return the index of the samples, which the page reads first."""
        return page_index(generation, self.size, self.column_heads(), self.blocks)

    def column_heads(self) -> list[dict[str, Any]]:
        """Return the columns that are worth showing, as the page's index has them."""
        self._fill_columns()
        return [column.head() for column in self._shown_columns()]

    def row_keys(self) -> RowKeys:
        """Return which sample each row is."""
        return RowKeys(self._task_codes, self._keys, self._tasks, self._draws)

    def columns_part(self) -> bytes:
        """Return the columns of the current chunk, packed."""
        self._fill_columns()
        n_rows = len(self._ids)
        columns = [*self.columns.values()]
        head = {"ids": self._ids, "columns": [column.name for column in columns]}
        draws = self._draws[len(self._draws) - n_rows :]
        arrays = [draws, *(column.values for column in columns)]
        return array_part(head, arrays, self._level)

    def previews_part(self) -> bytes:
        """Return the previews of the current chunk, packed."""
        columns = list(zip(*self._previews, strict=True)) or [(), (), (), ()]
        return json_part(columns, self._level)

    def _fill_columns(self) -> None:
        """Append the pending rows to the columns: faster for many rows than for each."""
        n_filled = len(self._ids) - len(self._pending)
        present: set[str] = set()
        present.update(*self._pending)
        for name, column in self.columns.items():
            column.extend_by_none(n_filled - len(column.values))  # of a new one
            if name in present:
                column.extend(self._pending)
            else:
                column.extend_by_none(len(self._pending))
        self._pending = []

    def _shown_columns(self) -> list[Column]:
        several_scorers = len(self._scorer_columns) > 1
        single = {name for columns in self._scorer_columns.values() for name in columns}
        return [
            column
            for column in self.columns.values()
            if column.is_shown and (several_scorers or column.name not in single)
        ]

    def _end_chunk(self) -> None:
        number = (self.size - 1) // CHUNK_ROWS
        self._put(f"{self._prefix}columns/{number}", self.columns_part())
        self._put(f"{self._prefix}previews/{number}", self.previews_part())
        self._ids = []
        self._previews = []
        for column in self.columns.values():
            column.values = array(column.values.typecode)

    # -- one record

    def _add(self, row: Mapping[str, Any]) -> None:
        task = str(row["task"])
        name = str(row["id"])
        draw = int(row["draw"])
        cells: dict[str, float | str] = {
            "task": task,
            "outcome": str(row.get("outcome", "")),
            "repeat": draw,
        }
        scores: Mapping[str, Any] = row["scores"]
        failures: Mapping[str, Any] = row.get("score_failures", {})
        scorer_names = [*scores, *failures]
        main = self._scorers.get(task) or (
            self._scorers.setdefault(task, scorer_names[0]) if scorer_names else ""
        )
        cells["scorer"] = main
        for scorer in scorer_names:
            self._score(cells, scorer, scores.get(scorer))
        cells["score"] = cells.get(f"score.{main}", NAN)
        cells["label"] = cells.get(f"label.{main}", "")
        if any(
            isinstance(score, dict) and score.get("unsure") for score in scores.values()
        ):
            cells["unsure"] = "unsure"
        if verdicts := panel_verdicts(scores):
            cells["judges"] = verdicts
        failure = row.get("failure") or next(iter(failures.values()), None)
        if failure:
            cells["failure"] = (
                "judge: " if failure.get("party") == "judge" else ""
            ) + str(failure.get("kind"))
        numbers = _numbers_of(row)
        cells |= numbers
        for column_name in ("tokens", "input_tokens", "cost"):
            if column_name in numbers:
                self.totals[column_name] += float(numbers[column_name])
        self.totals["unpriced"] += "cost" not in numbers
        for key, cell in row.get("metadata", {}).items():
            self._metadata(cells, str(key), cell)
        widest_question, widest_answer, widest_expected = WIDEST_PREVIEW
        preview = (
            _preview_text(_question(row), widest_question),
            _preview_text(whole_answer(row), widest_answer),
            _preview_text(_expected(row), widest_expected),
            _preview_text(_judge_reason(row), WIDEST_REASON),
        )
        self._draws.append(draw)
        # From here on nothing fails, so that all columns have the same rows.
        self._keys.append(hashed(name))
        n_tasks = len(self._task_codes)
        self._tasks.append(self._task_codes.setdefault(task, n_tasks) if task else -1)
        self._ids.append(short_id(name))
        self._previews.append(preview)
        self._pending.append(cells)

    def _score(
        self,
        cells: dict[str, float | str],
        scorer: str,
        score: Mapping[str, Any] | None,
    ) -> None:
        """Set the value, label and parts of a score."""
        columns = self._scorer_columns.get(scorer)
        if columns is None:
            columns = f"score.{scorer}", f"label.{scorer}"
            self._scorer_columns[scorer] = columns
        if score is None:
            return
        score_column, label_column = columns
        number = score.get("value")
        has_column = self._has(score_column, f"{scorer}: score", category=False)
        if (
            has_column
            and isinstance(number, (int, float))
            and not isinstance(number, bool)
        ):
            cells[score_column] = float(number)
        for name, part_score in score.get("parts", {}).items():
            if self._has(f"{scorer}.{name}", f"{scorer}: {name}", category=False):
                cells[f"{scorer}.{name}"] = float(part_score)
        label = str(score.get("label", ""))
        if label and self._has(label_column, f"{scorer}: label", category=True):
            cells[label_column] = label

    def _metadata(self, cells: dict[str, float | str], key: str, content: Any) -> None:
        if isinstance(content, list) and all(
            isinstance(element, (str, int, float)) for element in content
        ):
            content = ", ".join(map(str, content))
        if key in _DATES and "date" not in cells and isinstance(content, str):
            cells["date"] = _milliseconds(content)
        name = f"metadata.{key}" if key in self.columns and key in _FIXED_NAMES else key
        is_number = isinstance(content, (int, float)) and not isinstance(content, bool)
        if not is_number and not isinstance(content, (str, bool)):
            return
        if self._has(name, key, category=not is_number):
            column = self.columns[name]
            if column.names is not None:
                cells[name] = str(content)
            elif is_number:
                cells[name] = float(content)

    def _has(self, name: str, title: str, *, category: bool) -> bool:
        """Whether there is a column of that name; it is added if there is room for one."""
        if name in self.columns:
            return True
        if len(self.columns) >= MOST_COLUMNS:
            return False
        self.columns[name] = Column(name, title, category=category)
        return True


def page_index(
    generation: int, size: int, columns: Sequence[Mapping[str, Any]], blocks: Blocks
) -> dict[str, Any]:
    """Return the index of a run's samples, as the page reads it.

    Args:
        generation: Tells readings of a growing run apart.
        size: The number of samples.
        columns: The heads of the columns that are shown.
        blocks: The blocks of records.
    """
    return {
        "generation": generation,
        "size": size,
        "chunk": CHUNK_ROWS,
        "columns": list(columns),
        "blocks": list(blocks.starts),
    }


_FIXED_NAMES = frozenset(name for name, _, _ in _FIXED_COLUMNS)


def seconds_of(row: Mapping[str, Any]) -> float:
    """Return the seconds until the answer was complete; 0 where that is not known.

    The options of a question are scored at the same time, other requests one after another.
    """
    times = [seconds for seconds in row.get("timing", {}).get("latency", ()) if seconds]
    if len(times) == 1:
        return float(times[0])
    at_once = any("log_likelihood" in response for response in row.get("responses", ()))
    return max(times, default=0.0) if at_once else math.fsum(times)


def _numbers_of(row: Mapping[str, Any]) -> dict[str, float | str]:
    """Return the cells on the responses: seconds, tokens, dollars, steps, finish reason, length."""
    cells: dict[str, float | str] = {}
    responses: Sequence[Mapping[str, Any]] = row.get("responses", ())
    if "answer" in row:
        cells["length"] = len(row["answer"])
    if seconds := seconds_of(row):
        cells["latency"] = seconds
    for name, usage_key in (
        ("tokens", "output_tokens"),
        ("input_tokens", "input_tokens"),
    ):
        counts = [
            response["usage"].get(usage_key, 0)
            for response in responses
            if "usage" in response
        ]
        if any(counts):
            cells[name] = float(sum(counts))
    costs = [
        response["cost"] for response in responses if response.get("cost") is not None
    ]
    if costs and len(costs) == len(responses):
        cells["cost"] = math.fsum(costs)
    if is_trajectory(row):
        for name, fact in loop_facts(row).items():
            cells[name] = float(fact) if isinstance(fact, int) else fact
        uses = recorded_uses(row)
        cells["tools"] = _set_of(use.get("name") for use in uses)
        cells["failed_tools"] = _set_of(
            use.get("name") for use in uses if use.get("is_error")
        )
    if responses:
        cells["finish"] = str(responses[-1].get("finish_reason", ""))
    return cells


def _set_of(names: Iterable[Any]) -> str:
    """Return a set of names as one text, in the order of the alphabet."""
    members = sorted({" ".join(str(name).split()) for name in names} - {""})
    return _BETWEEN_MEMBERS.join(members[:MAX_MEMBERS])


def _milliseconds(text: str) -> float:
    """Convert a date to milliseconds since 1970, as JavaScript counts; nan for other texts."""
    try:
        moment = datetime.fromisoformat(text)
        return (
            moment.timestamp() * 1000
            if moment.tzinfo
            else (moment - datetime(1970, 1, 1)).total_seconds() * 1000
        )
    except (ValueError, OverflowError):
        return NAN


_IMAGE_WORDS = re.compile(r"\[image [^\]\n]{0,200}, SHA-256 [0-9a-f]{64}\]")
"""What the text of an imported question has in place of an image."""


def _question(row: Mapping[str, Any]) -> str:
    """Return the question: the sample's input, else what the user said last."""
    if row["input"]:
        question = str(row["input"])
        if "[image " in question:
            return _IMAGE_WORDS.sub(" [image] ", question)
        return question
    prompt = prompt_from(row.get("prompt", ""))
    if isinstance(prompt, str):
        return prompt
    if not prompt:
        return ""
    of_user = [message.text for message in prompt if message.role == "user"]
    return of_user[-1] if of_user else prompt[-1].text


def _expected(row: Mapping[str, Any]) -> str:
    """What was expected: the targets, else the right calls or options; "" where there is none."""
    targets = row.get("targets") or ()
    if not targets and (calls := expected_calls(row)) is not None:
        return calls
    choices = row.get("choices") or ()
    if not targets:
        targets = [
            choices[index]
            for index in row.get("gold") or ()
            if isinstance(index, int) and 0 <= index < len(choices)
        ]
    return " | ".join(str(target) for target in targets)


def _judge_reason(row: Mapping[str, Any]) -> str:
    """Why a judge gave its score; "" where no judge gave one."""
    for name in row.get("exchanges") or {}:
        score = (row.get("scores") or {}).get(name) or {}
        if explanation := score.get("explanation"):
            return str(explanation)
    return ""


def _preview_text(text: str, width: int) -> str:
    """The beginning of a text, on one line, ending in whole words and "…" where it is cut."""
    if not text:
        return ""
    words = " ".join(text[: 4 * width].split())
    if len(words) <= width // 2 or (len(words) <= width and words.isascii()):
        return words
    shown = words[:width]
    wide = 0 if shown.isascii() else sum(sign >= "\u2e80" for sign in shown)
    if wide:
        shown = shown[: width - wide * width // (2 * len(shown))]
    if len(shown) == len(words):
        return words
    before_cut, space, _ = shown.rpartition(" ")
    return f"{before_cut if space and len(before_cut) >= len(shown) // 2 else shown}…"


# -- records ---------------------------------------------------------------------------

_MARK = "\x01"
_SHORTEST_BASE_CHARS = 32
"""Shorter texts are repeated, because a reference would not save space."""
_BASES = "0123456789"


def block_line(line: bytes, row: Mapping[str, Any]) -> tuple[int, bytes]:
    """Write a record as it is stored in a block, and return it with the number of its script.

    Args:
        line: The line of the record; if it is longer than LONGEST_LINE_BYTES, texts are cut.
        row: The record.
    """
    return _script(row), json_line(
        compact(_cut(row) if len(line) > LONGEST_LINE_BYTES else row)
    )


def block_part(entries: Sequence[tuple[int, bytes]], level: int = SMALL_LEVEL) -> bytes:
    """Join records to a packed part, whose first line says which row each record is.

    Records of one script are stored together, which saves a sixth of the space.
    """
    order = sorted(range(len(entries)), key=lambda row_index: entries[row_index][0])
    return pack_part(
        b"\n".join([json_line(order), *(entries[row_index][1] for row_index in order)]),
        level,
    )


def served_block(block: bytes, first_row: int) -> bytes:
    """Return a block of records as the server sends it.

    Args:
        block: Lines of the file of samples, which were read before and found to be records.
        first_row: The row of the first one.
    """
    lines = block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    if _can_be_sent(block):
        order = json_line(list(range(len(lines))))
        return pack_part(b"\n".join([order, *lines]), FAST_LEVEL)
    return block_part(
        [
            block_line(line, row_of(line, f"Record {row:,}"))
            for row, line in enumerate(lines, first_row + 1)
        ],
        FAST_LEVEL,
    )


_TO_CONVERT = (b"\\u0001", b"NaN", b"Infinity", f'"{UNDECIDED}"'.encode())
"""What a line may have that the page would not read as it is meant.

These are the mark of `compact`, numbers that JSON does not have, and records of schema 1.
"""


def _can_be_sent(block: bytes) -> bool:
    """Whether the page reads lines as `block_line` would write them."""
    if len(block) > LONGEST_LINE_BYTES or any(word in block for word in _TO_CONVERT):
        return False
    try:
        return not holds_secret(block.decode())
    except UnicodeDecodeError:
        return False


def compact(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Store texts that occur several times in a record only once.

    Examples are the question in the prompt and the answer in the reply. A text that contains others
    is stored as pieces that begin with a mark: "t" and a text, or the number of one of `texts_of`.
    A text of the run that itself begins with the mark gets another mark and "e" before it.
    """
    bases = sorted(
        (
            (text, _BASES[number])
            for number, text in enumerate(texts_of(row))
            if len(text) >= _SHORTEST_BASE_CHARS
        ),
        key=lambda pair: -len(pair[0]),
    )
    base_fields = {
        name: row[name] for name in ("input", "answer", "passages") if name in row
    }
    compacted = {
        name: content if _is_plain(content) else _with_references(content, [])
        for name, content in base_fields.items()
    }
    return {
        name: compacted[name] if name in compacted else _with_references(content, bases)
        for name, content in row.items()
    }


def texts_of(row: Mapping[str, Any]) -> list[str]:
    """Return the texts that others may refer to: the question, the answer, the first passages."""
    passages = row.get("passages", ())
    texts = [
        row.get("input"),
        row.get("answer"),
        *(passage.get("text") for passage in passages[: len(_BASES) - 2]),
    ]
    return [text if isinstance(text, str) else "" for text in texts]


def _is_plain(content: Any) -> bool:
    return isinstance(content, str) and not content.startswith(_MARK)


def _with_references(content: Any, bases: Sequence[tuple[str, str]]) -> Any:
    if isinstance(content, str):
        if _MARK in content:
            return f"{_MARK}e{content}" if content.startswith(_MARK) else content
        for text, number in bases:
            if len(content) >= len(text) and text in content and _MARK not in text:
                before, _, after = content.partition(text)
                # Each piece begins with a mark, so that digits in a text are not read as part of a
                # reference before it.
                pieces = (
                    _with_references(before, bases),
                    f"{_MARK}{number}",
                    _with_references(after, bases),
                )
                return "".join(
                    piece if piece.startswith(_MARK) else f"{_MARK}t{piece}"
                    for piece in pieces
                    if piece
                )
        return content
    if isinstance(content, dict):
        return {key: _with_references(child, bases) for key, child in content.items()}
    return (
        [_with_references(child, bases) for child in content]
        if isinstance(content, list)
        else content
    )


def _script(row: Mapping[str, Any]) -> int:
    """Return a number that texts in one script share: the most frequent block of their letters."""
    text = str(row.get("answer") or row.get("input") or "")
    middle = len(text) // 2
    blocks = [min(ord(sign), 0x4E00) >> 8 for sign in text[middle : middle + 40]]
    return (
        max(set(blocks), key=lambda block: (blocks.count(block), block))
        if blocks
        else 0
    )


def _cut(content: Any) -> Any:
    if isinstance(content, str) and len(content) > LONGEST_TEXT_CHARS:
        n_cut = len(content) - LONGEST_TEXT_CHARS
        beginning = content[:LONGEST_TEXT_CHARS]
        return f"{beginning} ... [{n_cut:,} more characters in samples.jsonl]"
    if isinstance(content, Mapping):
        return {key: _cut(child) for key, child in content.items()}
    return [_cut(child) for child in content] if isinstance(content, list) else content
