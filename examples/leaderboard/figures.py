# A worker that stands in for the team with the drivers' data: it returns the figures of a driver in this round. The round
# is the number of the task, so that a reader can detect a mix of two rounds.
import json, sys, zlib

for line in sys.stdin:
    message = json.loads(line)
    if message["type"] != "item":
        continue
    driver = message["data"]
    round = int(message["key"].split("-")[1].removeprefix("t"))          # STORE-t42-3817
    orders = zlib.crc32(f"{driver['driver']}/{round}".encode()) % 50
    output = {"driver": driver["driver"], "team": driver["team"], "orders": orders, "round": round}
    print(json.dumps({"type": "result", "id": message["id"], "result": "ok", "output": output}), flush=True)
