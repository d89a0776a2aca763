import sys
import unittest

sys.path.insert(0, "/checks")
from checks import main, program

HEAD = """
import json, os, threading, time
from bank import Account, transfer

class Slow(Account):
    def audit(self, step):
        steps.append(f"{self.name} {step}")
        time.sleep(0.002)

steps = []

def together(jobs):
    threads = [threading.Thread(target=job, daemon=True) for job in jobs]
    for thread in threads: thread.start()
    for thread in threads:
        thread.join(15)
        if thread.is_alive():
            print('"blocked"', flush=True)
            os._exit(0)
"""
DEPOSITS = """
account = Slow("a", 5)
together([lambda: account.deposit(1) for _ in range(40)] + [lambda: account.withdraw(1) for _ in range(5)])
print(json.dumps([account.cents, len(steps), sorted(set(steps))]))
"""
CROSSED = """
a, b, c = Slow("a", 1000), Slow("b", 1000), Slow("c", 1000)
jobs = []
for _ in range(15):
    jobs += [lambda: transfer(a, b, 3), lambda: transfer(b, a, 2), lambda: transfer(b, c, 1), lambda: transfer(c, a, 5), lambda: transfer(a, a, 7)]
together(jobs)
print(json.dumps([a.cents, b.cents, c.cents, len(steps)]))
"""
SAME_NAMES = """
a, b = Slow("x", 1000), Slow("x", 1000)
together([lambda: transfer(a, b, 3), lambda: transfer(b, a, 2)] * 20)
print(json.dumps([a.cents, b.cents]))
"""
HALVES = """
seen = []
a, b = Slow("a", 100), Slow("b", 100)
def poor():
    try: transfer(a, b, 500)
    except ValueError: seen.append("refused")
together([poor])
print(json.dumps([a.cents, b.cents, seen, steps]))
"""
APART = """
# Two transfers of different pairs meet in the middle: only possible if they run at the same time.
meeting = threading.Barrier(2)
class Meeting(Account):
    def audit(self, step):
        meeting.wait(15)
pairs = [(Meeting("a", 10), Meeting("b", 0)), (Meeting("c", 10), Meeting("d", 0))]
together([lambda pair=pair: transfer(*pair, 10) for pair in pairs])
print(json.dumps([account.cents for pair in pairs for account in pair]))
"""


class Check(unittest.TestCase):
    def test_deposits_and_withdrawals(self):
        n_cents, n_steps, kinds = program(HEAD + DEPOSITS)
        self.assertEqual((n_cents, n_steps, kinds), (40, 45, ["a deposit 1", "a withdraw 1"]))

    def test_crossed_transfers(self):
        self.assertEqual(program(HEAD + CROSSED), [1000 + 15 * 4, 1000, 1000 - 15 * 4, 150])

    def test_accounts_of_equal_names(self):
        self.assertEqual(program(HEAD + SAME_NAMES), [980, 1020])

    def test_a_refused_transfer_changes_nothing(self):
        self.assertEqual(program(HEAD + HALVES), [100, 100, ["refused"], []])

    def test_other_pairs_do_not_wait(self):
        self.assertEqual(program(HEAD + APART), [0, 10, 0, 10])


main()
