import sys
import unittest

sys.path.insert(0, "/checks")
from checks import main, output


def flattened(text):
    with open("/tmp/events.jsonl", "w", encoding="utf-8") as file:
        file.write(text)
    return output([sys.executable, "-B", "flatten.py", "/tmp/events.jsonl"])


class Check(unittest.TestCase):
    def test_the_file(self):
        expected = 'extra,id,ok,price,user.name,user.tags\n,1,true,,Ada,"[""x"",""y""]"\n{},2,,1.0,"Zoë, jr.",\n'
        with open("/work/events.jsonl", encoding="utf-8") as file:
            self.assertEqual(flattened(file.read()), expected)

    def test_another_file(self):
        text = (
            '{"b": {"c": {"d": null, "e": false}}, "a": "two\\nlines"}\n'
            '{"b": {"c": {"e": 12345678901234567890}, "f": []}, "a": "say \\"x\\""}\n'
            '{"a": "1e3", "b": {"f": [{"ü": 1.50, "l": [true, null, "a, b"]}, {}]}, "z": 1e3}'
        )
        expected = (
            "a,b.c.d,b.c.e,b.f,z\n"
            '"two\nlines",,false,,\n'
            '"say ""x""",,12345678901234567890,[],\n'
            '1e3,,,"[{""ü"":1.50,""l"":[true,null,""a, b""]},{}]",1e3\n'
        )
        self.assertEqual(flattened(text), expected)


main()
