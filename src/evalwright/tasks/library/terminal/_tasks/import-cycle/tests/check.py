import ast
import sys
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main, output, program

NAMES = {
    "orders": ["Order", "TAX_PERCENT"],
    "customers": ["Customer", "GREETING"],
    "mails": ["send_receipt"],
}
USE = """
import json
from shop.customers import Customer
from shop.orders import Order
eve = Customer("Eve")
bob = Customer("Bob")
order = eve.order(2599)
direct = Order(bob, 100)
print(json.dumps([order.pay(), order.gross(), eve.tax(), bob.tax(), len(eve.orders), isinstance(order, Order), direct.pay()]))
"""


class Check(unittest.TestCase):
    def test_each_comes_first(self):
        for module, names in NAMES.items():
            code = f"import json\nfrom shop.{module} import {', '.join(names)}\nprint(json.dumps('imported'))"
            self.assertEqual(program(code), "imported")

    def test_it_works(self):
        self.assertEqual(
            output([sys.executable, "-B", "demo.py"]),
            "Dear Ada, you paid 1080 cents (8% tax).\nDear Ada, you paid 594 cents (8% tax).\n124\n",
        )
        receipt = "Dear Eve, you paid 2806 cents (8% tax)."
        self.assertEqual(
            program(USE), [receipt, 2806, 207, 0, 1, True, "Dear Bob, you paid 108 cents (8% tax)."]
        )

    def test_imports_stand_at_the_top(self):
        for path in Path("/work/shop").rglob("*.py"):
            text = path.read_text()
            tree = ast.parse(text)
            self.assertNotIn("__import__", text)
            self.assertNotIn("importlib", text)
            n_all = sum(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(tree))
            n_top = sum(isinstance(node, ast.Import | ast.ImportFrom) for node in tree.body)
            self.assertEqual(n_all, n_top, path)


main()
