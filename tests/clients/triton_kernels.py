# SPDX-License-Identifier: Apache-2.0
"""Kernels of the kinds that Triton's tutorials 1 to 7 show, compared with numpy. `NAME` runs one, nothing all."""
import sys

try:
    import numpy as np
    import triton
    import triton.language as tl
    from triton.language.extra import libdevice
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from arrays import Array, finish

random = np.random.default_rng(1)


def normal(*shape, dtype=np.float32):
    return random.standard_normal(shape).astype(dtype)


def same(got, expected, tolerance):
    error = np.max(np.abs(got.astype(np.float64) - expected))
    assert error <= tolerance, f"the largest error is {error}, more than {tolerance}"


@triton.jit
def add_kernel(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


def vector_add():
    n = 1000
    x, y, z = Array(normal(n)), Array(normal(n)), Array(np.zeros(n, np.float32))
    add_kernel[(triton.cdiv(n, 256),)](x, y, z, n, BLOCK=256)
    finish()
    same(z.numpy, x.numpy + y.numpy, 0)


@triton.jit
def softmax_kernel(x, y, rows, columns, stride, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        i = tl.arange(0, BLOCK)
        values = tl.load(x + row * stride + i, i < columns, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(y + row * stride + i, powers / tl.sum(powers, axis=0), i < columns)


def fused_softmax():
    rows, columns = 13, 181
    x, y = Array(normal(rows, columns)), Array(np.zeros((rows, columns), np.float32))
    softmax_kernel[(5,)](x, y, rows, columns, columns, BLOCK=256, STAGES=2)
    finish()
    powers = np.exp(x.numpy - x.numpy.max(axis=1, keepdims=True))
    same(y.numpy, powers / powers.sum(axis=1, keepdims=True), 1e-6)


@triton.jit
def matmul_kernel(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    in_m, in_n = tl.cdiv(m, M), tl.cdiv(n, N)
    first = pid // (GROUP * in_n) * GROUP
    height = min(in_m - first, GROUP)
    pid_m, pid_n = first + pid % (GROUP * in_n) % height, pid % (GROUP * in_n) // height
    rows, columns = pid_m * M + tl.arange(0, M), pid_n * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    sums = tl.zeros((M, N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, K)):
        left = step * K + inner
        x = tl.load(a + rows[:, None] * k + left[None, :], (rows[:, None] < m) & (left[None, :] < k), other=0.0)
        y = tl.load(b + left[:, None] * n + columns[None, :], (left[:, None] < k) & (columns[None, :] < n), other=0.0)
        sums = tl.dot(x, y, sums)
    sums = tl.where(sums >= 0, sums, 0.01 * sums)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], sums.to(tl.float16), inside)


def matmul():
    m, n, k = 150, 96, 70
    a, b = Array(normal(m, k, dtype=np.float16)), Array(normal(k, n, dtype=np.float16))
    c = Array(np.zeros((m, n), np.float16))
    matmul_kernel[(triton.cdiv(m, 64) * triton.cdiv(n, 64),)](a, b, c, m, n, k, M=64, N=64, K=32, GROUP=2)
    finish()
    product = a.numpy.astype(np.float64) @ b.numpy.astype(np.float64)
    same(c.numpy, np.where(product >= 0, product, 0.01 * product), 0.05)


@triton.jit
def descriptors_kernel(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    sums = tl.zeros((M, N), tl.float32)
    for step in range(0, k, K):
        sums = tl.dot(left.load([row, step]), right.load([step, column]), sums)
    out.store([row, column], sums.to(tl.float16))


def matmul_by_descriptors():
    m, n, k = 200, 160, 192
    triton.set_allocator(lambda size, alignment, stream: Array(np.zeros(size // 4, np.int32)))
    a, b = Array(normal(m, k, dtype=np.float16)), Array(normal(k, n, dtype=np.float16))
    product = a.numpy.astype(np.float64) @ b.numpy.astype(np.float64)
    for stages in (1, 3):
        c = Array(np.zeros((m, n), np.float16))
        descriptors_kernel[(triton.cdiv(m, 128), triton.cdiv(n, 128))](a, b, c, m, n, k, M=128, N=128, K=64,
                                                                       num_stages=stages)
        finish()
        same(c.numpy, product, 0.05)


@triton.jit
def dropout_kernel(x, y, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, i) > p
    tl.store(y + i, tl.where(keep, tl.load(x + i, i < n) / (1 - p), 0.0), i < n)


def dropout():
    n, p = 4000, 0.25
    x = Array(normal(n))
    outs = [Array(np.zeros(n, np.float32)) for _ in range(3)]
    for out, seed in zip(outs, (123, 123, 512)):
        dropout_kernel[(triton.cdiv(n, 1024),)](x, out, n, p, seed, BLOCK=1024)
    finish()
    kept = outs[0].numpy != 0
    same(outs[0].numpy[kept], x.numpy[kept] / (1 - p), 1e-5)
    assert np.array_equal(outs[0].numpy, outs[1].numpy) and not np.array_equal(outs[0].numpy, outs[2].numpy)
    assert abs(kept.mean() - (1 - p)) < 0.03


@triton.jit
def layer_norm_kernel(x, y, weight, bias, mean, inverse, stride, n, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    sums = tl.zeros([BLOCK], dtype=tl.float32)
    for at in range(0, n, BLOCK):
        i = at + tl.arange(0, BLOCK)
        sums += tl.load(x + row * stride + i, i < n, other=0.0)
    average = tl.sum(sums, axis=0) / n
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for at in range(0, n, BLOCK):
        i = at + tl.arange(0, BLOCK)
        apart = tl.where(i < n, tl.load(x + row * stride + i, i < n, other=0.0) - average, 0.0)
        squares += apart * apart
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / n + epsilon)
    tl.store(mean + row, average)
    tl.store(inverse + row, scale)
    for at in range(0, n, BLOCK):
        i = at + tl.arange(0, BLOCK)
        values = tl.load(x + row * stride + i, i < n, other=0.0)
        result = (values - average) * scale * tl.load(weight + i, i < n) + tl.load(bias + i, i < n)
        tl.store(y + row * stride + i, result, i < n)


@triton.jit
def weight_gradient_kernel(x, dy, mean, inverse, lock, sums, n, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    at = (row % GROUPS) * n + i
    values = (tl.load(x + row * n + i, i < n) - tl.load(mean + row)) * tl.load(inverse + row)
    part = values * tl.load(dy + row * n + i, i < n)
    lock += row % GROUPS
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    part += tl.load(sums + at, i < n)
    tl.store(sums + at, part, i < n)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def layer_norm():
    rows, n = 9, 300
    x, weight, bias = Array(normal(rows, n)), Array(normal(n)), Array(normal(n))
    y, mean, inverse = (Array(np.zeros(s, np.float32)) for s in ((rows, n), rows, rows))
    layer_norm_kernel[(rows,)](x, y, weight, bias, mean, inverse, n, n, 1e-5, BLOCK=128)
    dy, lock, sums = Array(normal(rows, n)), Array(np.zeros(4, np.int32)), Array(np.zeros((4, n), np.float32))
    weight_gradient_kernel[(rows,)](x, dy, mean, inverse, lock, sums, n, GROUPS=4, BLOCK=512)
    finish()
    values = x.numpy.astype(np.float64)
    normed = (values - values.mean(axis=1, keepdims=True)) / np.sqrt(values.var(axis=1, keepdims=True) + 1e-5)
    same(y.numpy, normed * weight.numpy + bias.numpy, 1e-4)
    same(sums.numpy.sum(axis=0), (normed * dy.numpy).sum(axis=0), 1e-4)


@triton.jit
def attention_kernel(q, k, v, out, length, scale, ROWS: tl.constexpr, COLUMNS: tl.constexpr, HEAD: tl.constexpr,
                     CAUSAL: tl.constexpr):
    start, head = tl.program_id(0) * ROWS, tl.program_id(1)
    base = head * length * HEAD
    rows, inner = start + tl.arange(0, ROWS), tl.arange(0, HEAD)
    queries = tl.load(q + base + rows[:, None] * HEAD + inner[None, :])
    most = tl.full([ROWS], -float("inf"), dtype=tl.float32)
    total = tl.zeros([ROWS], dtype=tl.float32)
    sums = tl.zeros([ROWS, HEAD], dtype=tl.float32)
    end = start + ROWS if CAUSAL else length
    for at in range(0, end, COLUMNS):
        columns = at + tl.arange(0, COLUMNS)
        keys = tl.load(k + base + columns[None, :] * HEAD + inner[:, None])
        scores = tl.dot(queries, keys) * scale
        if CAUSAL:
            scores = tl.where(rows[:, None] >= columns[None, :], scores, -float("inf"))
        new = tl.maximum(most, tl.max(scores, 1))
        powers = tl.exp(scores - new[:, None])
        fade = tl.exp(most - new)
        total = total * fade + tl.sum(powers, 1)
        values = tl.load(v + base + columns[:, None] * HEAD + inner[None, :])
        sums = tl.dot(powers.to(tl.float16), values, sums * fade[:, None])
        most = new
    tl.store(out + base + rows[:, None] * HEAD + inner[None, :], (sums / total[:, None]).to(tl.float16))


def fused_attention():
    heads, length, head = 2, 128, 64
    q, k, v = (Array(normal(heads, length, head, dtype=np.float16)) for _ in range(3))
    for causal in (False, True):
        out = Array(np.zeros((heads, length, head), np.float16))
        attention_kernel[(length // 64, heads)](q, k, v, out, length, head**-0.5, ROWS=64, COLUMNS=32, HEAD=head,
                                                CAUSAL=causal)
        finish()
        scores = q.numpy.astype(np.float64) @ k.numpy.astype(np.float64).transpose(0, 2, 1) * head**-0.5
        if causal:
            scores = np.where(np.tril(np.ones((length, length))) > 0, scores, -np.inf)
        powers = np.exp(scores - scores.max(axis=2, keepdims=True))
        same(out.numpy, powers / powers.sum(axis=2, keepdims=True) @ v.numpy.astype(np.float64), 5e-3)


@triton.jit
def asin_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, libdevice.asin(tl.load(x + i, i < n)), i < n)


def extern_functions():
    n = 500
    x, y = Array(np.linspace(-1, 1, n, dtype=np.float32)), Array(np.zeros(n, np.float32))
    asin_kernel[(triton.cdiv(n, 128),)](x, y, n, BLOCK=128)
    finish()
    same(y.numpy, np.arcsin(x.numpy.astype(np.float64)), 1e-6)


KERNELS = [
    vector_add, fused_softmax, matmul, matmul_by_descriptors, dropout, layer_norm, fused_attention, extern_functions
]

if __name__ == "__main__":
    for kernel in KERNELS:
        if len(sys.argv) < 2 or kernel.__name__ in sys.argv[1:]:
            kernel()
            print(f"{kernel.__name__}: passed", flush=True)
