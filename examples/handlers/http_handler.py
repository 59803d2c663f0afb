# windrow run --csv users.csv --url http://127.0.0.1:9000
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import json

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"                              # keep-alive
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        for item in body.get("items") or [body.get("item")]:
            if item:
                print("push to", (item.get("data") or {}).get("user_id"))
        self.send_response(204)                                # no body: all items succeeded
        self.end_headers()

ThreadingHTTPServer(("127.0.0.1", 9000), Handler).serve_forever()
