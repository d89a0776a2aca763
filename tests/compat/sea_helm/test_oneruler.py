"""Generated long-context tasks against SEA-HELM's own instances and scores, over a small tree,
and with hostile answers.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from compat.sea_helm.small_tree import GOLDEN, TREE, needs_golden, needs_tree
from evalwright.compat.sea_helm.oneruler import oneruler_rows
from evalwright.compat.sea_helm.scoring import scoring_of
from evalwright.compat.sea_helm.sea_task import SeaTask
from evalwright.core.errors import MissingExtra, UsageError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.metrics.registry import Column
from evalwright.tasks.long_texts import (
    CODE_POINTS,
    Tokenizer,
    sentences_of,
    tokenizer_of,
)
from support.bounds import assert_grows_linearly, repeated

FOLDER = "seahelm_tasks/long_context/oneruler"
NEEDLES: dict[str, Any] = {
    "dataloader_file": f"{FOLDER}/niah/niah_dataloader.py", "dataloader_class": "NIAHDataloader", "metric_file": f"{FOLDER}/niah/niah_metric.py",
    "metric_class": "NIAHMetric", "metric": "normalized_strict_accuracy", "random_seed": 7, "num_samples": 5, "min_num_keys": 4,
    "num_values": None, "num_queries": 2, "context_size": 2000,
}  # fmt: skip
WORDS: dict[str, Any] = {
    "dataloader_file": f"{FOLDER}/cwe/cwe_dataloader.py", "dataloader_class": "CWEDataloader", "metric_file": f"{FOLDER}/cwe/cwe_metric.py",
    "metric_class": "CweMetric", "metric": "normalized_strict_accuracy", "random_seed": 7, "num_samples": 3, "context_size": 2000,
    "num_common_words": 3, "num_repeats_common_words": 9, "num_repeats_uncommon_words": 2,
}  # fmt: skip
TEMPLATE = {"preamble": "Read.", "task_template": "{text}{list}", "answer_tag": "<A>"}


def task(
    config: Mapping[str, Any],
    root: Path | None = None,
    *,
    language: str = "vi",
    published: bool = False,
    **more: Any,
) -> SeaTask:
    whole = {**config, "languages": {language: {"prompt_template": TEMPLATE}}, **more}
    return SeaTask("made", language, whole, root, published=published)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with two books, forty words and the sentences of needles."""
    files = {
        "niah/books/vi/b.txt": "“Hai.” Ba bốn!\n***\n" * 9,
        "niah/books/vi/a.txt": "Một  câu. Năm 1990. Sáu |bảy?! Tám.\n" * 9,
        "niah/vocab/100_noun_list_translated.tsv": "en\tvi\n"
        + "".join(f"w{n} \t từ{n} \n" for n in range(40)),
        "niah/niah_dataloader.py": (
            "raise SystemExit\nclass A:\n def f(self):\n"
            "  self.empty_needle = {'vi': 'Số của \"{needle}\": {value}. '}[self.lang]\n  self.and_word = {'vi': ', và '}[self.lang]\n"
        ),
        "cwe/vocab/vi_words.txt": "".join(f"chữ{n}\n" for n in range(200)),
    }
    for name, text in files.items():
        path = tmp_path / FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def golden(kind: str) -> list[dict[str, Any]]:
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as file:
        found = [
            json.loads(line) for line in file if line.startswith(f'{{"kind":"{kind}",')
        ]
    assert found
    return found


def sha(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(
            (
                json.dumps(part, ensure_ascii=False, separators=(",", ":")) + "\n"
            ).encode()
        )
    return digest.hexdigest()


@needs_tree
def test_instances_are_those_of_sea_helm() -> None:
    for line in golden("generated"):
        if (
            line["task"].startswith("cwe")
            and line["lang"] == "en"
            and find_spec("wonderwords") is None
        ):
            continue
        template = line["template"]
        config = {
            **line["config"],
            "languages": {line["lang"]: {"prompt_template": template}},
        }
        few = 12 if line["task"] == "niah_none_8k" else 1
        rows = oneruler_rows(
            SeaTask(line["task"], line["lang"], config, TREE), CODE_POINTS, few
        )
        asked = (
            f"{template['preamble']}\n\n{template['task_template'].format(**row['prompts'][0])}".strip()
            for row in rows
        )
        conversations = [[{"role": "user", "content": text}] for text in asked]
        if few == 12:
            assert sha(*conversations) == line["digest"]
        assert [row["seed"] for row in rows] == line["seeds"][:few]
        for conversation, row, theirs in zip(
            conversations, rows, line["rows"], strict=False
        ):
            text = json.dumps(conversation, ensure_ascii=False, separators=(",", ":"))
            assert hashlib.sha256(text.encode()).hexdigest() == theirs["sha256"], (
                line["task"],
                line["lang"],
            )
            assert (row["label"], row["metadata"]) == (
                theirs["label"],
                theirs["metadata"],
            )


@needs_golden
def test_scores_are_those_of_sea_helm() -> None:
    for line in golden("generated-metrics"):
        config = WORDS if line["task"].startswith("cwe") else NEEDLES
        made = task(
            config,
            published=True,
            languages={"vi": {"prompt_template": {"answer_tag": line["answer_tag"]}}},
        )
        (scorer,), specs = scoring_of(made, [])
        found = []
        for row in line["rows"]:
            score = scorer.function(
                Sample("", metadata={"row": row}), Answer(row["response"] or "")
            )
            assert isinstance(score, Score)
            found.append(score)
            assert score.parts == pytest.approx(row["individual_scores"])
            cleaned = row["cleaned"]
            assert score.explanation == (
                row["response"] if isinstance(cleaned, dict) else cleaned
            )
        import numpy as np

        values = np.array([one.value for one in found])
        column = Column(
            values,
            {
                name: np.array([one.parts[name] for one in found])
                for name in found[0].parts
            },
        )
        numbers = {
            spec.label: spec.function(column).value for spec in specs if spec.function
        }
        assert numbers == pytest.approx(line["result"][line["task"]], abs=1e-9)


def test_needles_stand_before_sentences_and_are_what_is_asked(tree: Path) -> None:
    rows = oneruler_rows(task(NEEDLES, tree), CODE_POINTS)
    assert len({row["seed"] for row in rows}) == 5
    assert oneruler_rows(task(NEEDLES, tree), CODE_POINTS, 2) == rows[:2]
    for row in rows:
        text = row["prompts"][0]["text"]
        asked = row["prompts"][0]["needle_text"]
        first, last = asked.split(", và ")
        assert [
            text.split(f"Số của {word}: ")[1].split(".")[0] for word in (first, last)
        ] == row["label"]
        assert text.count("Số của") == 4
        assert 1900 < len(text) < 2010
    (none, *_) = oneruler_rows(
        task({**NEEDLES, "num_queries": None, "num_values": 0}, tree), CODE_POINTS
    )
    assert none["label"] == ["none"]
    assert none["prompts"][0]["needle_text"] not in none["prompts"][0]["text"]
    (all_, *_) = oneruler_rows(
        task({**NEEDLES, "num_queries": None, "num_values": 4}, tree), CODE_POINTS
    )
    assert len(all_["label"]) == 4
    assert all(
        f"Số của {all_['prompts'][0]['needle_text']}: {number}."
        in all_["prompts"][0]["text"]
        for number in all_["label"]
    )


def test_sentences() -> None:
    text = (
        '“Hai.” Ba bốn!\n***\nNăm 1990. Mr. Dương nói... rồi đi?! |x\n\n"...'
        + "." * 1_000
    )
    assert list(sentences_of(text, "en")) == [
        "“Hai.”",
        "Ba bốn!",
        "Năm 1990. Mr.",
        "Dương nói...",
        "rồi đi?!",
        "x",
    ]
    assert list(sentences_of("一。二！ 三", "zh")) == ["一。二！", "三"]
    assert_grows_linearly(
        lambda text: list(sentences_of(text, "en")), repeated(".", text)
    )


def test_common_words_are_the_most_frequent_and_fill_the_room(tree: Path) -> None:
    for row in oneruler_rows(task(WORDS, tree), CODE_POINTS):
        entries = [
            entry.split(".", 1) for entry in row["prompts"][0]["list"].split(" chữ")
        ]
        listed = row["prompts"][0]["list"].split()
        words = listed[1::2]
        assert listed[::2] == [f"{n}." for n in range(1, len(words) + 1)]
        assert len(entries) == len(words) + 1
        assert {word for word in words if words.count(word) == 9} == set(row["label"])
        assert all(words.count(word) <= 2 for word in set(words) - set(row["label"]))
        assert abs(row["metadata"]["num_tokens"] - 2000) < 100


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({**NEEDLES, "num_values": 1}, "one of 'num_values' and 'num_queries'"),
        ({**NEEDLES, "num_queries": 9}, "at most 4"),
        ({**NEEDLES, "context_size": 30}, "too small"),
        ({**NEEDLES, "context_size": "8k"}, "'context_size', a whole number"),
        ({**NEEDLES, "num_samples": 10**6}, "tokens; at most"),
        ({**NEEDLES, "min_num_keys": 60}, "too few words"),
        ({**WORDS, "context_size": 99_000}, "others"),
        ({**WORDS, "num_common_words": 200}, "too few words"),
        ({**WORDS, "num_repeats_uncommon_words": 10**9}, "too often"),
    ],
)
def test_tasks_that_cannot_be_made_say_why(
    tree: Path, config: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        oneruler_rows(task(config, tree), CODE_POINTS)


def test_what_lacks_is_named(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="--task-root"):
        oneruler_rows(task(NEEDLES), CODE_POINTS)
    with pytest.raises(UsageError, match="language 'sw'"):
        oneruler_rows(task(NEEDLES, tree, language="sw"), CODE_POINTS)
    with pytest.raises(UsageError, match="no 'empty_needle' for the language 'en'"):
        oneruler_rows(task(NEEDLES, tree, language="en"), CODE_POINTS)
    for module in ("compat.sea_helm.oneruler", "tasks.long_texts"):
        monkeypatch.setattr(f"evalwright.{module}.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="wonderwords"):
        oneruler_rows(task(WORDS, tree, language="en"), CODE_POINTS)
    with pytest.raises(MissingExtra, match="transformers"):
        tokenizer_of("some/repository")


def test_a_tokenizer_of_the_user_says_how_long_texts_are(
    tree: Path, tmp_path: Path
) -> None:
    pytest.importorskip("transformers", reason="the extra `hf` is not installed")
    from tokenizers import Tokenizer as Made
    from tokenizers import models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {"[UNK]": 0} | {
        one: place for place, one in enumerate(sorted({*"0123456789. chữ"}), 1)
    }
    plain = Made(models.WordLevel(vocabulary, "[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    folder = tmp_path / "tokenizer"
    PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="[UNK]").save_pretrained(
        folder
    )
    mine = tokenizer_of(str(folder))
    assert isinstance(mine, Tokenizer) and mine.hub is not None
    assert mine.lengths([" chữ1", "7."]) == [5, 2]
    assert oneruler_rows(task(WORDS, tree), str(folder)) == oneruler_rows(
        task(WORDS, tree), CODE_POINTS
    )
    with pytest.raises(UsageError, match="no model folder"):
        oneruler_rows(task(WORDS, tree), str(tmp_path / "absent" / "x"))


CORRECTED = [
    # answer, label, of words, strict, share
    ("<A>12，34</A>", ["12", "34"], False, 1, 1),
    ("<A>1. 12\n2. 34</A>", ["12", "34"], False, 1, 1),
    ("<A>2,147,483,647</A>", ["2147483647"], False, 1, 1),
    ("<A>none</A> no: <A>“None”.</A>", ["none"], False, 1, 1),
    ("", ["none"], False, 0, 0),
    ("none", ["none"], False, 0, 0),
    ("<A>12, 34, 56, 78</A>", ["12", "34"], False, 0, 0.5),
    ("<A>12", ["12"], False, 1, 1),
    ("<A>一、“二”；三。</A>", ["一", "二", "三"], True, 1, 1),
    ("<A>1. Chó, 2. mèo</A>", ["chó", "Mèo"], True, 1, 1),
    ("<A>" + ",".join(map(str, range(1000))) + "</A>", ["1", "2"], True, 0, 0.002),
]


@pytest.mark.parametrize(("answer", "label", "of_words", "strict", "share"), CORRECTED)
def test_corrected_scores(
    answer: str, label: list[str], of_words: bool, strict: float, share: float
) -> None:
    (scorer,), specs = scoring_of(task(WORDS if of_words else NEEDLES), [])
    score = scorer.function(
        Sample("", metadata={"row": {"label": label}}), Answer(answer)
    )
    assert isinstance(score, Score)
    assert (score.value, score.parts["normalized_accuracy"]) == (strict, share)
    assert [spec.label for spec in specs] == ["normalized_strict_accuracy", "accuracy"]


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize(
    "of_length",
    [
        repeated("<A>"),
        repeated("1,", "<A>"),
        repeated("</"),
        repeated("1. ", "<A>", "</A>"),
    ],
    ids=lambda of_length: of_length(9),
)
def test_long_answers_take_little_time(
    published: bool, of_length: Callable[[int], str]
) -> None:
    (scorer,), _ = scoring_of(task(NEEDLES, published=published), [])
    sample = Sample("", metadata={"row": {"label": ["1"]}})
    assert_grows_linearly(lambda text: scorer.function(sample, Answer(text)), of_length)
