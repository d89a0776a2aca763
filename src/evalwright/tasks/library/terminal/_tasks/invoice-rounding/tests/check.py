import random
import sys
import unittest

sys.path.insert(0, "/checks")
from checks import calls, main


def cents(thousandths_of_cent):
    """Round whole thousandths of a cent to cents, halves away from zero."""
    sign = -1 if thousandths_of_cent < 0 else 1
    return sign * ((abs(thousandths_of_cent) + 500) // 1000)


def text(amount):
    sign = "-" if amount < 0 else ""
    return f"{sign}{abs(amount) // 100}.{abs(amount) % 100:02d}"


def expected(lines, tax):
    net = sum(cents(quantity * int(price.replace(".", "")) * 100) for quantity, price in lines)
    tax = cents(net * int(tax.replace(".", "")))
    return {"net": text(net), "tax": text(tax), "gross": text(net + tax)}


class Check(unittest.TestCase):
    def test_invoices(self):
        draw = random.Random(4)
        cases = [
            [[[1, "2.675"]], "0.0"],
            [[[1, "2.665"], [1, "-2.665"]], "7.7"],
            [[[1, "-0.005"]], "19.0"],
            [[[3, "0.105"], [1, "0.125"]], "5.0"],
            [[], "8.1"],
            [[[100000, "0.335"]] * 40, "2.5"],
        ]
        for _ in range(300):
            lines = [
                [
                    draw.randint(1, 9),
                    f"{draw.choice(['', '', '-'])}{draw.randint(0, 40)}.{draw.randint(0, 199) * 5:03d}",
                ]
                for _ in range(draw.randint(1, 6))
            ]
            cases.append([lines, f"{draw.randint(0, 25)}.{draw.randint(0, 9)}"])
        for case, outcome in zip(cases, calls("invoice", "total", cases)):
            self.assertEqual(outcome, expected(*case), case)


main()
