"""Measures what docs/sizing.md states: memory and disk of jobs, and of a node for tasks, items and what is kept of
them.

usage: WINDROW=target/release/windrow [ITEMS=20000] [TASKS=500] python3 scripts/sizing.py [URL of an empty database]

The URL begins with `postgres://` or `mysql://`, and its user needs no password. The database's size is that of a backup
(`VACUUM INTO`), so it has no free pages and no log; on PostgreSQL, that of all relations after a `VACUUM FULL`; on
MariaDB, that of the data and indexes of all tables after an `OPTIMIZE TABLE`. Those grow by 1 MiB at a time, so ten
times as many items and tasks are needed there. A figure is the growth from one size to the next, divided by what was
added. Memory is the resident set in /proc.
"""
import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WINDROW = os.path.abspath(os.environ.get("WINDROW", "target/release/windrow"))
RUNNING = 1_000
ITEMS, TASKS = int(os.environ.get("ITEMS", "20_000")), int(os.environ.get("TASKS", "500"))


def digest(index):
    """A text that can't be packed, as tokens and checksums are."""
    return hashlib.sha256(b"%d" % index).hexdigest()


ROWS = [b'{"user_id":"u_%06d","token":"%s"}' % (n, digest(n).encode()) for n in range(ITEMS)]


def memory(process):
    """Resident set in MiB."""
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


class Business(BaseHTTPRequestHandler):
    """Answers a batch as its path says."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        call = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = b""
        if "items" in call and self.path != "/ok":
            body = json.dumps({"results": [self.result(item["index"]) for item in call["items"]]}).encode()
        self.send_response(200 if body else 204)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def result(self, index):
        answer = {"index": index, "result": "ok"}
        if self.path == "/fail":
            return answer | {"result": "fail", "code": "REFUSED", "message": f"no stock for order {index}"}
        if self.path == "/log":
            return answer | {"logs": [{"level": "info", "message": f"shipped order {index}"}]}
        return answer | {"output": {"id": f"s-{index}", "state": "shipped", "proof": digest(index)}}

    def log_message(self, *_):
        pass


def psql(store, *statements):
    """What the last statement returns on PostgreSQL."""
    command = ["psql", store, "-qAt", *(word for one in statements for word in ("-c", one))]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def mariadb(store, statement):
    """What a statement returns on MariaDB, without the names of its columns."""
    url = urllib.parse.urlsplit(store)
    command = ["mariadb", "--no-defaults", "--protocol=tcp", "-BN", "-h", url.hostname, "-P", str(url.port or 3306),
               "-u", url.username, "-e", statement, url.path.strip("/")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class Node:
    def __init__(self, folder, store):
        self.folder, self.store = folder, store
        self.address = "http://127.0.0.1:7798"
        env = os.environ | {"WINDROW_AUTH__MODE": "off", "WINDROW_NODE__CAPACITY_RATE": "1000k/s", "WINDROW_LOG__FILTER": "warn"}
        if store:
            with open(os.open(f"{folder}.key", os.O_CREAT | os.O_WRONLY, 0o600), "wb") as key:
                key.write(base64.b64encode(os.urandom(32)))
            env |= {"WINDROW_STORE__URL": store, "WINDROW_STORE__MIGRATE_ON_START": "true",
                    "WINDROW_AUTH__KEY_FILE": f"{folder}.key"}
        command = [WINDROW, "serve", "--listen", "127.0.0.1:7798", "--data-dir", folder]
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait(lambda: self.get("/readyz") is not None)

    def get(self, path):
        try:
            return json.load(urllib.request.urlopen(self.address + path))
        except OSError:
            return None

    def post(self, path, body, kind="application/json"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"content-type": kind})
        return json.load(urllib.request.urlopen(request))

    def wait(self, is_so, seconds=300):
        until = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > until or self.process.poll() is not None:
                sys.exit("the node is late, or gone")
            time.sleep(0.1)

    def memory(self):
        return memory(self.process)

    def database(self):
        if self.store and self.store.startswith("mysql:"):
            tables = mariadb(self.store, "SHOW TABLES").split()
            mariadb(self.store, f"OPTIMIZE TABLE {', '.join(f'`{table}`' for table in tables)}")
            return int(mariadb(self.store, "SELECT sum(data_length + index_length) FROM information_schema.tables WHERE table_schema = database()"))
        if self.store:
            sum_of = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
            return int(psql(self.store, "VACUUM FULL", sum_of))
        with tempfile.TemporaryDirectory() as folder:
            command = [WINDROW, "db", "backup", "--data-dir", self.folder, f"{folder}/copy.db"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return os.path.getsize(f"{folder}/copy.db")

    def task(self, business, total=ITEMS, rate="20k/s", **more):
        body = {"business": business, "rate": rate, "batch": 100, "start": True, "error_budget": "none"} | more
        body.setdefault("source", {"type": "range", "total": total})
        return self.post("/v1/tasks", body)["id"]

    def ended(self, *tasks):
        self.wait(lambda: all(self.get(f"/v1/tasks/{task}")["status"] == "finished" for task in tasks))


def show(what, value, unit):
    print(f"{what:58} {value:>9,.1f} {unit}", flush=True)


def measure(node):
    for name in ("ok", "keep", "fail", "log"):
        node.post("/v1/businesses", {"name": name, "url": f"http://127.0.0.1:9798/{name}"})
    show("memory of an idle node", node.memory(), "MiB")
    show("database of a new node", node.database() / 1024, "KiB")
    before = node.memory()
    running = [node.task("ok", total=1_000_000, rate="1/10s", batch=1) for _ in range(RUNNING)]
    node.wait(lambda: all(node.get(f"/v1/tasks/{task}")["status"] == "running" for task in running))
    time.sleep(20)                              # a steady state is what is measured
    show(f"memory, a running task ({RUNNING:,} at 1/10s)", (node.memory() - before) * 1024 / RUNNING, "KiB")
    for task in running:
        node.post(f"/v1/tasks/{task}/cancel", {})
    node.wait(lambda: all(node.get(f"/v1/tasks/{task}")["status"] == "cancelled" for task in running))
    size = node.database()

    def growth(what, count, unit="bytes", scale=1):
        nonlocal size
        size, before = node.database(), size
        show(what, (size - before) / count / scale, unit)

    node.ended(node.task("ok", total=ITEMS))
    growth(f"database, a task of {ITEMS:,} items that all succeed", 1, "KiB", 1024)
    node.ended(*[node.task("ok", total=100) for _ in range(TASKS)])
    growth(f"database, an ended task ({TASKS} of 100 items)", TASKS)
    node.ended(node.task("fail"))
    growth("database, a failed item (message of 25 bytes)", ITEMS)
    node.ended(node.task("keep", results="keep"))
    growth("database, a result (115 bytes of JSON, 64 of them a hash)", ITEMS)
    node.ended(node.task("log"))
    growth("database, a line of the data log (of 20 bytes)", ITEMS)
    size_of_rows = sum(map(len, ROWS))
    node.post("/v1/uploads", b"\n".join(ROWS), "application/x-ndjson")
    growth(f"database, a byte of an upload (rows of {size_of_rows // ITEMS} bytes)", size_of_rows)
    task = node.post("/v1/tasks", {"business": "ok", "open": True, "rate": "20k/s", "batch": 100, "start": True})["id"]
    for at in range(0, ITEMS, 5_000):
        node.post(f"/v1/tasks/{task}/items", {"items": [json.loads(row) for row in ROWS[at : at + 5_000]]})
    growth(f"database, a byte appended to an open task ({size_of_rows // ITEMS} a row)", size_of_rows)
    node.post(f"/v1/tasks/{task}/seal", {})
    node.ended(task)

    show("memory after all of this, nothing running", node.memory(), "MiB")


def jobs(folder):
    """Memory of a job that runs, and the size of its state directory, by its number of items."""
    worker = ["--rate", "1000/s", "--", "sh", "-c", "while read -r line; do echo ok; done"]
    rows = f"{folder}/rows.ndjson"
    with open(rows, "wb") as file:
        file.writelines(row + b"\n" for _ in range(1_000_000 // ITEMS) for row in ROWS)
    for name, items in (("10,000 items", ["--total", "10000"]), ("10^12 items", ["--total", "1000000000000"]),
                        ("1,000,000 rows of NDJSON", ["--ndjson", rows])):
        state = f"{folder}/{name}"
        process = subprocess.Popen([WINDROW, "run", "-q", "--state", state, *items, *worker],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(6)                           # a steady state is what is measured
        show(f"memory of a job of {name}", memory(process), "MiB")
        process.send_signal(signal.SIGINT)
        process.wait()
        size = sum(os.path.getsize(os.path.join(at, file)) for at, _, files in os.walk(state) for file in files)
        show("its state directory, stopped", size / 1024, "KiB")


if __name__ == "__main__":
    ThreadingHTTPServer.request_queue_size = 1024
    with tempfile.TemporaryDirectory() as place:
        jobs(place)
    server = ThreadingHTTPServer(("127.0.0.1", 9798), Business)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as place:
        node = Node(f"{place}/data", *sys.argv[1:] or [None])
        try:
            measure(node)
        finally:
            node.process.kill()
            node.process.wait()
