# windrow run --csv examples/data/orders.csv --rate 20/s --workers 2 -- python3 examples/recipes/ship.py
import json, sys, urllib.error, urllib.request

def ship(order, key):
    body = json.dumps({"qty": int(order["qty"]), "note": order["note"]}).encode()
    headers = {"authorization": "Bearer demo-token-4711", "idempotency-key": key}
    url = f"http://127.0.0.1:9004/v1/orders/{order['order_id']}/ship"
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=8) as reply:
        return json.load(reply)["data"]

for message in map(json.loads, sys.stdin):
    if message["type"] == "item":
        try:
            answer = {"result": "ok", "output": ship(message["data"], message["key"])}
        except urllib.error.HTTPError as error:
            answer = {"result": "fail" if error.code == 422 else "retry", "code": f"HTTP_{error.code}"}
        print(json.dumps({"type": "result", "id": message["id"], **answer}), flush=True)
