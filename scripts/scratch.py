# SPDX-License-Identifier: Apache-2.0
"""A copy of the source in build/scratch, to edit, build and test while the tree stays as it is."""
import os
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRATCH = ROOT / "build/scratch"
TREE, BUILD = SCRATCH / "tree", SCRATCH / "build"


class Failed(Exception):
    pass


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def copy_source():
    """Brings the copy up to date and configures its build. What was in the copy alone is removed."""
    TREE.mkdir(parents=True, exist_ok=True)
    tracked = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                             check=True, stdout=subprocess.PIPE).stdout.decode().split("\0")
    tracked = {name for name in tracked if (ROOT / name).is_file()}
    for path in [path for path in TREE.rglob("*") if path.is_file() and str(path.relative_to(TREE)) not in tracked]:
        path.unlink()
    for name in tracked:
        # A file that is as it was keeps its time, and an edited one does not: both are as a build expects.
        if not (TREE / name).is_file() or (TREE / name).read_bytes() != (ROOT / name).read_bytes():
            (TREE / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, TREE / name)
            shutil.copymode(ROOT / name, TREE / name)
    configured = run("cmake", "-S", TREE, "-B", BUILD, "--preset", "dev", "-DIKAT_WERROR=OFF", "-DIKAT_UNITY=OFF",
                     cwd=TREE)
    if configured.returncode:
        raise Failed("the copy cannot be configured:\n" + configured.stdout)


def build(*targets):
    """Builds the targets, or all. Returns what is wrong, or None."""
    built = run("cmake", "--build", BUILD, "-j", str(os.cpu_count()), *(["--target", *targets] if targets else []))
    return built.stdout[-2000:] if built.returncode else None


def target_of(test):
    if test.startswith("golden."):
        return "golden_library_runner" if test in ("golden.cli", "golden.report", "golden.stdlib") else "golden_runner"
    return test if test.startswith("example_") else f"test_{test.removesuffix('_long')}"


def build_tests(tests):
    return build(*sorted(set(map(target_of, tests))))


def selection(tests):
    """What ctest is asked for."""
    return ["-R", f"^({'|'.join(map(re.escape, sorted(tests)))})$"]


def unknown(tests):
    """Those that the build does not have."""
    listed = re.findall(r"Test +#\d+: (\S+)$", run("ctest", "--test-dir", BUILD, "-N").stdout, re.M)
    return sorted(set(tests) - set(listed))


def first_failure(without, *selected):
    """The name of a test that fails, or None. `without` is a pattern of labels to leave out."""
    result = run("ctest", "--test-dir", BUILD, "--no-tests=error", "--stop-on-failure", "--timeout", "300", "-j", str(os.cpu_count()),
                 "-LE", without, *selected)
    failed = re.search(r"The following tests FAILED:\n\s*\d+ - (\S+)", result.stdout)
    if failed:
        return failed.group(1)
    return None if result.returncode == 0 else "ctest itself"
