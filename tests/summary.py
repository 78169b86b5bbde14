"""Counts the tests in ctest's JUnit report: prints `N passed, N failed, N skipped`; exits 1 where any failed or none ran.
For each failure, prints the command that repeats the test."""

import os
import re
import shlex
import sys
import xml.etree.ElementTree as ElementTree


def main() -> int:
    try:
        cases = ElementTree.parse(sys.argv[1]).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError) as error:
        print(f"no result of the tests: {error}", file=sys.stderr)
        print("0 passed, 0 failed, 0 skipped")
        return 1
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for case in cases:
        # ctest's statuses: run; fail; notrun (skipped, or its program is missing); disabled.
        status = case.get("status")
        skipped = case.find("skipped")
        missing = skipped is not None and "Unable to find executable" in (skipped.get("message") or "")
        if status == "run":
            counts["passed"] += 1
        elif status in ("notrun", "disabled") and not missing:
            counts["skipped"] += 1
        else:
            counts["failed"] += 1
            name = case.get("name").split("  # GetParam() = ")[0]  # which may be an address
            print(f"again: ctest --test-dir {shlex.quote(os.path.dirname(sys.argv[1]))} --output-on-failure "
                  f"-R '^{re.escape(name)}( |$)'")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
