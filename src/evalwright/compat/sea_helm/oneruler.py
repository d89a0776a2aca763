"""SEA-HELM's generated long-context tasks: needles hidden in a book, and the most common words of a long list.

Instances are made of the task's seed, the tree's own books and word lists, and a tokenizer that says how long a text is. Which
tokenizer that is, the user states: a folder or hub repository, or one token for each code point. SEA-HELM takes that of the model
under test, so that every model gets prompts of its own.
"""

from __future__ import annotations

import ast
import csv
import random
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evalwright.compat.sea_helm.published import DIALECT, SCORER, Made, Published, row_of
from evalwright.compat.sea_helm.task import Row, SeaTask
from evalwright.core.errors import DatasetError, MissingExtra, TaskError, UnknownName
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tasks import MetricSpec, Scorer
from evalwright.tasks.files import is_within
from evalwright.tasks.yaml_files import shown

CODE_POINTS = "code-points"
"""The tokenizer that takes each code point for a token."""

WORDS = "CWEDataloader"
"""The loader of the tasks of common words; the other family is that of needles."""

PUBLISHED_FAILURE = "cwe_dataloader.py calls the tokenizer's `batch_encode_plus`, which transformers 5.12.0, the version that SEA-HELM pins, does not have"
"""Why SEA-HELM itself scores every task of common words 0."""

_FOLDER = Path("seahelm_tasks/long_context/oneruler")
_MOST_TOKENS = 400_000_000
"""Of all instances of a task together."""
_SEEDS = 2**31 - 1
_STRICT, _SHARE = "normalized_strict_accuracy", "normalized_accuracy"
_TOLERANCE = 100
"""By how many tokens a list of words may miss its length before it is made again, at most twice."""

# What SEA-HELM takes for no text of a sentence's own, and what may follow the mark that ends one.
_NO_TEXT = string.whitespace + string.punctuation + "｡。，、､…：；？！।“”‘’『』「」｢｣《》（）［］｛｝«»"
_CLOSING = re.escape("'\\\"”’』」｣》⟩)]}）］｝»*_")
_MARKS = {"zh": "｡。！？", "my": "။.!?"}


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """How long texts are. hub: a tokenizer of transformers; without it, each code point is a token."""

    hub: Any = None

    def lengths(self, texts: Sequence[str], *, whole: bool = False) -> list[int]:
        """In tokens. whole: with those that the tokenizer puts around every text."""
        if self.hub is None:
            return [len(text) for text in texts]
        return [len(ids) for ids in self.hub(list(texts), add_special_tokens=whole)["input_ids"]]

    def beginning(self, text: str, tokens: int) -> str:
        """A text's first tokens, as text."""
        if self.hub is None:
            return text[:tokens]
        return str(self.hub.decode(self.hub(text, add_special_tokens=False)["input_ids"][:tokens]))


@lru_cache(maxsize=2)
def tokenizer_of(name: str) -> tuple[Tokenizer, Mapping[str, Any]]:
    """A tokenizer, and what names it by content: for the record.

    name: `code-points`, or `<folder or hub repository>[@revision]`, of which no code is run. Raises ConfigurationError, MissingExtra.
    """
    if name == CODE_POINTS:
        return Tokenizer(), {"tokenizer": CODE_POINTS}
    if find_spec("transformers") is None:
        raise MissingExtra(f"The tokenizer '{name}'", "hf", "transformers")
    from evalwright.models.local.hf.loading import load_tokenizer
    from evalwright.models.local.hf.source import find_source

    where, _, revision = name.partition("@")
    source = find_source(where, revision or None, needs="tokenizer_config.json")
    return Tokenizer(load_tokenizer(source)), dict(source.identity)


def oneruler_rows(task: SeaTask, tokenizer: str, limit: int | None = None) -> list[Row]:
    """The rows of a task: seed, prompts (one mapping), label (a list of texts), metadata. limit: only the first so many, which are the same.

    Raises UsageError, as `instances`.
    """
    seeds, make = instances(task, tokenizer)
    return [{"seed": seed, **make(seed)} for seed in seeds[:limit]]


def instances(task: SeaTask, tokenizer: str) -> tuple[list[int], Callable[[int], dict[str, Any]]]:
    """The seeds of a task's rows, and what makes the rest of a row of its seed. tokenizer: as of `tokenizer_of`.

    Raises UsageError for a task that lacks a setting, has one out of bounds, or names files that are not there.
    """
    count, size = _whole(task, "num_samples"), _whole(task, "context_size")
    if max(count * size, count * 1000) > _MOST_TOKENS:
        raise TaskError(f"{task.name} asks for {count * size:,} tokens; at most {_MOST_TOKENS:,} are made.")
    measure, _ = tokenizer_of(tokenizer)
    of_words = task.loaded_by is not None and task.loaded_by[1] == WORDS
    make = (_word_lists if of_words else _haystacks)(task, measure, size)
    return random.Random(_whole(task, "random_seed", least=0)).sample(range(_SEEDS), count), make


def _whole(task: SeaTask, key: str, least: int = 1) -> int:
    value = task.config.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise TaskError(f"{task.name} needs '{key}', a whole number of at least {least}, and has {value!r}.")
    return value


def _text_of(task: SeaTask, inside: Path | str) -> str:
    """A text file of the tree's OneRuler folder."""
    if task.root is None:
        raise DatasetError(f"{task.name} is made of files of SEA-HELM's tree: name it with --task-root.")
    path = task.root / _FOLDER / inside
    if not is_within(path, task.root):
        raise TaskError(
            f"'{shown(path)}' is outside of the folder of {task.name} (links followed), or hidden."
        )
    try:
        if not path.is_file():  # nor a pipe, for which nothing would be read
            raise DatasetError(
                f"'{shown(path)}', of which {task.name} is made, does not exist or is not a file."
            )
        if path.stat().st_size > _MOST_TOKENS:
            raise DatasetError(f"'{path}' is larger than {_MOST_TOKENS:,} bytes.")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"'{path}', of which {task.name} is made, cannot be read: {error}.") from error


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def _prompt_length(task: SeaTask, measure: Tokenizer) -> int:
    empty = (task.template.get("preamble") or "") + (task.template.get("task_template") or "")
    return measure.lengths([empty])[0]


def _haystacks(task: SeaTask, measure: Tokenizer, size: int) -> Callable[[int], dict[str, Any]]:
    """What makes an instance of a seed: the beginning of the language's books with numbers for words hidden before sentences."""
    keys = _whole(task, "min_num_keys")
    given = {
        key: _whole(task, f"num_{key}", least=least)
        for key, least in (("values", 0), ("queries", 1))
        if task.config.get(f"num_{key}") is not None
    }
    values, queries = given.get("values"), given.get("queries")
    asked_for = values if queries is None else queries
    if len(given) != 1 or asked_for is None or asked_for > keys:
        raise TaskError(f"{task.name} needs one of 'num_values' and 'num_queries', of at most {keys}.")
    words, needle, joint = _nouns(task), _sentence(task, "empty_needle"), _sentence(task, "and_word")

    def filled(word: str, value: str) -> str:
        return needle.replace("{needle}", word).replace("{value}", value)

    hidden = filled(random.Random(_whole(task, "random_seed", least=0)).choice(words), "123456789")
    text = _books(task, measure, size - _prompt_length(task, measure) - keys * measure.lengths([hidden])[0])
    sentences = list(_sentences(text, _MARKS.get(task.language, ".!?")))
    if len(words) <= keys or not sentences:
        raise DatasetError(f"{task.name} ({task.language}) has too few words or sentences to hide needles.")
    opening, closing, comma = "“”，" if task.language == "zh" else ('"', '"', ", ")

    def instance(seed: int) -> dict[str, Any]:
        rng, left, haystack = random.Random(seed), list(words), text
        labels, asked = list[str](), list[str]()

        def drawn() -> str:
            word = rng.choice(left)
            left.remove(word)
            return word

        if values is not None:
            asked.append(drawn())
        for place in range(keys):
            value = str(rng.randint(0, _SEEDS))
            word = asked[0] if values is not None and place < values else drawn()
            before = rng.choice(sentences)
            # A sentence that an earlier needle has torn is not found, and that needle is then nowhere: as published.
            haystack = haystack.replace(before, filled(word, value) + before, 1)
            if place < asked_for:
                labels.append(value)
                asked += [word] if values is None else []
        *first, last = [opening + word + closing for word in asked]
        named = comma.join(first) + (joint if first else "") + last
        return {
            "prompts": [{"text": haystack, "needle_text": named}],
            "label": labels or ["none"],
            "metadata": {"num_queries": queries, "num_values": values, "num_keys": keys},
        }

    return instance


def _nouns(task: SeaTask) -> list[str]:
    lines = _lines(_text_of(task, "niah/vocab/100_noun_list_translated.tsv"))
    rows = csv.DictReader(lines, delimiter="\t")
    if task.language not in (rows.fieldnames or ()):
        raise UnknownName(f"language of {task.name}", task.language, rows.fieldnames or ())
    return [(row[task.language] or "").strip() for row in rows] or [""]


def _sentence(task: SeaTask, name: str) -> str:
    """A text for the task's language out of the table that the tree's own loader assigns to `self.NAME`; its code is read, not run."""
    file = "niah/niah_dataloader.py"
    try:
        for node in ast.walk(ast.parse(_text_of(task, file))):
            match node:
                case ast.Assign([ast.Attribute(attr=to)], ast.Subscript(ast.Dict() as table)) if to == name:
                    return str(ast.literal_eval(table)[task.language])
    except (SyntaxError, ValueError, TypeError, KeyError, RecursionError, MemoryError):
        pass
    raise DatasetError(f"'{file}' of SEA-HELM's tree has no '{name}' for the language '{task.language}'.")


def _books(task: SeaTask, measure: Tokenizer, tokens: int) -> str:
    """The first tokens of the language's books, which are repeated where they are too short."""
    if tokens < 1:
        raise TaskError(f"{task.name} has a 'context_size' too small for its own prompt.")
    folder = Path("niah/books") / task.language
    names = sorted(path.name for path in (task.root / _FOLDER / folder).glob("*.txt")) if task.root else [""]
    text = re.sub(r"[ \t]+", " ", "\n\n".join(_text_of(task, folder / name) for name in names))
    there = measure.lengths([text])[0]
    if not there:
        raise DatasetError(f"There are no books of the language '{task.language}' in '{_FOLDER / folder}'.")
    return measure.beginning(text * (1 if there >= tokens else tokens // there + 1), tokens)


def _sentences(text: str, marks: str) -> Iterator[str]:
    """The sentences of a text. A mark ends one where white space follows, but for a single one after a digit.

    SEA-HELM's list of abbreviations is looked for in front of the mark, where none of them can stand, so none counts.
    """
    end = re.compile(rf"([{re.escape(marks)}]++)[{_CLOSING}]*+(\s*+)")
    for paragraph in re.split(r"[\r\n|]", text):
        begin, parts = 0, []
        for found in end.finditer(paragraph):
            if found[2] and (len(found[1]) > 1 or not paragraph[max(0, found.start() - 1)].isdecimal()):
                parts.append(paragraph[begin : found.start(2)])
                begin = found.end()
        yield from (part.strip() for part in [*parts, paragraph[begin:]] if part.strip(_NO_TEXT))


def _word_lists(task: SeaTask, measure: Tokenizer, size: int) -> Callable[[int], dict[str, Any]]:
    """What makes an instance of a seed: a numbered list in which a few words stand more often than all others."""
    repeats = ("common_words", "repeats_common_words", "repeats_uncommon_words")
    common, often, seldom = (_whole(task, f"num_{key}") for key in repeats)
    words = [f" {word}" for word in sorted(set(_vocabulary(task)))]
    if len(words) <= common or max(common * often, len(words) * seldom) > _MOST_TOKENS:
        raise TaskError(f"{task.name} has too few words for {common} common ones, or repeats them too often.")
    lengths = dict(zip(words, measure.lengths(words), strict=True))
    mean, prompt = sum(lengths.values()) / len(words), _prompt_length(task, measure)

    def instance(seed: int) -> dict[str, Any]:
        shuffled = list(words)
        random.Random(seed).shuffle(shuffled)
        chosen, others = shuffled[:common], shuffled[common:] * seldom
        random.Random(seed).shuffle(others)
        # SEA-HELM draws the numbers that it measures unseeded: where their length varies, this is one of the lists that it could make.
        numbers = random.Random(seed)
        room = size - prompt - common * often * (sum(lengths[word] for word in chosen) / common - mean)
        count = _fitting(measure, mean, room, numbers)
        for _ in range(3):
            if not 0 <= count - common * often <= len(others):
                raise TaskError(
                    f"{task.name} ({task.language}) cannot be made with this tokenizer: about {count:,} words are to be listed, "
                    f"and there are {common * often:,} common and {len(others):,} others."
                )
            listed = chosen * often + others[: count - common * often]
            random.Random(seed).shuffle(listed)
            text = " ".join(f"{place}.{word}" for place, word in enumerate(listed, start=1))
            tokens = measure.lengths([text], whole=True)[0]
            difference = size - prompt - tokens
            if abs(difference) < _TOLERANCE:
                break
            count = _fitting(measure, mean, difference + room, numbers)
        return {
            "prompts": [{"list": text, "num_common_words": common}],
            "label": [word.strip() for word in chosen],
            "metadata": {"num_tokens": tokens + prompt},
        }

    return instance


def _vocabulary(task: SeaTask) -> list[str]:
    if task.language != "en":
        return [line.strip() for line in _lines(_text_of(task, f"cwe/vocab/{task.language}_words.txt"))]
    found = find_spec("wonderwords")
    if found is None or not found.submodule_search_locations:
        raise MissingExtra(f"{task.name} in English", "sea-helm", "wonderwords")
    lists = Path(found.submodule_search_locations[0]) / "assets"
    files = (lists / f"{kind}list.txt" for kind in ("noun", "adjective", "verb"))
    return [line.rstrip() for file in files for line in _lines(file.read_text(encoding="utf-8"))]


def _fitting(measure: Tokenizer, mean: float, room: float, numbers: random.Random) -> int:
    """How many numbered words of a mean length there is room for, their numbers measured by one of each count of digits."""
    words, power = 0.0, 0
    while True:
        number = numbers.randint(10**power, 10 ** (power + 1) - 1)
        each = (measure.lengths([f" {number}."])[0] + mean) or 1
        more = 9 * 10**power
        if more * each > room:
            return int(words + room // each)
        words, room, power = words + more, room - more * each, power + 1


# Scores


class Found(Published):
    """Which share of what was asked for is named, and whether it is all of it. No answer is the answer "None", and more costs nothing."""

    part = _STRICT
    means = {_STRICT: (100, _STRICT), "strict_accuracy": (100, _STRICT), "accuracy": (100, _SHARE)}  # noqa: RUF012

    def read(self, row: Row, text: str) -> Score:
        """1 or 0, with both shares: what stands from the first answer tag to the last closing one, split at commas."""
        begin = text.find(self.task.answer_tag)
        end = text.rfind("</", begin + len(self.task.answer_tag)) if begin >= 0 else -1
        said = text[begin + len(self.task.answer_tag) : end].strip() if end >= 0 else "None"
        asked = {one.strip().lower() if _of_words(self.task) else one for one in row["label"]}
        return _score(asked, {part.strip().lower() for part in said.split(",")}, len(asked), said)


def oneruler_scoring(task: SeaTask, rows: Sequence[Row]) -> Made:
    """The scorer and the metrics of a generated task: published as `Found`, corrected as `_corrected`."""
    if task.metric != _STRICT:
        raise UnknownName(f"metric of {task.name}", task.metric, [_STRICT])
    if task.published:
        return Found(task, rows).made()
    score = partial(_corrected, tag=task.answer_tag, of_words=_of_words(task))
    specs = [
        MetricSpec(_STRICT, "accuracy", SCORER),
        MetricSpec("accuracy", "part-mean", SCORER, {"part": _SHARE}),
    ]
    return [Scorer(SCORER, DIALECT, {"scoring": "corrected"}, score)], specs


def _of_words(task: SeaTask) -> bool:
    return task.scored_by[1] == "CweMetric"


def _corrected(sample: Sample, answer: Answer, *, tag: str, of_words: bool) -> Score:
    """The last answer, closed or not, split at separators of all scripts, without numbering and quotation marks, for numbers its digits.

    No answer is wrong, and what is named beyond what is asked for lowers the share.
    """
    _, there, last = answer.text.rpartition(tag)
    said = last.partition("</")[0].strip() if there else ""
    whole = said if of_words else re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", said)
    parts = [re.sub(r"^\d+[.)]\s", "", part.strip()) for part in re.split(r"[,，、;；\n]", whole)]
    named = {part.strip(_NO_TEXT + "*").lower() for part in parts} - {""}
    if not of_words:
        named = {number for part in parts for number in re.findall(r"\d+", part)} or named & {"none"}
    asked = {str(one).strip().lower() for one in row_of(sample)["label"]}
    return _score(asked, named, max(len(asked), len(named)), said)


def _score(asked: set[str], named: set[str], of: int, said: str) -> Score:
    share = len(asked & named) / of if of else 0.0
    strict = float(share == 1)
    return Score(strict, "correct" if strict else "incorrect", said, {_STRICT: strict, _SHARE: share})
