"""The explorer: a page on which runs and their samples are looked at, as one file, as a folder of
files, or served while runs go on.

The page is the same in all three places (`web/`, built into `assets/`). What it reads are *parts*,
each named by a key and packed as raw deflate: the catalog, and for each run an index, columns,
previews and blocks of samples.
"""
