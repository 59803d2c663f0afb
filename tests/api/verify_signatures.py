"""Verifies recorded calls with the public standardwebhooks library, and that it refuses a changed body."""
import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError

calls = json.load(open(sys.argv[1]))
for call in calls:
    for secret in call["secrets"]:
        webhook = Webhook(secret)
        webhook.verify(call["body"], call["headers"])
        try:
            webhook.verify(call["body"] + " ", call["headers"])
        except WebhookVerificationError:
            continue
        sys.exit("a changed body was believed")
print("verified", len(calls))
