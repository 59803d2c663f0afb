# windrow run --csv users.csv --rate 500/s -- python3 -m windrow examples/python/worker.py
import windrow


@windrow.worker
def push(row):
    print("push to", row["user_id"])
    return row["user_id"]
