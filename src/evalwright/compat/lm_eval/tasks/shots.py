"""Which examples stand before a question.

Published: one stream of random numbers for the task, so that a question's shots depend on its place. Corrected: a stream for
each row's content, so that a subset or a resumed run has the same prompts; and no row is ever its own shot.
"""

from __future__ import annotations

import hashlib
import json
import random
from array import array
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from evalwright.compat.lm_eval.tasks.config import Definition
from evalwright.core.errors import TaskError, UnknownName

SAMPLERS = ("default", "first_n")
Doc = Mapping[str, Any]


class Shots:
    """Chooses `count` rows of a pool for each question. avoid_own: a row equal to the question is passed over.

    asked: the places of the questions that are asked, where those are not all; published shots are drawn for these alone, in their order.
    """

    def __init__(
        self,
        definition: Definition,
        pool: Any,
        questions: Any,
        count: int,
        *,
        seed: int,
        published: bool,
        asked: Sequence[int] | None = None,
    ) -> None:
        self.count = count
        self.pool = pool
        self.seed = seed
        self.published = published
        self.task = definition.name
        self.sampler = definition.shots.sampler if definition.config.fewshot_config else "default"
        self.avoid_own = not published or definition.shots.split == definition.config.test_split
        self._asked = (
            range(len(questions))
            if asked is None
            else sorted({place for place in asked if place < len(questions)})
        )
        self._drawn: array[int] | None = None
        self._own: list[Sequence[Doc]] | None = None
        if not isinstance(self.sampler, str):
            self._own = self._by_class(questions)
        elif self.sampler not in SAMPLERS:
            raise UnknownName(f"sampler of shots (in the task '{self.task}')", self.sampler, SAMPLERS)
        elif pool is None or not len(pool):
            raise TaskError(f"The task '{self.task}' needs {count} shots but has no rows to draw them from.")
        elif published and self.sampler == "default":
            self._drawn = self._stream(questions)

    def of(self, index: int, doc: Doc) -> list[Doc]:
        """The shots of the question at that place."""
        if self._own is not None:
            return list(self._own[self._asked.index(index)])
        if self._drawn is not None:
            first = self._asked.index(index) * self.count
            return [self.pool[place] for place in self._drawn[first : first + self.count]]
        if self.sampler == "first_n":
            return self._first(doc)
        chance = random.Random(f"{self.seed}:{digest_of(doc)}")
        return [self.pool[place] for place in self._places(chance, doc, len(self.pool))]

    def _stream(self, questions: Any) -> array[int]:
        """Every question's shots as places in the pool, in the order of the questions."""
        chance = random.Random(self.seed)
        drawn = array("q")
        size = len(self.pool)
        for index in self._asked:
            if self.avoid_own and (doc := questions[index]):
                drawn.extend(self._places(chance, doc, size))
            else:
                self._check(size, self.count)
                drawn.extend(chance.sample(range(size), self.count))
        return drawn

    def _places(self, chance: random.Random, doc: Doc, size: int) -> list[int]:
        """One row more than needed is drawn, and the question itself dropped; where that leaves too few, again without it."""
        if size > self.count:
            drawn = chance.sample(range(size), self.count + 1)
            kept = [place for place in drawn if self.pool[place] != doc][: self.count]
            if len(kept) == self.count:
                return kept
        elif self.published:
            self._check(size, self.count + 1)
        others = [place for place in range(size) if self.pool[place] != doc]
        self._check(len(others), self.count)
        return chance.sample(others, self.count)

    def _first(self, doc: Doc) -> list[Doc]:
        others = (row for row in self.pool if not (self.avoid_own and row == doc))
        kept: list[Doc] = list(islice(others, self.count))
        self._check(len(kept), self.count)
        return kept

    def _by_class(self, questions: Any) -> list[Sequence[Doc]]:
        make: Any = self.sampler
        sampler = make(list(self.pool or ()), rnd=None)
        sampler.set_rnd(self.seed)
        return [
            sampler.sample(n=self.count, eval_doc=questions[index] if self.avoid_own else None)
            for index in self._asked
        ]

    def _check(self, there: int, wanted: int) -> None:
        if there < wanted:
            raise TaskError(
                f"The task '{self.task}' needs {self.count} shots, but there are {there} rows to draw {wanted} from."
            )


def digest_of(doc: Any) -> str:
    """A name for a row's content, the same in every process."""
    text = json.dumps(doc, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
