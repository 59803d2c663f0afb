"""HTTP server of this process that the program calls once per item.

It speaks as much of HTTP/1.1 as the program does. Its path is a secret, so that nobody else on this machine can call.
"""

import hmac
import json
import socketserver
import threading
from typing import Any

from ._call import Caller, encode


class Server(socketserver.ThreadingTCPServer):
    """Server on 127.0.0.1, on the port of an earlier run if it is free, with a thread per connection."""

    allow_reuse_address = daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, caller: Caller, port: int, secret: str) -> None:
        self.caller, self.path = caller, f"/{secret}".encode()
        try:
            super().__init__(("127.0.0.1", port), _Connection)
        except OSError:
            super().__init__(("127.0.0.1", 0), _Connection)
        threading.Thread(target=self.serve_forever, args=[0.05], name="windrow-server", daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Does nothing: the program was cut off in a call, or somebody else spoke another language."""


class _Connection(socketserver.StreamRequestHandler):
    server: Server
    disable_nagle_algorithm = True

    def handle(self) -> None:
        while True:
            words, length = self.rfile.readline().split(b" "), 0
            if len(words) != 3 or not hmac.compare_digest(words[1], self.server.path):
                return
            for line in iter(self.rfile.readline, b"\r\n"):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            answer = self._answer(json.loads(self.rfile.read(length)))
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            self.wfile.write(head % len(answer) + answer)

    def _answer(self, message: Any) -> bytes:
        call = self.server.caller
        if "item" in message:
            return encode(call(message["item"]))
        results = [encode(call(item), index=item["index"]) for item in message.get("items", [])]
        # An empty response understands anything else, such as a ping.
        return b'{"results":[%s]}' % b",".join(results) if results else b""
