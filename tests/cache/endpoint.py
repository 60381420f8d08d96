"""An S3 endpoint on loopback, and a proxy before it that fails as networks and servers do."""

from __future__ import annotations

import http.client
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BUCKET = "bucket"
Fault = Callable[[int, str, str], str]
"""From the request's number, method and path: "" or one of drop, half, lost, 503, slow."""


@contextmanager
def s3() -> Iterator[int]:
    """Serve S3 and give its port."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("PUT", f"/{BUCKET}")
    assert connection.getresponse().status == 200
    try:
        yield port
    finally:
        server.stop()


class Proxy:
    """Hands requests on to a port, unless `fault` says otherwise."""

    def __init__(self, port: int) -> None:
        self.fault: Fault = lambda number, method, path: ""
        self.num_requests = 0
        self.faults: list[str] = []
        self._lock = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                proxy._handle(self, port)

            def log_message(self, *args: object) -> None:
                pass

        for verb in ("GET", "PUT", "POST", "HEAD", "DELETE"):
            setattr(Handler, f"do_{verb}", Handler.handle_any)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def _handle(self, request: BaseHTTPRequestHandler, port: int) -> None:
        with self._lock:
            self.num_requests += 1
            kind = self.fault(self.num_requests, request.command, request.path)
            if kind:
                self.faults.append(kind)
        request.close_connection = True
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        if kind == "drop":
            return
        if kind == "503":
            request.send_error(503, "Slow Down")
            return
        answer, data = _ask(port, request, body)
        if kind != "lost":
            # A client that was told of too many bytes hangs up.
            with suppress(BrokenPipeError, ConnectionResetError):
                _answer(request, answer, data, kind)


def _ask(port: int, request: BaseHTTPRequestHandler, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(request.command, request.path, body=body, headers=dict(request.headers))
    answer = connection.getresponse()
    return answer, answer.read()


def _answer(request: BaseHTTPRequestHandler, answer: http.client.HTTPResponse, data: bytes, kind: str) -> None:
    request.send_response(answer.status)
    for name, value in answer.getheaders():
        if name.lower() not in ("connection", "transfer-encoding", "content-length", "date", "server"):
            request.send_header(name, value)
    request.send_header("content-length", str(len(data)) if request.command != "HEAD" else "0")
    request.end_headers()
    if kind == "half":
        data = data[: len(data) // 2]
    step = max(1, len(data) // 5) if kind == "slow" else max(1, len(data))
    for start in range(0, len(data), step):
        request.wfile.write(data[start : start + step])
        if kind == "slow":
            request.wfile.flush()
            time.sleep(0.1)
