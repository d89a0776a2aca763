"""Synthetic rows: texts of a given length in tokens with hidden numbers, and lists of common words.

They are generated once (`tasks/long_texts.py`) and kept like a copy of data, named by all that they
depend on: settings, files, tokenizer.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

from evalwright.core.errors import TaskError
from evalwright.tasks import schema
from evalwright.tasks.datasets.copies import copy_of_made
from evalwright.tasks.datasets.jsonl_rows import FileSource, Row, file_source
from evalwright.tasks.long_texts import (
    GREATEST,
    MOST,
    Make,
    Tokenizer,
    haystacks,
    made_up,
    repeats,
    text_of,
    tokenizer_of,
    word_lists,
)


def made_source(
    settings: schema.Needles | schema.CommonWords,
    where: str,
    files: Callable[[str], list[Path]],
) -> FileSource:
    """Return the rows that a dataset's `needles` or `common_words` describe.

    Args:
        settings: the settings.
        where: the place of these settings, for errors.
        files: returns the files that one of their keys names.

    Raises:
        TaskError: the settings do not fit each other or their files.
        DatasetError: a file cannot be read.
        ConfigurationError: the tokenizer cannot be used.
        MissingExtra: a library is not installed.
    """
    subject = f"{where}: this dataset"
    lines = (line.strip() for line in text_of(files("words"), subject).splitlines())
    words = list(dict.fromkeys(filter(None, lines)))
    most = MOST // max(settings.tokens, len(words), 1000)
    if settings.count > most:
        raise TaskError(
            f"{subject} is to have {settings.count:,} texts; with {settings.tokens:,} tokens and"
            f" {len(words):,} words at most {most:,} are made."
        )
    books = text_of(files("books"), subject)
    measure = tokenizer_of(settings.tokenizer)

    def rows() -> Iterator[tuple[str, Row]]:
        if isinstance(settings, schema.Needles):
            make = _needles(settings, subject, words, books, measure)
        else:
            make = _common_words(settings, subject, words, measure)
        for number, seed in enumerate(
            random.Random(settings.seed).sample(range(GREATEST), settings.count), 1
        ):
            yield f"{where}, row {number:,}", {"seed": seed, **make(seed)}

    kind = "needles" if isinstance(settings, schema.Needles) else "common-words"
    recipe = settings.model_dump(exclude={"words", "books", "tokenizer"})
    path = copy_of_made(kind, [recipe, words, books, measure.identity()], rows)
    return file_source(path, f"{where} ({kind})")


def _needles(
    settings: schema.Needles,
    subject: str,
    words: list[str],
    books: str,
    measure: Tokenizer,
) -> Make:
    if len(words) < 2:
        raise TaskError(
            f"{subject} needs at least two words, one a line, in its file of words."
        )
    gap = "" if settings.sentence.endswith("。") else " "

    def filled(word: str, number: str) -> str:
        return (
            settings.sentence.replace("{word}", word).replace("{number}", number) + gap
        )

    # Eight characters per token are more than simple sentences have.
    text = books or made_up(
        settings.frames or [], words, 8 * settings.tokens, settings.seed
    )
    return haystacks(
        subject,
        text,
        words,
        filled,
        measure=measure,
        size=settings.tokens,
        seed=settings.seed,
        language=settings.language,
        keys=settings.hidden,
        asked_for=settings.asked
        if settings.asked is not None
        else settings.values or 0,
        one_word=settings.asked is None,
    )


def _common_words(
    settings: schema.CommonWords, subject: str, words: list[str], measure: Tokenizer
) -> Make:
    if len(words) <= settings.common:
        raise TaskError(
            f"{subject} has {len(words):,} words, and needs more than the {settings.common:,}"
            " that are to be common."
        )
    often, seldom = repeats(
        words,
        common=settings.common,
        ratio=settings.ratio,
        size=settings.tokens,
        measure=measure,
    )
    return word_lists(
        subject,
        words,
        common=settings.common,
        often=often,
        seldom=seldom,
        size=settings.tokens,
        measure=measure,
    )
