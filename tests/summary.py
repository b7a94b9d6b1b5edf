"""Prints how many tests of a meson run passed, failed and were skipped; exits 1 if any failed or none passed."""

import collections
import json
import os
import sys

if not os.path.exists(sys.argv[1]):
    sys.exit("no test was run")
results = collections.Counter()
with open(sys.argv[1], encoding="utf-8") as log:
    for line in log:
        result = json.loads(line)["result"]
        kind = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}.get(result, "failed")
        results[kind] += 1

skipped = f", {results['skipped']} skipped" if results["skipped"] else ""
print(f"{results['passed']} passed, {results['failed']} failed{skipped}")
sys.exit(results["failed"] > 0 or results["passed"] == 0)
