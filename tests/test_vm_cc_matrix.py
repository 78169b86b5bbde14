"""An eighth of test_vm_cc_fixtures.py on every target that is installed, each day another one; HALYARD_VM_CC_TARGETS and
HALYARD_VM_CC_PART choose others. Takes minutes (./dev nightly)."""
import os
import time

import test_vm_cc_fixtures

PARTS = 8


def main(checks, folder):
    day = int(time.time()) // 86400
    part = os.environ.setdefault("HALYARD_VM_CC_PART", f"{day % PARTS}/{PARTS}")
    targets = os.environ.setdefault("HALYARD_VM_CC_TARGETS", "all")
    print(f"again with: HALYARD_VM_CC_TARGETS={targets} HALYARD_VM_CC_PART={part}")
    test_vm_cc_fixtures.main(checks, folder)
