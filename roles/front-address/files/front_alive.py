#!/usr/bin/python3 -I
"""front_alive.py URL: ends with 0 if a front answers there with 200 at once. Standard library, Python 3.8."""

import sys
import urllib.request

ANSWER_WITHIN_S = 1.5  # keepalived gives it two seconds

try:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    opener.open(sys.argv[1], timeout=ANSWER_WITHIN_S).close()
except OSError:
    sys.exit(1)
