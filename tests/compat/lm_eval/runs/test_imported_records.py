"""A line of a samples file becomes a record and, from the record, the same line again."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evalwright.compat.lm_eval.runs.imported_records import build_record
from evalwright.compat.lm_eval.runs.names import depths, digest, doc_digest
from evalwright.compat.lm_eval.runs.sample_lines import ExportedMetric, Rows
from evalwright.runs.records import record_from, record_row
from evalwright.runs.writer import to_json

TASK = {
    "definition": {"dialect": "lm-eval"},
    "scorers": [{"name": "none", "kind": "lm-eval", "options": {}}],
}
texts = st.text(max_size=8)
likelihoods = st.floats(-1e6, 0).map(str)
settings_of = st.fixed_dictionaries({"until": st.lists(texts, max_size=2)})
docs = st.dictionaries(
    st.text(max_size=3), st.none() | st.booleans() | st.integers() | texts, max_size=3
)


@st.composite
def lines(draw: st.DrawFn) -> dict[str, Any]:
    """A line of any of the four kinds."""
    count = draw(st.integers(1, 4))
    kind = draw(st.sampled_from(["generate", "choose", "roll"]))
    greedy = st.sampled_from(["True", "False"])
    if kind == "choose":
        arguments: list[list[Any]] = [[draw(texts), draw(texts)] for _ in range(count)]
        resps: list[Any] = [[[draw(likelihoods), draw(greedy)]] for _ in range(count)]
    elif kind == "roll":
        arguments = [[draw(texts)]]
        resps = [[draw(likelihoods)]]
    else:
        arguments = [[draw(texts), draw(settings_of)]]
        resps = [[draw(texts) for _ in range(count)]]
    doc = draw(docs)
    target = draw(texts)
    item = draw(st.floats(0, 1) | st.lists(st.integers(0, 3), min_size=2, max_size=2))
    return {
        "doc_id": draw(st.integers(0, 99)),
        "doc": doc,
        "target": target,
        "arguments": {
            f"gen_args_{i}": {f"arg_{j}": part for j, part in enumerate(parts)}
            for i, parts in enumerate(arguments)
        },
        "resps": resps,
        "filtered_resps": draw(
            st.just([one[0] for one in resps]) | st.lists(texts, max_size=2)
        ),
        "filter": "none",
        "metrics": ["m"],
        "doc_hash": doc_digest(doc),
        "prompt_hash": digest(arguments[0][0]),
        "target_hash": digest(target),
        "m": item,
    }


@given(lines())
def test_every_line_comes_back_as_it_was(line: dict[str, Any]) -> None:
    record = build_record("lm-eval:t", line["doc_id"], {"none": line}, {"none": ["m"]})
    stored = record_from(json.loads(to_json(record_row(record))))
    (back,) = Rows(
        TASK, [ExportedMetric("m", "none", "m", "mean", "none", theirs=True)]
    ).lines([stored])
    assert back == line
    assert list(back) == list(line)


def test_a_tree_of_groups_may_be_deeper_than_calls() -> None:
    chain = {str(place): [str(place + 1)] for place in range(5000)}
    names = [*map(str, range(5001)), "alone"]
    assert list(depths(chain, names)) == [
        (str(place), place) for place in range(5001)
    ] + [("alone", 0)]
    assert list(depths({"a": ["b", "c"], "b": ["c"], "d": ["d"]}, ["d", "a", "b", "c"])) == [
        ("a", 0), ("b", 1), ("c", 2), ("d", 0),
    ]  # fmt: skip
