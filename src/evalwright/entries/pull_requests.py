"""What a pull request changes, read from git's objects and never checked out.

Of its files only those under `entries/` are read, as bytes and at one commit. No filter, hook,
attribute or submodule of it is used, and no workflow.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evalwright.core.errors import ConfigurationError
from evalwright.core.text import printable
from evalwright.entries.board_file import ENTRIES_FOLDER, BoardFile
from evalwright.entries.entry_file import (
    MAX_ENTRY_BYTES,
    SUFFIX,
    Entry,
    wrong_file_name,
)
from evalwright.entries.problems import Problem, shown_file, shown_text

MAX_CHANGED = 20
"""Most files of a pull request: a maintainer reads each of them."""
MAX_LIST_BYTES = 1 << 20
"""Of a list of changes: more is refused without being read."""
GIT_TIMEOUT_SECONDS = 60
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_RAW = re.compile(rb":(\d{6}) (\d{6}) ([0-9a-f]+) ([0-9a-f]+) ([A-Z])\d*")
_WORKFLOWS = (".github/", "board.yaml", "results/", "CODEOWNERS")
_KINDS_BY_MODE = {"120000": "a link to another file", "160000": "a submodule"}


@dataclass(frozen=True, slots=True)
class Change:
    """A file that a pull request changes.

    Attributes:
        path: its path in the repository, as git writes it.
        status: "A" added, "M" changed, "D" deleted, "T" another kind of file; "" not known.
        mode: git's mode of the new file, such as "100644"; "" not known.
        blob: the object with its content; "" not known.
    """

    path: str
    status: str = ""
    mode: str = ""
    blob: str = ""

    @property
    def is_entry(self) -> bool:
        """Whether it is where entries are."""
        folder, separator, name = self.path.partition("/")
        return folder == ENTRIES_FOLDER and bool(separator) and "/" not in name

    @property
    def name(self) -> str:
        """The entry's name."""
        return self.path.rpartition("/")[2].removesuffix(SUFFIX)


@dataclass(frozen=True, slots=True)
class PullRequest:
    """What a pull request changes, and the bytes of its entries.

    Attributes:
        changes: what it changes.
        contents: of its entries by path, at most one byte more than an entry may have.
        problems: entries whose content is not here.
    """

    changes: tuple[Change, ...]
    contents: Mapping[str, bytes] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    @property
    def deleted(self) -> set[str]:
        """The names of the entries that it deletes."""
        return {change.name for change in self.changes if change.status == "D"}

    def contents_without(self, problems: Sequence[Problem]) -> dict[str, bytes]:
        """Return the contents of the files that no problem is about."""
        wrong = {problem.file for problem in problems}
        return {
            path: content
            for path, content in self.contents.items()
            if shown_file(path) not in wrong
        }


def parse_changes(listing: bytes) -> list[Change]:
    """Read a list of changes: `git diff --raw -z --no-renames`, or a path a line.

    Returns:
        The changes, at most one more than a pull request may have.
    """
    if len(listing) > MAX_LIST_BYTES:
        listing = listing[:MAX_LIST_BYTES].rpartition(b"\0")[0] or b"too-long"
    if b"\0" in listing:
        fields = listing.removesuffix(b"\0").split(b"\0")
    else:
        fields = [field for field in listing.splitlines() if field]
    changes: list[Change] = []
    position = 0
    while position < len(fields) and len(changes) <= MAX_CHANGED:
        header = _RAW.fullmatch(fields[position])
        if header is None:
            changes.append(Change(_as_path(fields[position])))
            position += 1
            continue
        status = header[5].decode()
        n_paths = 2 if status in "RC" else 1
        paths = fields[position + 1 : position + 1 + n_paths]
        position += 1 + n_paths
        if len(paths) == 2:
            changes.append(Change(_as_path(paths[0]), "D"))
        if paths:
            mode = header[2].decode()
            changes.append(
                Change(_as_path(paths[-1]), status, mode, header[4].decode())
            )
    return changes


def _as_path(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def check_changes(
    changes: Sequence[Change],
    present: Sequence[Entry] = (),
    author: str = "",
    maintainers: Sequence[str] = (),
) -> list[Problem]:
    """Find what a pull request may not change.

    Args:
        changes: what it changes.
        present: the entries of the base branch.
        author: whose pull request it is, as named on GitHub; "" where that is not known.
        maintainers: who may change everything.
    """
    if len(changes) > MAX_CHANGED:
        sentence = (
            f"The pull request changes more than {MAX_CHANGED} files, so it was not read."
            f" Send at most {MAX_CHANGED} entries at a time."
        )
        return [Problem(ENTRIES_FOLDER, 1, sentence)]
    is_maintainer = author.casefold() in {name.casefold() for name in maintainers}
    entry_by_name = {entry.name: entry for entry in present}
    problems: list[Problem] = []
    for change in changes:
        if change.is_entry:
            sentence = wrong_file_name(change.path.rpartition("/")[2])
            sentence = sentence or _wrong_kind(change)
            if not sentence and not is_maintainer:
                sentence = _not_theirs(change, entry_by_name.get(change.name), author)
        elif is_maintainer:
            continue
        else:
            sentence = _wrong_place(change.path)
        if sentence:
            problems.append(Problem(shown_file(change.path), 1, sentence))
    return problems


def _wrong_kind(change: Change) -> str:
    if change.status == "D" or change.mode in ("", "100644"):
        return ""
    kind = _KINDS_BY_MODE.get(change.mode, "a program, or no file")
    return f"An entry is an ordinary file, and this is {kind}."


def _wrong_place(path: str) -> str:
    sentence = (
        f"Whoever is no maintainer changes files {ENTRIES_FOLDER}/NAME{SUFFIX} and nothing"
        " else."
    )
    if path.startswith(_WORKFLOWS):
        sentence += " What a board runs, decides and publishes is for its maintainers."
    return sentence


def _not_theirs(change: Change, base_entry: Entry | None, author: str) -> str:
    """Say that an entry belongs to somebody else; "" if it does not, or nobody is named."""
    if base_entry is None or not author:
        return ""
    owner = base_entry.by
    if owner.casefold() == author.casefold() and owner:
        return ""
    ownership = f"belongs to {owner}" if owner else "belongs to the maintainers"
    verb = "delete" if change.status == "D" else "change"
    return f"The entry '{change.name}' {ownership}, who alone can {verb} it."


def check_author(
    entries: Sequence[Entry], board: BoardFile, author: str
) -> list[Problem]:
    """Find entries that name somebody else as their author.

    Args:
        entries: what the pull request adds or changes.
        board: names its maintainers.
        author: whose pull request it is.
    """
    if not author or board.entries.is_maintainer(author):
        return []
    return [
        entry.problem(
            "by",
            f"Write `by: {author}`: the entry belongs to who sends it, and only they (or a"
            " maintainer) can change it later.",
        )
        for entry in entries
        if entry.by.casefold() != author.casefold()
    ]


def read_pull_request(commit: str, repository: Path = Path()) -> PullRequest:
    """Read what a commit changes since it left the branch that is checked out.

    Args:
        commit: the whole hash of the commit, which git must have here.
        repository: the folder of the repository.

    Raises:
        ConfigurationError: git has no such commit, or it has nothing in common with the branch.
    """
    if not _COMMIT.fullmatch(commit):
        raise ConfigurationError(
            "--commit takes the whole hash of a commit (40 hexadecimal digits), not"
            f" {shown_text(commit)}."
        )
    if _git(repository, "cat-file", "-t", commit).strip() != b"commit":
        raise ConfigurationError(f"{commit} is not a commit.")
    base = _git(repository, "merge-base", "HEAD", commit).decode().strip()
    listing = _git(
        repository,
        *("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev"),
        *("--no-ext-diff", "--no-textconv", "--ignore-submodules=none", base, commit),
        max_bytes=MAX_LIST_BYTES + 1,
    )
    changes = parse_changes(listing)
    contents: dict[str, bytes] = {}
    problems: list[Problem] = []
    if len(changes) > MAX_CHANGED:
        return PullRequest(tuple(changes))
    for change in changes:
        if not change.is_entry or change.mode != "100644":
            continue
        try:
            contents[change.path] = _git(
                repository,
                *("cat-file", "blob", change.blob),
                max_bytes=MAX_ENTRY_BYTES + 1,
            )
        except ConfigurationError:
            sentence = (
                "The file is not here to be read, perhaps because it is too large."
            )
            problems.append(Problem(shown_file(change.path), 1, sentence))
    return PullRequest(tuple(changes), contents, tuple(problems))


def _git(repository: Path, *arguments: str, max_bytes: int = 1 << 20) -> bytes:
    """Run git on its objects, without what a repository may configure for people.

    Returns:
        At most `max_bytes` of its output; git is stopped there.

    Raises:
        ConfigurationError: it fails.
    """
    command = ["git", "--no-pager", "--no-replace-objects", *arguments]
    environment = {
        **os.environ,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }
    try:
        with subprocess.Popen(
            command,
            cwd=repository,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            output = process.stdout.read(max_bytes)
            if len(output) == max_bytes:
                process.kill()
                return output
            errors = process.stderr.read(2000)
            code = process.wait(GIT_TIMEOUT_SECONDS)
    except OSError as error:
        raise ConfigurationError(f"git cannot be run: {error.strerror}.") from None
    except subprocess.TimeoutExpired:
        raise ConfigurationError("git did not end.") from None
    if code:
        reason = printable(errors.decode("utf-8", "replace").strip())
        raise ConfigurationError(
            f"git {arguments[0]} failed: {reason or json.dumps(code)}"
        )
    return output
