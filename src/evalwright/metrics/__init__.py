"""How scores become one number, always with n, n_failed, an interval and how it was made."""
