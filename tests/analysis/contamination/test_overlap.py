"""N-grams of questions are found in a corpus exactly where a search written out finds them,
whatever way it is cut up.
"""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.analysis.contamination import corpus as corpus_module
from evalwright.analysis.contamination.corpus import scan_corpus, split_words
from evalwright.analysis.contamination.report import contamination_report
from evalwright.core.errors import ConfigurationError
from evalwright.reports.documents.contamination import contamination_document
from support.runs import make_run, rewritten
from support.typed import typed


def by_hand(question: str, documents: list[str], n: int) -> tuple[int, int, int]:
    words = split_words(question)
    if len(words) < 5:
        return 0, 0, 0
    n = min(n, len(words))
    grams = {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}
    times = dict.fromkeys(grams, 0)
    for document in documents:
        read = split_words(document)
        for i in range(len(read) - n + 1):
            if tuple(read[i : i + n]) in times:
                times[tuple(read[i : i + n])] += 1
    return len(grams), sum(count > 0 for count in times.values()), sum(times.values())


@given(
    questions=st.lists(
        st.text("abc ", min_size=1, max_size=60), min_size=1, max_size=4
    ),
    documents=st.lists(
        st.text("abc \n", min_size=1, max_size=300), min_size=1, max_size=3
    ),
    n=st.integers(5, 8),
    chunk=st.integers(8, 64),
)
def test_it_finds_what_a_search_by_hand_finds(
    questions: list[str],
    documents: list[str],
    n: int,
    chunk: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    # A piece may end inside a run of letters that is longer than it; then white space is put in.
    documents = [
        " ".join(word[:2] for word in document.split()) for document in documents
    ]
    for number, document in enumerate(documents):
        (folder / f"{number}.txt").write_text(document)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_module, "_CHUNK", chunk)
        scan = scan_corpus(questions, [folder], n)
    assert [(count.grams, count.found, count.occurrences) for count in scan.counts] == [
        by_hand(question, documents, n) for question in questions
    ]
    assert scan.words == sum(len(split_words(document)) for document in documents)


def test_case_marks_and_width_do_not_matter_and_documents_are_apart(
    tmp_path: Path,
) -> None:
    question = "Which river, in the north, flows past Łódź?"
    text = "which RIVER in the north - flows past ŁÓDŹ"
    (tmp_path / "a.jsonl").write_text(
        json.dumps({"text": "which river in the"})
        + "\n"
        + json.dumps(["north flows past łódź"])
    )
    assert scan_corpus([question], [tmp_path]).counts[0].found == 0
    with gzip.open(tmp_path / "b.txt.gz", "wt", encoding="utf-8") as file:
        file.write(text)
    (found,) = scan_corpus([question], [tmp_path]).counts
    assert (found.n, found.grams, found.found, found.share) == (8, 1, 1, 1.0)
    (tmp_path / "c.jsonl").write_text(
        json.dumps({"a": {"b": ["x", "東京の人口は"]}}) + "\nno json\n"
    )
    assert scan_corpus(["東京の人口"], [tmp_path / "c.jsonl"]).counts[0].found == 1
    assert scan_corpus(["too short"], [tmp_path]).counts[0].n == 0


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    line = (
        "some words of a corpus that say nothing of interest at all to anybody here\n"
    )
    question = "Which words of a corpus would say nothing at all here?"
    peaks = []
    for times in (30_000, 90_000):
        (tmp_path / "big.txt").write_text(line * times)
        tracemalloc.start()
        scan_corpus([question], [tmp_path / "big.txt"])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        scan_corpus(["x"], [tmp_path / "none"])
    with pytest.raises(ConfigurationError, match="no text file"):
        scan_corpus(["x"], [tmp_path])
    (tmp_path / "x.txt.gz").write_bytes(b"no gzip")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        scan_corpus(["x"], [tmp_path])
    with pytest.raises(ConfigurationError, match="at least 5"):
        scan_corpus(["x"], [tmp_path], 4)


def test_a_line_without_an_end_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_module, "_LONGEST_LINE", 1 << 16)
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress(b'"' + b"a" * (4 << 20)))
    with pytest.raises(ConfigurationError, match="has more than 65,536 characters"):
        scan_corpus(["one two three four five six"], [tmp_path / "packed.jsonl.gz"])


def test_a_packed_file_is_read_no_further_than_text_can_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bomb.txt.gz").write_bytes(gzip.compress(b"a " * (8 << 20)))
    questions = ["one two three four five six"]
    assert scan_corpus(questions, [tmp_path / "bomb.txt.gz"]).words == 8 << 20
    monkeypatch.setattr(corpus_module, "_UNPACKED_FREELY", 1 << 20)
    with pytest.raises(ConfigurationError, match="more than 200 times its size"):
        scan_corpus(questions, [tmp_path / "bomb.txt.gz"])
    (tmp_path / "bomb.txt.gz").write_bytes(
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + b"no deflate" * 9
    )
    with pytest.raises(ConfigurationError, match="cannot be read"):
        scan_corpus(questions, [tmp_path / "bomb.txt.gz"])


def test_the_score_by_class_is_in_the_report(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    met = np.arange(200) % 2 == 0
    scores = (rng.random(200) < np.where(met, 0.9, 0.4)).astype(float)
    run = make_run(tmp_path, scores=scores.tolist())
    rows = [json.loads(line) for line in run.samples_file.read_text().splitlines()]
    for i, row in enumerate(rows):
        row["input"] = (
            f"What is the name of the place with the number {i} on the old map?"
        )
    run = rewritten(run, "".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "web.txt").write_text("\n".join(row["input"] for row in rows[::2]))
    report = contamination_report(run, corpus=[tmp_path / "web.txt"], n=13)
    (one,) = report.overlaps
    assert one.difference is not None and one.difference.low > 0.3
    most = one.classes["most"]
    none = one.classes["none"]
    assert most is not None and none is not None and one.classes["some"] is None
    assert (most.n, none.n) == (100, 100) and most.value == pytest.approx(
        scores[met].mean()
    )
    assert (
        "n-grams of 100 of 200 questions"
        in contamination_document(report).words()["conclusion"]
    )
    done = typed(
        "check", "contamination", str(run.folder), "--corpus", str(tmp_path / "web.txt")
    )
    assert done.code == 0 and "Overlap with a corpus, n = 13" in done.out
