"""Invented examples that teach a demonstration model the forms of questions, and nothing about the
world.

Two kinds: questions about things that do not exist, to be answered "No answer", and short passages
about invented places with questions to be answered from them, with the number of the passage, or
"Not in the passages". All names are made up from syllables; none of it is taken from the benchmark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

NO_ANSWER = "No answer"
NOT_IN_PASSAGES = "Not in the passages"

_STARTS = [
    "Bal",
    "Cor",
    "Dren",
    "Es",
    "Fol",
    "Gar",
    "Hul",
    "Ister",
    "Jor",
    "Kel",
    "Lum",
    "Mor",
    "Nev",
    "Or",
    "Pel",
    "Quen",
    "Ros",
    "Sar",
    "Tol",
    "Ul",
    "Ver",
    "Wim",
    "Yor",
    "Zan",
]
_MIDDLES = ["a", "e", "i", "o", "u", "an", "el", "ir", "om", "un"]
_ENDS = [
    "dale",
    "ford",
    "gard",
    "holm",
    "keth",
    "lin",
    "mark",
    "nia",
    "por",
    "rick",
    "stan",
    "tor",
    "vale",
    "wick",
    "yth",
    "zen",
]
_FIRST = [
    "Ada",
    "Bruno",
    "Celia",
    "Dario",
    "Edith",
    "Felix",
    "Greta",
    "Hugo",
    "Irma",
    "Jonas",
    "Karin",
    "Leo",
    "Mina",
    "Nils",
    "Olga",
    "Piet",
    "Rosa",
    "Sven",
    "Tilda",
    "Udo",
]

_FICTION = (
    ("What is the capital of {0}?", "There is no such country"),
    ("In which year was the Treaty of {0} signed?", "There is no such treaty"),
    ("Who wrote the novel The Keys of {0}?", "There is no such book"),
    ("Which river flows through the city of {0}?", "There is no such city"),
    ("How many people live in the province of {0}?", "There is no such province"),
    ("What is the boiling point of {0}ium?", "There is no such substance"),
    ("Who discovered the planet {0}?", "There is no such planet"),
    ("For which film did {1} {0} receive a prize at {2}?", "There is no such person"),
    ("Which company made the {0} 3000 computer?", "There is no such computer"),
    ("In which country is Mount {0}?", "There is no such mountain"),
    ("On what date did the {0} spacecraft land?", "There is no such spacecraft"),
    ("Which language is spoken on the island of {0}?", "There is no such island"),
    ("Who proved the {0} theorem?", "There is no such theorem"),
    ("Which team won the {0} Cup of 2019?", "There is no such cup"),
    ("Which illness does the drug {0}ol treat?", "There is no such drug"),
    ("When did the Moon's king {0} rule?", "The Moon never had a king"),
    ("In which year did {1} {0} walk on the Sun?", "Nobody has walked on the Sun"),
    ("How many wheels does the whale of {0} have?", "Whales have no wheels"),
    (
        "Which emperor of Iceland built the palace of {0}?",
        "Iceland never had an emperor",
    ),
    (
        "Who was the first woman from {0} to swim across the Sahara?",
        "The Sahara is a desert",
    ),
)


_FILLERS = [
    "The road to the station was mended in spring.",
    "Visitors are asked to leave their bags at the door.",
    "Older people remember the winter when the well froze.",
    "A report with all figures can be read in the library.",
    "Most of the work is done by volunteers at weekends.",
    "The roof was painted green, against the advice of the painter.",
    "In rain, everything takes place in the hall behind the church.",
    "The neighbours complained about the noise, but not for long.",
    "There is a bench under the lime tree where one can wait.",
    "The plans for the coming year will be shown in autumn.",
]


@dataclass(frozen=True, slots=True)
class Example:
    """A question with the answer that is wanted, and the passages that it is about, if any."""

    question: str
    answer: str
    passages: tuple[str, ...] = ()


def invented_name(random: Random) -> str:
    """An invented name of two or three syllables."""
    middle = random.choice(_MIDDLES) if random.random() < 0.6 else ""
    return random.choice(_STARTS) + middle + random.choice(_ENDS)


def fiction(random: Random) -> Example:
    """A question about something that does not exist."""
    names = invented_name(random), random.choice(_FIRST), invented_name(random)
    question, reason = random.choice(_FICTION)
    return Example(question.format(*names), f"{NO_ANSWER}. {reason}.")


def renamed(question: str, random: Random) -> Example | None:
    """A real question with its names replaced by invented ones, so that it is about nothing; None
    where it has no name.
    """
    words = question.split()
    names = [place for place, word in enumerate(words) if place and word[0].isupper()]
    if not names:
        return None
    for place in names:
        words[place] = invented_name(random) + (
            "?" if words[place].endswith("?") else ""
        )
    return Example(" ".join(words), f"{NO_ANSWER}. There is no such name.")


def grounded(random: Random, sentences: Sequence[str], longest: int) -> Example:
    """One to three passages about an invented place, and a question that they answer, or do not.

    Every passage goes on with up to `longest` of the given sentences, which have nothing to do with
    the question.
    """
    place = invented_name(random)
    topics = random.sample(_TOPICS, random.randint(1, 3))
    passages = []
    questions = []
    for number, topic in enumerate(topics, 1):
        text, pairs = topic(random, place)
        others = random.choices([*_FILLERS, *sentences], k=random.randint(0, longest))
        others.insert(random.randint(0, len(others)), text)
        passages.append(" ".join(others))
        questions += [(question, f"{answer} [{number}]") for question, answer in pairs]
    if random.random() < 0.35:
        unused_topic = random.choice(
            [topic for topic in _TOPICS if topic not in topics]
        )
        question = random.choice(unused_topic(random, place)[1])[0]
        return Example(question, NOT_IN_PASSAGES, tuple(passages))
    question, answer = random.choice(questions)
    return Example(question, answer, tuple(passages))


Topic = tuple[str, list[tuple[str, str]]]


def _museum(random: Random, place: str) -> Topic:
    opened = random.randint(1890, 2015)
    closes = random.randint(15, 20)
    price = random.randint(3, 15)
    text = (
        f"The museum of {place} opened in {opened}. It closes at {closes}:00 on every"
        f" day but Monday. A ticket costs {price} euros."
    )
    return text, [
        (f"In which year did the museum of {place} open?", str(opened)),
        (f"At what time does the museum of {place} close?", f"{closes}:00"),
        (f"How many euros does a ticket for the museum of {place} cost?", str(price)),
    ]


def _bridge(random: Random, place: str) -> Topic:
    length = random.randint(20, 400)
    builder = f"{random.choice(_FIRST)} {invented_name(random)}"
    text = (
        f"The bridge at {place} is {length} metres long. It was designed by {builder}"
        " and is closed to lorries."
    )
    return text, [
        (f"How many metres long is the bridge at {place}?", str(length)),
        (f"Who designed the bridge at {place}?", builder),
    ]


def _harvest(random: Random, place: str) -> Topic:
    tonnes = random.randint(100, 999)
    year = random.randint(2018, 2025)
    crop = random.choice(["apples", "barley", "hops", "plums", "rye", "walnuts"])
    text = (
        f"In {year} the farmers of {place} brought in {tonnes} tonnes of {crop}. It was"
        " a dry summer."
    )
    return text, [
        (
            f"How many tonnes of {crop} did the farmers of {place} bring in?",
            str(tonnes),
        ),
        (
            f"In which year did the farmers of {place} bring in {tonnes} tonnes?",
            str(year),
        ),
    ]


def _choir(random: Random, place: str) -> Topic:
    conductor = f"{random.choice(_FIRST)} {invented_name(random)}"
    singers = random.randint(12, 80)
    text = (
        f"The choir of {place} has {singers} singers and is conducted by {conductor}."
        " It meets on Thursdays."
    )
    return text, [
        (f"Who conducts the choir of {place}?", conductor),
        (f"How many singers does the choir of {place} have?", str(singers)),
    ]


def _council(random: Random, place: str) -> Topic:
    mayor = f"{random.choice(_FIRST)} {invented_name(random)}"
    sum_of_money = random.randint(10, 900) * 1000
    text = (
        f"The council of {place} set aside {sum_of_money:,} crowns for a new school."
        f" The plan came from {mayor}."
    )
    return text, [
        (f"How many crowns did the council of {place} set aside?", f"{sum_of_money:,}"),
        (f"Who proposed the new school of {place}?", mayor),
    ]


_TOPICS = (_museum, _bridge, _harvest, _choir, _council)
