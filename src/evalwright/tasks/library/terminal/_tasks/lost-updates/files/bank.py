"""Accounts that threads share."""


class Account:
    """An account in whole cents."""

    def __init__(self, name, cents=0):
        self.name = name
        self.cents = cents

    def audit(self, step):
        """Called in the middle of each step; auditors override it."""

    def deposit(self, cents):
        """Add money."""
        before = self.cents
        self.audit(f"deposit {cents}")
        self.cents = before + cents

    def withdraw(self, cents):
        """Take money; ValueError if there is not enough."""
        before = self.cents
        if before < cents:
            raise ValueError("not enough money")
        self.audit(f"withdraw {cents}")
        self.cents = before - cents


def transfer(source, target, cents):
    """Move money from one account to another; ValueError if there is not enough."""
    source.withdraw(cents)
    target.deposit(cents)
