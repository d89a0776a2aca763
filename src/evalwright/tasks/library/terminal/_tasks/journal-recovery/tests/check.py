import json
import sys
import unittest
import zlib
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main, output


def entry(**fields):
    text = json.dumps(fields, ensure_ascii=False).encode()
    return b"%08x %d %s\n" % (zlib.crc32(text), len(text), text)


def put(key, value):
    return entry(op="put", key=key, value=value)


def delete(key):
    return entry(op="delete", key=key)


def undelete(key):
    return entry(op="undelete", key=key)


def begin(number):
    return entry(op="begin", id=number)


def commit(number):
    return entry(op="commit", id=number)


CASES = [
    ([], {}),
    ([put("a", 1), put("a", 2), delete("a"), undelete("a")], {"a": 2}),
    ([put("a", 1), delete("a"), put("a", 5), undelete("a")], {"a": 5}),
    ([undelete("a"), delete("a"), undelete("a")], {}),
    ([put("a", 1), delete("a"), put("a", 2), delete("a")[3:], undelete("a")], {"a": 2}),
    ([put("a", 1), delete("a"), put("a", 2)[:-4] + b"\n", delete("a"), undelete("a")], {"a": 1}),
    ([begin(1), put("a", 1), commit(1)], {"a": 1}),
    ([begin(1), put("a", 1), commit(2)], {}),
    ([begin(1), put("a", 1)], {}),
    ([commit(1), put("a", 1)], {"a": 1}),
    ([begin(1), put("a", 1), begin(2), put("b", 1), commit(2)], {"b": 1}),
    ([begin(1), put("a", 1), b"garbage\n", commit(1), put("c", 3)], {"c": 3}),
    ([b"garbage\n", begin(1), put("a", 1), commit(1)], {"a": 1}),
    ([begin(1), put("a", 1), entry(op="rename", key="a"), commit(1), put("c", "ø")], {"c": "ø"}),
    ([put("a", 1), begin(1), delete("a"), undelete("a"), put("b", 2), commit(1)], {"a": 1, "b": 2}),
    (
        [put("z", None), put("b", [1, "x y"]), put("c d", {"k": "v"})],
        {"b": [1, "x y"], "c d": {"k": "v"}, "z": None},
    ),
    ([put("a", 1).replace(b" ", b" 9", 1)], {}),
]


class Check(unittest.TestCase):
    def test_journals(self):
        for lines, state in CASES:
            Path("/tmp/journal").write_bytes(b"".join(lines))
            text = output([sys.executable, "-B", "recover.py", "/tmp/journal"])
            self.assertEqual(
                text, json.dumps(state, sort_keys=True, indent=2, ensure_ascii=False) + "\n", lines
            )

    def test_the_file(self):
        text = Path("/work/state.json").read_text(encoding="utf-8")
        self.assertEqual(
            json.loads(text), {"city": "Århus", "list": [1, {"a": None}], "mode": "slow"}
        )


main()
