# SPDX-License-Identifier: Apache-2.0
"""numba-cuda's own tests of what it compiles: all that run pass but those below. With names, only these files.

A kernel that fails takes the context with it, and with that the tests after it: those that failed run again, each in a
process of its own."""
import concurrent.futures
import pathlib
import re
import subprocess
import sys

try:
    import numba.cuda.testing  # noqa: F401
    import numba.cuda.tests.cudapy as suite
except Exception as error:  # numba's tests need packages of their own
    print(f"skipped: {error}")
    sys.exit(77)

PACKAGE = "numba.cuda.tests.cudapy."
LIMIT = 600  # seconds for one file
BOUNDS, ABI = "leads outside of its arrays", "declares a function without a result as one that has one"
CPU, IPC = "of the CPU's cache, without CUDA", "memory of other processes"
KNOWN = {
    "test_bfloat16.TestBfloat16HighLevelBindings.test_to_integer_conversions": "a conversion that ptxas refuses, too",
    "test_caching.CUDAAndCPUCachingTest.test_cpu_and_cuda_reuse": CPU,
    "test_caching.CUDAAndCPUCachingTest.test_cpu_and_cuda_targets": CPU,
    "test_device_func.TestDeclareDeviceCABI.test_declare_device_cabi_pointer_return": ABI,
    "test_device_func.TestDeclareDeviceCABI.test_declare_device_cabi_void_return": ABI,
    "test_dispatcher.TestDispatcher.test_dispatcher_cpointer_arguments": BOUNDS,
    "test_ipc.TestIpcMemory.test_ipc_array": IPC,
    "test_ipc.TestIpcMemory.test_ipc_handle": IPC,
    "test_ipc.TestIpcMemory.test_ipc_handle_serialization": IPC,
    "test_ipc.TestIpcStaged.test_ipc_array": IPC,
    "test_ipc.TestIpcStaged.test_staged": IPC,
    "test_localmem.TestCudaLocalMem.test_struct_model_type_arr": BOUNDS,
    "test_multiprocessing.TestMultiprocessing.test_fork": "a context is sent to another process, by Python alone",
    "test_sm.TestSharedMemoryIssue.test_issue_2393": "adds shared memory that nothing has written",
}


def run(name):
    """What is said of a file or a test, or None if it takes too long."""
    command = [sys.executable, "-m", "numba.runtests", name]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT).stderr
    except subprocess.TimeoutExpired:
        return None


def fails_alone(test):
    said = run(test)
    if said is not None and (re.search(r"^OK", said, re.M) or "\nSkipped: " in said):
        return False
    name = test.removeprefix(PACKAGE)
    print(f"{name}: failed" + (f", as known: {KNOWN[name]}" if name in KNOWN else ""), flush=True)
    if name not in KNOWN:
        unknown.append(name)
    return True


def counts(name):
    """How many of a file's tests pass, and how many ran."""
    said = run(PACKAGE + name)
    ran = re.search(r"^Ran (\d+) tests?", said, re.M) if said else None
    if not ran:
        print(f"{name}: " + (f"more than {LIMIT} s" if said is None else "not run"), flush=True)
        return 0, said is None
    skipped = re.search(r"skipped=(\d+)", said)
    total = int(ran[1]) - int(skipped[1] if skipped else 0)
    failed = set(re.findall(r"^(?:ERROR|FAIL): \S+ \(([\w.]+)\)", said, re.M))
    return total - sum(fails_alone(test) for test in sorted(failed)), total


unknown = []
names = sys.argv[1:] or sorted(path.stem for path in pathlib.Path(suite.__file__).parent.glob("test_*.py"))
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    results = list(pool.map(counts, names))
good, total = sum(each[0] for each in results), sum(each[1] for each in results)
print(f"{good} of {total} tests pass")
sys.exit(0 if total and not unknown else 1)
