# A backfill of shop.db. `make` creates orders without cents, `ids` lists them, `work` is a worker that fills them in.
import json, sqlite3, sys

db = sqlite3.connect("shop.db", timeout=10)

def make():
    with db:
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, price TEXT, cents INT)")
        prices = [(None if n == 200 else f"{n}.{n % 100:02}",) for n in range(1, 301)]
        db.executemany("INSERT INTO orders (price) VALUES (?)", prices)

def ids():
    for (order,) in db.execute("SELECT id FROM orders WHERE cents IS NULL ORDER BY id"):
        print(json.dumps({"id": order}))

def fill(order):
    with db:                                        # idempotent: values that are set stay as they are
        (price,) = db.execute("SELECT price FROM orders WHERE id = ?", [order]).fetchone()
        if price is None:
            return {"result": "fail", "code": "NO_PRICE"}
        cents = round(100 * float(price))
        db.execute("UPDATE orders SET cents = ? WHERE id = ? AND cents IS NULL", [cents, order])
        return {"result": "ok", "output": {"id": order, "cents": cents}}

def work():
    for message in map(json.loads, sys.stdin):
        if message["type"] == "item":
            print(json.dumps({"type": "result", "id": message["id"], **fill(message["data"]["id"])}), flush=True)

{"make": make, "ids": ids, "work": work}[sys.argv[1]]()
