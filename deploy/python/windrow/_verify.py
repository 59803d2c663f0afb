"""Signatures of calls, as in Standard Webhooks."""

import hashlib
import hmac
import time
from base64 import b64decode, b64encode
from typing import Iterable, Mapping, Optional, Union


def verify(
    secrets: Union[str, Iterable[str]], headers: Mapping[str, str], body: bytes, *, max_age: float = 300,
    now: Optional[float] = None,
) -> bool:
    """Returns True if a call was signed with one of the secrets, less than `max_age` seconds from now.

    `body` is what was received, byte for byte. During a rotation there are two secrets.

    >>> headers = {"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
    ...            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}
    >>> verify("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", headers, b'{"test": 2432232314}', now=1614265331)
    True
    """
    sent = {name.lower(): value for name, value in headers.items()}
    sent_at = sent.get("webhook-timestamp", "")
    if not sent_at.isdecimal() or abs((time.time() if now is None else now) - int(sent_at)) > max_age:
        return False
    signed = f'{sent.get("webhook-id", "")}.{sent_at}.'.encode() + body
    keys = [b64decode(one.strip()[len("whsec_"):]) for one in ([secrets] if isinstance(secrets, str) else secrets)]
    if not all(keys):
        raise ValueError("a secret is `whsec_` followed by base64")
    right = [b"v1," + b64encode(hmac.digest(key, signed, hashlib.sha256)) for key in keys]
    given = sent.get("webhook-signature", "").encode().split()
    return any([hmac.compare_digest(one, other) for one in right for other in given])
