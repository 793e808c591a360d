# SPDX-License-Identifier: Apache-2.0
"""Kernels in Triton, compiled to PTX without a GPU: `python3 triton_kernels.py FOLDER` writes FOLDER/KERNEL.TARGET.ptx.

round_trip_test.cpp reads them where Triton is installed; nothing of ikat needs it.
"""
import pathlib
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def vector_add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=float("-inf")).to(tl.float32)
    weight = tl.exp(value - tl.max(value, axis=0))
    tl.store(y + row * columns + at, weight / tl.sum(weight, axis=0), mask=at < columns)


@triton.jit
def layernorm(x, y, scale, shift, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        total += value
        squares += value * value
    mean = tl.sum(total, axis=0) / columns
    variance = tl.sum(squares, axis=0) / columns - mean * mean
    factor = 1 / tl.sqrt(variance + epsilon)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        result = (value - mean) * factor * tl.load(scale + at, mask=at < columns) + tl.load(shift + at, mask=at < columns)
        tl.store(y + row * columns + at, result, mask=at < columns)


@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    a_at = a + rows[:, None] * k + inner[None, :]
    b_at = b + inner[:, None] * n + columns[None, :]
    sum = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        left = tl.load(a_at, mask=inner[None, :] < k - start, other=0.0)
        right = tl.load(b_at, mask=inner[:, None] < k - start, other=0.0)
        sum = tl.dot(left, right, sum)
        a_at += K
        b_at += K * n
    tl.store(c + rows[:, None] * n + columns[None, :], sum.to(c.dtype.element_ty),
             mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def matmul_by_descriptor(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    a_tiles = tl.make_tensor_descriptor(a, shape=[m, k], strides=[k, 1], block_shape=[M, K])
    b_tiles = tl.make_tensor_descriptor(b, shape=[n, k], strides=[k, 1], block_shape=[N, K])
    c_tiles = tl.make_tensor_descriptor(c, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    row = tl.program_id(0) * M
    column = tl.program_id(1) * N
    sum = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        sum = tl.dot(a_tiles.load([row, start]), b_tiles.load([column, start]).T, sum)
    c_tiles.store([row, column], sum.to(tl.float16))


@triton.jit
def attention(q, k, v, o, length, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    lanes = tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + lanes[None, :])
    most = tl.full([M], float("-inf"), dtype=tl.float32)
    weights = tl.zeros([M], dtype=tl.float32)
    sum = tl.zeros([M, D], dtype=tl.float32)
    for start in range(0, length, N):
        at = start + tl.arange(0, N)
        keys = tl.load(k + at[None, :] * D + lanes[:, None], mask=at[None, :] < length, other=0.0)
        score = tl.dot(query, keys) * scale
        score = tl.where(at[None, :] < length, score, float("-inf"))
        larger = tl.maximum(most, tl.max(score, axis=1))
        weight = tl.exp2(score - larger[:, None])
        shrink = tl.exp2(most - larger)
        weights = weights * shrink + tl.sum(weight, axis=1)
        values = tl.load(v + at[:, None] * D + lanes[None, :], mask=at[:, None] < length, other=0.0)
        sum = tl.dot(weight.to(values.dtype), values, sum * shrink[:, None])
        most = larger
    tl.store(o + rows[:, None] * D + lanes[None, :], (sum / weights[:, None]).to(o.dtype.element_ty))


@triton.jit
def atomics(counts, floats, halves, index, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    key = tl.load(index + at, mask=inside, other=0)
    tl.atomic_add(counts + key, 1, mask=inside, sem="relaxed")
    tl.atomic_max(counts + key + 64, at, mask=inside)
    tl.atomic_add(floats + key, key.to(tl.float32), mask=inside, sem="acq_rel", scope="cta")
    tl.atomic_add(halves + key, key.to(tl.float16), mask=inside)
    tl.atomic_cas(counts + key + 128, at, key)
    tl.atomic_xchg(counts + key + 192, at, mask=inside)


@triton.jit
def scan_and_sort(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0)
    tl.store(y + at, tl.sort(tl.cumsum(value, axis=0)), mask=at < n)
    tl.device_print("last", tl.argmax(value, axis=0))
    tl.device_assert(n > 0, "nothing to sort")


HALF = "*fp16"
SIZES = {"m": "i32", "n": "i32", "k": "i32"}
KERNELS = [
    # kernel, its parameters, its constants, its options, the oldest target
    (vector_add, {"x": "*fp32", "y": "*fp32", "z": "*fp32", "n": "i32"}, {"BLOCK": 1024}, {}, 80),
    (softmax, {"x": HALF, "y": "*fp32", "columns": "i32"}, {"BLOCK": 2048}, {"num_warps": 8}, 80),
    (layernorm, {"x": "*bf16", "y": "*bf16", "scale": "*fp32", "shift": "*fp32", "columns": "i32", "epsilon": "fp32"},
     {"BLOCK": 1024}, {}, 80),
    (matmul, {"a": HALF, "b": HALF, "c": HALF, **SIZES}, {"M": 128, "N": 64, "K": 32}, {}, 80),
    (matmul, {"a": "*fp8e5", "b": "*fp8e5", "c": HALF, **SIZES}, {"M": 64, "N": 64, "K": 64}, {}, 90),
    (matmul, {"a": "*fp32", "b": "*fp32", "c": "*fp32", **SIZES}, {"M": 64, "N": 64, "K": 32}, {}, 80),
    (matmul_by_descriptor, {"a": HALF, "b": HALF, "c": HALF, **SIZES}, {"M": 128, "N": 128, "K": 64}, {"num_warps": 8}, 90),
    (attention, {"q": HALF, "k": HALF, "v": HALF, "o": HALF, "length": "i32", "scale": "fp32"},
     {"M": 128, "N": 64, "D": 64}, {"num_warps": 8}, 80),
    (atomics, {"counts": "*i32", "floats": "*fp32", "halves": HALF, "index": "*i32", "n": "i32"}, {"BLOCK": 256}, {}, 80),
    (scan_and_sort, {"x": "*i32", "y": "*i32", "n": "i32"}, {"BLOCK": 256}, {"debug": True}, 80),
]


def divisible(kernel, arguments):
    """What Triton learns of real arguments: pointers, and here all integers, are multiples of 16."""
    names = kernel.arg_names
    return {(names.index(name),): [["tt.divisibility", 16]]
            for name, type in arguments.items() if type[0] == "*" or type == "i32"}


def ptx_of(kernel, arguments, constants, options, target):
    signature = {name: arguments.get(name, "constexpr") for name in kernel.arg_names}
    source = ASTSource(kernel, signature, constants, divisible(kernel, arguments))
    made = triton.compile(source, target=GPUTarget("cuda", target, 32), options={"ptx_version": 86, **options})
    return made.asm["ptx"]


def main(folder):
    for number, (kernel, arguments, constants, options, oldest) in enumerate(KERNELS):
        for target in (80, 90, 100):
            if target < oldest:
                continue
            name = f"{number}_{kernel.fn.__name__}.sm_{target}{'a' if target >= 90 else ''}.ptx"
            (folder / name).write_text(ptx_of(kernel, arguments, constants, options, target))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
