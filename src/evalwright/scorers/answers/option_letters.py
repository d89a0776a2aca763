"""Finds which options a text names by letter or number.

Examples: `(B)`, `B.`, "option B", `②`, `2번`, `ข`, `ㄴ`, "B is correct". The words are in
`marks.toml`.

A letter counts if it opens the text, stands after a word such as "option" or "answer", before
one such as "correct", or in brackets; elsewhere "A" is a word. A letter that is denied ("not
B", "B is wrong") does not count.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from evalwright.core.lazy import lazy_pattern
from evalwright.scorers.text.cues import cue_words, cues_of
from evalwright.scorers.text.folded import fold_text
from evalwright.scorers.text.marks import SPACELESS, alphabets, alternatives
from evalwright.scorers.text.number_words import find_number_words as number_words

_CIRCLED = {ord(char): f"({number})" for number, char in enumerate("①②③④⑤⑥⑦⑧⑨⑩", 1)} | {
    ord(char): f"({letter})"
    for chars, others in (
        ("ⒶⒷⒸⒹⒺ", "ABCDE"),
        ("ⓐⓑⓒⓓⓔ", "ABCDE"),
        ("㉠㉡㉢㉣㉤", "ㄱㄴㄷㄹㅁ"),
        ("㉮㉯㉰㉱㉲", "가나다라마"),
    )
    for char, letter in zip(chars, others, strict=True)
}
_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
"""Maps full-width letters, digits and signs to ASCII."""
_ALIKE = str.maketrans("إآا", "أأأ")
_DIGIT = lazy_pattern(r"(?![0-9])\d")
_ROWS = [row for name, row in alphabets().items() if name != "latin"]
_BLOCKS = [
    "\u0370-\u03ff",
    "\u0400-\u04ff",
    "\u05d0-\u05ff",
    "\u0620-\u065f\u066e-\u06d3\u06fa-\u06ff",
    "\u0900-\u0963\u0971-\u097f",
    "\u0980-\u09ff",
    "\u0b80-\u0bff",
    "\u0e01-\u0e2e\u0e30-\u0e4e",
    "\u0e80-\u0eff",
    "\u1000-\u1049\u1050-\u109f",
    "\u1100-\u11ff",
    "\u1780-\u17d3\u17dd-\u17ff",
    "\u3040-\u30fa\u30fc-\u30ff\u4e00-\u9fff",
    "\u3131-\u318e",
    "\u3400-\u9fff",
    "\uac00-\ud7a3",
]
"""Scripts without their punctuation; a letter inside a word of the same script is not an option."""
_ENDING = rf"(?:{alternatives('ending')})"
_NATIVE = "|".join(
    rf"(?<![{block}A-Za-z0-9)\]])[{letters}]\u0640?(?={_ENDING}|(?![{block}]))"
    for block in _BLOCKS
    if (letters := "".join(re.findall(f"[{block}]", "".join(_ROWS) + "абвгджзСاإآ")))
)
_ITEM = lazy_pattern(
    r"(?<![A-Za-zÀ-ɏ0-9'’.])(?P<latin>[A-Z]|[a-z](?=[)）]))(?![A-Za-zÀ-ɏ0-9])(?!['’](?:s|re|m|ll"
    r"|ve|t|est)\b)"
    rf"|(?<![\d.,:/^+*=×-])(?P<number>[1-9])(?![\d/:^+*=×]|[.,]\d|\s?%)|(?P<native>{_NATIVE})"
)
_LOWER = lazy_pattern(r"[\s(\"'*]*([a-z])(?:[.):]|\W*$)")
_OPEN = lazy_pattern(r"[\s(（\[【「\"'“‘<*]{0,4}$")
_BRACKETED = lazy_pattern(r"[(（\[【]\s?$")
_CLOSED = lazy_pattern(r"\s?[)）\]】]")
_CAUSES = (
    "because|since|weil|denn|car|puisque|parce|porque|pois|pues|ya"
    " que|perché|karena|sebab|vì|bởi vì|потому|çünkü"
)
"""Words that introduce a reason."""
_DELIMITED = lazy_pattern(
    r"[\"'”’」*]{0,2}(?:\s?[.):：\]）】、，,;。"
    rf"।။៖]|\s*(?:$|\n)|\s+[-–—=(]|\s+(?:{_CAUSES}|rather than|instead of|(?:and|but)"
    rf" not)(?![^\W_]))|\s?{_ENDING}|['’][a-zıü]{{1,4}}"
)


def _option_nouns(tables: tuple[str, ...], spaced: bool) -> str:
    """Join the nouns of some tables into a pattern: those followed by a space, or the others."""
    words = [word for table in tables for word in alternatives(table).split("|")]
    nouns = [word for word in words if spaced is (_ENDLESS.match(word[-1]) is None)]
    return "|".join(sorted(set(nouns), key=lambda word: (-len(word), word)))


_ENDLESS = lazy_pattern(f"[{SPACELESS}가-힣]")


_IS = rf"(?:{alternatives('is')})"
_SMALL = (
    rf"(?:[\s:：=—–\"'“(（*-]|{alternatives('is')}|{alternatives('article')}"
    rf"|{alternatives('suffix')}|(?:은|는|の))"
)
_FILLED = rf"(?:{_SMALL}|{alternatives('option')}){{0,8}}$"
_BEFORE, _CLAIMED = (
    lazy_pattern(
        rf"(?:(?<![^\W_])(?:{_option_nouns(tables, True)})"
        rf"|{_option_nouns(tables, False)}){_FILLED}",
        re.IGNORECASE,
    )
    for tables in (("option",), ("label", "right", "choose"))
)
_BEHIND = lazy_pattern(
    rf"(?P<tie>[)）\]】.\"'”’*]{{0,3}}(?:['’][a-zıü]{{1,4}})?{_ENDING}?\s{{0,2}}{_IS}?)\s?(?:"
    rf"(?:{alternatives('article')}) )?"
    rf"(?:(?:{_option_nouns(('label', 'right', 'chosen'), True)})(?![^\W_])"
    rf"|{_option_nouns(('label', 'right', 'chosen'), False)})",
    re.IGNORECASE,
)
_WRONG = lazy_pattern(
    rf"(?<![^\W_])(?:{alternatives('wrong', True)})(?![^\W_])|{alternatives('wrong', False)}"
    rf"|틀[렸린]|아(?:니(?!면)|[닌닙])",
    re.IGNORECASE,
)
_WRONG_LABEL = lazy_pattern(
    rf"(?<![^\W_])(?:{alternatives('wrong_label')})(?:\s?(?:은|는|は|是|is|are|ist|sind|est|sont|es"
    rf"|son|é|è|adalah|là))?[\s:：(（\[\"'*]*$",
    re.IGNORECASE,
)
"""Words that call the option after them wrong: "오답: (A)", "Wrong answer: A"."""
_WORDS = lazy_pattern("[가-힣ぁ-ヿ]")
_COUNTED = lazy_pattern(r"[)）]?\s?(?:번|番|项|項|题)")
_BECAUSE = lazy_pattern(
    rf"\b(?:{_CAUSES}|as|while)\b|因为|왜냐|เพราะ|[,;\n。，；]|\.\s",
    re.IGNORECASE,
)
_CLAUSE = lazy_pattern(r"[.,;:!?\n。，；：、၊။។،؛।]")
_POSTFIX = lazy_pattern("[가-힣ぁ-ヿऀ-ॿ஀-௿]")
"""Scripts of languages whose negation follows what it negates."""
_NO_NOUN = lazy_pattern(
    r"it\b|only|must|should|statement|c'est|es\b|è\b|é\b", re.IGNORECASE
)
"""Words of those before an option that may also stand before any number."""
_FILLING = lazy_pattern(
    rf"{alternatives('option')}|{alternatives('article')}", re.IGNORECASE
)
_BEFORE_NEXT = lazy_pattern(
    rf"{_FILLING.pattern}|(?<![^\W_])(?:{alternatives('is', True)})(?![^\W_])",
    re.IGNORECASE,
)
"""What may stand between a denial and the option that it denies: "No es B"."""
_BESIDE = (
    r"[)）\]\"'*번]{0,3}\s?(?:[,、，"
    rf"/]\s?)?(?:(?:{alternatives('or')})\s?)?[(（\"'*]{{0,2}}"
)
_TOGETHER = lazy_pattern(_BESIDE)
_TWO = lazy_pattern(rf"(?<![^\W_])([AI]){_BESIDE}(?=[A-Z](?![A-Za-z]))")
_SENTENCE_START = lazy_pattern(r"(?:^|[.!?:\n])\W*$")
MAX_MENTIONS = 60
MAX_READ_CHARS = 4000
_NUMBER_ENDS = lazy_pattern(
    r"\W*$|\s?[.,;:!?)\n。，]|\s+(?:is|because|since|as)\b", re.IGNORECASE
)
"""What follows the number of an option in words.

"Option three is right" names an option; "option two people chose" does not.
"""


_CONTRASTS = frozenset(
    [
        "sino",
        "sondern",
        "but",
        "melainkan",
        "tetapi",
        "tapi",
        "а",
        "mà",
        "بل",
        "बल्कि",
        "utan",
        "maar",
        "ale",
        "lecz",
        "mais",
        "mas",
        "ma",
        "pero",
    ]
)
"""Words after which a denial ends: "not A but B"."""
_RATHER = ("rather", "plutot")
"""Words that strengthen a contrast, and deny elsewhere."""
_AMBIGUOUS = frozenset(
    [
        "cha",
        "chua",
        "hindi",
        "lain",
        "mai",
        "n",
        "ne",
        "ni",
        "noch",
        "ora",
        "si",
        "sio",
        "tak",
        "teu",
    ]
)
"""Denials that mean something else in another language."""
_CONTRASTED = lazy_pattern(
    rf"(?:(?<![^\W_])(?:{'|'.join(sorted(_CONTRASTS))}|rather|plutôt|là|not|nicht|pas|no|non"
    rf"|não|bukan|không"
    r" phải|rather than|instead"
    rf" of|{alternatives('is', True)})|{alternatives('is', False)}|แต่|而|选|選)\W{{0,3}}$",
    re.IGNORECASE,
)
"""Words before an "A" that is not an article: "but A", "it is A"."""
_CLAUSE_START = lazy_pattern(
    r"(?:^|[.,;:!?\n。，；：、"
    r"！？]|では(?:なく|ありません)て?|아니라|아니고|말고)[\s\"'“*(（]{0,3}$"
)
_ENDS_CLAUSE = lazy_pattern(rf"[\"'”’)）*]{{0,3}}(?:[.。!！]?\s*(?:$|\n)|\s?{_ENDING})")
"""What follows a letter that is a whole sentence, unlike a letter that labels a line of a list."""
_SENTENCE_END = lazy_pattern(r"[.,;!?\n。，；！？]")
_LABEL_SIGN = lazy_pattern(
    r"[\"'”*]{0,2}(?P<sign>[.。:：)）\]]|\s+[—–-](?=\s))[\"'”*]{0,2}\s*"
)
"""The sign between a letter that is given as the answer and a sentence after it."""
_DIRECTLY = lazy_pattern(rf"(?:{alternatives('is')}|[\W_]){{0,4}}", re.IGNORECASE)
"""What may stand between a letter and a word that calls it wrong, if only that letter is meant."""
LONE, NAMED, CLAIMED, OPENS = range(4)


class OptionMention(NamedTuple):
    """An option that a text names, and where.

    `form` says how: it `OPENS` the text, is `CLAIMED` as the answer, is `NAMED` in the form of an
    option, or is a `LONE` letter.
    """

    option: int
    start: int
    end: int
    form: int
    letter: bool = True


def write_plain_letters(text: str) -> str:
    """Write circled letters as "(B)", full-width signs as ASCII, and all digits as 0 to 9."""
    if text.isascii():
        return text
    text = text.translate(_CIRCLED).translate(_WIDE)
    return _DIGIT.sub(lambda digit: str(unicodedata.decimal(digit.group())), text)


def are_offered_together(text: str, first: OptionMention, two: OptionMention) -> bool:
    """Return whether two letters are offered together ("A or B")."""
    return _TOGETHER.fullmatch(text[first.end : two.start]) is not None


class OptionLetters:
    """Finds the options of one sample by their letters or numbers."""

    def __init__(self, choices: tuple[str, ...], language: str, question: str) -> None:
        self.count = len(choices)
        self.numeric = any(any(map(str.isdigit, choice)) for choice in choices)
        self.texts = tuple(choice.casefold().strip(" .。") for choice in choices)
        self.cues = cues_of(language)
        self.question = question
        # A letter is often denied in another language than the question's. Portuguese "no" means
        # "in the".
        of_all = (
            cue_words("negation")
            - _AMBIGUOUS
            - ({"no"} if language[:2] == "pt" else set())
        )
        self.negations = self.cues.negations | of_all
        self.jamo = not any(re.search("[ㄱ-ㅎᄀ-ᄒ]", text) for text in choices)
        self.latin = language.split("-")[0] not in ("ru", "uk")
        self.language = language
        self.has_number_words = any(
            any(True for _ in number_words(choice, language)) for choice in choices
        )

    def with_digits(self, text: str) -> str:
        """Write the numbers of options in digits: "option three" becomes "option 3"."""
        if self.numeric or self.has_number_words:
            return text
        pieces: list[str] = []
        end_of_copied = 0
        for number, start, end, _is_cut in number_words(
            text[:MAX_READ_CHARS], self.language
        ):
            before = text[text.rfind("\n", 0, start) + 1 : start][-40:]
            noun = _BEFORE.search(before) or _CLAIMED.search(before)
            is_named = noun is not None and not _NO_NOUN.match(noun.group())
            if (
                1 <= number <= self.count
                and number == int(number)
                and is_named
                and _NUMBER_ENDS.match(text, end)
            ):
                pieces += [text[end_of_copied:start], str(int(number))]
                end_of_copied = end
        return "".join([*pieces, text[end_of_copied:]]) if pieces else text

    def find(self, text: str, denied: bool = False) -> list[OptionMention]:
        """Find the letters that a plain text names, in order.

        Args:
            text: the plain text.
            denied: whether to return the letters that the text denies instead of the others.
        """
        text = text[:MAX_READ_CHARS]
        if (lower := _LOWER.match(text)) is not None:
            text = f"{text[: lower.start(1)]}{lower[1].upper()}{text[lower.end(1) :]}"
        mentions = list(self._find(text))
        ends = [0, *(mention.end for mention in mentions)]
        starts = [*(mention.start for mention in mentions[1:]), len(text)]
        listing = (
            len(
                {
                    mention.option
                    for mention in mentions
                    if _begins_listed(text, mention)
                }
            )
            > 1
        )
        no = [
            self.is_denied(text, *row, listing=listing)
            for row in zip(mentions, ends, starts, strict=False)
        ]
        pairs = [
            index
            for index, (first, two) in enumerate(pairwise(mentions))
            if are_offered_together(text, first, two)
        ]
        for index in (*pairs, *reversed(pairs)):
            if no[index] or no[index + 1]:
                no[index] = no[index + 1] = (
                    True  # one denial for both: "A and C are wrong", "neither A nor C"
                )
        return [
            mention
            for mention, is_denied in zip(mentions, no, strict=True)
            if is_denied is denied
        ]

    def _find(self, text: str) -> Iterator[OptionMention]:
        two = {match.start(1) for match in _TWO.finditer(text)}
        count = 0
        for match in _ITEM.finditer(text):
            index = self._option_index(match)
            if index is None or index >= self.count:
                continue
            start, end = match.span()
            line = text.rfind("\n", 0, start) + 1
            before = text[max(line, start - 40) : start]
            behind = text[end : end + 40]
            how = self._form_of(match, before, behind, first=not count and not line)
            letter = match["latin"] or (
                match["native"]
                if match["native"] and not _WORDS.match(match["native"])
                else "A"
            )
            if (
                how
                or start in two
                or letter not in "AI"
                or self._is_no_article(letter, before, behind)
            ):
                count += 1
                yield OptionMention(index, start, end, how)
            if count == MAX_MENTIONS:
                return

    def _is_no_article(self, letter: str, before: str, behind: str) -> bool:
        """Return whether a plain "A" or "I" is an option.

        It is if it ends its clause, after "but", "is" or nothing.
        """
        if _DELIMITED.match(behind) is None:
            return False
        return _CONTRASTED.search(before) is not None or (
            letter == "A"
            and _CLAUSE_START.search(before) is not None
            and _ENDS_CLAUSE.match(behind) is not None
        )

    def _form_of(
        self, match: re.Match[str], before: str, behind: str, *, first: bool
    ) -> int:
        """Return the form in which a letter or number names an option."""
        bracketed = (
            _BRACKETED.search(before) is not None and _CLOSED.match(behind) is not None
        )
        spelt = any(map(str.isalpha, before))
        word = match.group() in "EIOY" or (
            match.group() == "A" and _SENTENCE_START.search(before) is not None
        )

        def is_next_to(pattern: re.Pattern[str]) -> bool:
            after = pattern.match(behind)
            return after is not None and (not word or after["tie"].strip() != "")

        opens = (
            first
            and _OPEN.fullmatch(before) is not None
            and _DELIMITED.match(behind) is not None
        )
        if is_next_to(_BEHIND) or (spelt and _CLAIMED.search(before) is not None):
            how = CLAIMED
        elif opens:
            how = OPENS
        else:
            noun = _BEFORE.search(before) if spelt else None
            if (
                noun is not None
                and match["number"]
                and not _NO_NOUN.match(noun.group())
            ):
                return NAMED
            how = NAMED if noun is not None or bracketed else LONE
        if match["number"] and (self.numeric or not how) and not bracketed:
            return max(how, NAMED) if _COUNTED.match(behind) is not None else LONE
        return how

    def _option_index(self, match: re.Match[str]) -> int | None:
        """Return the option of a letter; None if two alphabets share it ("В" in a Latin list)."""
        if match["number"]:
            return int(match["number"]) - 1
        if match["latin"]:
            return ord(match["latin"].upper()) - ord("A")
        char = match["native"][0].translate(_ALIKE)
        if (
            char.islower()
            and len(match.string) > 3
            and match.string[match.end() : match.end() + 1] not in (")", ".")
        ):
            return None  # Russian "в" means "in"
        if not self.jamo and re.match("[ㄱ-ㅎᄀ-ᄒ]", char):
            return None  # statements that the options combine ("ㄱ, ㄴ")
        if char in "СЕ":
            return "ABCDE".index({"С": "C", "Е": "E"}[char])
        if char == "В":
            letter_shown = re.search(r"(?m)^\s*\(?([CDБГ])[).:]", self.question)
            if letter_shown and letter_shown[1] in "БГ":
                return 2
            if letter_shown or self.latin:
                return 1
            return None
        return next(
            (row.index(char.upper()) for row in _ROWS if char.upper() in row), None
        )

    def is_denied(
        self,
        text: str,
        mention: OptionMention,
        last: int,
        following: int,
        *,
        listing: bool = False,
    ) -> bool:
        """Return whether a letter is negated in its clause.

        Args:
            text: the whole text.
            mention: the letter.
            last: where the mention before it ends.
            following: where the next mention begins.
            listing: whether the text goes through the options one by one, so that what follows a
                letter is about it; elsewhere "B. A desk is no fruit" claims B and explains it.
        """
        if _WRONG_LABEL.search(text[max(last, mention.start - 40) : mention.start]):
            return True
        before = _CLAUSE.split(text[max(last, mention.start - 30) : mention.start])[-1]
        reach = text[mention.end : min(following, mention.end + 40)]
        following_text = reach.lstrip(" .):]")
        own_text = self.texts[mention.option] if mention.letter else ""
        if own_text and following_text.casefold().startswith(own_text):
            following_text = following_text[len(own_text) :]
        behind = _BECAUSE.split(following_text, maxsplit=1)[0]
        prefixed = not _POSTFIX.search(before) and self._is_denied_before(
            mention, before
        )
        near = " ".join(behind.split()[:5])[:24]
        wrong = _WRONG.search(near)
        if wrong is None or prefixed:
            return prefixed
        if (
            mention.letter
            and not listing
            and _is_label(reach)
            and not _DIRECTLY.fullmatch(near[: wrong.start()])
        ):
            return False
        # "B, not A" denies what follows, "B가 아니라 A" what comes before.
        between = _BEFORE_NEXT.sub(
            "",
            following_text[following_text.find(wrong.group()) + len(wrong.group()) :],
        )
        of_next = (
            following < len(text)
            and not any(map(str.isalnum, between))
            and _SENTENCE_END.search(between) is None
            and following <= mention.end + 40
        )
        return not of_next or _POSTFIX.search(wrong.group()) is not None

    def _is_denied_before(self, mention: OptionMention, before: str) -> bool:
        """Return whether what comes before an option in its clause denies it."""
        tokens = fold_text(before).tokens[-4:]
        turned = max(
            (at + 1 for at, token in enumerate(tokens) if token in _CONTRASTS),
            default=0,
        )
        tokens = tokens[turned:]
        if turned and tokens[:1] and tokens[0] in _RATHER:
            tokens = tokens[1:]
        if mention.letter and not self.negations.isdisjoint(tokens):
            return True
        return self.cues.denies(tokens, before[-10:])


def _begins_listed(text: str, mention: OptionMention) -> bool:
    """Return whether a letter begins a line or sentence as in a list: "B. ...", "(B) ..."."""
    before = text[max(0, mention.start - 4) : mention.start]
    sign = _LABEL_SIGN.match(text[mention.end : mention.end + 8])
    return sign is not None and (
        mention.start <= 2 or _SENTENCE_START.search(before) is not None
    )


def _is_label(behind: str) -> bool:
    """Return whether a letter only labels the sentence after it."""
    sign = _LABEL_SIGN.match(behind)
    if sign is None:
        return False
    # In "(B) would not work" the sentence is about the letter, in "(B) Desks do not" it is not.
    after = behind[sign.end() :][:1]
    closes = sign["sign"] in ")）]"
    return not closes or (not after.islower() and behind[sign.end() - 1].isspace())
