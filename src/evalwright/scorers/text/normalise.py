"""From a raw reply to plain text: the part that counts, without markup, with one spelling per sign.

Case, accents and punctuation stay: they are needed to tell names, numbers and sentences apart.
Matching folds them later. Nothing here looks at more than `MOST_CHARACTERS` of a reply, and no
pattern can backtrack without bound.
"""

from __future__ import annotations

import re
import unicodedata

MOST_CHARACTERS = 4000
"""Most characters of a reply that are read; an answer that comes later is not a short answer."""
MAX_REPLY_CHARS = 8_000
"""Of a longer reply, the beginning and the end are read, together this many characters."""

_CUT = re.compile(
    r"\n[ \t\r]*\n"  # a blank line
    r"|(?:^|(?<=\s))[#*>\t ]{0,4}(?:(?:Question|QUESTION|Problem|Exercise)(?:"
    r" ?\d{1,3})?\**[:：]|Q ?\d{0,3}[:：])"
    r"|\n[#*>\t"
    r" ]{0,4}(?i:question|q|human|user|instruction|input|problem|exercise|example|context|passage)"
    r"(?: ?\d{1,3})?\**[:：]"
    r"|<\|(?:im_end|im_start|endoftext|eot_id|end)\|>|</s>"
)
_LEADING_QUESTION = re.compile(
    r"[#*>\s]{0,6}(?:question|q)(?: ?\d{1,3})?\**[:：]", re.IGNORECASE
)
_ANSWER_LABEL = re.compile(
    r"(?:^|(?<=\s))[#*>]{0,3}(?:final answer|short answer|answer|a)\**[:：]\**",
    re.IGNORECASE,
)
_OPENING_LABEL = re.compile(
    r"[#*>\s]{0,6}(?:(?:the )?(?:final |short |correct"
    r" )?(?:answer|response)|a|ans)\**[:：]\**\s*",
    re.IGNORECASE,
)


def answer_region(text: str, paragraphs: bool = False) -> str:
    """Return the part of a reply that counts as its answer."""
    start, end = answer_place(text, paragraphs)
    return text[start:end]


def answer_place(text: str, paragraphs: bool = False) -> tuple[int, int]:
    """Find the part of a reply that counts as its answer, as start and end.

    A question repeated at the start and an "Answer:" label are skipped. The part ends at the
    first blank line or at an invented "Question:"; a paragraph that only announces ("The answer
    is:") includes the next one. With `paragraphs`, all paragraphs up to an invented question
    count.
    """
    first = len(text) - len(text.lstrip())
    limit = len(text)
    if limit - first > MOST_CHARACTERS:
        # A number or name that the limit cuts in two must not be read as a shorter one.
        limit = first + len(text[first : first + MOST_CHARACTERS].rsplit(None, 1)[0])
        text = text[:limit]
    start = first
    if (question_label := _LEADING_QUESTION.match(text, first)) is not None:
        label = _ANSWER_LABEL.search(text, question_label.end())
        start = label.end() if label else question_label.end()
        start += len(text[start:]) - len(text[start:].lstrip())
    elif (label := _OPENING_LABEL.match(text, first)) is not None:
        start = label.end()
    body = text[start:]
    position = 0
    while (cut := _CUT.search(body, position)) is not None:
        region = body[: cut.start()]
        blank = not cut.group().strip()
        if not blank or not (paragraphs or _only_announces(region)):
            body = region
            break
        position = cut.end()
    return start, start + len(body.rstrip())


_COURTESY = re.compile(
    r"\s*(?:sure(?: thing)?|certainly|of course|(?:that'?s an?"
    r" )?(?:great|good|interesting) question|okay|ok|happy to help|hello|hi)"
    r"(?:[!,.]? (?:here (?:is|are|'s) (?:the|your) answer|let me help(?: you)?|i can"
    r" help(?: you)?(?: with that)?))?[!.,:]*\s*",
    re.IGNORECASE,
)


def _only_announces(region: str) -> bool:
    last = region.rstrip()[-1:]
    return (
        last in ":："
        or not any(map(str.isalnum, region[-200:]))
        or region.rsplit("\n", 1)[-1].startswith("```")
        or (len(region) < 80 and _COURTESY.fullmatch(region) is not None)
    )


_ODD_ASCII = re.compile(r"[*`$\\#\[\]~<>|{}^_•]")
_DASHES = dict.fromkeys(map(ord, "‐‑‒−﹣－⁃"), "-") | {ord("–"): "–", ord("—"): "—"}
_QUOTES = dict.fromkeys(map(ord, "‘’‚‛ʼʻ`´＇ʹ′ˈ՚׳"), "'") | dict.fromkeys(
    map(ord, "“”„‟«»″＂❝❞「」『』〝〞״"), '"'
)
_INVISIBLE = dict.fromkeys(
    map(
        ord,
        "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2069",
    )
)
_SIGNS = (
    _DASHES
    | _QUOTES
    | _INVISIBLE
    | {ord("٫"): ".", ord("٬"): ",", ord("٪"): "%"}
    | {ord("⁄"): "/", ord("∕"): "/", ord("·"): "·", ord("，"): ", ", ord("。"): ". "}
)
_SUPERSCRIPTS = dict(zip(map(ord, "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ"), "0123456789+-n", strict=True))
_SUPERSCRIPT_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")
_VULGAR = re.compile("(?<=[0-9])(?=[¼-¾⅐-⅞])")


def plain(text: str) -> str:
    """Write a text with one spelling for each sign, and without markup.

    It applies NFKC, plain dashes, quotes, spaces and digits, and superscripts as `^2`. It removes
    Markdown, LaTeX, code quoting, HTML tags and citations such as [2] or [1, 3].
    """
    if not text.isascii():
        text = _normalise_signs(text)
    if "\n" in text:
        # Separate the items of a list as in "one; two".
        text, n_items = _NEXT_ITEM.subn(";\n", text)
        text = _LINE_MARK.sub("", text) if n_items else text
    if _ODD_ASCII.search(text) is not None:
        text = _without_markup(text)
    if "0's" in text:
        text = _DECADE.sub("s", text)
    if "^" in text:
        text = _CHARGE.sub(r"\1", text)
    if " : " in text:
        text = _RATIO.sub(":", text)
    return text


_WIDE_THOUSANDS = re.compile(r"(?<=[０-９])，(?=[０-９]{3}(?![０-９]))")
"""A full-width comma that separates thousands."""


def _normalise_signs(text: str) -> str:
    text = _WIDE_THOUSANDS.sub(",", text)
    text = _SUPERSCRIPT_RUN.sub(
        lambda run: "^" + run.group().translate(_SUPERSCRIPTS), text
    )
    text = unicodedata.normalize(
        "NFKC", _VULGAR.sub(" ", text).translate(_SIGNS)
    ).translate(_SIGNS)
    if not text.isascii() and any(
        unicodedata.category(char) == "Nd" for char in set(text) if char > "\u0600"
    ):
        text = "".join(
            (
                str(unicodedata.decimal(char))
                if char > "\u0600" and char.isdecimal()
                else char
            )
            for char in text
        )
    return text


_CHARGE = re.compile(r"(?<=[A-Za-z0-9])\^(\d?[+-])(?![\d(])")
"""The charge of an ion: "Ca^2+" is also written "Ca2+"."""
_DECADE = re.compile(r"(?<=\d0)'s(?!\w)")
_RATIO = re.compile(r"(?<=\d) : (?=\d)")
_CITATION = re.compile(r"\[\^?\d{1,3}(?:\s?[,;–-]\s?\d{1,3}){0,20}\]")
_LINKED_CITATION = re.compile(r"\[(\d{1,3})\]\([^()\s]{0,500}\)")
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\s]{0,500}\)")
_BRACKETS = re.compile(r"[\[\]]")
_FENCE = re.compile(r"```[A-Za-z0-9_+-]{0,20}(?=\s|$)")
_LINE_MARK = re.compile(r"(?m)^[ \t]*(?:[*+•-]|#{1,6}|>)[ \t]+")
_NEXT_ITEM = re.compile(r"\n[ \t]*(?:[*+•-]|\d{1,2}[.)])[ \t]+")
_SUBSCRIPT = re.compile(r"(?<=[A-Za-z])_(?=\d)")
_SUPERSCRIPT_TAG = re.compile(r"<sup>\s?([^<>]{1,12})</sup>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,80}>")
_STRUCK = re.compile(r"~~[^~\n]{1,300}~~")
"""Text that is struck out; it was taken back."""
_POWER = re.compile(r"(?<=\d)\*\*(?=[-+]?\d)")
_STAR = re.compile(r"(?<![\d ])\*|\*(?![\d ])")
_UNDERSCORE = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])")
_MATH_SIGNS = {
    "times": "×",
    "cdot": "×",
    "degree": "°",
    "circ": "°",
    "approx": "≈",
    "sim": "≈",
    "pm": "±",
    "mu": "μ",
    "percent": "%",
    "Omega": "Ω",
    "pounds": "£",
    "euro": "€",
    "neq": "≠",
    "ne": "≠",
    "le": "≤",
    "leq": "≤",
    "ge": "≥",
    "geq": "≥",
    "lt": "<",
    "gt": ">",
} | {
    name: f"{name} "
    for name in [
        "log",
        "ln",
        "lg",
        "sin",
        "cos",
        "tan",
        "exp",
        "max",
        "min",
        "pi",
        "alpha",
        "beta",
        "gamma",
        "delta",
        "lambda",
        "sigma",
        "theta",
        "phi",
    ]
}
_WRAPPER = re.compile(
    r"\\(?:boxed|fbox|text|textbf|textit|textrm|texttt|mathrm|mathbf|mathit|mathsf|mbox|emph"
    r"|operatorname|si|unit)"
    r"\s{0,2}\{([^{}]{0,400})\}"
)
_FRACTION = re.compile(r"\\[dt]?frac\s?\{([^{}]{1,40})\}\s?\{([^{}]{1,40})\}")
_SCRIPT = re.compile(r"([\^_])\{([^{}]{0,40})\}")
_COMMAND = re.compile(r"\\([A-Za-z]{1,20}) ?")
_MATH = re.compile(r"(?<![\w$])\$\$?(?=[^\s$])([^$\n]{1,200})(?<!\s)\$\$?(?![\w$])")


def _without_markup(text: str) -> str:
    if "\\" in text or "$" in text or "{" in text:
        text = _without_latex(text)
    if "[" in text:
        text = _LINKED_CITATION.sub(r"[\1]", text)
        # A "[5]" on its own is an answer in brackets, not a citation.
        stripped = _CITATION.sub(" ", text)
        text = stripped if any(map(str.isalnum, stripped)) else text
        text = _BRACKETS.sub(" ", _LINK.sub(r"\1", text))
    if "<" in text:
        text = _TAG.sub("", _SUPERSCRIPT_TAG.sub(r"^\1", text))
    if "`" in text:
        text = _FENCE.sub("\n", text).replace("`", "")
    if "~~" in text:
        text = _STRUCK.sub(" ", text).replace("~~", "")
    text = _LINE_MARK.sub("", text)
    if "*" in text:
        text = _STAR.sub("", _POWER.sub("^", text).replace("**", ""))
    if "_" in text:
        text = _SUBSCRIPT.sub("", _UNDERSCORE.sub("", text))
    return text.replace("|", " ").strip()


def _without_latex(text: str) -> str:
    text = _MATH.sub(r"\1", text)
    if "\\" not in text and "{" not in text:
        return text
    text = (
        text.replace("{,}", ",")
        .replace("\\%", "%")
        .replace("\\$", "$")
        .replace("^\\circ", "°")
        .replace("^{\\circ}", "°")
    )
    text = (
        text.replace("\\,", " ")
        .replace("\\;", " ")
        .replace("\\!", "")
        .replace("\\ ", " ")
        .replace("\\\\", "\n")
    )
    for _ in range(3):
        changed = _SCRIPT.sub(
            _replace_script, _FRACTION.sub(r" \1/\2", _WRAPPER.sub(r"\1", text))
        )
        if changed == text:
            break
        text = changed
    text = _COMMAND.sub(lambda command: _MATH_SIGNS.get(command.group(1), " "), text)
    return (
        re.sub(r"\\[()\[\]]|[{}$]", " ", text)
        if "\\" in text
        else re.sub(r"[{}]", "", text)
    )


def _replace_script(script: re.Match[str]) -> str:
    return ("^" if script.group(1) == "^" else "") + script.group(2)


_BOX = re.compile(r"\\(?:boxed|fbox)\s*(?=\{)")

_BRACE = re.compile(r"(?<!\\)[{}]")


def last_box(text: str) -> str | None:
    r"""Return the content of the last closed `\boxed{...}`; None without one."""
    box = placed_box(text)
    return box[1] if box else None


def placed_box(text: str) -> tuple[int, str] | None:
    r"""Return the start and the content of the last closed `\boxed{...}`; None without one."""
    boxes = list(_BOX.finditer(text))
    if not boxes:
        return None
    open_at: list[int] = []
    closed: dict[int, int] = {}
    for brace in _BRACE.finditer(text):
        if brace.group() == "{":
            open_at.append(brace.start())
        elif open_at:
            closed[open_at.pop()] = brace.start()
    for box in reversed(boxes[-20:]):
        if (end := closed.get(box.end())) is not None:
            return box.start(), text[box.end() + 1 : end]
    return None
