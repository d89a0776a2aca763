"""Number words of other languages: known words, and thousands of numbers spelled by an independent library."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from evalwright.scorers.numbers.characters import character_numbers, mixed_value
from evalwright.scorers.numbers.languages import language_of
from evalwright.scorers.numbers.parse import find_numbers
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words

KNOWN = [
    ("de", "fünfhundertsiebenundneunzig", "597"),
    ("de", "zweieinhalb Millionen", "2500000"),
    ("de", "achtzehnhundertzwölf", "1812"),
    ("fr", "quatre-vingt-onze", "91"),
    ("fr", "septante-deux", "72"),
    ("fr", "trois virgule cinq millions", "3500000"),
    ("es", "veintiún mil", "21000"),
    ("es", "cien mil millones", "100000000000"),
    ("pt", "mil novecentos e oitenta e quatro", "1984"),
    ("it", "cinquecentottantasei", "586"),
    ("id", "sejuta dua ratus ribu", "1200000"),
    ("ms", "lapan puluh sembilan", "89"),
    ("vi", "một triệu không trăm linh năm", "1000005"),
    ("vi", "hai triệu rưỡi", "2500000"),
    ("fil", "labing-walo", "18"),
    ("fil", "siyamnapu't siyam", "99"),
    ("fil", "dalawang libo at limang daan", "2500"),
    ("zh", "一百二十三万四千五百六十七", "1234567"),
    ("zh", "二〇〇八", "2008"),
    ("ja", "九つ", "9"),
    ("ko", "아흔아홉 살", "99"),
    ("ko", "만 오천 원", "15000"),
    ("th", "เก้าสิบเก้า", "99"),
    ("th", "สิบสองล้านครึ่ง", "12000000.5"),
    ("hi", "निन्यानवे", "99"),
    ("hi", "पाँच करोड़ तीन लाख", "50300000"),
    ("hi", "उन्नीस सौ सैंतालीस", "1947"),
    ("ta", "தொண்ணூற்று ஒன்பது", "99"),
    ("ta", "நூற்று இருபத்து மூன்று", "123"),
    ("ta", "ஐந்து லட்சம்", "500000"),
]
NO_NUMBER = [
    ("de", "Einheit"), ("de", "Achtung"), ("fr", "neuve"), ("it", "millimetro"),
    ("zh", "一般"), ("zh", "一些"), ("ko", "이 도시"), ("ko", "오늘"), ("th", "ยี่ห้อ"), ("hi", "एक शहर है"), ("en", "once"), ("es", "oncejo"),
]  # fmt: skip


def values(text: str, language: str) -> list[Decimal]:
    return [number.value for number in find_numbers(Words(plain(text)), language)]


@pytest.mark.parametrize(("language", "text", "value"), KNOWN, ids=lambda cell: str(cell))
def test_known_words(language: str, text: str, value: str) -> None:
    assert values(text, language) == [Decimal(value)]


@pytest.mark.parametrize(("language", "text"), NO_NUMBER)
def test_words_that_only_look_like_numbers(language: str, text: str) -> None:
    assert values(text, language) == []


def test_articles_count_only_where_no_other_number_stands() -> None:
    assert values("eine Stadt mit drei Brücken", "de") == [3]
    assert values("une", "fr") == [1]
    assert values("năm 1945", "vi") == [1945]


def test_the_words_of_one_language_are_not_read_in_another() -> None:
    assert values("once", "es") == [11]
    assert values("zwei Billionen", "de") == [2 * 10**12]
    assert values("2 billion", "en") == [2 * 10**9]
    assert language_of("en") is None and language_of("xx") is None
    assert language_of("pt-BR") == language_of("pt_br") == language_of("pt")


def test_digits_with_places() -> None:
    assert mixed_value("2億5000万") == 250_000_000
    assert mixed_value("2千5百万") == 25_000_000
    assert mixed_value("3천만") == 30_000_000
    assert mixed_value("1.5万") == 15_000


def test_places_and_ordinals_of_other_scripts() -> None:
    (found,) = character_numbers("共有三百零五座桥", "zh")
    assert "共有三百零五座桥"[found.start : found.end] == "三百零五"
    assert character_numbers("第五", "zh")[0].ordinal
    assert not character_numbers("plain ASCII", "zh")


LANGUAGES = ["de", "fr", "fr_CH", "fr_BE", "es", "pt", "pt_BR", "it", "id", "vi", "ko", "ja", "th"]


@pytest.mark.parametrize("name", LANGUAGES)
def test_an_independent_speller_is_understood(name: str) -> None:
    """num2words 0.5.14 writes 118 in Italian as "centodicotto", which is a slip; endings in 18 are left out there."""
    speller = pytest.importorskip("num2words")
    draw = random.Random(0)
    numbers = [
        *range(2, 130),
        *(draw.randrange(130, 10**4) for _ in range(60)),
        *(draw.randrange(10**4, 10**9) for _ in range(60)),
    ]
    if name == "it":
        numbers = [number for number in numbers if "18" not in str(number)]
    for number in numbers:
        spelled = speller.num2words(number, lang=name)
        assert values(spelled, name) == [number], spelled
