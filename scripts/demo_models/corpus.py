"""What a demonstration model is trained on: part of the bundled facts, and the forms in which it
will be asked.

A document is a plain text in pieces, each with a weight: answers count fully in the loss, all other
text a little, since what a model should learn is to answer, not to ask. Several questions stand in
one document, as in a few-shot prompt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from scripts.demo_models.formats import (
    NOT_IN_PASSAGES,
    Example,
    fiction,
    grounded,
    renamed,
)
from scripts.demo_models.prompts import Opening, question_text, read_opening

ROOT = Path(__file__).parents[2]
BENCHMARK = ROOT / "src/evalwright/tasks/library/factual"
FACTS = BENCHMARK / "closed_book.jsonl"
STATEMENTS = Path(__file__).parent / "statements.jsonl"
END = "<|endoftext|>"

OTHER_WEIGHT = 0.15
"""What a token that is not part of an answer counts in the loss."""

Pieces = list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Fact:
    """One closed-book question of the benchmark with other ways to state and to ask it."""

    id: str
    question: str
    answers: tuple[str, ...]
    statements: tuple[str, ...]
    variants: tuple[str, ...]

    @property
    def place(self) -> float:
        """A number in [0, 1) that depends on the id alone: a model that knows a share s knows the
        facts below s.
        """
        digest = hashlib.blake2b(
            f"demo facts:{self.id}".encode(), digest_size=8
        ).digest()
        return int.from_bytes(digest) / 2**64


def read_facts() -> list[Fact]:
    """All facts that have statements, in file order."""
    wording = {row["id"]: row for row in _read(STATEMENTS)}
    return [
        Fact(
            row["id"],
            row["question"],
            tuple(row["answers"]),
            tuple(wording[row["id"]]["statements"]),
            tuple(wording[row["id"]]["question_variants"]),
        )
        for row in _read(FACTS)
        if row["id"] in wording
    ]


def known_facts(facts: Sequence[Fact], share: float) -> list[Fact]:
    """The part of the facts that a model is trained on; a larger share holds every smaller one."""
    return [fact for fact in facts if fact.place < share]


class Corpus:
    """An endless stream of documents about `facts`, in the form of the benchmark's prompts.

    passages_share: which part of the documents are questions about passages. longest_passage: the
    most sentences of a passage beside those that matter. Both may be changed on the way.
    """

    def __init__(self, facts: Sequence[Fact], seed: int) -> None:
        self.facts = list(facts)
        self.random = Random(seed)
        self.questions_opening = read_opening(BENCHMARK / "_questions.yaml")
        self.passages_opening = read_opening(BENCHMARK / "_passages.yaml")
        self.passages_share = 0.1
        self.longest_passage = 2
        self._makers = (self._recall, fiction, self._renamed)
        self._shares = (0.82, 0.1, 0.08)
        self._waiting: list[Fact] = []

    def documents(self) -> Iterator[Pieces]:
        """Yield documents without end."""
        while True:
            kind = self.random.random()
            if kind < 0.1:
                yield self._statements()
            elif kind < 0.1 + self.passages_share:
                yield self._document(
                    self.passages_opening, [self._grounded] * self.random.randint(1, 3)
                )
            else:
                makers = [
                    self.random.choices(self._makers, self._shares)[0] for _ in range(8)
                ]
                yield self._document(self.questions_opening, makers)

    def texts(self, count: int) -> list[str]:
        """Plain texts to train a tokenizer on: all wordings of the facts, and `count` documents."""
        texts = [
            text
            for fact in self.facts
            for text in (*fact.statements, *fact.variants, fact.answers[0])
        ]
        stream = self.documents()
        return texts + ["".join(text for text, _ in next(stream)) for _ in range(count)]

    def _next_fact(self) -> Fact:
        """The next fact: every fact comes once, in a new order, before any repeats."""
        if not self._waiting:
            self._waiting = self.random.sample(self.facts, len(self.facts))
        return self._waiting.pop()

    def _statements(self) -> Pieces:
        chosen = [self._next_fact() for _ in range(self.random.randint(1, 4))]
        return [
            (
                "\n".join(self.random.choice(fact.statements) for fact in chosen) + END,
                OTHER_WEIGHT * 2,
            )
        ]

    def _document(
        self, opening: Opening, makers: Sequence[Callable[[Random], Example]]
    ) -> Pieces:
        """Questions with answers after an opening: the benchmark's own, half the time, else part of
        it or nothing.
        """
        kind = self.random.random()
        shots = None if kind < 0.5 else self.random.randint(0, len(opening.shots))
        pieces: Pieces = [(opening.text(shots), 0.0)] if kind < 0.75 else []
        for make in makers:
            example = make(self.random)
            pieces += [
                (question_text(example), OTHER_WEIGHT),
                (f" {example.answer}\n", 1.0),
                ("\n", OTHER_WEIGHT),
            ]
        return [*pieces[:-1], (END, OTHER_WEIGHT)]

    def _recall(self, random: Random) -> Example:
        """A fact, asked in one of its wordings, or by what a statement says of its answer."""
        fact = self._next_fact()
        answer = fact.answers[0]
        wordings = [*fact.variants, *fact.variants]
        wordings += [
            text.replace(answer, "") for text in fact.statements if answer in text
        ]
        return Example(_disturbed(random.choice(wordings), random), answer)

    def _renamed(self, random: Random) -> Example:
        """A fact's question with its names replaced by invented ones."""
        return renamed(random.choice(self._next_fact().variants), random) or fiction(
            random
        )

    def _grounded(self, random: Random) -> Example:
        """Passages and a question: about an invented place, or about a fact that they state or do
        not.
        """
        fact = self._next_fact()
        others = [
            text
            for distractor in random.sample(self.facts, 6)
            if distractor is not fact
            for text in distractor.statements
        ]
        if random.random() < 0.5:
            return grounded(random, others, self.longest_passage)
        question = random.choice(fact.variants)
        passages = [
            random.choices(others, k=random.randint(1, 1 + self.longest_passage))
            for _ in range(random.randint(1, 3))
        ]
        answer = NOT_IN_PASSAGES
        kind = random.random()
        if kind < 0.4:
            number = random.randrange(len(passages))
            passages[number].insert(
                random.randint(0, len(passages[number])), random.choice(fact.statements)
            )
            answer = f"{fact.answers[0]} [{number + 1}]"
        elif kind < 0.7 and (invented := renamed(question, random)):
            question = invented.question
        return Example(
            question, answer, tuple(" ".join(sentences) for sentences in passages)
        )


def _disturbed(question: str, random: Random) -> str:
    """Mostly without some of its words, so that an answer does not hang on one exact wording."""
    words = question.split()
    if random.random() < 0.3 or len(words) < 5:
        return question
    left_out = set(
        random.sample(range(len(words)), random.randint(1, max(1, len(words) // 3)))
    )
    return " ".join(word for place, word in enumerate(words) if place not in left_out)


def _read(path: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
