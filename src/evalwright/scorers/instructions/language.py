"""Is a text in a given language? By its script, and among languages of one script by their commonest small words."""

from __future__ import annotations

import unicodedata
from collections import Counter

from evalwright.core.errors import ScoringError

_SCRIPTS = {
    "ar": "ARABIC", "fa": "ARABIC", "ur": "ARABIC", "he": "HEBREW", "bg": "CYRILLIC", "ru": "CYRILLIC", "uk": "CYRILLIC", "el": "GREEK",
    "hi": "DEVANAGARI", "mr": "DEVANAGARI", "ne": "DEVANAGARI", "bn": "BENGALI", "pa": "GURMUKHI", "gu": "GUJARATI", "ta": "TAMIL",
    "te": "TELUGU", "kn": "KANNADA", "ml": "MALAYALAM", "th": "THAI", "ko": "HANGUL", "ja": "JAPANESE", "zh": "CJK",
}  # fmt: skip
_WORDS = {
    "en": "the of and to is in that it was for with as on are this be by an not have",
    "de": "der die das und ist nicht ein eine zu mit den von auf für sich des dem im auch es ich wir",
    "fr": "le la les des et est une dans pour que qui pas sur au avec du ce il elle nous vous",
    "es": "el la los las de y es una en por que con para no se su del como más un",
    "pt": "o os as de e é uma um em por que com para não se do da mais como ao dos",
    "it": "il lo gli di e è una un in per che con non si del della sono come più nel",
    "nl": "de het een en van is niet dat met op voor te zijn ook aan er maar ik",
    "sv": "och att det som en är på för med av inte den ett har till jag",
    "fi": "ja on ei se että hän oli ovat mutta kuin myös ole joka tämä voi olla",
    "pl": "i w na się nie z do jest że to o jak ale po od dla są",
    "tr": "ve bir bu için ile de da çok olarak daha ne gibi en kadar değil",
    "vi": "và là của có không một những trong cho được với này các người để",
    "sw": "na ya wa ni kwa katika za la kama yake hii au si lakini pia cha",
    "id": "dan yang di ini itu dengan untuk tidak dari dalam adalah pada ke akan",
    "ru": "и в не на что с он по это как но его к у из за я то все",
    "bg": "и на да се за от е с не че в са по до като ще това",
    "uk": "і в не на що з та це як до у є за його але від для",
    "ar": "في من على أن إلى هذا عن مع لا ما التي هو كان",
    "fa": "و در به از که این را با است برای آن یک می های",
    "ur": "کے میں کی ہے اور سے کا کو پر نے ہیں یہ کہ",
    "hi": "है के में की और का से को पर हैं यह एक नहीं ने लिए",
    "mr": "आहे आणि या मध्ये ते हे आहेत की नाही एक होते साठी",
    "ne": "छ र को मा हो यो पनि छन् लागि गर्न एक भएको",
}
_COMMON = {code: frozenset(words.split()) for code, words in _WORDS.items()}


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
    for char in text:
        if char.isalpha():
            counts[unicodedata.name(char, "").split(" ")[0]] += 1
    kana = counts["HIRAGANA"] + counts["KATAKANA"]
    if kana and kana * 10 >= counts["CJK"]:
        counts["JAPANESE"] = kana + counts.pop("CJK", 0)
    return counts.most_common(1)[0][0] if counts else ""
