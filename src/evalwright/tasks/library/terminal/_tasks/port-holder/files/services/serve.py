"""Serve the name of a service: serve.py NAME."""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

SETTINGS = {}
for line in Path(__file__).with_name(f"{sys.argv[1]}.conf").read_text().splitlines():
    key, _, setting = line.partition("=")
    if setting and not line.startswith("#"):
        SETTINGS[key.strip()] = setting.strip()
PORT = int(SETTINGS.get("base", "0"), 0) + int(SETTINGS.get("offset", "0"), 0)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        content = sys.argv[1].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


HTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
