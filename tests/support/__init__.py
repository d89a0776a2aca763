"""Real parts that tests share: servers on loopback, small models."""
