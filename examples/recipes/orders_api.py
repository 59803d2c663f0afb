# A stand-in for a vendor API: it requires a token, has a rate limit, and knows nothing about Windrow.
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import json, os, re, time

TOKEN = os.environ.get("API_TOKEN", "demo-token-4711")
PER_SECOND = int(os.environ.get("PER_SECOND", 50))
calls = []                                                     # times of the latest ones

class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.answer(*self.ship(body))

    def ship(self, body):
        if self.headers.get("authorization") != f"Bearer {TOKEN}":
            return 401, {"error": f"not a token: {self.headers.get('authorization')}"}
        now = time.monotonic()
        calls[:] = [at for at in calls if now - at < 1]
        if len(calls) >= PER_SECOND:
            return 429, {"error": "too many requests"}
        calls.append(now)
        order = re.fullmatch(r"/v1/orders/([\w-]+)/ship", self.path)
        if not order:
            return 404, {"error": "no such page"}
        quantity = json.loads(body)["qty"]
        if quantity < 1:
            return 422, {"error": f"can't ship {quantity} pieces"}
        return 201, {"data": {"id": f"s-{order[1]}", "pieces": quantity}}

    def answer(self, status, reply):
        text = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        if status == 429:
            self.send_header("retry-after", "1")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass

ThreadingHTTPServer.request_queue_size = 128
ThreadingHTTPServer(("127.0.0.1", 9004), Api).serve_forever()
