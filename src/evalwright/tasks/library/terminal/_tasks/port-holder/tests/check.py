import hashlib
import subprocess
import sys
import time
import unittest
import urllib.request
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main

PORTS = {"billing": 9200, "metrics": 9100, "queue": 9300, "web": 8080}
SERVICES = Path("/work/services")
DIGESTS = {
    "serve.py": "fee95cc076df72db173e975e1cd098c580cd5e258c8b12d3267906dd66dcfec2",
    "ports.txt": "2c79ab303c7dfeba60309d7fcfca0300bd91e10524f74a61487a1e7b45edf603",
    "billing.conf": "e1d60274dc47907468b984691bd4b91fd6ef09eafc879b6fef0860baf2373b4f",
    "metrics.conf": "4761933f1be808d73f9eafe10dccd1ab45072f544e014733e821d4c05709038c",
    "web.conf": "a22f9ac78766963649623836e064dd43e81a43c1211da6a15a3e2d877d8d4930",
}


def answer(port):
    """Return what a service answers; it may take a while to start."""
    for _ in range(200):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as response:
                return response.read().decode()
        except OSError:
            time.sleep(0.1)
    return "nothing"


class Check(unittest.TestCase):
    def test_files(self):
        for name, digest in DIGESTS.items():
            self.assertEqual(
                hashlib.sha256((SERVICES / name).read_bytes()).hexdigest(), digest, name
            )
        self.assertEqual(Path("/work/culprit.txt").read_text().strip(), "queue")

    def test_services(self):
        command = [sys.executable, "-B", str(SERVICES / "serve.py")]
        running = [subprocess.Popen([*command, name], stderr=subprocess.DEVNULL) for name in PORTS]
        try:
            self.assertEqual(
                {name: answer(port) for name, port in PORTS.items()}, {name: name for name in PORTS}
            )
        finally:
            for process in running:
                process.kill()
                process.wait()


main()
