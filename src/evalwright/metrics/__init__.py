"""How scores become one number, always with n, n_missing, an interval and the method behind it."""
