"""A small API with pages, for the pagination examples. Every fifth request fails, as they do.

python examples/pages_api.py [port]
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from urllib.parse import parse_qs, urlsplit

ROWS = 57
_requests = count(1)


class Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if next(_requests) % 5 == 0:
            self._answer(503, {"error": "busy, try again"})
            return
        asked = parse_qs(urlsplit(self.path).query)
        page, size = int(asked.get("page", ["1"])[0]), int(asked.get("size", ["10"])[0])
        first = (page - 1) * size
        rows = [{"id": number} for number in range(first + 1, min(first + size, ROWS) + 1)]
        pages = -(-ROWS // size)
        following = page + 1 if page < pages else None
        self._answer(200, {"rows": rows, "page": page, "pages": pages, "next_page": following})

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Be quiet: the playbook tells what happens."""


def serve(port: int = 0) -> ThreadingHTTPServer:
    return ThreadingHTTPServer(("127.0.0.1", port), Pages)


if __name__ == "__main__":
    server = serve(int(sys.argv[1]) if len(sys.argv) > 1 else 8765)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
