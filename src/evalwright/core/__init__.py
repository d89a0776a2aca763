"""The nouns: small frozen records and the error tree. No I/O, and no imports of other packages."""
