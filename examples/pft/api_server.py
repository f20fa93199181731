"""The API that the PFT playbooks read: facilities, patients, and their records page by page.

    python examples/pft/api_server.py [port] [delay in milliseconds] [--faults N]

With `--faults N` every Nth request is refused: 429, and Retry-After says when to ask again.
`/faults` counts what was asked and what was refused; it is not counted itself.

Everything it says is computed from the ids in the path, so any process of it tells the same story
and `counts.py` knows what a complete harvest must hold. It speaks just enough HTTP to be faster
than whoever asks: one asyncio protocol, no framework, answers put together as bytes.
"""

import argparse
import asyncio
import json
import re
import sys
from collections import OrderedDict

from counts import (  # type: ignore[import-not-found]  # beside this file, when it is run
    DOMAINS,
    page_count,
    record_count,
    totals,
)

PORT = 8764
ANSWERS_KEPT_MAX = 10_000
_REQUEST_LINE = re.compile(rb"GET (?P<path>[^ ?]+)(?:\?(?P<query>[^ ]*))? HTTP/1\.[01]\r\n")
_PAGE = re.compile(rb"(?:^|&)page=(\d+)")
_RECORDS = re.compile(rb"/patients/(\d+)/(\w+)$")
_DETAIL = re.compile(rb"/mds/(\d+)-(\d+)$")
_PATIENTS = re.compile(rb"/facilities/(\d+)/patients/(\d+)$")
_TOTALS = re.compile(rb"/totals/(\d+)/(\d+)$")
_END_OF_HEAD = b"\r\n\r\n"


def answer_to(path: bytes, query: bytes) -> bytes | None:
    """The JSON body, or None when there is no such thing."""
    if found := _RECORDS.search(path):
        page = _PAGE.search(query)
        return _records(int(found[1]), found[2].decode(), int(page[1]) if page else 1)
    if found := _DETAIL.search(path):
        return _detail(int(found[1]), int(found[2]))
    if found := _PATIENTS.search(path):
        return _patients(int(found[1]), int(found[2]))
    if found := _TOTALS.search(path):
        return json.dumps(totals(int(found[1]), int(found[2]))).encode()
    return b'{"status":"ok"}' if path == b"/health" else None


def _records(patient: int, domain: str, page: int) -> bytes | None:
    if domain not in DOMAINS or not 1 <= page <= page_count(domain, patient):
        return None
    pages, total = page_count(domain, patient), record_count(domain, patient)
    first, last = total * (page - 1) // pages, total * page // pages
    records = ",".join(
        f'{{"id":"{patient}-{number}","patient_id":{patient},"kind":"{domain}",'
        f'"value":{(patient * 31 + number * 17) % 997}}}'
        for number in range(first, last)
    )
    has_more = "true" if page < pages else "false"
    paging = f'{{"page":{page},"pages":{pages},"hasMore":{has_more},"total":{total}}}'
    return f'{{"data":[{records}],"paging":{paging}}}'.encode()


def _detail(patient: int, number: int) -> bytes | None:
    if number >= record_count("assessments", patient):
        return None
    score = (patient * 7 + number * 3) % 101
    return f'{{"id":"{patient}-{number}","patient_id":{patient},"score":{score}}}'.encode()


def _patients(facility: int, count: int) -> bytes:
    ids = ",".join(str(facility * 100_000 + number) for number in range(1, count + 1))
    return f'{{"facility_id":{facility},"patients":[{ids}]}}'.encode()


class Api(asyncio.Protocol):
    """Keep-alive and pipelined requests; the answers leave in the order of the questions."""

    def __init__(self, answers: "Answers", delay: float) -> None:
        self._answers = answers
        self._delay = delay
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while _END_OF_HEAD in self._received:
            head, _, self._received = self._received.partition(_END_OF_HEAD)
            answer = self._answers.to(head)
            if self._delay:
                asyncio.get_running_loop().call_later(self._delay, self._send, answer)
            else:
                self._send(answer)

    def _send(self, answer: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(answer)


class Answers:
    """Whole answers by request line: most of a load test asks for few things often."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()

    def to(self, head: bytes) -> bytes:
        line, _, _ = head.partition(b"\r\n")
        known = self._kept.get(line)
        if known is not None:
            return known
        answer = _http(_REQUEST_LINE.match(line + b"\r\n"))
        self._kept[line] = answer
        if len(self._kept) > ANSWERS_KEPT_MAX:
            self._kept.popitem(last=False)
        return answer


class FaultyAnswers(Answers):
    """Refuses every Nth request, whoever asks: how many are refused is known beforehand."""

    def __init__(self, faults: int) -> None:
        super().__init__()
        self._faults = faults
        self._asked = 0

    def to(self, head: bytes) -> bytes:
        if head.startswith(b"GET /faults "):
            refused = self._asked // self._faults
            return _response(b"200 OK", b'{"asked":%d,"refused":%d}' % (self._asked, refused))
        self._asked += 1
        return super().to(head) if self._asked % self._faults else _REFUSED


def _http(request: "re.Match[bytes] | None") -> bytes:
    if request is None:
        return _response(b"405 Method Not Allowed", b'{"error":"this API is read with GET"}')
    body = answer_to(request["path"], request["query"] or b"")
    if body is None:
        return _response(b"404 Not Found", b'{"error":"there is no such record or page"}')
    return _response(b"200 OK", body)


def _response(status: bytes, body: bytes, more: bytes = b"") -> bytes:
    head = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n"
    return head % (status, len(body), more) + body


_REFUSED = _response(
    b"429 Too Many Requests", b'{"error":"too many requests"}', b"Retry-After: 1\r\n"
)


async def serve(port: int, delay: float, faults: int) -> None:
    loop = asyncio.get_running_loop()
    answers = FaultyAnswers(faults) if faults else Answers()
    server = await loop.create_server(lambda: Api(answers, delay), "127.0.0.1", port, backlog=1_024)
    address = server.sockets[0].getsockname()
    print(f"listening on http://{address[0]}:{address[1]}", flush=True)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("port", type=int, nargs="?", default=PORT)
    parser.add_argument("delay", type=int, nargs="?", default=0, help="milliseconds per answer")
    parser.add_argument("--faults", type=int, default=0, metavar="N", help="refuse every Nth")
    given = parser.parse_args()
    try:
        asyncio.run(serve(given.port, given.delay / 1000, given.faults))
    except KeyboardInterrupt:
        sys.exit(0)
    except OSError as error:
        sys.exit(f"cannot listen on port {given.port}: {error.strerror}; name another one")


if __name__ == "__main__":
    main()
