# windrow try http://127.0.0.1:9000
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import json, os

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"                              # keep-alive
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        for item in filter(None, body.get("items", [body.get("item")])):   # a ping has none
            print("push to", (item.get("data") or {}).get("user_id"))
        self.send_response(204)                                # no body: all items succeeded
        self.end_headers()

ThreadingHTTPServer.request_queue_size = 128                   # connections waiting to be accepted
ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 9000))), Handler).serve_forever()
