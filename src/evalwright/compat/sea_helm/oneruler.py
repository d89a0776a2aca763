"""SEA-HELM's generated long-context tasks: needles hidden in a book, and the most common words of a
long list (`haystacks`, `word_lists`).

Instances are made of the task's seed, the tree's own books and word lists, and a stated tokenizer.
SEA-HELM takes that of the model under test, so that every model gets prompts of its own.
"""

from __future__ import annotations

import ast
import csv
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evalwright.compat.sea_helm.folder_files import assigned, local_file, shown_path
from evalwright.compat.sea_helm.sea_task import Row, SeaTask
from evalwright.extend import (
    DatasetError,
    MissingExtra,
    TaskError,
    check_known,
    haystacks,
    length_tokenizer,
    word_lists,
)

_CODE_POINTS = "code-points"
"""The tokenizer that takes each code point for a token."""
_GREATEST = 2**31 - 1
"""The greatest number that is hidden."""
_MOST = 400_000_000
"""Tokens of all instances of a task together, and bytes of the files that they are made of."""
Make = Callable[[int], Mapping[str, Any]]
"""From a seed to an instance."""
_FOLDER = Path("seahelm_tasks/long_context/oneruler")


def oneruler_rows(task: SeaTask, tokenizer: str, limit: int | None = None) -> list[Row]:
    """The rows of a task: seed, prompts (one mapping), label (a list of texts), metadata.
    tokenizer: as of `tokenizer_of`, "" for code points. limit: only the first so many, which are
    the same. Raises UsageError for a task that lacks a setting, has one out of bounds, or names
    files that are not there.
    """
    count = _whole_number(task, "num_samples")
    size = _whole_number(task, "context_size")
    if max(count * size, count * 1000) > _MOST:
        raise TaskError(
            f"{task.name} asks for {count * size:,} tokens; at most {_MOST:,} are made."
        )
    measure = length_tokenizer(tokenizer or _CODE_POINTS)
    empty = (task.template.get("preamble") or "") + (
        task.template.get("task_template") or ""
    )
    prompt = measure.lengths([empty])[0]
    of_words = task.loaded_by is not None and task.loaded_by[1] == "CWEDataloader"
    seeds = random.Random(_whole_number(task, "random_seed", least=0)).sample(
        range(_GREATEST), count
    )[:limit]
    make = (_word_lists if of_words else _haystacks)(
        task, measure, size - prompt, prompt
    )
    return [{"seed": seed, **make(seed)} for seed in seeds]


def _whole_number(task: SeaTask, key: str, least: int = 1) -> int:
    value = task.config.get(key)
    if type(value) is not int or value < least:
        raise TaskError(
            f"{task.name} needs '{key}', a whole number of at least {least}, and has"
            f" {value!r}."
        )
    return value


def _text_of(task: SeaTask, *inside: Path | str) -> str:
    """Text files of the tree's OneRuler folder, an empty line between them. Raises DatasetError."""
    texts: list[str] = []
    size = 0
    for name in inside:
        path = local_file(task, str(_FOLDER / name))
        try:
            size += path.stat().st_size
            if size > _MOST:
                raise DatasetError(
                    f"The files up to '{shown_path(path)}', of which {task.name} is made,"
                    f" have more than {_MOST:,} bytes."
                )
            texts.append(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise DatasetError(
                f"'{shown_path(path)}', of which {task.name} is made, cannot be read:"
                f" {error}."
            ) from error
    return "\n\n".join(texts)


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def _haystacks(task: SeaTask, measure: Any, size: int, prompt: int) -> Make:
    """What makes an instance of a seed: the beginning of the language's books with numbers for
    words hidden before sentences.
    """
    keys = _whole_number(task, "min_num_keys")
    counts = {"values": 0, "queries": 1}  # the least of each
    least_counts = {
        key: least
        for key, least in counts.items()
        if task.config.get(f"num_{key}") is not None
    }
    counts_given = {
        key: _whole_number(task, f"num_{key}", least)
        for key, least in least_counts.items()
    }
    if len(counts_given) != 1 or max(counts_given.values()) > keys:
        raise TaskError(
            f"{task.name} needs one of 'num_values' and 'num_queries', of at most"
            f" {keys}."
        )
    ((kind, asked_for),) = counts_given.items()
    words = _nouns(task)
    needle = _sentence(task, "empty_needle")
    joint = _sentence(task, "and_word")

    def filled(word: str, value: str) -> str:
        return needle.replace("{needle}", word).replace("{value}", value)

    folder = Path("niah/books") / task.language
    names = sorted(
        path.name for path in ((task.root or Path()) / _FOLDER / folder).glob("*.txt")
    )
    make = haystacks(
        f"{task.name} ({task.language})",
        _text_of(task, *(folder / name for name in names)),
        words,
        filled,
        measure=measure,
        size=size,
        seed=_whole_number(task, "random_seed", least=0),
        language=task.language,
        keys=keys,
        asked_for=asked_for,
        one_word=kind == "values",
        published=True,
    )
    opening, closing, comma = "“”，" if task.language == "zh" else ('"', '"', ", ")
    numbers = {
        f"num_{count_name}": counts_given.get(count_name)
        for count_name in ("queries", "values")
    } | {"num_keys": keys}

    def instance(seed: int) -> dict[str, Any]:
        haystack = make(seed)
        *first, last = [opening + word + closing for word in haystack["asked"]]
        named = comma.join(first) + (joint if first else "") + last
        prompts = [{"text": haystack["text"], "needle_text": named}]
        return {
            "prompts": prompts,
            "label": haystack["numbers"] or ["none"],
            "metadata": numbers,
        }

    return instance


def _nouns(task: SeaTask) -> list[str]:
    lines = _lines(_text_of(task, "niah/vocab/100_noun_list_translated.tsv"))
    rows = csv.DictReader(lines, delimiter="\t")
    check_known(f"language of {task.name}", [task.language], rows.fieldnames or (), "")
    return [(row[task.language] or "").strip() for row in rows] or [""]


def _sentence(task: SeaTask, name: str) -> str:
    """A text for the task's language out of the table that the tree's own loader assigns to
    `self.NAME`; its code is read, not run.
    """
    file = _FOLDER / "niah/niah_dataloader.py"
    for table in assigned(task, str(file), name):
        with suppress(
            SyntaxError, ValueError, TypeError, KeyError, RecursionError, MemoryError
        ):
            if isinstance(table, ast.Subscript):
                return str(ast.literal_eval(table.value)[task.language])
    raise DatasetError(
        f"'{file}' of SEA-HELM's tree has no '{name}' for the language"
        f" '{task.language}'."
    )


def _word_lists(task: SeaTask, measure: Any, size: int, prompt: int) -> Make:
    """What makes an instance of a seed: a numbered list in which a few words stand more often than
    all others.
    """
    repeats = ("common_words", "repeats_common_words", "repeats_uncommon_words")
    common, often, seldom = (_whole_number(task, f"num_{key}") for key in repeats)
    words = sorted(set(_vocabulary(task)))
    if len(words) <= common or max(common * often, len(words) * seldom) > _MOST:
        raise TaskError(
            f"{task.name} has too few words for {common} common ones, or repeats them"
            " too often."
        )
    subject = f"{task.name} ({task.language})"
    make = word_lists(
        subject,
        words,
        common=common,
        often=often,
        seldom=seldom,
        size=size,
        measure=measure,
        published=True,
    )

    def instance(seed: int) -> dict[str, Any]:
        word_list = make(seed)
        prompts = [{"list": word_list["text"], "num_common_words": common}]
        about = {"num_tokens": word_list["tokens"] + prompt}
        return {"prompts": prompts, "label": word_list["common"], "metadata": about}

    return instance


def _vocabulary(task: SeaTask) -> list[str]:
    if task.language != "en":
        return [
            line.strip()
            for line in _lines(_text_of(task, f"cwe/vocab/{task.language}_words.txt"))
        ]
    package = find_spec("wonderwords")
    if package is None or not package.submodule_search_locations:
        raise MissingExtra(f"{task.name} in English", "sea-helm", "wonderwords")
    lists = Path(package.submodule_search_locations[0]) / "assets"
    files = (lists / f"{kind}list.txt" for kind in ("noun", "adjective", "verb"))
    return [
        line.rstrip()
        for file in files
        for line in _lines(file.read_text(encoding="utf-8"))
    ]
