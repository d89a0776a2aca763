"""One name, several spellings: a folding of what differs between transliterations, and between British and American English.

The folding only merges what the schemes for writing Russian, Arabic, Greek and Sanskrit names in Latin letters write
differently (ISO 9, BGN/PCGN, ALA-LC, and the German, French and Spanish newspapers' ways), never one vowel with another:
Marie is not Maria, Gary is not Cary, Lenin is not Lennon. Words of three letters and less stay as they are.
"""

from __future__ import annotations

import re
from functools import lru_cache

from evalwright.scorers.text.tokens import fold

_SLAVIC = str.maketrans({"č": "ch", "ć": "c", "š": "sh", "ž": "zh", "ř": "rzh"})
_CYRILLIC = dict(
    zip(
        "абвгдеёжзийклмнопрстуфхцчшщъыьэюяіїєґў",
        [
            "a",
            "b",
            "v",
            "g",
            "d",
            "e",
            "e",
            "zh",
            "z",
            "i",
            "i",
            "k",
            "l",
            "m",
            "n",
            "o",
            "p",
            "r",
            "s",
            "t",
            "u",
            "f",
            "kh",
            "ts",
            "ch",
            "sh",
            "shch",
            "_",
            "y",
            "_",
            "e",
            "yu",
            "ya",
            "i",
            "yi",
            "ye",
            "g",
            "u",
        ],
        strict=True,
    )
)
_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξοπρσςτυφχψω",
        [
            "a",
            "v",
            "g",
            "d",
            "e",
            "z",
            "i",
            "th",
            "i",
            "k",
            "l",
            "m",
            "n",
            "x",
            "o",
            "p",
            "r",
            "s",
            "s",
            "t",
            "y",
            "f",
            "ch",
            "ps",
            "o",
        ],
        strict=True,
    )
)
_LETTERS = str.maketrans({key: "" if value == "_" else value for key, value in (_CYRILLIC | _GREEK).items()})
"""Cyrillic (Russian, Ukrainian, Belarusian) and Greek letters in Latin ones."""
_STEPS = [
    (re.compile(pattern), into)
    for pattern, into in (
        (r"^(?:tch|tsch|tch)", "ch"),  # Tchaikovsky, Tschaikowski
        (r"tsch|tch", "ch"),
        (r"sch(?=[aeiouykmnlrtv])", "sh"),  # Puschkin
        (r"ph", "f"),  # Joseph, Josef
        (r"(?<=[a-z])ch(?=[lnor][a-z]{4,})", "k"),  # mitochondria, mitocondria
        (r"([dtgr])h", r"\1"),  # Gadhafi, Ghandi, Theresa
        (r"kh", "k"),  # Kharkiv
        (r"ck|cq", "k"),
        (r"c(?=[aoulrt]|$)", "k"),  # Carl, Nicolai
        (r"x", "ks"),  # Alexander, Aleksandr
        (r"w", "v"),  # Dostojewski
        (r"[jy]", "i"),  # Dostojewski, Sergey
        (r"([bcdfghjklmnpqrstvz])\1", r"\1"),  # Gaddafi, Gadafi
        (r"(?<=[aou])ie", "e"),  # Dostoyevsky
        (r"^ie", "e"),  # Yeltsin, Eltsin
        (r"ou", "u"),  # Youssef
        (r"i+$", "i"),  # Dostoevskii
        (r"sk(?:i|ii|ij)$", "ski"),
    )
]
_SAME = {
    word: group[0]
    for group in (
        line.split()
        for line in (
            "muhammad mohammed mohammad mohamed muhammed mohamad muhamad mehmed",
            "muammar moammar",
            "gaddafi kadafi qaddafi khadafy gheddafi",
            "hussein husain hussain husayn husein hossein",
            "usama osama",
            "umar omar",
            "yusuf yousef youssef yousuf yusef",
            "fyodor fedor fjodor fiodor",
            "pyotr petr piotr pjotr",
            "mikhail michail mihail",
            "aleksandr alexander alexandr aleksander",
            "aleksei alexei alexey aleksey alexej",
            "dmitri dmitry dimitri dmitrij dimitry",
            "joseph josef iosif jozef",
            "lev leo",
            "grey gray",
            "aluminium aluminum",
        )
    )
    for word in group
}
_BRITISH = [
    (re.compile(pattern), into)
    for pattern, into in (
        (r"is(e[ds]?|ing|ation|ations|er|ers)$", r"iz\1"),
        (r"ys(e[ds]?|ing)$", r"yz\1"),
        (r"(?<=[a-z]{2})our(s|ed|ing|ite|able)?$", r"or\1"),
        (r"(?<=[a-z])tre(s?)$", r"ter\1"),
        (r"ogue(s?)$", r"og\1"),
        (r"^(?:encyclop|pal|an|h)ae", lambda found: found.group()[:-2] + "e"),
        (r"^sulph", "sulf"),
        (r"(?<=[a-z])ll(ed|ing|er|ers)$", r"l\1"),
        (r"(?<=[fd])ence$", "ense"),
    )
]
_FEWEST = 4


@lru_cache(maxsize=16384)
def spelled_alike(word: str) -> frozenset[str]:
    """The keys of a casefolded word: two words are spellings of one where they share a key.

    Arabic q is also written g or k, so a word with q has two keys.
    """
    plain = fold(word.translate(_SLAVIC))
    keys = {fold(word), plain}
    if "\u0370" <= plain[:1] <= "\u04ff":
        plain = plain.translate(_LETTERS)
        keys.add(plain)
    if len(plain) < _FEWEST or not plain.isascii() or not plain.isalpha():
        return frozenset(keys)
    if (same := _SAME.get(plain)) is not None:
        keys.add(f"={same}")
    british = plain
    for pattern, into in _BRITISH:
        british = pattern.sub(into, british)
    keys.add(british)
    variants = (
        (plain.replace("q", "g"), plain.replace("q", "k")) if "q" in plain and "qu" not in plain else (plain,)
    )
    for variant in variants:
        for pattern, into in _STEPS:
            variant = pattern.sub(into, variant)
        if len(variant) >= _FEWEST - 1:
            keys.add(f"~{variant}")
    return frozenset(keys)
