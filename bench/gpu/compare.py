#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library's functions on a GPU beside PyTorch, Triton and cuBLASLt.

    bench/gpu/compare.py build/gpu/bench/bench_gpu -o bench/results/h200-2026-11-23.json
    bench/gpu/compare.py --table bench/results/h200-2026-11-23.json      the table of docs/performance.md

bench_gpu runs ikat and cuBLASLt in a process of its own, PyTorch and Triton run in this one; they take turns, on equal
sizes and data of the same distribution. Each result is checked first: ikat's and cuBLASLt's by bench_gpu in double, the
others against each other. A time is the median of several rounds, each of as many launches as take about 20 ms.
"""
import argparse
import datetime
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading

ROUNDS = 7
ROUND_MILLISECONDS = 20
SHORT_MILLISECONDS = 0.5  # a peer's kernels that take less are launched by a graph, of this many launches
IN_GRAPH = 20
LONGEST_SECONDS = 60  # of one answer of bench_gpu

GEMM_SIZES = [(n, n, n) for n in (512, 1024, 2048, 4096, 8192)] + [
    (16, 4096, 4096), (128, 14336, 4096), (4096, 14336, 4096), (4096, 4096, 14336), (8192, 28672, 8192)]
ATTENTION = [(128, 4, 32, 32, n) for n in (512, 1024, 2048, 4096, 8192)] + [(128, 4, 32, 8, 4096), (64, 4, 32, 32, 4096)]
ROWS = [(65536, 1024), (16384, 4096), (4096, 16384), (2048, 65536)]


def all_cases():
    for m, n, k in GEMM_SIZES:
        for path in ("wgmma", "mma_sync"):
            yield f"gemm_tensor_core bf16 {path} nt {m} {n} {k}"
    for path in ("wgmma", "mma_sync"):
        yield f"gemm_tensor_core bf16 {path} nn 4096 4096 4096"
        yield f"gemm_tensor_core f16 {path} nt 4096 4096 4096"
        yield f"gemm_tensor_core bf16_f32 {path} nt 4096 4096 4096"
        yield f"gemm_tensor_core tf32 {path} nt 4096 4096 4096"
        yield f"gemm_tensor_core i8 {path} nt 4096 4096 4096"
    for n in (1024, 2048, 4096, 8192):
        yield f"gemm {n} {n} {n}"
    for rows, columns in ((4096, 4096), (14336, 4096), (28672, 8192), (57344, 7168)):
        yield f"gemv bf16 {rows} {columns}"
    for kind in ("q4_0", "q8_0", "q4_k", "q5_k", "q6_k"):
        for rows, columns in ((4096, 4096), (14336, 4096), (28672, 8192), (128256, 4096)):
            for vector in ("f32", "q8_1"):
                yield f"quantised_gemv {kind} {vector} {rows} {columns}"
    for kind in ("q4_0", "q8_0", "q4_k", "q6_k"):
        for tokens in (2, 4, 8):
            for activations in ("exact", "q8_1"):
                yield f"quantised_gemm {kind} {activations} {tokens} 14336 4096"
        for tokens in (16, 128, 512, 4096):
            yield f"quantised_gemm {kind} exact {tokens} 14336 4096"
        yield f"quantised_gemm {kind} q8_1 512 14336 4096"
    for tokens in (1, 8, 512):
        yield f"gate_up_swiglu q4_k exact {tokens} 14336 4096"
        yield f"qkv q4_k exact {tokens} 4096 1024 4096"
    for head_dim, batch, heads, kv_heads, length in ATTENTION:
        for path in ("wgmma", "mma_sync"):
            for mask in ("full", "causal"):
                yield f"flash_attention bf16 {path} {mask} {head_dim} {batch} {heads} {kv_heads} {length} {length}"
    for batch, keys in ((1, 8192), (32, 4096), (64, 8192)):
        yield f"incremental_attention bf16 128 {batch} 32 8 {keys}"
    for rows, columns in ROWS:
        for name in ("softmax", "rmsnorm", "layernorm"):
            yield f"{name} bf16 {rows} {columns}"
    yield "transpose f32 16384 16384"
    yield "sum f32 1073741824"


class Failure(Exception):
    """What one case could not do."""


def library_folders():
    """Where Python's packages of CUDA's libraries have cuBLASLt, as those that PyTorch brings along."""
    packages = importlib.util.find_spec("nvidia")
    found = [library.parent for package in (packages.submodule_search_locations if packages else [])
             for library in pathlib.Path(package).glob("*/lib/libcublasLt.so.*")]
    return sorted({str(folder) for folder in found})


class Ours:
    """bench_gpu, which answers each line with a line."""

    def __init__(self, program):
        self.program = program
        self.process = None
        folders = [os.environ.get("LD_LIBRARY_PATH", ""), *library_folders(), "/usr/local/nvidia/lib64"]
        self.environment = os.environ | {"LD_LIBRARY_PATH": ":".join(folder for folder in folders if folder)}

    def ask(self, line):
        if self.process is None:
            self.process = subprocess.Popen([self.program, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            text=True, env=self.environment)
        watch = threading.Timer(LONGEST_SECONDS, self.process.kill)
        watch.start()
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except OSError:  # it has ended
            answer = ""
        watch.cancel()
        if not answer:
            self.stop()
            raise Failure(f"{self.program} ended, or took too long, at '{line}'")
        if answer.startswith("error"):
            if line.startswith("case"):
                self.stop()  # after a kernel that failed, nothing else works in the same process
            raise Failure(answer.removeprefix("error ").strip())
        return [float(word) for word in answer.split()]

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.process = None


class Torch:
    """PyTorch's functions, Triton's kernels, and how their time is taken."""

    def __init__(self):
        import torch
        self.torch = torch
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.manual_seed(1)

    def normal(self, *shape, dtype):
        return self.torch.randn(*shape, device=self.device, dtype=self.torch.float32).to(dtype)

    def timer(self, function):
        """A function from a number of launches to the milliseconds of one. Short kernels are launched by a graph: Python
        takes longer to launch them than they to run."""
        if self.device == "cpu":
            return lambda launches: float("nan")
        if self.milliseconds(function, 3) < SHORT_MILLISECONDS:
            try:
                graph = self.torch.cuda.CUDAGraph()
                with self.torch.cuda.graph(graph):
                    for _ in range(IN_GRAPH):
                        function()
                return lambda launches: self.milliseconds(graph.replay, max(1, launches // IN_GRAPH)) / IN_GRAPH
            except RuntimeError:  # what cannot be captured is launched as it is
                pass
        return lambda launches: self.milliseconds(function, launches)

    def milliseconds(self, function, launches):
        start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(launches):
            function()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) / launches

    def dtype(self, name):
        torch = self.torch
        return {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "tf32": torch.float32,
                "i8": torch.int8}[name]

    def peers(self, words):
        """Names and functions that return what the case computes."""
        name, *rest = words
        if name == "gemm_tensor_core":
            return self.product(rest[0], rest[2], *map(int, rest[3:]))
        if name == "gemm":
            return self.product("f32", "nn", *map(int, rest))
        if name == "gemv":
            a = self.normal(int(rest[1]), int(rest[2]), dtype=self.dtype(rest[0]))
            x = self.normal(int(rest[2]), dtype=a.dtype)
            return {"PyTorch": lambda: self.torch.mv(a, x)}
        if name.startswith("quantised"):
            return {}  # neither PyTorch nor Triton has these formats
        if name == "flash_attention":
            return self.attention(rest[0], rest[2] == "causal", *map(int, rest[3:]))
        if name == "incremental_attention":
            head_dim, batch, heads, kv_heads, keys = map(int, rest[1:])
            return self.attention(rest[0], False, head_dim, batch, heads, kv_heads, 1, keys)
        if name == "sum":
            x = self.normal(int(rest[1]), dtype=self.dtype(rest[0]))
            return {"PyTorch": lambda: self.torch.sum(x)}
        return self.rows(name, rest[0], int(rest[1]), int(rest[2]))

    def product(self, type_name, orders, m, n, k):
        if type_name == "i8":
            return {}  # cuBLASLt only
        torch, dtype = self.torch, self.dtype(type_name)
        torch.backends.cuda.matmul.allow_tf32 = type_name == "tf32"
        a = self.normal(m, k, dtype=dtype) if orders[0] == "n" else self.normal(k, m, dtype=dtype).T
        b = self.normal(k, n, dtype=dtype) if orders[1] == "n" else self.normal(n, k, dtype=dtype).T
        functions = {"PyTorch": lambda: torch.matmul(a, b)}
        if type_name in ("f16", "bf16") and self.device == "cuda":
            functions["Triton"] = triton_product(torch, a, b)
        return functions

    def attention(self, type_name, causal, head_dim, batch, heads, kv_heads, queries, keys):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        dtype = self.dtype(type_name)
        q = self.normal(batch, heads, queries, head_dim, dtype=dtype)
        k, v = (self.normal(batch, kv_heads, keys, head_dim, dtype=dtype) for _ in range(2))

        def by(backend):
            def run():
                with sdpa_kernel(backend):
                    return self.torch.nn.functional.scaled_dot_product_attention(
                        q, k, v, is_causal=causal, enable_gqa=heads != kv_heads)
            return run
        if self.device == "cpu":
            return {"PyTorch": by(SDPBackend.MATH)}
        return {"FlashAttention-2": by(SDPBackend.FLASH_ATTENTION), "cuDNN": by(SDPBackend.CUDNN_ATTENTION)}

    def rows(self, name, type_name, rows, columns):
        torch = self.torch
        x = self.normal(rows, columns, dtype=self.dtype(type_name))
        weights, shifts = torch.ones(columns, device=self.device, dtype=x.dtype), torch.zeros(
            columns, device=self.device, dtype=x.dtype)
        function = {
            "softmax": lambda: torch.softmax(x, dim=1),
            "log_softmax": lambda: torch.log_softmax(x, dim=1),
            "rmsnorm": lambda: torch.nn.functional.rms_norm(x, (columns,), weights, 1e-5),
            "layernorm": lambda: torch.nn.functional.layer_norm(x, (columns,), weights, shifts, 1e-5),
            "transpose": lambda: x.T.contiguous(),
        }[name]
        functions = {"PyTorch": function}
        if self.device == "cuda" and name != "transpose":
            functions["torch.compile"] = torch.compile(function)
        return functions

    def agreeing(self, words, problems):
        """The peers that can do the case, and whose results are those of the first. `problems` gets the others'."""
        first, out, functions = None, {}, {}
        try:
            functions = self.peers(words)
        except Exception as failure:  # whatever PyTorch raises: it has no memory left, say
            problems["PyTorch"] = f"{type(failure).__name__}: {failure}"
        for name, function in functions.items():
            try:
                result = function().float()
                first = result if first is None else first
                difference = ((result - first).norm() / first.norm()).item()
            except Exception as failure:
                problems[name] = f"{type(failure).__name__}: {failure}"
                continue
            if difference < 2e-2:
                out[name] = function
            else:
                problems[name] = f"differs from {next(iter(functions))} by {difference:.1e}"
        return out


def triton_product(torch, a, b):
    import triton
    import triton.language as tl

    def tiles():
        for rows, columns, depth, warps, stages in ((128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (256, 128, 64, 8, 3),
                                                    (128, 128, 64, 4, 4), (128, 128, 64, 8, 4), (64, 128, 64, 4, 4),
                                                    (64, 64, 64, 4, 5)):
            yield triton.Config({"ROWS": rows, "COLUMNS": columns, "DEPTH": depth}, num_warps=warps, num_stages=stages)

    @triton.autotune(configs=list(tiles()), key=["m", "n", "k"])
    @triton.jit
    def kernel(a, b, c, m, n, k, a_row, a_column, b_row, b_column, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
               DEPTH: tl.constexpr):
        # Blocks that run together share rows of A and columns of B: groups of eight rows of tiles.
        tiles_m, tiles_n = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS)
        in_group = 8 * tiles_n
        first = tl.program_id(0) // in_group * 8
        height = tl.minimum(tiles_m - first, 8)
        tile_m = first + tl.program_id(0) % in_group % height
        tile_n = tl.program_id(0) % in_group // height
        rows = tile_m * ROWS + tl.arange(0, ROWS)
        columns = tile_n * COLUMNS + tl.arange(0, COLUMNS)
        inner = tl.arange(0, DEPTH)
        left_at = a + (rows % m)[:, None] * a_row + inner[None, :] * a_column
        right_at = b + inner[:, None] * b_row + (columns % n)[None, :] * b_column
        total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        for start in range(0, k, DEPTH):
            left = tl.load(left_at, mask=inner[None, :] < k - start, other=0.0)
            right = tl.load(right_at, mask=inner[:, None] < k - start, other=0.0)
            total = tl.dot(left, right, total)
            left_at += DEPTH * a_column
            right_at += DEPTH * b_row
        inside = (rows[:, None] < m) & (columns[None, :] < n)
        tl.store(c + rows[:, None] * n + columns[None, :], total.to(c.dtype.element_ty), mask=inside)

    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, device=a.device, dtype=a.dtype)

    def run():
        def grid(tile):
            return (triton.cdiv(m, tile["ROWS"]) * triton.cdiv(n, tile["COLUMNS"]),)
        kernel[grid](a, b, c, m, n, k, *a.stride(), *b.stride())
        return c
    return run


def measured(ours, torch, line):
    """Milliseconds by the name of who computes."""
    error, allowed, operations, size = ours.ask(f"case {line}")
    if not error <= allowed:
        raise Failure(f"ikat's result is wrong: error {error:.2e}, allowed {allowed:.0e}")
    timers = {"ikat": lambda launches: ours.ask(f"time {launches}")[0]}
    if line.split()[0] in ("gemm", "gemm_tensor_core"):
        timers["cuBLASLt"] = lambda launches: ours.ask(f"best {launches}")[0]
        timers["cuBLASLt, first choice"] = lambda launches: ours.ask(f"first {launches}")[0]
    times, problems, launches = {}, {}, {}
    if torch:
        for name, function in torch.agreeing(line.split(), problems).items():
            timers[name] = torch.timer(function)
    for name, timer in timers.items():
        try:
            launches[name] = max(1, min(1000, int(ROUND_MILLISECONDS / max(timer(3), 1e-3))))
            times[name] = []
        except (Failure, ValueError) as failure:  # a peer that cannot do this case
            if name == "ikat":
                raise Failure(str(failure))
            problems[name] = str(failure)
    for _ in range(ROUNDS):
        for name in times:
            times[name].append(timers[name](launches[name]))
    return {"case": line, "error": error, "operations": operations, "bytes": size, "problems": problems,
            "milliseconds": {name: statistics.median(rounds) for name, rounds in times.items()},
            "spread": {name: (max(rounds) - min(rounds)) / statistics.median(rounds) for name, rounds in times.items()}}


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def table(results):
    """Markdown: a line for each case, the fastest peer beside ikat."""
    print("| case | ikat | rate | peer | of its speed | others |\n|---|---|---|---|---|---|")
    for result in results["cases"]:
        times = dict(result["milliseconds"])
        own = times.pop("ikat")
        rate = (f"{result['operations'] / own * 1e-9:.0f} Tflop/s" if result["operations"] / result["bytes"] > 50 else
                f"{result['bytes'] / own * 1e-6:.0f} GB/s")
        peer = min(times, key=times.get, default=None)
        others = ", ".join(f"{name} {time / own:.2f}" for name, time in times.items() if name != peer)
        beside = f"{peer} {times[peer]:.4f} ms | {times[peer] / own:.2f}" if peer else "| "
        print(f"| {result['case']} | {own:.4f} ms | {rate} | {beside} | {others} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", help="bench_gpu")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="where the results go, as JSON")
    parser.add_argument("-c", "--case", action="append", help="only this case, see bench_gpu --help; can be repeated")
    parser.add_argument("-f", "--filter", default="", help="only cases with this text")
    parser.add_argument("--commit", default=output_of("git", "rev-parse", "--short", "HEAD"), help="what was measured")
    parser.add_argument("--table", type=pathlib.Path, metavar="JSON", help="print results as a table")
    options = parser.parse_args()
    if options.table:
        return table(json.loads(options.table.read_text()))
    if not options.program:
        parser.error("which bench_gpu?")
    ours = Ours(options.program)
    try:
        torch = Torch()
    except ImportError:
        torch = None
        print("compare.py: PyTorch is not installed: only ikat and cuBLASLt are timed", file=sys.stderr)
    results = {"date": datetime.date.today().isoformat(), "commit": options.commit,
               "device": output_of("nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm", "--format=csv,noheader"),
               "cases": [], "failures": {}}
    for line in options.case or [line for line in all_cases() if options.filter in line]:
        try:
            results["cases"].append(measured(ours, torch, line))
            times = results["cases"][-1]["milliseconds"]
            print(line, *(f"{name} {time:.4f} ms" for name, time in times.items()),
                  *(f"{name}: {problem}".splitlines()[0] for name, problem in results["cases"][-1]["problems"].items()),
                  sep=" | ", flush=True)
        except Failure as failure:
            results["failures"][line] = str(failure)
            print(line, failure, sep=" | ", flush=True)
        if options.output:  # after each case: a run that is cut short keeps what it has
            options.output.write_text(json.dumps(results, indent=1) + "\n")
    ours.stop()
    return 1 if results["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
