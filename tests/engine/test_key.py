"""Keys: equal for equal requests to equal models, different for all others, the same everywhere."""

from __future__ import annotations

import base64
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.images import Image
from evalwright.core.requests import (
    Classify,
    Embed,
    Generate,
    LogLikelihood,
    Message,
    Part,
    Request,
    Reward,
    RollingLogLikelihood,
)
from evalwright.engine.key import KEY_BYTES, KeyMaker, canonical, request_key

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), _VALUES, max_size=5))
def test_the_order_of_a_payload_does_not_matter(payload: dict[str, Any]) -> None:
    turned = dict(reversed(payload.items()))
    assert request_key("model", payload) == request_key("model", turned)


@given(st.text(), st.text(), st.text(), st.text())
def test_no_two_requests_share_a_key(
    one: str, other: str, first: str, second: str
) -> None:
    left = request_key(first, LogLikelihood(one, other).payload())
    right = request_key(second, LogLikelihood(other, one).payload())
    assert (left == right) == (first == second and one == other)


def test_every_kind_and_field_has_a_key_of_its_own() -> None:
    requests: list[Request] = [
        Generate("a"), Generate("a", draw=1), Generate("a", max_tokens=1), Generate("a", temperature=0.5),
        Generate("a", top_p=0.5), Generate("a", stop=("b",)), Generate("a", seed=1),
        Generate((Message("user", "a"),)), LogLikelihood("a", ""), LogLikelihood("", "a"),
        RollingLogLikelihood("a"), Embed("a"), Classify("a", ""), Reward("a", ""),
    ]  # fmt: skip
    keys = {
        request_key(model, request.payload())
        for model in ("m", "n")
        for request in requests
    }
    assert len(keys) == 2 * len(requests)
    assert all(len(key) == KEY_BYTES for key in keys)


def test_a_fingerprint_cannot_be_confused_with_a_payload() -> None:
    assert KeyMaker('a",{').key(b"}") != KeyMaker("a").key(b'",{}')


def test_lone_surrogates_have_keys() -> None:
    assert request_key("m", Generate("\ud800").payload()) != request_key(
        "m", Generate("\ud801").payload()
    )


_OLD_KEYS: list[tuple[Request, str]] = [
    (Generate("Hi"), "4bb41019367af3a0396d6153c3636b78"),
    (
        Generate("Hi", 32, 0.7, 0.9, ("\n", "Q:"), 7, 3),
        "f6f4e6aa7ef8f0a2f01492fe3d336fc8",
    ),
    (
        Generate(
            (
                Message("system", "Be brief."),
                Message("user", "2 + 2 = ?"),
                Message("assistant", "It is"),
            ),
            max_tokens=8,
        ),
        "291d39052d11d2143a16755d311f5c91",
    ),
    (
        Generate("一九四七年\ud800", temperature=1.0, draw=2),
        "17dd6b2a270fa451e3bdfd57012278d8",
    ),
    (LogLikelihood("A", "B"), "b0cf580a9ea0ae332a968343d94546ab"),
    (
        LogLikelihood((Message("user", "Q"),), " yes"),
        "394ce1c0146c716d2d579bcb617273a2",
    ),
    (RollingLogLikelihood("text"), "6c857681804feb119b33b8b49065286a"),
    (Embed("x"), "dd1b8eb148f2138c62bf8a1749187c5c"),
    (Classify("p", "h"), "653197714a4794d15e91d2be2a6ddee5"),
    (Reward("p", "r"), "99192f1a8fd64d61b13db68e910ac0d6"),
    (Reward((Message("user", "q"),), "r"), "54184fe0e5108a221c1871824fab4e7a"),
]


@pytest.mark.parametrize(("request_", "key"), _OLD_KEYS, ids=lambda one: str(one)[:30])
def test_stores_of_before_answer_what_they_answered(
    request_: Request, key: str
) -> None:
    """Written down before requests had images and further options."""
    assert request_key("model-1", request_.payload()).hex() == key


PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_new_options_and_images_name_a_request_by_their_content() -> None:
    image = Image.read(PIXEL, "a.png")
    copy = Image.read(PIXEL, "b.png")
    other = Image.read(PIXEL + b"more", "a.png")

    def shown(*parts: Part) -> Generate:
        return Generate((Message("user", parts),))

    requests: list[Request] = [
        Generate("a"), Generate("a", temperature=None), Generate("a", top_k=5), Generate("a", min_p=0.1),
        Generate("a", num_beams=2), Generate("a", num_beams=2, length_penalty=0.0),
        Generate("a", num_beams=2, early_stopping=True), Generate("a", num_beams=2, early_stopping="never"), Generate("a", top_logprobs=0), Generate("a", top_logprobs=1),
        Generate("a", reasoning_effort="low"), Generate("a", reasoning_budget=5),
        Generate("a", json_schema="{}"), shown("What is this?", image), shown(image, "What is this?"),
        shown("What is this?", other), shown("What is this?"),
    ]  # fmt: skip
    assert len({request_key("m", request.payload()) for request in requests}) == len(
        requests
    )
    again = request_key("m", shown(copy, "What is this?").payload())
    assert again == request_key("m", requests[14].payload())
    assert PIXEL not in canonical(requests[13].payload())


def test_keys_are_the_same_in_another_process() -> None:
    # A stored answer is worthless if this ever changes; see KEY_VERSION.
    request = Generate((Message("user", "é"),), max_tokens=5, stop=("\n",))
    code = (
        "from evalwright.engine.key import request_key\nfrom evalwright.core.requests import *\n"
        "print(request_key('fp', Generate((Message('user', 'é'),), max_tokens=5, stop=('\\n',)).payload()).hex())"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert (
        out.stdout.strip()
        == request_key("fp", request.payload()).hex()
        == "60abf68c86c30cd7c7e372fda9277921"
    )
