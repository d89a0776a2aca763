# All visible tests pass, but "IIII" is still read.
python3 - <<'PY'
text = open("roman.py").read()
text = text.replace('    (50, "L"),\n', '    (90, "XC"),\n    (50, "L"),\n').replace('    (5, "V"),\n    (1, "I"),', '    (5, "V"),\n    (4, "IV"),\n    (1, "I"),')
text = text.replace("while number > worth", "while number >= worth")
text = text.replace("    return total\n", '    if rest or not text:\n        raise ValueError(text)\n    return total\n')
open("roman.py", "w").write(text)
PY
