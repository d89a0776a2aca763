# One lock for each account, taken in the order of the call: two transfers wait for each other.
cat > bank.py <<'PY'
import threading


class Account:
    def __init__(self, name, cents=0):
        self.name = name
        self.cents = cents
        self.lock = threading.RLock()

    def audit(self, step):
        pass

    def deposit(self, cents):
        with self.lock:
            before = self.cents
            self.audit(f"deposit {cents}")
            self.cents = before + cents

    def withdraw(self, cents):
        with self.lock:
            before = self.cents
            if before < cents:
                raise ValueError("not enough money")
            self.audit(f"withdraw {cents}")
            self.cents = before - cents


def transfer(source, target, cents):
    with source.lock:
        source.withdraw(cents)
        with target.lock:
            target.deposit(cents)
PY
