"""Runs a worker: python3 -m windrow FILE [ARGUMENT…]"""

from ._worker import main

main()
