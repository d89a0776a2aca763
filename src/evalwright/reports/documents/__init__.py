"""What each result is as a document: one function for each, from numbers to headings, tables and
sentences.
"""
