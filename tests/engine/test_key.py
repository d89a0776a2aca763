"""Keys: equal for equal requests to equal models, different for all others, the same everywhere."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.requests import (
    Classify,
    Embed,
    Generate,
    LogLikelihood,
    Message,
    Request,
    Reward,
    RollingLogLikelihood,
)
from evalwright.engine.key import KEY_BYTES, KeyMaker, request_key

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), _VALUES, max_size=5))
def test_the_order_of_a_payload_does_not_matter(payload: dict[str, Any]) -> None:
    turned = dict(reversed(payload.items()))
    assert request_key("model", payload) == request_key("model", turned)


@given(st.text(), st.text(), st.text(), st.text())
def test_no_two_requests_share_a_key(one: str, other: str, first: str, second: str) -> None:
    left = request_key(first, LogLikelihood(one, other).payload())
    right = request_key(second, LogLikelihood(other, one).payload())
    assert (left == right) == (first == second and one == other)


def test_every_kind_and_field_has_a_key_of_its_own() -> None:
    requests: list[Request] = [
        Generate("a"),
        Generate("a", draw=1),
        Generate("a", max_tokens=1),
        Generate("a", temperature=0.5),
        Generate("a", top_p=0.5),
        Generate("a", stop=("b",)),
        Generate("a", seed=1),
        Generate((Message("user", "a"),)),
        LogLikelihood("a", ""),
        LogLikelihood("", "a"),
        RollingLogLikelihood("a"),
        Embed("a"),
        Classify("a", ""),
        Reward("a", ""),
    ]
    keys = {request_key(model, request.payload()) for model in ("m", "n") for request in requests}
    assert len(keys) == 2 * len(requests)
    assert all(len(key) == KEY_BYTES for key in keys)


def test_a_fingerprint_cannot_be_confused_with_a_payload() -> None:
    assert KeyMaker('a",{').key(b"}") != KeyMaker("a").key(b'",{}')


def test_lone_surrogates_have_keys() -> None:
    assert request_key("m", Generate("\ud800").payload()) != request_key("m", Generate("\ud801").payload())


def test_keys_are_the_same_in_another_process() -> None:
    # A stored answer is worthless if this ever changes; see KEY_VERSION.
    request = Generate((Message("user", "é"),), max_tokens=5, stop=("\n",))
    code = (
        "from evalwright.engine.key import request_key\nfrom evalwright.core.requests import *\n"
        "print(request_key('fp', Generate((Message('user', 'é'),), max_tokens=5, stop=('\\n',)).payload()).hex())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (
        out.stdout.strip() == request_key("fp", request.payload()).hex() == "60abf68c86c30cd7c7e372fda9277921"
    )
