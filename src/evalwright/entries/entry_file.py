"""An entry of a board: one small YAML file about one model, written by anybody.

    model: openai/gpt-5
    label: GPT-5 (high)
    arguments: {reasoning_effort: high}
    facts: {family: GPT, licence: proprietary, open: false, released: 2025-08-07}
    by: octocat

It is data: plain scalars and these keys, at most 4 KB. It has no anchors, tags, templates, paths or
names of environment variables, and no link leads from it to another file.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import ConfigurationError, TaskError, closest
from evalwright.entries.problems import (
    Problem,
    WrongFiles,
    shown_file,
    shown_text,
)
from evalwright.evaluation.configuration import ModelSpec
from evalwright.runs.model_facts import check_fact, check_facts, normalise_key
from evalwright.tasks.yaml_files import Document, kind_of, parse_document, shown_path

if TYPE_CHECKING:
    from evalwright.entries.board_file import BoardFile

MAX_ENTRY_BYTES = 4096
MAX_ENTRIES = 2_000
"""Most entries of a board: checking them together stays a matter of seconds."""
MAX_LABEL_CHARS = 60
MAX_MODEL_CHARS = 200
MAX_FACTS = 20
MAX_FACT_CHARS = 120
MAX_ARGUMENTS = 20
MAX_WORD_CHARS = 64
MAX_NUMBER = 10**9
MAX_MARKS_IN_A_ROW = 3
"""Combining characters: scripts of South-East Asia stack two."""
KEYS = ("model", "label", "arguments", "base_url", "facts", "by")
SUFFIX = ".yaml"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,78}[a-z0-9])?")
_MODEL = re.compile(
    r"[a-z0-9][a-z0-9-]*(?:/[A-Za-z0-9][A-Za-z0-9._:+-]*)+(?:@[A-Za-z0-9][A-Za-z0-9._-]*)?"
)
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_KEY = re.compile(r"[a-z][a-z0-9_]{0,39}")
_ADDRESS = re.compile(r"://|www\.", re.IGNORECASE)
_LOGIN = re.compile(r"[A-Za-z0-9](?:-?[A-Za-z0-9]){0,38}")
_DEVICES = frozenset(
    (
        "con",
        "prn",
        "aux",
        "nul",
        *(f"{port}{n}" for port in ("com", "lpt") for n in range(10)),
    )
)
_LABEL_PUNCTUATION = " ()-._+/:,'&%"
_HIDDEN_CATEGORIES = ("Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp")
"""Characters that cannot be seen or that change the order of others."""
_ORDINARY_BREAKS = "\n\r\t"

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Entry:
    """A model that somebody proposes for a board.

    Attributes:
        name: the file's name without its suffix.
        model: the model, `provider/name`.
        label: what the board shows in place of the model's name; "" for the name.
        arguments: arguments of the model.
        base_url: the address that requests go to; "" for the provider's own.
        facts: facts about the model for the board.
        by: the contributor's name on GitHub; "" where it is not said.
        file: the file's path, as messages show it.
        lines: the line of each key, and of each argument and fact ("arguments.temperature").
    """

    name: str
    model: str
    label: str = ""
    arguments: Mapping[str, Scalar] = field(default_factory=dict)
    base_url: str = ""
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    by: str = ""
    file: str = ""
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)

    @property
    def shown_name(self) -> str:
        """What the board shows: the label, or the model's name."""
        return self.label or self.model

    def problem(self, key: str, sentence: str) -> Problem:
        """Make a problem at a key of the entry, or at its first line."""
        return Problem(self.file, self.lines.get(key, 1), sentence)

    def model_spec(self, board: BoardFile) -> ModelSpec:
        """Return the model as an evaluation takes it.

        Args:
            board: says which key goes to the entry's address. An entry cannot.
        """
        arguments: dict[str, Any] = dict(self.arguments)
        if self.base_url:
            arguments["base_url"] = self.base_url
            if key := board.entries.key_of(self.base_url):
                arguments["api_key_env"] = key
        facts = check_facts(self.facts, self.file)
        return ModelSpec(self.model, arguments, self.label, facts=facts)


def read_entry(path: Path) -> Entry:
    """Read an entry; whether the board allows it is for `checking`.

    Raises:
        WrongFiles: it cannot be one; with every problem.
    """
    entry, problems = read_with_problems(path)
    if entry is None or problems:
        raise WrongFiles(problems)
    return entry


def read_with_problems(path: Path) -> tuple[Entry | None, list[Problem]]:
    """Read as much of an entry as can be read, and find what is wrong with its file.

    Returns:
        The entry, without what is wrong in it, or None where it is no mapping; and the problems.
    """
    file = shown_file((Path(shown_path(path.parent)) / path.name).as_posix())
    if sentence := wrong_file_name(path.name):
        return None, [Problem(file, 1, sentence)]
    try:
        content = _read_small(path)
    except OSError as error:
        return None, [Problem(file, 1, _why_unread(error))]
    return parse_with_problems(content, path, file)


def read_entries(folder: Path) -> list[Entry]:
    """Read all entries of a folder, sorted by name.

    Raises:
        WrongFiles: one of them cannot be read; with every problem of all.
    """
    entries: list[Entry] = []
    problems: list[Problem] = []
    for path in entry_paths(folder):
        try:
            entries.append(read_entry(path))
        except WrongFiles as error:
            problems += error.problems
    if problems:
        raise WrongFiles(problems)
    return entries


def read_readable(folder: Path) -> tuple[list[Entry], dict[str, list[Problem]]]:
    """Read the entries of a folder that can be read, so that no file keeps the others off.

    Returns:
        The entries, sorted by name; and the problems of each other file, by its name without the
        suffix, as messages may show it.

    Raises:
        WrongFiles: the folder cannot be one of entries.
    """
    entries: list[Entry] = []
    problems_by_name: dict[str, list[Problem]] = {}
    for path in entry_paths(folder):
        entry, problems = read_with_problems(path)
        if problems or entry is None:
            name = shown_file(path.name.removesuffix(SUFFIX))
            problems_by_name[name] = problems
        else:
            entries.append(entry)
    return entries, problems_by_name


def entry_paths(folder: Path) -> list[Path]:
    """List the files of a folder of entries, sorted by name; a missing one has none, as in git.

    Raises:
        WrongFiles: it is no folder, is a link, or holds too many files.
    """
    file = shown_file(shown_path(folder.parent.resolve() / folder.name))
    if folder.is_symlink():
        raise WrongFiles([Problem(file, 1, "The folder of entries is a link.")])
    if not folder.exists():
        return []
    if not folder.is_dir():
        raise WrongFiles([Problem(file, 1, "This is not a folder of entries.")])
    paths = []
    for path in folder.iterdir():
        if path.name.startswith("."):  # .gitkeep and files of editors
            continue
        paths.append(path)
        if len(paths) > MAX_ENTRIES:
            sentence = f"The folder has more than {MAX_ENTRIES:,} entries."
            raise WrongFiles([Problem(file, 1, sentence)])
    return sorted(paths)


def parse_with_problems(
    content: bytes, path: Path, file: str
) -> tuple[Entry | None, list[Problem]]:
    """Read an entry from its bytes, as `read_with_problems` does.

    Args:
        content: what the file holds.
        path: its path; only its name is used.
        file: what messages call the file.
    """
    if problem := _wrong_bytes(content, file):
        return None, [problem]
    try:
        document = parse_document(content, path, "entry")
    except TaskError as error:
        return None, [_as_problem(str(error), path, file)]
    reader = _Reader(document, path.name.removesuffix(SUFFIX), file)
    entry = reader.read()
    return entry, sorted(reader.problems)


def _as_problem(message: str, path: Path, file: str) -> Problem:
    """Split a message that begins with file and line."""
    text = message.removeprefix(f"{shown_path(path)}:")
    line, separator, sentence = text.partition(": ")
    if separator and line.isdigit():
        return Problem(file, int(line), sentence)
    return Problem(file, 1, text.lstrip(": "))


def wrong_file_name(name: str) -> str:
    """Say what is wrong with a file's name; "" if nothing is."""
    stem = name.removesuffix(SUFFIX)
    if name == stem:
        return f"An entry is a file NAME{SUFFIX}."
    if not _NAME.fullmatch(stem):
        return (
            f"The name {shown_text(stem)} cannot be an entry's: use 1 to 80 of a to z, 0 to 9,"
            " '.' and '-', with a letter or digit first and last."
        )
    if ".." in stem:
        return "An entry's name cannot contain '..'."
    if stem.partition(".")[0] in _DEVICES:
        return f"On Windows '{stem}' is a device, not a file: use another name."
    return ""


def _read_small(path: Path) -> bytes:
    """Read an ordinary file, one byte more than an entry may have; no link is followed.

    Raises OSError.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if path.is_symlink():
        raise OSError(errno.ELOOP, "link")
    descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "no file")
        return file.read(MAX_ENTRY_BYTES + 1)


def _why_unread(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "An entry cannot be a link to another file: write its text into the file itself."
    if error.errno in (errno.EINVAL, errno.EISDIR, errno.ENXIO):
        return "An entry is an ordinary file."
    return f"The entry cannot be read: {error.strerror}."


def _wrong_bytes(content: bytes, file: str) -> Problem | None:
    """Find what no entry may hold, before any of it is parsed."""
    if len(content) > MAX_ENTRY_BYTES:
        return Problem(file, 1, f"An entry has at most {MAX_ENTRY_BYTES:,} bytes.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        return Problem(file, line, "The file is not UTF-8 text; save it as UTF-8.")
    for line, row in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        for character in row:
            is_hidden = unicodedata.category(character) in _HIDDEN_CATEGORIES
            if is_hidden and character != "\t":
                sentence = (
                    f"The character U+{ord(character):04X} cannot be seen, or changes how others"
                    " are shown: delete it."
                )
                return Problem(file, line, sentence)
    return _wrong_syntax(text, file)


def _wrong_syntax(text: str, file: str) -> Problem | None:
    """Find YAML that is more than keys and plain scalars; broken YAML is left to the reader."""
    import yaml

    depth = 0
    documents = 0
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            mark = event.start_mark
            line = mark.line + 1 if mark else 1
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1 or event.version or event.tags:
                    return Problem(
                        file, line, "An entry is one YAML document, without '%'."
                    )
            elif isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                return Problem(
                    file, line, "An entry has no anchors (&) and no aliases (*)."
                )
            elif getattr(event, "tag", None):
                return Problem(
                    file, line, "An entry has no tags (!): write plain values."
                )
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > 2 or isinstance(event, yaml.SequenceStartEvent):
                    sentence = "An entry has no lists, and mappings of scalars only."
                    return Problem(file, line, sentence)
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError:
        return None
    return None


class _Reader:
    """Turns the values of an entry into an Entry, and collects what is wrong."""

    def __init__(self, document: Document, name: str, file: str) -> None:
        self.document = document
        self.values = document.value
        self.name = name
        self.file = file
        self.problems: list[Problem] = []

    def read(self) -> Entry:
        self._check_keys()
        model = self._model()
        return Entry(
            name=self.name,
            model=model,
            label=self._label(),
            arguments=self._scalars("arguments", MAX_ARGUMENTS, _wrong_argument),
            base_url=self._text("base_url"),
            facts=self._facts(),
            by=self._by(),
            file=self.file,
            lines=self._lines(),
        )

    def _lines(self) -> dict[str, int]:
        return {
            ".".join(map(str, path)): position.line
            for path, position in self.document.places.items()
            if path
        }

    def _report(self, sentence: str, *path: str) -> None:
        position = self.document.place(path)
        self.problems.append(
            Problem(self.file, position.line if position else 1, sentence)
        )

    def _check_keys(self) -> None:
        for key in self.values:
            if key in KEYS:
                continue
            close_names = closest(str(key), KEYS)
            suggestion = f" Did you mean '{close_names[0]}'?" if close_names else ""
            self._report(
                f"Unknown key {shown_text(key)}.{suggestion} An entry has: {', '.join(KEYS)}.",
                key,
            )

    def _text(self, key: str) -> str:
        if key not in self.values:
            return ""
        text = self.values[key]
        if isinstance(text, str) and text:
            return text
        kind = "an empty one" if text == "" else kind_of(text)
        self._report(f"'{key}' must be text, not {kind}.", key)
        return ""

    def _model(self) -> str:
        if "model" not in self.values:
            self._report("'model' is missing, for example `model: openai/gpt-5`.")
            return ""
        model = self._text("model")
        if not model:
            return ""
        if len(model) > MAX_MODEL_CHARS or not _MODEL.fullmatch(model):
            self._report(
                f"The model {shown_text(model)} must be provider/name, of letters, digits and"
                " . _ : + -, each part beginning with a letter or digit; no address, path or"
                " template.",
                "model",
            )
            return ""
        return model

    def _label(self) -> str:
        label = self._text("label")
        if problem := wrong_label(label):
            self._report(f"The label {shown_text(label)} {problem}", "label")
        return label

    def _by(self) -> str:
        login = self._text("by").removeprefix("@")
        if login and not _LOGIN.fullmatch(login):
            self._report(
                f"'by' is a name on GitHub (letters, digits and '-'), not {shown_text(login)}.",
                "by",
            )
        return login

    def _facts(self) -> dict[str, Scalar]:
        facts = self._scalars("facts", MAX_FACTS, _wrong_fact)
        try:
            check_facts(facts, "")
        except ConfigurationError as error:  # two names of one fact
            self._report(f"'facts' has one fact twice{error}", "facts")
        return facts

    def _scalars(self, key: str, most_keys: int, wrong: Any) -> dict[str, Scalar]:
        """Read a mapping of scalars. wrong: says what is wrong with a value; "" if nothing is."""
        mapping = self.values.get(key)
        if key not in self.values:
            return {}
        if not isinstance(mapping, Mapping):
            self._report(f"'{key}' must be a mapping, not {kind_of(mapping)}.", key)
            return {}
        if len(mapping) > most_keys:
            self._report(f"'{key}' has at most {most_keys} keys.", key)
            return {}
        scalars: dict[str, Scalar] = {}
        for name, scalar in mapping.items():
            if not _KEY.fullmatch(str(name)):
                self._report(
                    f"The key {shown_text(name)} of '{key}' must be of a to z, 0 to 9 and '_'.",
                    key,
                    name,
                )
            elif not isinstance(scalar, Scalar):
                self._report(
                    f"'{key}.{name}' must be one plain value, not {kind_of(scalar)}.",
                    key,
                    name,
                )
            elif problem := wrong(str(name), scalar):
                self._report(f"'{key}.{name}' {problem}", key, name)
            else:
                scalars[str(name)] = scalar
        return scalars


def _wrong_argument(_name: str, scalar: Scalar) -> str:
    if isinstance(scalar, int | float) and not abs(scalar) <= MAX_NUMBER:
        return f"must be a number of at most {MAX_NUMBER:,}."
    if not isinstance(scalar, str) or (
        len(scalar) <= MAX_WORD_CHARS and _WORD.fullmatch(scalar)
    ):
        return ""
    return (
        f"must be a number, true, false or one word, not {shown_text(scalar)}: no path,"
        " address, template or name of a variable."
    )


def _wrong_fact(name: str, scalar: Scalar) -> str:
    problem = wrong_label(scalar, MAX_FACT_CHARS) if isinstance(scalar, str) else ""
    if problem:
        return problem
    try:
        check_fact(normalise_key(name), scalar, "")
    except ConfigurationError as error:
        return f"has the wrong form{error!s}"
    return ""


def wrong_label(label: str, max_chars: int = MAX_LABEL_CHARS) -> str:
    """Say what is wrong with a text that the board shows; "" if nothing is."""
    if len(label) > max_chars:
        return f"is longer than {max_chars} characters."
    if label != label.strip() or "  " in label:
        return "has spaces at its end or several in a row."
    unwanted = [character for character in label if not _is_shown_plainly(character)]
    if unwanted:
        return (
            f"has {shown_text(unwanted[0])}: use letters, digits, spaces and"
            f" {' '.join(_LABEL_PUNCTUATION.strip())}, so that nothing in it can be markup, a"
            " mention or a template."
        )
    if max_chars == MAX_LABEL_CHARS and _ADDRESS.search(label):
        return "has an address, which pages would make a link."
    marks = 0
    for character in label:
        marks = marks + 1 if unicodedata.category(character)[0] == "M" else 0
        if marks > MAX_MARKS_IN_A_ROW:
            return "stacks more than 3 marks on one letter."
    if mixed := _mixed_word(label):
        return f"mixes alphabets that look alike within the word {shown_text(mixed)}."
    return ""


def _is_shown_plainly(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LM" or category == "Nd" or character in _LABEL_PUNCTUATION


_ALIKE_ALPHABETS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC")


def _mixed_word(label: str) -> str:
    """Return a word with letters of two alphabets that look alike; "" if there is none."""
    for word in re.split(r"[^\w]+", label):
        alphabets = set(_alphabets(word))
        if len(alphabets) > 1:
            return word
    return ""


def _alphabets(word: str) -> Iterator[str]:
    for character in word:
        alphabet = unicodedata.name(character, "").partition(" ")[0]
        if alphabet in _ALIKE_ALPHABETS:
            yield alphabet
