"""Numbers in answers: values in many spellings, units, tolerance, and which of several numbers answers."""

from __future__ import annotations

from typing import Any

import pytest

from scorers.scoring import CORRECT, INCORRECT, NOT_ATTEMPTED, Row, check

PLAIN: list[Row] = [
    ("305", "three hundred and five", CORRECT, "a group with and"),
    ("305", "three hundred five", CORRECT, "a group without and"),
    ("1500000", "1.5 million", CORRECT, "a magnitude in the reply"),
    ("1.5 million", "1,500,000", CORRECT, "a magnitude in the target"),
    ("2.5", "two and a half", CORRECT, "a mixed number"),
    ("2.5", "2½", CORRECT, "a vulgar fraction"),
    ("2.5", "2 1/2", CORRECT, "a mixed number in digits"),
    ("0.5", "1/2", CORRECT, "a fraction"),
    ("0.5", "one half", CORRECT, "a fraction in words"),
    ("0.5", "\\frac{1}{2}", CORRECT, "a fraction in LaTeX"),
    ("2/3", "two thirds", CORRECT, "a fraction as the target"),
    ("0.75", "three quarters", CORRECT, "quarters"),
    ("5", "5th", CORRECT, "an ordinal"),
    ("5", "fifth", CORRECT, "an ordinal in words"),
    ("21", "twenty-first", CORRECT, "a compound ordinal"),
    ("121", "one hundred twenty-one", CORRECT, "a compound"),
    ("1200000", "one million two hundred thousand", CORRECT, "two magnitudes"),
    ("2305", "two thousand, three hundred and five", CORRECT, "a comma after a magnitude"),
    ("1984", "nineteen eighty-four", CORRECT, "a year in words"),
    ("2024", "twenty twenty-four", CORRECT, "a year in words"),
    ("1905", "nineteen oh five", CORRECT, "a year in words"),
    ("3.14", "three point one four", CORRECT, "decimals in words"),
    ("12", "a dozen", CORRECT, "a dozen"),
    ("100", "a hundred", CORRECT, "with an article"),
    ("500000", "half a million", CORRECT, "half of a magnitude"),
    ("2500000", "two and a half million", CORRECT, "a mixed number of a magnitude"),
    ("-5", "minus five", CORRECT, "a sign in words"),
    ("-5", "negative 5", CORRECT, "a sign in words"),
    ("-5", "−5", CORRECT, "a minus sign"),
    ("5", "-5", INCORRECT, "a sign"),
    ("1024", "1,024", CORRECT, "a comma"),
    ("1024", "1 024", CORRECT, "a space"),
    ("1024", "1\u00a0024", CORRECT, "a no-break space"),
    ("1024", "1\u202f024", CORRECT, "a narrow no-break space"),
    ("1024", "1_024", CORRECT, "an underscore"),
    ("1024", "1'024", CORRECT, "an apostrophe"),
    ("1024", "1\u2019024", CORRECT, "a typographic apostrophe"),
    ("1024", "1{,}024", CORRECT, "LaTeX"),
    ("1024", "1\\,024", CORRECT, "LaTeX"),
    ("1024", "1.024", INCORRECT, "a decimal point in English"),
    ("1234567", "1.234.567", CORRECT, "points that can only be groups"),
    ("1234.5", "1.234,5", CORRECT, "points and a decimal comma"),
    ("1234.5", "1,234.5", CORRECT, "a comma and a decimal point"),
    ("48.2", "48,2", CORRECT, "a comma that can only be decimal"),
    ("0.125", "0,125", CORRECT, "a comma after a zero can only be decimal"),
    ("602200000000000000000000", "6.022 × 10²³", CORRECT, "a power of ten"),
    ("602200000000000000000000", "6.022e23", CORRECT, "an exponent"),
    ("602200000000000000000000", "6.022 \\times 10^{23}", CORRECT, "LaTeX"),
    ("1000000", "10^6", CORRECT, "a power of ten alone"),
    ("10000", "10k", CORRECT, "k"),
    ("1200000000", "1.2bn", CORRECT, "bn"),
    ("9", "٩", CORRECT, "Arabic-Indic digits"),
    ("100", "१००", CORRECT, "Devanagari digits"),
    ("30000", "3万", CORRECT, "a Chinese magnitude"),
    ("250000000", "2億5000万", CORRECT, "two Japanese magnitudes"),
    ("5", "5개", CORRECT, "a Korean counter"),
    ("0", "zero", CORRECT, "zero"),
    ("0", "None.", CORRECT, "none is zero"),
    ("0", "There are no moons", CORRECT, "no is zero"),
    ("0", "10", INCORRECT, "another number"),
    ("1", "Only one", CORRECT, "one as a count"),
    ("1", "one of them", INCORRECT, "one as a pronoun"),
    ("1", "no one", INCORRECT, "no one"),
    ("5", "51", INCORRECT, "a digit more"),
    ("5", "15", INCORRECT, "a digit more"),
    ("5", "5.1", INCORRECT, "decimals"),
    ("5", "5.0", CORRECT, "decimals that are zero"),
    ("5", "1,005", INCORRECT, "a part of a group"),
    ("5", "5 million", INCORRECT, "a magnitude"),
    ("10", "10,000", INCORRECT, "another number"),
    ("10", "ten thousand", INCORRECT, "another number in words"),
    ("3", "Python 3.14", INCORRECT, "a part of a version"),
    ("5", "5.0.1", INCORRECT, "a version"),
    ("1990", "the 1990s", INCORRECT, "a decade"),
    ("44", "44 BC", INCORRECT, "before the era"),
    ("3", "3I/ATLAS", INCORRECT, "a part of a name"),
    ("5", "Many", INCORRECT, "no number"),
    ("203", "FIPS 203", CORRECT, "a designation"),
    ("42", "6 × 7 = 42", CORRECT, "after the equals sign"),
    ("6", "6 × 7 = 42", INCORRECT, "before the equals sign"),
    ("5", "five (5)", CORRECT, "in words and digits"),
    ("5", "\\boxed{5}", CORRECT, "LaTeX"),
    ("5", "5 or 6", INCORRECT, "two candidates"),
    ("5", "5-10", INCORRECT, "a range"),
    ("5", "5 to 10", INCORRECT, "a range"),
    ("5", "between 5 and 10", INCORRECT, "a range"),
    ("10", "5–10", INCORRECT, "a range"),
    ("5", "not 5 but 6", INCORRECT, "denied"),
    ("6", "not 5 but 6", CORRECT, "the other one is denied"),
    ("5", "It isn't 5.", INCORRECT, "denied"),
    ("5", "more than 5", INCORRECT, "a bound"),
    ("5", "fewer than 5", INCORRECT, "a bound"),
    ("5", "about 5", CORRECT, "a hedge"),
    ("41024320", "41 million", INCORRECT, "rounded, where exact is asked"),
    ("1980", "8 May 1980", CORRECT, "the year in a date"),
    ("1980", "1980-05-08", CORRECT, "the year in a date"),
    ("8", "8 May 1980", INCORRECT, "a day in a date"),
    ("5", "I don't know", NOT_ATTEMPTED, "no answer"),
]  # fmt: skip
UNITS: list[tuple[str, str, str, str]] = [
    ("38 m", "38", CORRECT, "a missing unit"),
    ("38 m", "38 m", CORRECT, "the unit"),
    ("38 m", "38m", CORRECT, "without a space"),
    ("38 m", "38-metre", CORRECT, "as an adjective"),
    ("38 m", "thirty-eight metres", CORRECT, "in words"),
    ("38 m", "38 meters long", CORRECT, "American spelling"),
    ("38 m", "0.038 km", CORRECT, "converted"),
    ("38 m", "3,800 cm", CORRECT, "converted"),
    ("38 m", "38 km", INCORRECT, "another prefix"),
    ("38 m", "38 kg", INCORRECT, "another kind of unit"),
    ("38 m", "38 seconds", INCORRECT, "another kind of unit"),
    ("6.30 m", "6 m 30 cm", CORRECT, "two parts"),
    ("8848.86 m", "29,032 ft", CORRECT, "converted and rounded"),
    ("8848.86 m", "29,000 ft", INCORRECT, "rounded too much"),
    ("70 min", "1 h 10 min", CORRECT, "two parts"),
    ("70 min", "an hour and ten minutes", CORRECT, "two parts in words"),
    ("70 min", "4200 seconds", CORRECT, "converted"),
    ("70 min", "70 hours", INCORRECT, "another unit"),
    ("14 days", "two weeks", CORRECT, "converted"),
    ("90 days", "ninety", CORRECT, "a missing unit"),
    ("24 month", "two years", CORRECT, "converted"),
    ("312 t", "312,000 kg", CORRECT, "converted"),
    ("2.4 kg", "2400 g", CORRECT, "converted"),
    ("768 MB", "768 megabytes", CORRECT, "the unit's name"),
    ("768 MB", "0.768 GB", CORRECT, "converted"),
    ("768 MB", "768 Mb", INCORRECT, "bits are not bytes"),
    ("128 bit", "16 bytes", CORRECT, "converted"),
    ("4.9 GWh", "4,900 MWh", CORRECT, "converted"),
    ("4.9 GWh", "4.9 gigawatt hours", CORRECT, "the unit's name"),
    ("69 MJ", "69,000 kJ", CORRECT, "converted"),
    ("3.6 MJ", "1 kWh", CORRECT, "joules and watt hours"),
    ("100 W", "100 J/s", CORRECT, "composed"),
    ("3.8 %", "3.8 per cent", CORRECT, "in words"),
    ("3.8 %", "3.8 kg", INCORRECT, "another kind of unit"),
    ("-24.3 °C", "−24.3 °C", CORRECT, "a minus sign"),
    ("-24.3 °C", "24.3 degrees below zero", CORRECT, "below zero"),
    ("-24.3 °C", "24.3 °C", INCORRECT, "the sign"),
    ("100 °C", "212 °F", CORRECT, "converted with an offset"),
    ("100 °C", "100 °F", INCORRECT, "another scale"),
    ("100 °C", "373.15 K", CORRECT, "converted with an offset"),
    ("25 °C", "25 C", CORRECT, "without a degree sign"),
    ("299792458 m/s", "299 792 458 metres per second", CORRECT, "composed in words"),
    ("299792458 m/s", "299,792.458 km/s", CORRECT, "composed and converted"),
    ("50 km/h", "50 kilometers an hour", CORRECT, "composed in words"),
    ("5 km²", "500 ha", CORRECT, "areas"),
    ("5 km²", "5 square kilometres", CORRECT, "areas in words"),
    ("5 m³", "5000 litres", CORRECT, "volumes"),
    ("5 m²", "5 m", INCORRECT, "a length is no area"),
    ("48200000 crowns", "48.2 million crowns", CORRECT, "money with a magnitude"),
    ("48200000 crowns", "48.2 million", CORRECT, "money without its name"),
    ("48200000 crowns", "48.2", INCORRECT, "the magnitude is missing and was not asked for"),
    ("48200000 crowns", "48.2 million dollars", INCORRECT, "another currency"),
    ("236.4 million US dollars", "$236.4 million", CORRECT, "a sign before the number"),
    ("236.4 million US dollars", "236.4", CORRECT, "in the unit that was asked for"),
    ("236.4 million US dollars", "236.4 million", CORRECT, "a magnitude without a currency"),
    ("236.4 million US dollars", "US$236,400,000", CORRECT, "written out"),
    ("236.4 million US dollars", "€236.4 million", INCORRECT, "another currency"),
    ("300 billion US dollars", "$300 billion a year", CORRECT, "a rate as it was asked for"),
    ("300 billion US dollars", "300 billion US dollars per year", CORRECT, "a rate as it was asked for"),
    ("300 billion US dollars", "300 million dollars", INCORRECT, "another magnitude"),
    ("3.125 BTC", "3.125 bitcoins", CORRECT, "a unit's name"),
    ("40 zorks", "40 zorks", CORRECT, "a unit that no table has"),
    ("40 zorks", "40 kg", INCORRECT, "a known unit for one that no table has"),
]  # fmt: skip
TOLERANCE: list[tuple[str, str, dict[str, float], str, str]] = [
    ("6961", "6971", {"absolute": 10}, CORRECT, "at the edge"),
    ("6961", "6972", {"absolute": 10}, INCORRECT, "beyond the edge"),
    ("1642", "1,620 m", {"relative": 0.02}, CORRECT, "within"),
    ("1642", "1,600 m", {"relative": 0.02}, INCORRECT, "beyond"),
    ("1642", "5,387 ft", {"relative": 0.02}, CORRECT, "converted and within"),
    ("-273.15", "-273", {"absolute": 0.2}, CORRECT, "negative numbers"),
    ("-273.15", "0 K", {"absolute": 0.2}, CORRECT, "zero of another scale"),
    ("139255", "nearly 140,000", {"relative": 0.01}, CORRECT, "a rounded number"),
    ("5", "5.0001", {}, INCORRECT, "exact without a tolerance"),
    ("0", "0.005", {"relative": 0.1}, INCORRECT, "a share of zero is zero"),
]
POSITION: list[tuple[str, str, str, str, str]] = [
    ("How many confirmed moons did Saturn have after 128 new ones were announced in March 2025?", "274",
     "After 128 new ones were announced in March 2025, Saturn had 274 confirmed moons.", CORRECT, "numbers of the question"),
    ("How many moons does Saturn have?", "274", "Of the 8 planets, Saturn has the most: 274 moons.", CORRECT, "the noun that is counted"),
    ("How many planets are there?", "8", "In 2006, the number became 8.", CORRECT, "a year beside the answer"),
    ("In which year did World War 2 end?", "1945", "World War 2 ended on 2 September 1945, six years after it began.", CORRECT, "the year"),
    ("In which year was the peace signed?", "1648", "It was signed on 24 October 1648 in Münster.", CORRECT, "the year in a date"),
    ("How many qubits does Willow have?", "105", "Willow has 105 qubits, and Sycamore had 53.", CORRECT, "the first"),
    ("How many qubits does Willow have?", "53", "Willow has 105 qubits, and Sycamore had 53.", INCORRECT, "not any number will do"),
    ("What is 17*23?", "391", "17 × 23 is 391", CORRECT, "the operands are the question's"),
    ("What is the square root of 144?", "12", "The square root of 144 is 12.", CORRECT, "the operand is the question's"),
    ("How many keys has a piano?", "88", "88 keys: 52 white and 36 black.", CORRECT, "the first"),
    ("How many groups are there?", "26", "There are 26 groups (27 with the Tits group).", CORRECT, "an aside in brackets"),
    ("How many flights did it make?", "72", "It made 72 flights over almost 3 years.", CORRECT, "the noun that is counted"),
]  # fmt: skip


@pytest.mark.parametrize("row", PLAIN, ids=lambda row: f"{row[0]}~{row[1]}")
def test_numbers(row: Row) -> None:
    check(row, answer_type="number")


@pytest.mark.parametrize("row", UNITS, ids=lambda row: f"{row[0]}~{row[1]}")
def test_units(row: tuple[str, str, str, str]) -> None:
    value, unit = row[0].split(" ", 1)
    check((value, *row[1:]), answer_type="number", unit=unit)


@pytest.mark.parametrize("row", TOLERANCE, ids=lambda row: f"{row[0]}~{row[1]}")
def test_tolerance(row: tuple[str, str, dict[str, float], str, str]) -> None:
    target, reply, tolerance, label, reason = row
    unit = "°C" if target.startswith("-") else "m" if reply.endswith(("m", "ft")) else ""
    metadata: dict[str, Any] = {"tolerance": tolerance, "unit": unit}
    check((target, reply, label, reason), answer_type="number", **metadata)


@pytest.mark.parametrize("row", POSITION, ids=lambda row: f"{row[4]}: {row[1]}")
def test_the_number_in_the_answer_position_counts(row: tuple[str, str, str, str, str]) -> None:
    question, target, reply, label, reason = row
    check((target, reply, label, reason), question, answer_type="number")


def test_a_decimal_comma_follows_the_language() -> None:
    check(("1234", "1.234", CORRECT, "groups in German"), answer_type="number", language="de")
    check(("1.234", "1,234", CORRECT, "decimals in German"), answer_type="number", language="de")
    check(("1.234", "1,234", INCORRECT, "groups in English"), answer_type="number", language="en")
