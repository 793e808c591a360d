# SPDX-License-Identifier: Apache-2.0
"""numba-cuda's own tests of what it compiles: of those that run, nine in ten pass. With names, only these files."""
import concurrent.futures
import pathlib
import re
import subprocess
import sys

try:
    import numba.cuda.tests.cudapy as suite
except Exception as error:  # numba's tests need packages of their own
    print(f"skipped: {error}")
    sys.exit(77)

LIMIT = 300  # seconds for one file
NEEDED = 0.9


def counts(name):
    """How many of a file's tests ran and did not fail, and how many ran."""
    command = [sys.executable, "-m", "numba.runtests", f"numba.cuda.tests.cudapy.{name}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        print(f"{name}: more than {LIMIT} s", flush=True)
        return 0, 1
    ran = re.search(r"^Ran (\d+) tests?", done.stderr, re.M)
    if not ran:
        said = done.stderr.strip().splitlines()
        print(f"{name}: not run: {said[-1] if said else 'nothing said'}", flush=True)
        return 0, 0
    number = lambda word: int((re.search(rf"{word}=(\d+)", done.stderr) or [0, 0])[1])
    total = int(ran[1]) - number("skipped")
    bad = number("failures") + number("errors")
    if bad:
        print(f"{name}: {bad} of {total} failed", flush=True)
    return total - bad, total


names = sys.argv[1:] or sorted(path.stem for path in pathlib.Path(suite.__file__).parent.glob("test_*.py"))
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    results = list(pool.map(counts, names))
good, total = sum(each[0] for each in results), sum(each[1] for each in results)
print(f"{good} of {total} tests pass")
sys.exit(0 if total and good >= NEEDED * total else 1)
