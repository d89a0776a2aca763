"""Word lists: small, general, English unless said otherwise. Texts in other languages are judged by the features that need none."""

from __future__ import annotations

from importlib.resources import files


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


FUNCTION_WORDS = _set(
    """a about above after again against all also am among an and another any are around as at away back be because been
    before being below between both but by came can come could did do does doing done down during each either else even
    ever every few for from further gave get gets getting give given go goes going gone got had has have having he her here
    hers herself him himself his how however i if in instead into is it its itself just let like made make makes many may me
    might more most much must my near no nor not now of off often on once one only or other others ought our out over own
    part per put quite rather said same say says see seem seems shall she should since so some soon still such take taken takes
    than that the their theirs them themselves then there these they thing things this those though through thus to together
    too took toward towards under until up upon us use used very was way we well went were what when where whether which while
    who whom whose why will with within without would yet you your"""
)
"""Words that say little about what a sentence is about."""

HEDGES = _set(
    """may might could possibly perhaps maybe probably likely unlikely apparently seem seems seemed appear appears appeared suspect
    suspects suspected suggests suggested think thinks thought believe believes believed expect expects expected hope hopes hoped
    claim claims claimed allege alleges alleged reportedly estimated would should plan plans planned propose proposes proposed
    considers considering potential potentially tentative unless provided condition conditions partly"""
)
"""Words that leave open whether it is so."""

NEGATIVES = _set(
    """no not n't never none nobody nothing neither nor without cannot hardly barely scarcely fail fails failed lack lacks lacked
    lacking deny denies denied declined declines unable except"""
)
"""Words that deny what stands beside them."""

ROLE_PREPOSITIONS = _set("against to from by for than")
"""Words that say which part the noun after them has in what happens."""

ABSOLUTES = _set(
    """all every any always everyone everybody everything entirely completely fully totally wholly never none nobody only
    prove proves proved proven certain certainly definitely undoubtedly guarantee guarantees guaranteed must exactly first
    unique best worst cure cures cured eliminate eliminates eliminated confirmed establish established shown both each"""
)

ROUNDING = _set("about around almost approximately close nearly over roughly some under than above below")
"""Words before a number that is not meant exactly."""

CONTRASTED = _set(
    """more less fewer most least above below over under before after first last always never same both all"""
)
"""Words of little content that are opposites of others nevertheless."""

SINGLE_CAUSES = _set("because since owing due thanks therefore hence blamed attributed")
"""Words that say outright that one thing is why another is so."""

DAYTIMES = _set("dawn noon midnight dusk morning afternoon evening night")

CLAUSE_BREAKS = _set(
    "and but while whereas because although though since which who whose when where if so unless after before"
)


def _lines(name: str) -> tuple[str, ...]:
    return tuple((files(__package__) / "tables" / name).read_text(encoding="utf-8").splitlines())


ANTONYMS: tuple[tuple[str, str], ...] = tuple(
    (one, other) for one, _, other in (line.partition("|") for line in _lines("antonyms.txt"))
)
"""Words of one side against those of the other."""

SYNONYMS = _lines("synonyms.txt")
"""Groups of words that often stand for one another."""

IRREGULAR: dict[str, str] = {
    word: line.split()[0] for line in _lines("irregular.txt") for word in line.split()[1:]
}
"""Forms that endings do not tell, and nouns of verbs, with the word that they are forms of."""

NUMBER_WORDS: dict[str, float] = {
    word: float(value)
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
} | {
    word: 10.0 * (place + 2)
    for place, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
    )
}
SCALES: dict[str, float] = {
    "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12.0,
}  # fmt: skip
ORDINALS: dict[str, float] = {
    word: float(place + 1)
    for place, word in enumerate(
        [
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "sixth",
            "seventh",
            "eighth",
            "ninth",
            "tenth",
            "eleventh",
            "twelfth",
        ]
    )
}
FRACTIONS: dict[str, float] = {
    "half": 0.5,
    "halves": 0.5,
    "quarter": 0.25,
    "quarters": 0.25,
    "thirds": 1 / 3,
    "fifths": 0.2,
}
MULTIPLES: dict[str, float] = {"twice": 2.0, "double": 2.0, "doubled": 2.0, "thrice": 3.0, "triple": 3.0, "tripled": 3.0, "threefold": 3.0, "twofold": 2.0}  # fmt: skip

MONTHS: dict[str, int] = {
    name: place // 2 + 1
    for place, name in enumerate(
        [
            "january",
            "jan",
            "february",
            "feb",
            "march",
            "mar",
            "april",
            "apr",
            "may",
            "may",
            "june",
            "jun",
            "july",
            "jul",
            "august",
            "aug",
            "september",
            "sept",
            "october",
            "oct",
            "november",
            "nov",
            "december",
            "dec",
        ]
    )
}
WEEKDAYS = _set("monday tuesday wednesday thursday friday saturday sunday")
CALENDAR = (
    frozenset(set(MONTHS) - {"may", "mar", "march"})
    | WEEKDAYS
    | {day + "s" for day in WEEKDAYS}
    | _set("spring summer autumn winter")
)

UNITS: dict[str, str] = {
    name: kind
    for kind, names in {
        "second": "second seconds sec secs", "minute": "minute minutes min mins", "hour": "hour hours hr hrs hourly",
        "day": "day days daily", "week": "week weeks weekly fortnight fortnights", "month": "month months monthly",
        "year": "year years yearly annual annually", "decade": "decade decades", "century": "century centuries",
        "millimetre": "mm millimetre millimetres millimeter millimeters", "centimetre": "cm centimetre centimetres centimeter centimeters",
        "metre": "m metre metres meter meters", "kilometre": "km kilometre kilometres kilometer kilometers", "mile": "mile miles",
        "foot": "foot feet ft", "inch": "inch inches", "gram": "g gram grams", "kilogram": "kg kilogram kilograms kilo kilos",
        "milligram": "mg milligram milligrams", "tonne": "t tonne tonnes ton tons", "litre": "l litre litres liter liters",
        "percent": "% percent percentage per_cent", "point": "point points", "degree": "° degree degrees",
        "watt": "watt watts w", "kilowatt": "kw kilowatt kilowatts", "megawatt": "mw megawatt megawatts",
        "dollar": "$ dollar dollars", "euro": "€ euro euros", "pound": "£ pound pounds", "crown": "crown crowns",
        "hectare": "hectare hectares ha", "acre": "acre acres",
    }.items()
    for name in names.split()
}  # fmt: skip
"""Units of measure by their names. Two different ones beside one number are a mismatch."""
