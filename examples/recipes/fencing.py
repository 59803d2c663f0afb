# python3 examples/recipes/fencing.py: a replaced run has no effect
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import json, sqlite3

NEWEST = """INSERT INTO fence (task, shard, epoch) VALUES (?, ?, ?)
            ON CONFLICT (task, shard) DO UPDATE SET epoch = excluded.epoch WHERE excluded.epoch >= epoch"""

def opened():
    return sqlite3.connect("fence.db", timeout=10)

def process(call):
    db = opened()
    try:
        with db:                                    # one transaction: the fence and the effect
            is_newest = db.execute(NEWEST, [call["task"]["id"], call["shard"], call["epoch"]]).rowcount
            if is_newest:
                db.execute("INSERT INTO sent (item) VALUES (?)", [call["item"]["index"]])     # the effect
        return bool(is_newest)
    finally:
        db.close()

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        is_stale = "item" in body and not process(body)
        answer = b'{"type":"stale-epoch"}' if is_stale else b""
        self.send_response(409 if is_stale else 200)
        self.send_header("content-type", "application/problem+json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

with opened() as db:
    db.execute("CREATE TABLE IF NOT EXISTS fence (task TEXT, shard INT, epoch INT, PRIMARY KEY (task, shard))")
    db.execute("CREATE TABLE IF NOT EXISTS sent (item INT)")
ThreadingHTTPServer(("127.0.0.1", 9003), Handler).serve_forever()
