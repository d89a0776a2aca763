"""The explorer: a page for browsing runs and their samples, as a file, a folder, or served live.

The page is the same in all three forms (its source is `web/`, built into `assets/`). It reads
*parts*, each named by a key and compressed with raw deflate: the catalog, and for each run an
index, columns, previews and blocks of samples.
"""
