# A reduce: the figures of all drivers come as lines on standard input, the ranking of the teams is printed.
import json, sys

teams, rounds, drivers = {}, set(), 0
for line in sys.stdin:
    figures = json.loads(line)["output"]
    team = teams.setdefault(figures["team"], {"team": figures["team"], "orders": 0, "drivers": 0})
    team["orders"] += figures["orders"]
    team["drivers"] += 1
    rounds.add(figures["round"])
    drivers += 1
if len(rounds) != 1:
    sys.exit(f"the results are of the rounds {sorted(rounds)}")
ranking = sorted(teams.values(), key=lambda team: (-team["orders"], team["team"]))
print(json.dumps({"round": rounds.pop(), "drivers": drivers, "teams": ranking}))
