"""Scripted models of inspect_ai on tasks of four kinds, whose logs both viewers show.

python viewed.py SAMPLES
"""

import base64
import random
import re
import struct
import sys
import zlib

import tiktoken


class Words:
    def encode(self, text, **options):
        return text.split()


# Its token counter downloads a vocabulary; counting words instead needs no network.
tiktoken.get_encoding = tiktoken.encoding_for_model = lambda name: Words()

# ruff: noqa: E402  # the counter has to be replaced first
from inspect_ai import Task, eval, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessageUser,
    ContentImage,
    ContentText,
    ModelOutput,
    get_model,
)
from inspect_ai.scorer import Score, choice, includes, match, mean, scorer, stderr
from inspect_ai.solver import generate, multiple_choice, system_message

CITIES = {
    "France": "Paris",
    "Peru": "Lima",
    "Fiji": "Suva",
    "Chile": "Santiago",
    "Norway": "Oslo",
    "Ghana": "Accra",
    "Laos": "Vientiane",
    "Kenya": "Nairobi",
    "Korea": "Seoul",
    "Cuba": "Havana",
    "Italy": "Rome",
    "Egypt": "Cairo",
}
COUNTRIES = list(CITIES)


def picture(seed):
    pixels = b"".join(
        b"\0" + bytes(c for x in range(48) for c in (x * 5, y * 5, seed * 77 % 256))
        for y in range(48)
    )

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", 48, 48, 8, 2, 0, 0, 0)
    png = (
        chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(pixels))
        + chunk(b"IEND", b"")
    )
    return (
        "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + png).decode()
    )


@task
def capitals():
    draw = random.Random(1)
    samples = []
    for index in range(120):
        country = COUNTRIES[index % 12]
        options = draw.sample([c for c in CITIES.values() if c != CITIES[country]], 3)
        options.insert(draw.randrange(4), CITIES[country])
        samples.append(
            Sample(
                id=f"cap-{index:03d}",
                choices=options,
                input=f"What is the capital of {country}? (variant {index // 12})",
                target="ABCD"[options.index(CITIES[country])],
                metadata={"topic": ("geography", "history", "language")[index % 3]},
            )
        )
    return Task(
        dataset=MemoryDataset(samples), solver=multiple_choice(), scorer=choice()
    )


@scorer(metrics=[mean(), stderr()])
def word_overlap():
    async def score(state, target):
        answer = set(state.output.completion.lower().split())
        expected = set(target.text.lower().split())
        shared = len(answer & expected)
        reason = f"{shared} of {len(answer | expected)} words are shared."
        return Score(value=shared / len(answer | expected), explanation=reason)

    return score


@scorer(metrics=[mean(), stderr()])
def length():
    async def score(state, target):
        return Score(value=float(len(state.output.completion.split())))

    return score


@task
def summaries():
    samples = [
        Sample(
            id=f"sum-{index:03d}",
            input=f"Summarise in one sentence: The city of {CITIES[COUNTRIES[index % 12]]} opened a"
            f" library on Monday. It has {index + 10} rooms and was paid for by the citizens.",
            target=f"{CITIES[COUNTRIES[index % 12]]} opened a library with {index + 10} rooms that"
            " its citizens paid for.",
        )
        for index in range(60)
    ]
    solver = [system_message("You are a careful editor."), generate()]
    return Task(
        dataset=MemoryDataset(samples), solver=solver, scorer=[word_overlap(), length()]
    )


@task
def pictures():
    samples = [
        Sample(
            id=f"pic-{index:02d}",
            target="a gradient",
            input=[
                ChatMessageUser(
                    content=[
                        ContentText(text=f"What is in picture {index}?"),
                        ContentImage(image=picture(index)),
                    ]
                )
            ],
        )
        for index in range(12)
    ]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=includes())


@task
def sums():
    samples = [
        Sample(
            id=f"add-{index:05d}",
            input=f"What is {index} + {index * 7 % 1000}?",
            target=str(index + index * 7 % 1000),
        )
        for index in range(int(sys.argv[1]))
    ]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=match())


def scripted(name, share):
    draw = random.Random(name)

    def reply(messages, tools, tool_choice, config):
        text = messages[-1].text
        is_right = draw.random() < share
        if "capital of" in text:
            city = CITIES[re.search(r"capital of (\w+)", text)[1]]
            letter = re.search(rf"([A-D])\) {city}", text)[1]
            said = city if is_right else "another city"
            letter = letter if is_right else "BCDA"["ABCD".index(letter)]
            answer = f"I think of {said}.\n\nANSWER: {letter}"
        elif "Summarise" in text:
            city = re.search(r"city of (\w+)", text)[1]
            rooms = re.search(r"has (\d+)", text)[1]
            answer = f"{city} opened a library with {rooms} rooms that its citizens paid for."
            answer = (
                answer if is_right else f"A library was opened in {city} on Monday."
            )
        elif "picture" in text:
            answer = "It shows a gradient." if is_right else "It shows a cat."
        else:
            first, second = map(int, re.findall(r"\d+", text)[:2])
            answer = str(first + second if is_right else first - second)
        return ModelOutput.from_content(name, answer)

    return get_model(f"mockllm/{name}", custom_outputs=reply, memoize=False)


shown = {"display": "none", "max_samples": 256}
for name, share in (("strong", 0.8), ("weak", 0.6)):
    for make in (capitals, summaries, pictures):
        eval(make(), model=scripted(name, share), log_dir="logs", **shown)
eval(sums(), model=scripted("strong", 0.8), log_dir="many", **shown)
