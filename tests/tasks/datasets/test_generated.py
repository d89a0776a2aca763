"""Rows that are made: what they hold, of what they depend, what is refused, and runs with them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import UsageError
from evalwright.core.samples import Answer
from evalwright.core.tasks import Task
from evalwright.tasks.index import LIBRARY, TaskIndex
from evalwright.tasks.loading import load_task
from evalwright.tasks.long_texts import tokenizer_of
from support.openai_server import serving
from support.typed import typed
from tasks.conftest import Load, Write

FOLDER = LIBRARY / "long_texts"
LANGUAGES = [
    path.stem.removeprefix("words_") for path in sorted(FOLDER.glob("words_*.txt"))
]
NEEDLES = {
    "tokens": 2000, "count": 20, "words": "words.txt", "sentence": "The number of the {word} is {number}.",
    "books": "book.txt", "hidden": 4, "asked": 2,
}  # fmt: skip
WORDS = {"tokens": 2000, "count": 5, "words": "words.txt", "common": 3, "ratio": 4}


def made(load: Load, **dataset: Any) -> Task:
    kind = "needles" if "needles" in dataset else "common_words"
    target = (
        "{{ numbers | join(', ') or 'none' }}"
        if kind == "needles"
        else "{{ common | join(', ') }}"
    )
    task = {
        "task": "t", "dataset": dataset, "sample": {"input": "q", "target": target},
        "prompt": {"user": "{{ text }}"}, "scorers": [{"listed": {"kind": "words"}}],
    }  # fmt: skip
    return load(json.dumps(task))


@pytest.fixture(autouse=True)
def _files(write: Write) -> None:
    write("words.txt", "".join(f"word{chr(97 + n)}\n" for n in range(20)) + "worda\n\n")
    # Sentences that stand in others, and again and again: a needle before one must not tear
    # another.
    write("book.txt", "So it was. It was. She said so. So it  was. It was.\n\n" * 7)


@pytest.mark.parametrize(
    "asked", [{"asked": 2}, {"asked": 4}, {"values": 4}, {"values": 0}]
)
def test_every_needle_stands_in_the_text_once(
    load: Load, asked: dict[str, int]
) -> None:
    task = made(load, needles={**NEEDLES, "asked": None, **asked})
    assert len(task.samples) == 20
    places = set()
    for sample in task.samples:
        row = sample.row
        found = re.findall(r"The number of the (\w+) is (\d+)\. ", row["text"])
        assert len(found) == 4
        if "asked" in asked:
            assert len(row["asked"]) == len(row["numbers"]) == asked["asked"]
            assert set(zip(row["asked"], row["numbers"], strict=True)) <= set(found)
        else:
            (word,) = row["asked"]
            assert {number for other, number in found if other == word} == set(
                row["numbers"]
            )
            assert len(row["numbers"]) == asked["values"]
        # What is not a needle is the book, repeated, and its white space made even.
        rest = re.sub(r"The number of the \w+ is \d+\. ", "", row["text"])
        whole = re.sub(" +", " ", Path("book.txt").read_text(encoding="utf-8")) * 50
        assert whole.startswith(rest) and abs(len(row["text"]) - 2000) < 40
        assert len(row["depths"]) == len(row["numbers"]) and all(
            0 <= depth <= 1 for depth in row["depths"]
        )
        places.update(row["depths"])
    if row["numbers"]:
        assert min(places) < 0.2 and max(places) > 0.8


def test_common_words_are_the_commonest(load: Load) -> None:
    for sample in made(load, common_words=WORDS).samples:
        entries = sample.row["text"].split()
        words = Counter(entries[1::2])
        assert entries[::2] == [f"{n}." for n in range(1, len(entries) // 2 + 1)]
        first, *_ = most = words.most_common(3)
        assert {word for word, _ in most} == set(sample.row["common"])
        assert {times for _, times in most} == {first[1]}
        assert all(
            4 * times <= first[1]
            for word, times in words.items()
            if word not in dict(most)
        )
        assert abs(len(sample.row["text"]) - 2000) < 100


def test_content_depends_on_settings_files_and_tokenizer_and_on_nothing_else(
    load: Load, write: Write, tmp_path: Path
) -> None:
    pytest.importorskip("transformers", reason="the extra `hf` is not installed")
    from tokenizers import Tokenizer as Made
    from tokenizers import models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    def save(name: str, *more: str) -> None:
        vocabulary = {
            token: place
            for place, token in enumerate(["[UNK]", "was", "It", "So", *more])
        }
        plain = Made(models.WordLevel(vocabulary, "[UNK]"))
        plain.pre_tokenizer = pre_tokenizers.Split(" ", "isolated")
        PreTrainedTokenizerFast(
            tokenizer_object=plain, unk_token="[UNK]"
        ).save_pretrained(tmp_path / name)

    def hash_of(**settings: Any) -> str:
        return made(load, needles={**NEEDLES, **settings}).samples.content_hash

    save("tokens")
    first = hash_of()
    assert hash_of() == first == hash_of(words=["words.txt"])
    others = [
        hash_of(seed=1), hash_of(tokens=2001), hash_of(asked=1), hash_of(tokenizer=str(tmp_path / "tokens")),
    ]  # fmt: skip
    tokenizer_of.cache_clear()
    save(
        "tokens", "so"
    )  # for another process, a folder of the same name with another tokenizer
    others.append(hash_of(tokenizer=str(tmp_path / "tokens"), tokens=2000))
    write("book.txt", "Another. " * 40)
    others.append(hash_of())
    write("words.txt", "\n".join("abcdefgh"))
    others.append(hash_of())
    assert (
        len({first, *others}) == 1 + len(others) - 1
    )  # both tokenizers split this text alike
    copies = list((tmp_path / "home" / "datasets").glob("needles-*.jsonl"))
    assert len(copies) == 1 + len(others)


WRONG = [
    ({"asked": None}, "one of `asked`"),
    ({"values": 1}, "one of `asked`"),
    ({"asked": 5}, "of 4 `hidden` needles"),
    ({"books": None}, "needs `books`, text files, or `frames`"),
    ({"sentence": "{word}"}, r"has no \{number\}"),
    ({"books": None, "frames": ["a"]}, r"`frames` has no \{a\}"),
    (
        {"tokens": 100},
        "task.yaml:1: this dataset is too small: beside its 4 needles is no room",
    ),
    (
        {"count": 10**6},
        "1,000,000 texts; with 2,000 tokens and 20 words at most 200,000",
    ),
    ({"tokens": 10**8}, "less than or equal to 10000000"),
    ({"tokens": "8k"}, "`dataset.needles.tokens` must be a whole number"),
    ({"tokenz": 1}, "did you mean `tokens`"),
    ({"words": "absent.txt"}, "'absent.txt' does not exist"),
    ({"words": "../../x.txt"}, "is outside of this file's folder"),
    ({"words": "few.txt"}, "too few words, 2, to hide 4"),
    ({"words": "empty.txt"}, "at least two words"),
    ({"books": "latin.txt"}, "cannot be read"),
    ({"books": "blank.txt", "words": "words.txt"}, "no text with a sentence"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG)
def test_what_cannot_be_made_is_said(
    load: Load, write: Write, settings: dict[str, Any], message: str
) -> None:
    write("few.txt", "a\nb\n")
    write("empty.txt", "\n\n")
    write("latin.txt", b"caf\xe9. " * 99)
    write("blank.txt", "... ! " * 99)
    with pytest.raises(UsageError, match=message):
        made(load, needles={**NEEDLES, **settings})


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"common": 20}, "needs more than the 20"), ({"tokens": 50}, "cannot be made"), ({"books": "x"}, "unknown key")],
)  # fmt: skip
def test_lists_that_cannot_be_made_say_why(
    load: Load, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        made(load, common_words={**WORDS, **settings})


def test_rows_of_ones_own_take_the_place_of_made_ones(write: Write) -> None:
    rows = [
        {
            "text": "The secret number is 7.",
            "asked": ["x"],
            "numbers": ["7"],
            "depths": [0.5],
        }
    ]
    write("mine.jsonl", rows)
    task = load_task("needles-one-en-8k", overrides={"dataset.path": "mine.jsonl"})
    assert [sample.target for sample in task.samples] == ["7"]


def test_words_are_enough_and_all_different() -> None:
    assert len(LANGUAGES) == 8
    for language in LANGUAGES:
        words = (
            (FOLDER / f"words_{language}.txt").read_text(encoding="utf-8").splitlines()
        )
        assert len(words) == len({word.casefold() for word in words}) > 160
        assert all(
            word == unicodedata.normalize("NFC", word.strip()) and "," not in word
            for word in words
        )


@pytest.mark.parametrize("kind", ["needles", "common-words"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_bundled_tasks_are_sound(kind: str, language: str) -> None:
    names = [
        member
        for entry in TaskIndex().files()
        if entry.name == kind
        for member in entry.members
    ]
    assert len(names) == len(LANGUAGES) * (12 if kind == "needles" else 3)
    for name in (
        name for name in names if f"-{language}-" in name and name.endswith("-8k")
    ):
        task = load_task(name, chat=True)
        render: Any = task.strategy
        questions = set()
        for sample in task.samples:
            text = render.render(sample)[-1].text
            before, after = text.split(sample.row["text"])
            assert len(before) > 20 and "<Answer>" in after and "{" not in text
            assert sample.input in after or not sample.input
            questions.add(after)
            assert abs(len(sample.row["text"]) - 7500) < 100
            for reply, right in (
                (sample.target, 1.0),
                (f"{sample.target}, 5", 0.0),
                ("", 0.0),
            ):
                scored: Any = task.scorers[0].function(
                    sample, Answer(f"<Answer>{reply}</Answer>")
                )
                assert scored.value == right
        assert len(questions) > (30 if kind == "needles" else 0)


def found(prompt: str) -> str:
    """What a program says that reads well."""
    text, _, question = prompt.rpartition("Which ")
    if "stand most often" in question:
        count = Counter(re.findall(r"\d+\. ([a-z]+)", text))
        return (
            f"<Answer>{', '.join(word for word, _ in count.most_common(10))}</Answer>"
        )
    asked = re.findall("“(.+?)”", question)
    numbers = [
        one for word in asked for one in re.findall(rf'"{word}" is (\d+)\.', text)
    ]
    return f"Let me see. <Answer>{', '.join(numbers) or 'none'}</Answer>"


def test_a_reader_on_loopback_is_right_everywhere(tmp_path: Path) -> None:
    names = ["needles-one-en-32k", "needles-several-en-8k", "needles-all-en-8k", "needles-none-en-8k", "common-words-en-32k"]  # fmt: skip
    with serving(found) as server:
        model = ["--model", "openai/reader", "-M", f"base_url={server.url}"]
        run = ["run", *names, *model, "--limit", "6", "--out", "runs"]
        extra = {"OPENAI_API_KEY": "x"}
        for _ in range(2):
            done = typed(*run, folder=tmp_path, extra=extra)
            assert done.code == 0, done.text
        # the second run sends nothing
        assert len(server.received) == sum(server.received.values()) == 30
    record = json.loads(
        next((tmp_path / "runs").rglob("run.json")).read_text(encoding="utf-8")
    )
    for task in record["tasks"]:
        values = {metric["label"]: metric["value"] for metric in task["metrics"]}
        assert values["accuracy"] == values["share"] == 1.0, task["name"]
        (settings,) = (
            task["definition"]["dataset"][kind]
            for kind in ("needles", "common_words")
            if kind in task["definition"]["dataset"]
        )
        assert (
            settings["tokenizer"] == "code-points"
            and task["definition"]["dataset"]["content_hash"]
        )


def test_commands_show_and_check_them(tmp_path: Path) -> None:
    shown = typed(
        "tasks",
        "preview",
        "needles-all-tl-8k",
        "-T",
        "dataset.needles.tokens=600",
        folder=tmp_path,
    )
    assert shown.code == 0 and "Ang lihim na numero ng salitang" in shown.text
    checked = typed(
        "tasks", "check", "needles-several-id-8k", "common-words-zh-8k", folder=tmp_path
    )
    assert checked.code == 0 and "FAULT" not in checked.text, checked.text
    # A model that always says "none" passes this one, which the check finds.
    alone = typed("tasks", "check", "needles-none-id-8k", folder=tmp_path)
    assert alone.code == 1 and "always 'none'" in alone.text
