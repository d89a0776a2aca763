"""Is a text in a given language? By its script, and among languages of one script by their commonest small words."""

from __future__ import annotations

import tomllib
import unicodedata
from collections import Counter
from pathlib import Path

from evalwright.core.errors import ScoringError

_TABLES = tomllib.loads(Path(__file__).with_name("languages.toml").read_text(encoding="utf-8"))
_SCRIPTS: dict[str, str] = _TABLES["scripts"]
_COMMON = {code: frozenset(words.split()) for code, words in _TABLES["words"].items()}


def speaks(text: str, code: str) -> bool:
    """Whether a text's language may be `code` (ISO 639-1). Raises ScoringError for a code that is not known here."""
    code = code.lower().split("-")[0]
    script = _SCRIPTS.get(code, "LATIN")
    if code not in _SCRIPTS and code not in _COMMON:
        raise ScoringError(f"Whether a text is in the language '{code}' cannot be told here.")
    if _script_of(text) != script:
        return False
    rivals = [other for other in _COMMON if _SCRIPTS.get(other, "LATIN") == script]
    if code not in rivals or len(rivals) == 1:
        return True
    found = Counter(word.strip(".,;:!?()\"'«»“”،؟।") for word in text.lower().split())
    hits = {other: sum(found[word] for word in _COMMON[other]) for other in rivals}
    return hits[code] > 0 and hits[code] == max(hits.values())


def _script_of(text: str) -> str:
    """The script of most letters; "JAPANESE" where kana are among Chinese characters, "" without letters."""
    counts: Counter[str] = Counter()
    for char, often in Counter(text).items():
        if char.isalpha():
            counts[unicodedata.name(char, "").split(" ")[0]] += often
    kana = counts["HIRAGANA"] + counts["KATAKANA"]
    if kana and kana * 10 >= counts["CJK"]:
        counts["JAPANESE"] = kana + counts.pop("CJK", 0)
    return counts.most_common(1)[0][0] if counts else ""
