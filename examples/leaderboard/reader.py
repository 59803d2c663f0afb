# Readers of the leaderboard: each polls for the current generation, reads all of its results and checks that no response
# mixes two rounds. Runs for SECONDS, then prints the number of responses.
#
# python3 reader.py URL TOKEN SECONDS [READERS]
import json, sys, threading, time, urllib.error, urllib.request

url, token, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
readers = int(sys.argv[4]) if len(sys.argv) > 4 else 4
until = time.monotonic() + seconds
lock, answers, mixed, generations = threading.Lock(), 0, 0, set()


def get(path):
    request = urllib.request.Request(url + path, headers={"authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.status, answer.read()


def look(after):
    """Returns the current generation after this publication and all of its rows, or None if nothing is new."""
    status, body = get(f"/v1/datasets/team-board/current?after={after}&wait=2s")
    if status == 204:
        return None
    current = json.loads(body)
    _, rows = get(f"/v1/datasets/team-board/generations/{current['generation']}/results")
    return current, [json.loads(row)["output"] for row in rows.splitlines()]


def is_whole(current, rows):
    """Returns True if the ranking was made from exactly these rows, and all are of one round."""
    orders = {}
    for row in rows:
        orders[row["team"]] = orders.get(row["team"], 0) + row["orders"]
    ranked = {team["team"]: team["orders"] for team in current["summary"]["teams"]}
    rounds = {row["round"] for row in rows}
    return rounds == {current["summary"]["round"]} and ranked == orders and len(rows) == current["results"]


def poll():
    global answers, mixed
    after, turn = 0, 0
    while time.monotonic() < until:
        turn += 1
        try:
            # Every third poll waits for a new publication; the others read the current one again.
            found = look(after if turn % 3 == 0 else 0)
        except (urllib.error.URLError, OSError) as why:
            print(f"read failed: {why}", file=sys.stderr)
            time.sleep(0.2)
            continue
        if found is None:
            continue
        current, rows = found
        if current["current_publication"] < after:
            sys.exit("the current publication went backwards")
        after = current["current_publication"]
        with lock:
            answers += 1
            generations.add(current["generation"])
            if not is_whole(current, rows):
                mixed += 1
                print(f"mixed: {current}", file=sys.stderr)


threads = [threading.Thread(target=poll) for _ in range(readers)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(f"{answers} responses from {len(generations)} generations, {mixed} mixed")
sys.exit(0 if answers > 0 and len(generations) > 1 and mixed == 0 else 1)
