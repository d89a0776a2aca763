"""A judge that reads what it is asked as a careful reader would, for the test server: the
material by its tags, the form by its fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_TAG = re.compile(
    r'<(?P<name>[\w-]+) mark="(?P<mark>[0-9a-f]{16})">\n(?P<text>.*?)\n</(?P=name) mark="(?P=mark)">',
    re.DOTALL,
)
_CRITERION = re.compile(r"^(c\d+): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Asked:
    """A question as it came over the wire: the mark, the texts by their tags, the criteria by
    their keys, the fields of the form.
    """

    mark: str
    material: Mapping[str, str]
    criteria: Mapping[str, str]
    fields: tuple[str, ...]


def read_question(prompt: str) -> Asked:
    """The question in a prompt; fails where something of it is not in its place."""
    tags = list(_TAG.finditer(prompt))
    assert tags, prompt
    (mark,) = {tag["mark"] for tag in tags}
    body = prompt[tags[-1].end() :]
    assert prompt.count(mark) == 2 * len(tags) + 1, (
        "the mark stands in the tags and once in the form"
    )
    form = body[body.rindex("\n{") + 1 :]
    assert form.startswith(f'{{"check": "{mark}"')
    fields = tuple(re.findall(r'[{,] ?"([\w-]+)": ', form))
    return Asked(
        mark,
        {tag["name"]: tag["text"] for tag in tags},
        dict(_CRITERION.findall(body)),
        fields,
    )


Decides = Callable[[Asked], Mapping[str, Any] | str]
"""The values of the form, or a reply as it is."""


def judge(decides: Decides) -> Callable[[str], str]:
    """What the server answers: the values of the form with the mark, or a text."""

    def answer(prompt: str) -> str:
        question = read_question(prompt)
        values = decides(question)
        if isinstance(values, str):
            return values
        return json.dumps({"check": question.mark, **values}, ensure_ascii=False)

    return answer
