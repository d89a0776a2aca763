"""What to cite for tasks: BibTeX entries, and a LaTeX document with a table of them.

`bibtex` in a task's metadata is the key of an entry in `library/citations.bib`, a list of keys, or
entries of its own. A task without one, or with one that cannot be used, is listed in the table as
"citation missing": nothing is left out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from evalwright._version import __version__
from evalwright.tasks.index import LIBRARY

MISSING = "citation missing"
SELF = "evalwright"
"""The key of this project's own entry, which every document cites."""

_MOST_TEXT = 200_000
# An entry from elsewhere is typeset with the rest: accents, symbols and type faces are allowed, and
# no other command of TeX.
_COMMANDS = frozenset(
    [
        "ae",
        "AE",
        "oe",
        "OE",
        "aa",
        "AA",
        "o",
        "O",
        "l",
        "L",
        "ss",
        "i",
        "j",
        "c",
        "v",
        "u",
        "H",
        "k",
        "r",
        "b",
        "d",
        "t",
        "emph",
        "textit",
        "textbf",
        "textsc",
        "texttt",
        "textrm",
        "textsuperscript",
        "textsubscript",
        "url",
        "LaTeX",
        "TeX",
        "BibTeX",
        "textquotesingle",
        "textasciitilde",
        "textbackslash",
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "lambda",
        "mu",
        "pi",
        "sigma",
        "tau",
        "phi",
        "chi",
        "psi",
        "omega",
        "times",
        "ell",
        "sim",
        "leq",
        "geq",
        "pm",
        "infty",
        "cdot",
        "ldots",
        "dots",
    ]
) | frozenset("\"'`^~=.&%$#_{}-, ")
_ENTRY = re.compile(r"@(\w{1,40})\s*\{\s*([A-Za-z0-9_:.+/*-]{1,200})\s*,", re.ASCII)
_NO_ENTRIES = ("comment", "preamble", "string")
_NOT_SET = frozenset(
    (
        "abstract",
        "archiveprefix",
        "doi",
        "eprint",
        "file",
        "isbn",
        "issn",
        "keywords",
        "primaryclass",
        "url",
    )
)
"""Fields that are not typeset, so that special characters in them do not matter."""


@dataclass(frozen=True)
class Cited:
    """A row of the table of citations.

    Attributes:
        name: the task's name.
        licence: its licence.
        entries: BibTeX entries by key.
        why: what is wrong, if there are no entries.
        samples: number of samples, if known.
    """

    name: str
    licence: str = ""
    entries: Mapping[str, str] = field(default_factory=dict)
    why: str = ""
    samples: int | None = None


def entries_of(text: str) -> dict[str, str]:
    """Return the BibTeX entries in a text, by key.

    Raises:
        ValueError: an entry cannot be used; the message is a sentence.
    """
    if len(text) > _MOST_TEXT:
        raise ValueError(f"the BibTeX is longer than {_MOST_TEXT:,} characters")
    entry_by_key: dict[str, str] = {}
    keys: set[str] = set()
    at = 0
    while (match := _ENTRY.search(text, at)) is not None:
        at = _end(text, match.start() + len(match[1]) + 1)
        if match[1].lower() in _NO_ENTRIES:
            continue
        bibtex_entry = text[match.start() : at]
        for command in re.findall(r"\\([A-Za-z]+|.)", bibtex_entry, re.DOTALL):
            if command not in _COMMANDS:
                raise ValueError(
                    f"the entry '{match[2]}' uses the TeX command"
                    f" \\{command.strip() or 'newline'}"
                )
        if _UNREADABLE.search(bibtex_entry):
            raise ValueError(f"the entry '{match[2]}' has control characters")
        if "^^" in bibtex_entry:
            raise ValueError(
                f"the entry '{match[2]}' has '^^', which TeX reads as another sign"
            )
        for name, value in _fields(bibtex_entry):
            if name not in _NOT_SET and (
                unescaped := _BARE.search(_MATH.sub("", _ESCAPED.sub("", value)))
            ):
                raise ValueError(
                    f"the field '{name}' of the entry '{match[2]}' has a bare"
                    f" '{unescaped[0]}': write '\\{unescaped[0]}'"
                )
        if match[2].lower() in keys:  # BibTeX keys are not case-sensitive
            raise ValueError(f"two entries have the key '{match[2]}'")
        entry_by_key[match[2]] = bibtex_entry
        keys.add(match[2].lower())
    if not entry_by_key:
        raise ValueError("there is no entry such as @misc{key, title = {...}}")
    return entry_by_key


_UNREADABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_FIELD = re.compile(r"\s*([A-Za-z][\w-]*)\s*=", re.ASCII)
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_MATH = re.compile(r"\$[^$]*\$")
_BARE = re.compile(r"[&%$#_^]")


def _fields(entry: str) -> list[tuple[str, str]]:
    """Return the fields of an entry: what stands between its outermost commas."""
    chunks = []
    depth = 0
    start = 0
    quoted = False
    for offset, sign in enumerate(entry):
        escaped = offset > 0 and entry[offset - 1] == "\\"
        if sign in "{}":
            depth += 1 if sign == "{" else -1
        elif sign == '"' and depth == 1 and not escaped:
            quoted = not quoted
        elif sign == "," and depth == 1 and not quoted:
            chunks.append(entry[start:offset])
            start = offset + 1
    chunks.append(entry[start:])
    named = [(match, chunk) for chunk in chunks[1:] if (match := _FIELD.match(chunk))]
    return [(match[1].lower(), chunk[match.end() :]) for match, chunk in named]


def _end(text: str, start: int) -> int:
    depth = 0
    for offset in range(start, len(text)):
        sign = text[offset]
        if sign in "{}":  # BibTeX also counts braces after a backslash
            depth += 1 if sign == "{" else -1
            if depth == 0:
                return offset + 1
    raise ValueError("the braces of an entry are not closed")


@cache
def library_entries() -> Mapping[str, str]:
    """Return the entries of the bundled tasks, by key; our own names the version in use."""
    entries = entries_of((LIBRARY / "citations.bib").read_text(encoding="utf-8"))
    own_entry = entries[SELF].removesuffix("}").rstrip()
    entries[SELF] = f"{own_entry},\n  note = {{Version {__version__}}}\n}}"
    return entries


@cache
def benchmarks() -> Mapping[str, Mapping[str, Any]]:
    """Return the benchmarks that BenchHub gathers, by the names in its rows.

    Each has `dataset`, `bibtex`, `licence`, `languages` and `anthology`.
    """
    import tomllib

    text = (LIBRARY / "korean" / "benchmarks.toml").read_text(encoding="utf-8")
    return {
        benchmark["name"]: benchmark for benchmark in tomllib.loads(text)["benchmark"]
    }


def cited(name: str, metadata: Mapping[str, Any], samples: int | None = None) -> Cited:
    """The row of a task in a table of citations.

    Args:
        name: of the task.
        metadata: of the task; `bibtex` is the key of a bundled entry, an entry, or a list of these,
            `licence` its licence.
        samples: how many are used, where that is known.

    Returns:
        The row, with the BibTeX entries by their keys.
    """
    licence = str(metadata.get("licence") or "")
    bibtex = metadata.get("bibtex")
    try:
        entries: dict[str, str] = {}
        for reference in (
            bibtex if isinstance(bibtex, list | tuple) else [bibtex] if bibtex else []
        ):
            if str(reference).lstrip().startswith("@"):
                entries |= entries_of(str(reference))
            elif str(reference) in library_entries():
                entries[str(reference)] = library_entries()[str(reference)]
            else:
                raise ValueError(
                    f"'{str(reference)[:80]}' is no key of the bundled entries"
                )
    except ValueError as error:
        return Cited(name, licence, why=str(error), samples=samples)
    return Cited(name, licence, entries, samples=samples)


def cited_benchmark(name: str, samples: int) -> Cited:
    """Make the row of a benchmark that BenchHub gathers."""
    return cited(name, benchmarks().get(name, {}), samples)


def all_entries(rows: Sequence[Cited]) -> dict[str, str]:
    """Collect the entries of all rows, and this project's, each once.

    Raises:
        ValueError: two different entries have the same key.
    """
    entries = {SELF: library_entries()[SELF]}
    names = {SELF.lower(): SELF}
    for row in rows:
        for key, entry in row.entries.items():
            if (
                names.setdefault(key.lower(), key) != key
                or entries.setdefault(key, entry) != entry
            ):
                raise ValueError(f"two different entries have the key '{key}'")
    return entries


def bib_text(rows: Sequence[Cited]) -> str:
    """Write the entries as a .bib file; rows without an entry become comments."""
    missing = [
        f"% {MISSING}: {_plain(row.name)}{f' ({_plain(row.why)})' if row.why else ''}"
        for row in rows
        if not row.entries
    ]
    return "\n\n".join([*missing, *all_entries(rows).values()]) + "\n"


def tex_table(
    rows: Sequence[Cited],
    *,
    caption: str = "The tasks of the evaluation.",
    label: str = "tab:eval-dataset",
) -> str:
    """Write a LaTeX table of tasks with their licences and citations.

    It needs the packages booktabs and longtable, and a .bib file with the entries of the rows.

    Args:
        rows: the tasks, as `citation_of` gives them. If the number of samples is known for one of
            them, the table has a column for it.
        caption: the table's caption, as plain text.
        label: the name by which LaTeX refers to the table.

    Returns:
        LaTeX source of the table alone.
    """
    counted = any(row.samples is not None for row in rows)
    head = ["Task", *(["Samples"] if counted else []), "Licence", "Citation"]
    lines = [
        rf"\begin{{longtable}}{{@{{}}l{'r' if counted else ''}ll@{{}}}}",
        rf"\caption{{{escape(caption)}}}\label{{{label}}}\\",
        r"\toprule",
        " & ".join(head) + r" \\ \midrule",
        r"\endfirsthead",
        r"\toprule",
        " & ".join(head) + r" \\ \midrule",
        r"\endhead",
    ]
    for row in rows:
        count = [] if not counted else ["" if row.samples is None else str(row.samples)]
        citation = rf"\cite{{{','.join(row.entries)}}}" if row.entries else MISSING
        lines.append(
            " & ".join([escape(row.name), *count, escape(row.licence), citation])
            + r" \\"
        )
    return "\n".join([*lines, r"\bottomrule", r"\end{longtable}"])


def tex_document(rows: Sequence[Cited], name: str = SELF) -> str:
    """Write a LaTeX document that compiles as it is.

    `name` is the name, without suffix, of the .bib file that the document writes beside itself.
    """
    missing = [
        f"% {MISSING}: {_plain(row.name)}: {_plain(row.why)}"
        for row in rows
        if not row.entries and row.why
    ]
    bib = bib_text(rows).rstrip()
    # Plain LaTeX typesets only Latin letters; the others compile if the fonts have them.
    latin = all(ord(sign) < 0x250 or 0x2010 <= ord(sign) <= 0x203A for sign in bib)
    return "\n".join(
        [
            *missing,
            *(
                []
                if latin
                else [
                    "% Compile with lualatex or xelatex: entries have letters that are"
                    " not Latin."
                ]
            ),
            rf"\begin{{filecontents*}}[overwrite]{{{name}-citations.bib}}",
            bib,
            r"\end{filecontents*}",
            r"\documentclass{article}",
            r"\usepackage{booktabs}",
            r"\usepackage{longtable}",
            r"\usepackage{url}",
            *([] if latin else [r"\usepackage{fontspec}"]),
            r"\begin{document}",
            (
                rf"The evaluation was run with Evalwright~\cite{{{SELF}}}."
                r" Table~\ref{tab:eval-dataset} lists its tasks."
            ),
            tex_table(rows),
            r"\bibliographystyle{plain}",
            rf"\bibliography{{{name}-citations}}",
            r"\end{document}",
            "",
        ]
    )


_SPECIAL = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
}


def escape(text: str) -> str:
    """Escape an untrusted text for LaTeX, so that no command in it takes effect.

    Letters that plain LaTeX cannot typeset are replaced by their codes.
    """
    pieces: list[str] = []
    for sign in text[:500]:
        if sign in _SPECIAL:
            pieces.append(_SPECIAL[sign])
        elif " " <= sign <= "~":
            pieces.append(sign)
        elif sign.isspace():
            pieces.append(" ")
        else:
            near = (
                unicodedata.normalize("NFKD", sign).encode("ascii", "ignore").decode()
            )
            pieces.append(near if near.isalnum() else f"U+{ord(sign):04X} ")
    return "".join(pieces).strip()


def _plain(text: str) -> str:
    """Make an untrusted text safe for one line of a comment."""
    return " ".join(text[:300].encode("ascii", "backslashreplace").decode().split())
