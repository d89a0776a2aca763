"""The nouns: small frozen records and the error tree. No input or output; imports nothing of ours."""
