# Reduce command: reads the figures of all drivers as lines from standard input, prints the ranking of the teams.
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
    sys.exit(f"the results mix the rounds {sorted(rounds)}")
ranking = sorted(teams.values(), key=lambda team: (-team["orders"], team["team"]))
print(json.dumps({"round": rounds.pop(), "drivers": drivers, "teams": ranking}))
