cat > test_slug.py <<'PY'
import unittest

from slug import slug


class Slugs(unittest.TestCase):
    def test_words(self):
        self.assertEqual(slug("Hello World"), "hello-world")

    def test_accents(self):
        self.assertEqual(slug("Café"), "cafe")

    def test_ends(self):
        self.assertEqual(slug(" hello "), "hello")

    def test_empty(self):
        self.assertEqual(slug(""), "untitled")
PY
