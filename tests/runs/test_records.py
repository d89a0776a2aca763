"""Records survive being written and read."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import Failure
from evalwright.core.requests import Message
from evalwright.core.responses import Response, Usage
from evalwright.core.samples import Answer, Passage, Sample, SampleRecord, Score
from evalwright.runs.records import record_from, record_row

text = st.text(max_size=20)
number = st.floats(allow_nan=False, allow_infinity=False, width=32)
usages = st.builds(
    Usage, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)
)
responses = st.builds(
    Response,
    text=text,
    reasoning=text,
    finish_reason=text,
    log_likelihood=st.none() | number,
    is_greedy=st.none() | st.booleans(),
    tokens_scored=st.none() | st.integers(0, 9),
    values=st.lists(number, max_size=3).map(tuple),
    usage=usages,
    latency=st.floats(0, 10),
    cost=st.none() | number,
    model=text,
)
prompts = text | st.lists(
    st.builds(Message, st.sampled_from(["system", "user", "assistant"]), text),
    max_size=3,
).map(tuple)
answers = st.builds(
    Answer,
    text=text,
    reasoning=text,
    choice=st.none() | st.integers(0, 3),
    log_likelihoods=st.lists(number, max_size=3).map(tuple),
    prompt=prompts,
    responses=st.lists(responses, max_size=2).map(tuple),
)
samples = st.builds(
    Sample,
    id=text,
    input=text,
    targets=st.lists(text, max_size=2).map(tuple),
    choices=st.just(()) | st.just(("a", "b")),
    gold=st.just(()),
    passages=st.lists(st.builds(Passage, text, text), max_size=2).map(tuple),
    metadata=st.dictionaries(text, text, max_size=2),
    cluster=text,
)
failures = st.builds(
    Failure,
    text,
    st.just("provider"),
    text,
    st.booleans(),
    st.none() | st.just(429),
    st.integers(1, 3),
)
records = st.builds(
    SampleRecord,
    task=text,
    index=st.integers(0, 9),
    draw=st.integers(0, 2),
    sample=samples,
    answer=st.none() | answers,
    scores=st.dictionaries(
        text,
        st.builds(Score, number, text, text, st.dictionaries(text, number, max_size=2)),
        max_size=2,
    ),
    failure=st.none() | failures,
    score_failures=st.dictionaries(text, failures, max_size=1),
)


@given(records)
def test_a_record_comes_back_as_it_was(record: SampleRecord) -> None:
    written = json.dumps(record_row(record))
    assert record_from(json.loads(written)) == record


def test_only_timing_holds_latency() -> None:
    answer = Answer(text="x", responses=(Response(text="x", latency=1.5),))
    written = record_row(SampleRecord("t", 0, 0, Sample("1"), answer, {}))
    assert written["timing"] == {"latency": [1.5]}
    assert "latency" not in json.dumps(written["responses"])
