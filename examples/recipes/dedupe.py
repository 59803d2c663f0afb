# python3 examples/recipes/dedupe.py: each effect once, however often its item is sent
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import json, sqlite3

def opened():
    return sqlite3.connect("sent.db", timeout=10)

def process(item):
    user = (item.get("data") or {}).get("user_id")
    db = opened()
    try:
        with db:                                    # one transaction: the key and the effect, or neither
            new = db.execute("INSERT INTO done (key) VALUES (?) ON CONFLICT DO NOTHING", [item["key"]]).rowcount
            if new:
                db.execute("INSERT INTO sent (user_id) VALUES (?)", [user])       # the effect
        return {"result": "ok", "message": "done now" if new else "done before"}
    finally:
        db.close()

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = json.dumps(process(body["item"])).encode() if "item" in body else b""
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

with opened() as db:
    db.execute("CREATE TABLE IF NOT EXISTS done (key TEXT PRIMARY KEY)")
    db.execute("CREATE TABLE IF NOT EXISTS sent (user_id TEXT)")
ThreadingHTTPServer(("127.0.0.1", 9002), Handler).serve_forever()
