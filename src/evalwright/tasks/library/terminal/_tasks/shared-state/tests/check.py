import sys
import unittest

sys.path.insert(0, "/checks")
from checks import main, program

CODE = """
import json
from shop import Cart
ada, ben = Cart(), Cart()
ada.add("pen", 199)
ada.discount("pen", 50)
ben.add("pen", 199)
goods = [["ink", 1000]]
cora, dan = Cart(goods), Cart(goods)
cora.add("nib", 5)
goods.append(["cap", 7])
goods[0][1] = 1
ada.history().append("nonsense")
eve = Cart(cora.goods)
eve.discount("ink", 33)
eve.goods[0][1] = 101
first = Cart([])
first.add("a", 3)
print(json.dumps([
    ada.total(), ben.total(), cora.total(), dan.total(), eve.total(), first.total(), Cart([]).total(),
    Cart().total(), ada.history(), dan.history(), cora.history(),
]))
"""


class Check(unittest.TestCase):
    def test_carts(self):
        expected = [99, 199, 1005, 1000, 72, 3, 0, 0, ["add pen"], [], ["add nib"]]
        self.assertEqual(program(CODE), expected)


main()
