"""Number words of languages other than English, as tables; `spoken.py` reads them, `characters.py` reads other scripts.

A language is what its numbers below a hundred and its hundreds are called (each phrase with its value, made from short lists
by the language's own rule), its scale words, and the little words between. Sources: the languages' own grammars; both the
old and the reformed spelling where there are two (French hyphens, German ss), and regional forms (septante, nonante).
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import NamedTuple

from evalwright.scorers.text.wordlists import word_list, word_set

Phrases = dict[tuple[str, ...], int]
"""Token sequences, without accents (but for Vietnamese), and their values."""


class Language(NamedTuple):
    """What numbers are called.

    units: 0 to 99. hundreds: 100 to 900. scales: 1,000 and above. links: between the parts. points: before decimals.
    halves: what adds a half after the links. ordinals: 1 to 12. weak: words that mostly mean something else ("ein", "un"):
    they count only where no other number stands. compound: whether words are written together.
    """

    units: Phrases
    hundreds: Phrases
    scales: Mapping[tuple[str, ...], Decimal]
    bare: frozenset[str]
    links: frozenset[str]
    points: frozenset[str]
    halves: frozenset[str]
    ordinals: Phrases
    weak: frozenset[str] = frozenset()
    compound: bool = False


def _phrases(text: str, start: int = 0, step: int = 1) -> Phrases:
    """Words in the order of their values; alternatives joined by "/", words of one phrase by "_"."""
    return {
        tuple(alternative.split("_")): start + step * place
        for place, word in enumerate(word_list(text))
        for alternative in word.split("/")
    }


def _scales(**words: str) -> dict[tuple[str, ...], Decimal]:
    """Scale words by their power of ten ("e6")."""
    return {
        tuple(word.split("_")): Decimal(10) ** int(power[1:])
        for power, text in words.items()
        for word in text.split()
    }


def _combined(tens: Phrases, small: Phrases, links: tuple[str, ...], limit: int = 10) -> Phrases:
    """The tens alone and with every smaller number, with one of the links ("" for none) between."""
    out = dict(tens)
    for ten, value in tens.items():
        for one, more in small.items():
            if 0 < more < limit:
                for link in links:
                    out[(*ten, *((link,) if link else ()), *one)] = value + more
    return out


def _times(small: Phrases, word: tuple[str, ...], factor: int, alone: bool) -> Phrases:
    out = {(*one, *word): value * factor for one, value in small.items() if 1 < value < 10}
    return {word: factor, **out} if alone else out


def _german() -> Language:
    small = _phrases(
        "null ein/eins/eine/einen zwei/zwo drei vier funf/fuenf sechs sieben acht neun zehn elf zwolf/zwoelf dreizehn vierzehn "
        "funfzehn/fuenfzehn sechzehn siebzehn achtzehn neunzehn"
    )
    tens = _phrases("zwanzig dreissig vierzig funfzig/fuenfzig sechzig siebzig achtzig neunzig", 20, 10)
    joined = {
        (f"{one[0]}und{ten[0]}",): value + more
        for ten, value in tens.items()
        for one, more in small.items()
        if 0 < more < 10
    }
    hundreds: Phrases = {
        ("hundert",): 100,
        **{(f"{one[0]}hundert",): v * 100 for one, v in small.items() if 0 < v < 20 and v != 10},
    }
    return Language(
        small | tens | joined,
        hundreds,
        _scales(
            e3="tausend", e6="million millionen mio", e9="milliarde milliarden mrd", e12="billion billionen"
        ),
        frozenset(("tausend",)),
        frozenset(("und",)),
        frozenset(("komma",)),
        word_set("einhalb"),
        _phrases(
            "erste/ersten/erster/erstes zweite/zweiten/zweiter dritte/dritten/dritter vierte/vierten/vierter funfte/funften/funfter "
            "sechste/sechsten/sechster siebte/siebten/siebter achte/achten/achter neunte/neunten/neunter zehnte/zehnten/zehnter",
            1,
        ),
        word_set("ein eine einen eins acht"),
        compound=True,
    )


def _french() -> Language:
    small = _phrases(
        "zero un/une deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix_sept dix_huit "
        "dix_neuf"
    )
    tens = _phrases("vingt trente quarante cinquante", 20, 10)
    tens |= {("septante",): 70, ("huitante",): 80, ("octante",): 80, ("nonante",): 90}
    units = small | _combined(tens, small, ("", "et"))
    units |= _combined({("soixante",): 60}, small, ("", "et"), 20)
    units |= {("quatre", "vingts"): 80, **_combined({("quatre", "vingt"): 80}, small, ("", "et"), 20)}
    hundreds = _times(small, ("cent",), 100, True) | _times(small, ("cents",), 100, False)
    return Language(
        units,
        hundreds,
        _scales(e3="mille", e6="million millions", e9="milliard milliards", e12="billion billions"),
        frozenset(("mille",)),
        frozenset(("et",)),
        word_set("virgule"),
        word_set("demi demie"),
        _phrases(
            "premier/premiere deuxieme/second/seconde troisieme quatrieme cinquieme sixieme septieme huitieme neuvieme dixieme onzieme "
            "douzieme",
            1,
        ),
        word_set("un une neuf second seconde"),
    )


def _spanish() -> Language:
    small = _phrases(
        "cero un/uno/una dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciseis diecisiete "
        "dieciocho diecinueve veinte veintiuno/veintiun/veintiuna veintidos veintitres veinticuatro veinticinco veintiseis "
        "veintisiete veintiocho veintinueve"
    )
    tens = _phrases("treinta cuarenta cincuenta sesenta setenta ochenta noventa", 30, 10)
    hundreds = _phrases(
        "cien/ciento doscientos/doscientas trescientos/trescientas cuatrocientos/cuatrocientas quinientos/quinientas "
        "seiscientos/seiscientas setecientos/setecientas ochocientos/ochocientas novecientos/novecientas",
        100,
        100,
    )
    return Language(
        small | _combined(tens, small, ("y",)),
        hundreds,
        _scales(e3="mil", e6="millon millones", e12="billon billones"),
        frozenset(("mil",)),
        frozenset(("y",)),
        word_set("coma punto"),
        word_set("medio media"),
        _phrases(
            "primero/primera/primer segundo/segunda tercero/tercera/tercer cuarto/cuarta quinto/quinta sexto/sexta septimo/septima "
            "octavo/octava noveno/novena decimo/decima",
            1,
        ),
        word_set("un uno una segundo segunda"),
    )


def _portuguese() -> Language:
    small = _phrases(
        "zero um/uma dois/duas tres quatro cinco seis sete oito nove dez onze doze treze catorze/quatorze quinze "
        "dezesseis/dezasseis dezessete/dezassete dezoito dezenove/dezanove"
    )
    tens = _phrases("vinte trinta quarenta cinquenta sessenta setenta oitenta noventa", 20, 10)
    hundreds = _phrases(
        "cem/cento duzentos/duzentas trezentos/trezentas quatrocentos/quatrocentas quinhentos/quinhentas seiscentos/seiscentas "
        "setecentos/setecentas oitocentos/oitocentas novecentos/novecentas",
        100,
        100,
    )
    return Language(
        small | _combined(tens, small, ("e",)),
        hundreds,
        _scales(e3="mil", e6="milhao milhoes", e9="bilhao bilhoes", e12="trilhao trilhoes biliao bilioes"),
        frozenset(("mil",)),
        frozenset(("e",)),
        word_set("virgula ponto"),
        word_set("meio meia"),
        _phrases(
            "primeiro/primeira segundo/segunda terceiro/terceira quarto/quarta quinto/quinta sexto/sexta setimo/setima oitavo/oitava "
            "nono/nona decimo/decima",
            1,
        ),
        word_set("um uma segundo segunda"),
    )


def _italian() -> Language:
    small = _phrases(
        "zero un/uno/una due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici "
        "diciassette diciotto diciannove"
    )
    tens = _phrases("venti trenta quaranta cinquanta sessanta settanta ottanta novanta", 20, 10)
    joined = {}
    for ten, value in tens.items():
        for one, more in small.items():
            if 0 < more < 10:
                stem = ten[0][:-1] if one[0][0] in "uo" else ten[0]
                joined[(stem + one[0],)] = value + more
    hundreds: Phrases = {("cento",): 100, ("cent",): 100}
    hundreds |= {
        (one[0] + hundred,): value * 100
        for one, value in small.items()
        for hundred in ("cento", "cent")  # "cinquecentottanta" drops the vowel
        if 1 < value < 10
    }
    return Language(
        small | tens | joined,
        hundreds,
        _scales(e3="mille mila", e6="milione milioni", e9="miliardo miliardi", e12="bilione bilioni"),
        frozenset(("mille",)),
        frozenset(("e",)),
        word_set("virgola"),
        word_set("mezzo mezza"),
        _phrases(
            "primo/prima secondo/seconda terzo/terza quarto/quarta quinto/quinta sesto/sesta settimo/settima ottavo/ottava nono/nona "
            "decimo/decima",
            1,
        ),
        word_set("un uno una sei cent prima secondo seconda"),
        compound=True,
    )


def _malay() -> Language:
    """Indonesian and Malay."""
    small = _phrases(
        "nol/kosong/sifar satu dua tiga empat lima enam tujuh delapan/lapan sembilan sepuluh sebelas"
    )
    digits = {one: value for one, value in small.items() if 0 < value < 10}
    teens = {(*one, "belas"): value + 10 for one, value in digits.items() if value > 1}
    tens = {(*one, "puluh"): value * 10 for one, value in digits.items() if value > 1}
    hundreds = {("seratus",): 100, **{(*one, "ratus"): value * 100 for one, value in digits.items()}}
    ordinals: Phrases = {
        ("pertama",): 1,
        **{(f"ke{one[0]}",): value for one, value in small.items() if value > 1},
    }
    return Language(
        small | teens | _combined(tens, digits, ("",)),
        hundreds,
        _scales(
            e3="ribu seribu", e6="juta sejuta", e9="miliar milyar semiliar bilion", e12="triliun trilion"
        ),
        word_set("seribu sejuta semiliar"),
        frozenset(),
        word_set("koma perpuluhan"),
        word_set("setengah"),
        ordinals,
    )


def _vietnamese() -> Language:
    digits = _phrases("một hai ba bốn/tư năm/lăm sáu bảy/bẩy tám chín", 1)
    last = digits | {("mốt",): 1}
    teens = {("mười", *one): value + 10 for one, value in digits.items()} | {("mười",): 10}
    tens = {
        (*one, word): value * 10 for one, value in digits.items() for word in ("mươi", "chục") if value > 1
    }
    units: Phrases = digits | teens | _combined(tens, last, ("",))
    odd = {(word, *one): value for one, value in units.items() for word in ("linh", "lẻ")}
    hundreds = {(*one, "trăm"): value * 100 for one, value in digits.items()} | {("không", "trăm"): 0}
    return Language(
        {("không",): 0} | units | odd,
        hundreds,
        _scales(e3="nghìn ngàn", e6="triệu", e9="tỷ tỉ"),
        frozenset(),
        frozenset(),
        word_set("phẩy"),
        word_set("rưỡi"),
        {("thứ", *one): value for one, value in digits.items() if value > 1} | {("thứ", "nhất"): 1},
        word_set("không năm ba tư"),
    )


def _filipino() -> Language:
    words = word_list("isa dalawa tatlo apat lima anim pito walo siyam")
    digits: Phrases = {(word,): value for value, word in enumerate(words, 1)}
    teens: Phrases = {("sampu",): 10, ("labindalawa",): 12, ("labintatlo",): 13, ("labinlima",): 15}
    for value, word in enumerate(words, 1):
        for prefix in ("labing", "labin"):
            teens |= {(prefix + word,): 10 + value, (prefix, word): 10 + value}
    tens = _phrases("dalawampu tatlumpu apatnapu limampu animnapu pitumpu walumpu siyamnapu", 20, 10)
    units = digits | teens | _combined(tens, digits, ("", "at", "t"))
    for ten, value in tens.items():
        for one, more in digits.items():
            units[(f"{ten[0]}t", *one)] = value + more  # "dalawampu't lima"
    counted = [f"{word}ng" if word[-1] in "aeiou" else f"{word} na" for word in words]
    hundreds: Phrases = {("sandaan",): 100}
    scales = _scales(e3="libo libong", e6="milyon", e9="bilyon")
    for value, word in enumerate(counted, 1):
        parts = tuple(word.split())
        units[parts] = value
        hundreds |= {(*parts, name): value * 100 for name in ("daan", "daang", "raan", "raang")}
    return Language(
        {("sero",): 0} | units,
        hundreds,
        scales,
        frozenset(),
        word_set("at t"),
        word_set("punto"),
        word_set("kalahati"),
        {
            ("una",): 1,
            ("ikalawa",): 2,
            ("pangalawa",): 2,
            ("ikatlo",): 3,
            ("pangatlo",): 3,
            ("ikaapat",): 4,
            ("ikalima",): 5,
        },
        word_set("isa isang una"),
    )


_MAKERS = {
    "de": _german,
    "fr": _french,
    "es": _spanish,
    "pt": _portuguese,
    "it": _italian,
    "id": _malay,
    "ms": _malay,
    "vi": _vietnamese,
    "fil": _filipino,
    "tl": _filipino,
}


@cache
def language_of(code: str) -> Language | None:
    """The number words of a language by its code ("de", "pt-BR"); None for English and those that no table has."""
    maker = _MAKERS.get(code.replace("_", "-").split("-")[0].casefold())
    return None if maker is None else maker()
