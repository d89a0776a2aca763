"""Recognises questions about a second time, and replies that it happened only once."""

from __future__ import annotations

import re

_REPEATED = re.compile(
    r"(?<![^\W_])(?:second|third|fourth|fifth|tenth|again|another|zweit\w*|dritt\w*|viert\w*"
    r"|zehnt\w*|erneut|deuxième|seconde?|troisième|quatrième|encore|segund[oa]|tercer[oa]?"
    r"|cuart[oa]|terceir[oa]|quart[oa]|décim[oa]|second[oa]|terz[oa]|втор\w+|трет\w+"
    r"|четверт\w+|снова|kedua\w*|ketiga|keempat|lần"
    r" (?:hai|thứ)|thứ"
    r" (?:hai|ba)|drugi\w*|trzeci\w*|ikinci|üçüncü|tweede|derde|pangalawa|ikalawa|ikatlo|mara"
    r" ya pili|ya"
    r" pili|दूसर\w*|तीसर\w*|الثاني\w*|الثالث\w*)(?![^\W_])|第[二三四五六七八九十]|二度目"
    r"|三度目|2度目|2回目|3回目|[23]度目|(?:두|세|네|다섯)"
    r" ?번째|ครั้งที่(?:สอง|สาม| ?[2-9])|คนที่สอง|இரண்டாவது"
)
_ONLY = re.compile(
    r"(?<![^\W_])(?:(?:only|just|exactly|merely|precisely)(?: \w+){0,3}? (?:one|once|a"
    r" single|two|twice|three|four)\b|a single\b|one single\b|once\b(?!"
    r" (?:more|again|upon))|(?:his|her|its|their|the|\w{3,}s) only\b|only ever\b"
    r"|(?:nur|genau|lediglich|bloß) (?:ein\w*|zwei\w*|drei\w*|vier\w*)\b|ein einziges"
    r" mal|einzig\w*\b|(?:une seule|un seul|deux seuls|une unique|un unique|seulement"
    r" (?:une?|deux|trois)|exactement (?:une?|deux|trois)|une fois seulement)\b"
    r"|(?:solo|sólo|solamente|únicamente|exactamente) (?:\w+"
    r" )?(?:un[oa]?|dos|tres|cuatro)\b|un[oa]?"
    r" sol[oa]\b|únic[oa]\b|(?:apenas|somente|só|exatamente)"
    r" (?:um[a]?|dois|duas|três|quatro)\b|um[a]? únic[oa]\b|una? sol[oa]\b|soltanto"
    r" un\w?\b|solo un\w?\b|unic[oa]\b"
    r"|(?:только|лишь|всего|ровно|единожды)(?: лишь)? (?:\w+"
    r" )?(?:один|одну|одна|одного|раз|два|две|три|дважды)\b|единственн\w+|hanya (?:\w+"
    r" )?(?:satu|sekali|se\w+|dua|tiga)\b|satu-satunya|(?:chỉ|đúng)(?: \w+){0,3}?"
    r" (?:một|1|hai|2|ba)(?!\w)|duy nhất|tylko"
    r" (?:raz|jed\w+|dwa|dwie|trzy)|jedyn\w+|(?:yalnızca|sadece|tam)"
    r" (?:bir|tek|iki|üç)\b|tek bir\b|slechts (?:één|eén|een|eenmaal|twee|drie)\b|maar"
    r" één\b|(?:isa|isang beses) lamang|isang beses lang|mara moja tu|mara moja"
    r" pekee|moja tu\b|مرة واحدة|واحدة فقط)"
    r"|只[^，。]{0,6}?(?:一|两|兩|1|2|三)[次個个位项項]|仅[^，。"
    r"]{0,6}?[一1两]|唯一|(?:一|1|二|2|三|3)(?:度|回|つ|人)(?:だけ|しか|のみ)|(?:한|두|세|1|2)"
    r" ?(?:번|개|차례|명|회)(?:만|뿐|밖에)|(?:केवल|सिर्फ|सिर्फ़)"
    r" (?:एक|दो|तीन)|(?:เพียง|แค่)[^ ]{0,8}(?:เดียว|หนึ่ง|สอง)|ครั้งเดียว|ஒரே ஒரு|ஒரு"
    r" முறை மட்டுமே"
)
_GOVERNMENT = re.compile(
    r"(?<![^\W_])(?:(?:constitutional |parliamentary |federal"
    r" )?(?:monarchy|republic|federation|confederation|democracy)|(?:monarchie|republik"
    r"|bundesstaat|demokratie)|(?:monarchie|république|confédération|démocratie)"
    r"|(?:monarquía|república|democracia|monarquia)|(?:repubblica|monarchia|democrazia)"
    r"|(?:республик\w+|монархи\w+|федераци\w+)|(?:negara"
    r" )?(?:republik|monarki)|(?:nước )?cộng hòa|quân chủ lập"
    r" hiến|cumhuriyet\w*|jamhuri|republiek)(?![^\W_])|共和国|共和國|君主立宪|立憲君主"
    r"|공화국|공화제|입헌 ?군주"
)


def asks_again(question: str) -> bool:
    """Return whether a lowered question asks for a second time, or for another one."""
    return _REPEATED.search(question) is not None


def says_only(text: str) -> str:
    """Find the words in a lower-cased text that say that there was only one, or only so many.

    It is "" if there are none, or the text names a second.
    """
    only = _ONLY.search(text)
    return only.group() if only is not None and not asks_again(text) else ""


def names_government(text: str) -> str:
    """Find the form of government in a lowered text ("a constitutional monarchy"), else ""."""
    government = _GOVERNMENT.search(text)
    return government.group() if government is not None else ""
