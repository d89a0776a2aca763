"""Decides whether a reply gives a target name, something else, or nothing.

The first sentence that answers decides, unless a concluding one or a change of mind follows;
`name_sentences.py` reads single sentences. If no sentence gives the target, the reply is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evalwright.scorers.answers.name_likeness import differs_in_digits
from evalwright.scorers.answers.name_sentences import (
    ReadSentence,
    SentenceAnswer,
    SentenceReader,
)
from evalwright.scorers.answers.reply import ParsedReply, split_sentences
from evalwright.scorers.answers.verdict import (
    Verdict,
    correct,
    incorrect,
    shortened,
    unreadable,
)
from evalwright.scorers.text.cues import last_revision
from evalwright.scorers.text.folded import script_of
from evalwright.scorers.text.normalise import plain

MAX_SENTENCES = 12
_KOREAN_COUNT = re.compile(r"\d+[가-힣]")
_ITEMS = re.compile(
    r"\s*(?:[,;/&、，"
    r"\n]|\s(?:and|und|et|y|e|en|и|та|i|ve|dan|và|na|و|और|vs\.?)\s)\s*(?:-\s)?"
)
_LISTED = re.compile(
    r"[,;/、，\n]|(?:^|\s)(?:\(?[A-Ea-e\d][.)])\s|\s(?:and|und|et|y|and/or)\s"
)
_MARKED = re.compile(r"(?:^|\s)\(?[A-Ea-e\d][.)]\s")
_DEPENDS = re.compile(
    r"\b(?:it depends|that depends|das kommt darauf an|cela dépend|depende|это"
    r" зависит)\b|^取决于",
    re.IGNORECASE,
)
MAX_LIKE_WORDS = 4
"""A reply of at most this many words may be a target in another spelling or form."""


class NameReader:
    """Judges replies against the target names of one sample, whose sentences are read."""

    def __init__(self, sentences: SentenceReader) -> None:
        self.sentences = sentences
        self.targets = sentences.targets
        self.is_person = sentences.is_person

    def judge(self, reply: ParsedReply) -> Verdict:
        """Judge whether a reply, neither empty nor declining, gives a target name."""
        if (
            self.sentences.is_target(reply.text)
            and not reply.after
            and not reply.before
        ):
            return correct(f"'{shortened(reply.text)}' is a target as written")
        if self._lists_all_things(reply.text):
            return correct("all the things of a target")
        if self._lists_candidates(reply.text):
            return incorrect(
                f"'{shortened(reply.text)}' lists several",
                "the target is one of several",
            )
        verdict = self._judge_sentences(reply)
        if verdict.label == "correct" and _DEPENDS.match(reply.text):
            return incorrect(f"{verdict.why}, and it depends", "it depends")
        if verdict.label == "correct" and reply.marked and not verdict.unsure:
            later = reply.after
            if last_revision(later) or any(
                self.sentences.read(sentence).answer is SentenceAnswer.REFUSES
                for sentence in split_sentences(later)[:3]
            ):
                return verdict._replace(
                    unsure=f"{verdict.why}, and something else after it"
                )
        return verdict

    def _lists_all_things(self, text: str) -> bool:
        """Return whether a reply lists all parts of a target ("red and blue"), in any order."""
        if len(text) > 300:
            return False
        named = self._split_things(text.strip(" ."))
        for target in self.targets:
            target_things = self._split_things(plain(target.text))
            if min(len(target_things), len(named)) > 1 and sorted(named) == sorted(
                target_things
            ):
                return True
        return False

    def _lists_candidates(self, text: str) -> bool:
        """Return whether the reply is just a list of names, one of them a target: "Paris; Lyon"."""
        if len(text) > 300:
            return False
        if _MARKED.search(text, 1) and not _MARKED.match(text):
            # "Lincoln" first, then the other options of a list that the model goes on with.
            return False
        names = [
            name.strip(" .")
            for name in _LISTED.split(text)
            if any(map(str.isalpha, name))
        ]
        if len(names) < 2 or not all(
            self.sentences.is_bare_name(name) for name in names
        ):
            return False
        targets = sum(self.sentences.is_target(name) for name in names)
        is_pair = len(names) == 2 and ("," in text or self.is_person)
        return 0 < targets < len(names) and not is_pair

    def _split_things(self, text: str) -> list[str]:
        things = (
            " ".join(self.sentences.fold(thing_text).tokens)
            for thing_text in _ITEMS.split(text)
        )
        return [name.removeprefix("the ").removeprefix("and ") for name in things]

    def _judge_sentences(self, reply: ParsedReply) -> Verdict:
        texts = split_sentences(reply.text)
        if len(texts) > MAX_SENTENCES:
            texts = [*texts[: MAX_SENTENCES // 2], *texts[-MAX_SENTENCES // 2 :]]
        sentences = [self.sentences.read(text) for text in texts]
        giving = next(
            (
                sentence
                for sentence in sentences
                if sentence.answer is SentenceAnswer.GIVES
            ),
            None,
        )
        if giving is None:
            return self._judge_without_target(reply, sentences)

        first = next(
            sentence
            for sentence in sentences
            if sentence.answer is not SentenceAnswer.SILENT
        )
        last = sentences[-1]
        if reply.conclusion and last.answer is not SentenceAnswer.SILENT:
            differs = first.answer is not last.answer
            doubt = (
                "a beginning and an end that differ"
                if differs and first.is_direct
                else last.doubt
            )
            if last.answer is SentenceAnswer.GIVES:
                return correct(last.why, doubt)
            return incorrect(last.why, doubt or "the target is given before")
        if first is giving:
            later = sentences[sentences.index(first) + 1 :]
            denied = any(
                sentence.answer is SentenceAnswer.REFUSES for sentence in later
            )
            return correct(
                first.why,
                first.doubt or ("the target is denied later" if denied else ""),
            )
        if first.is_direct:
            is_open = first.answer is SentenceAnswer.REFUSES
            return incorrect(
                first.why, "the target is given in a later sentence" if is_open else ""
            )
        return correct(
            giving.why, giving.doubt or f"{giving.why}, after something else"
        )

    def _judge_without_target(
        self, reply: ParsedReply, sentences: Sequence[ReadSentence]
    ) -> Verdict:
        """Judge a reply in which no sentence gives the target.

        It is wrong, and unsure if it may be a target in other words.
        """
        named = next(
            (
                sentence
                for sentence in sentences
                if sentence.answer is SentenceAnswer.REFUSES
            ),
            None,
        )
        if named is not None:
            return incorrect(named.why, named.doubt)
        folded = self.sentences.fold(reply.text[:2000])
        content = self.sentences.content_words(folded.tokens)
        script = script_of(reply.text)
        quoted = f"'{shortened(reply.text)}'"
        if not content:
            return unreadable(f"{quoted} names nothing")
        if script and all(target.script != script for target in self.targets):
            return incorrect(
                f"{quoted} has no target", "the targets are in another script"
            )
        if self.is_person and any(
            content == [target.tokens[-1]] for target in self.targets
        ):
            return correct(f"{quoted} is a part of the target", "a part of a name")
        if any(token in content for token in self._targets_with_counter_twice()):
            return correct(f"{quoted} is a target", "its counter is written twice")
        if all(
            differs_in_digits(folded.tokens, target.tokens) for target in self.targets
        ):
            return incorrect(f"{quoted} has other digits than the target")
        doubt = (
            self.sentences.describe_likeness(content)
            if len(content) <= MAX_LIKE_WORDS
            else ""
        )
        return incorrect(f"{quoted} has no target", doubt)

    def _targets_with_counter_twice(self) -> list[str]:
        """Return Korean targets with their counter repeated, as some replies do: "32개개"."""
        joined = ["".join(target.tokens) for target in self.targets]
        return [f"{text}{text[-1]}" for text in joined if _KOREAN_COUNT.fullmatch(text)]
