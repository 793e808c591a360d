# SPDX-License-Identifier: Apache-2.0
"""Kernels in Triton that run_triton_test.cpp runs on the emulator: `python3 triton_programs.py FOLDER [WORD]` writes
FOLDER/KERNEL.TARGET.ptx, for kernels whose name contains WORD, and beside each a KERNEL.TARGET.txt of lines `name
value`: threads of a block, dynamic shared bytes, scratch bytes of a block, and the kernel's constants.
"""
import pathlib
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def product(a, b, c, m, n, k, a_pitch, b_pitch, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, T: tl.constexpr,
            PRECISION: tl.constexpr):
    """c = a b, where b is stored by columns if T."""
    row = (tl.program_id(0) * M + tl.arange(0, M))[:, None]
    column = (tl.program_id(1) * N + tl.arange(0, N))[None, :]
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), dtype=tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32)
    for step in range(tl.cdiv(k, K)):
        across = (step * K + inner)[None, :]
        down = (step * K + inner)[:, None]
        left = tl.load(a + row * a_pitch + across, mask=(row < m) & (across < k), other=0.0)
        b_at = b + (column * b_pitch + down if T else down * b_pitch + column)
        right = tl.load(b_at, mask=(down < k) & (column < n), other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION, out_dtype=total.dtype)
    tl.store(c + row * n + column, total, mask=(row < m) & (column < n))


@triton.jit
def boxes(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """c = a b^T, all by descriptors."""
    row = tl.program_id(0) * M
    column = tl.program_id(1) * N
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        total = tl.dot(a.load([row, start]), b.load([column, start]).T, total)
    c.store([row, column], total)


@triton.jit
def made_boxes(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The same by descriptors that the kernel makes."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [n, k], [k, 1], [N, K])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    boxes(left, right, out, m, n, k, M, N, K)


@triton.jit
def persistent(a, b, c, m, n, k, blocks, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, FLAT: tl.constexpr):
    """c = a b^T by descriptors; each block computes several tiles."""
    tiles_across = tl.cdiv(n, N)
    tiles = tl.cdiv(m, M) * tiles_across
    for tile in tl.range(tl.program_id(0), tiles, blocks, flatten=FLAT):
        row = tile // tiles_across * M
        column = tile % tiles_across * N
        total = tl.zeros((M, N), dtype=tl.float32)
        for step in range(tl.cdiv(k, K)):
            total = tl.dot(a.load([row, step * K]), b.load([column, step * K]).T, total)
        c.store([row, column], total)


@triton.jit
def box_sums(x, y, M: tl.constexpr, N: tl.constexpr):
    """y += x, by a copy that adds."""
    at = [tl.program_id(0) * M, tl.program_id(1) * N]
    y.atomic_add(at, x.load(at))


@triton.jit
def causal(q, k, v, o, length, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Attention to this and earlier places; one head for each program_id(1). scale includes log2(e)."""
    head = tl.program_id(1) * length * D
    place = tl.program_id(0) * M + tl.arange(0, M)
    lane = tl.arange(0, D)
    query = tl.load(q + head + place[:, None] * D + lane[None, :], mask=place[:, None] < length, other=0.0)
    top = tl.full([M], -1e30, dtype=tl.float32)
    norm = tl.zeros([M], dtype=tl.float32)
    out = tl.zeros([M, D], dtype=tl.float32)
    for start in range(0, tl.minimum(length, (tl.program_id(0) + 1) * M), N):
        other = start + tl.arange(0, N)
        keys = tl.load(k + head + other[:, None] * D + lane[None, :], mask=other[:, None] < length, other=0.0)
        score = tl.dot(query, tl.trans(keys)) * scale
        score = tl.where((other[None, :] <= place[:, None]) & (other[None, :] < length), score, -1e30)
        higher = tl.maximum(top, tl.max(score, 1))
        weight = tl.math.exp2(score - higher[:, None])
        fade = tl.math.exp2(top - higher)
        values = tl.load(v + head + other[:, None] * D + lane[None, :], mask=other[:, None] < length, other=0.0)
        out = tl.dot(weight.to(values.dtype), values, out * fade[:, None])
        norm = norm * fade + tl.sum(weight, 1)
        top = higher
    tl.store(o + head + place[:, None] * D + lane[None, :], out / norm[:, None], mask=place[:, None] < length)


@triton.jit
def causal_boxes(q, k, v, o, length, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """The same of one head, by descriptors."""
    first = tl.program_id(0) * M
    place = first + tl.arange(0, M)
    query = q.load([first, 0])
    top = tl.full([M], -1e30, dtype=tl.float32)
    norm = tl.zeros([M], dtype=tl.float32)
    out = tl.zeros([M, D], dtype=tl.float32)
    for start in range(0, tl.minimum(length, first + M), N):
        other = start + tl.arange(0, N)
        score = tl.dot(query, k.load([start, 0]).T) * scale
        score = tl.where(other[None, :] <= place[:, None], score, -1e30)
        higher = tl.maximum(top, tl.max(score, 1))
        weight = tl.math.exp2(score - higher[:, None])
        fade = tl.math.exp2(top - higher)
        out = tl.dot(weight.to(tl.float16), v.load([start, 0]), out * fade[:, None])
        norm = norm * fade + tl.sum(weight, 1)
        top = higher
    o.store([first, 0], out / norm[:, None])


@triton.jit
def row_softmax(x, y, rows, columns, R: tl.constexpr, C: tl.constexpr):
    row = (tl.program_id(0) * R + tl.arange(0, R))[:, None]
    column = tl.arange(0, C)[None, :]
    inside = (row < rows) & (column < columns)
    value = tl.load(x + row * columns + column, mask=inside, other=-1e30)
    power = tl.exp(value - tl.max(value, 1)[:, None])
    tl.store(y + row * columns + column, power / tl.sum(power, 1)[:, None], mask=inside)


@triton.jit
def norm(x, y, scale, shift, columns, epsilon, C: tl.constexpr):
    column = tl.arange(0, C)
    inside = column < columns
    value = tl.load(x + tl.program_id(0) * columns + column, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(value, 0) / columns
    apart = tl.where(inside, value - mean, 0.0)
    inverse = tl.rsqrt(tl.sum(apart * apart, 0) / columns + epsilon)
    result = apart * inverse * tl.load(scale + column, mask=inside) + tl.load(shift + column, mask=inside)
    tl.store(y + tl.program_id(0) * columns + column, result, mask=inside)


@triton.jit
def totals(x, sum, most, least, n, C: tl.constexpr):
    at = tl.program_id(0) * C + tl.arange(0, C)
    value = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_add(sum, tl.sum(value, 0))
    tl.atomic_max(most, tl.max(value, 0))
    tl.atomic_min(least, tl.min(value, 0), sem="relaxed")
    tl.atomic_add(sum + 1 + at % 8, value, mask=at < n)


@triton.jit
def last_block(x, parts, count, sum, n, blocks, C: tl.constexpr, B: tl.constexpr):
    """Each block leaves its part; the last one to arrive adds them."""
    at = tl.program_id(0) * C + tl.arange(0, C)
    tl.store(parts + tl.program_id(0), tl.sum(tl.load(x + at, mask=at < n, other=0), 0))
    tl.debug_barrier()
    if tl.atomic_add(count, 1, sem="acq_rel") == blocks - 1:
        block = tl.arange(0, B)
        tl.store(sum, tl.sum(tl.load(parts + block, mask=block < blocks, other=0, volatile=True), 0))


@triton.jit
def locked(lock, value, rounds):
    """A counter under a lock of all blocks."""
    for round in range(rounds):
        while tl.atomic_cas(lock, 0, 1) == 1:
            pass
        tl.store(value, tl.load(value) + 1)
        tl.debug_barrier()
        tl.atomic_xchg(lock, 0)


@triton.jit
def then(slope, shift, next_slope, next_shift):
    return slope * next_slope, shift * next_slope + next_shift


@triton.jit
def recurrence(slopes, shifts, y, rows, C: tl.constexpr, R: tl.constexpr, BACK: tl.constexpr):
    """y[i] = slopes[i] y[i - 1] + shifts[i] in each row, or from its end."""
    at = (tl.arange(0, R)[:, None] + R * tl.program_id(0)) * C + tl.arange(0, C)[None, :]
    slope, shift = tl.associative_scan((tl.load(slopes + at), tl.load(shifts + at)), 1, then, reverse=BACK)
    tl.store(y + at, shift)


@triton.jit
def sorted_rows(x, y, C: tl.constexpr, R: tl.constexpr, DOWN: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    tl.store(y + at, tl.sort(tl.load(x + at), descending=DOWN))


@triton.jit
def bins(x, y, n, C: tl.constexpr, B: tl.constexpr):
    at = tl.program_id(0) * C + tl.arange(0, C)
    counts = tl.histogram(tl.load(x + at, mask=at < n, other=0), B, mask=at < n)
    tl.atomic_add(y + tl.arange(0, B), counts)


@triton.jit
def moved(x, index, y, z, R: tl.constexpr, C: tl.constexpr):
    """Gathered by rows, and transposed."""
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    value = tl.load(x + at)
    tl.store(y + at, tl.gather(value, tl.load(index + at), 0))
    turned = tl.arange(0, C)[:, None] * R + tl.arange(0, R)[None, :]
    tl.store(z + turned, tl.trans(value))


HALF, BRAIN, SINGLE, WORD = "*fp16", "*bf16", "*fp32", "*i32"
SIZES = {"m": "i32", "n": "i32", "k": "i32"}


def of(left, right, multiple=":16", **constants):
    """A product: its arguments and constants. Columns, so that cp.async can copy them, are multiples of 16."""
    types = {"a": left, "b": right, "c": WORD if left == "*i8" else SINGLE}
    sizes = {"m": "i32", "n": "i32" + multiple, "k": "i32" + multiple, "a_pitch": "i32:16", "b_pitch": "i32:16"}
    return {**types, **sizes}, {"T": 0, "PRECISION": "tf32", **constants}


def box(type, rows, columns):
    return f"tensordesc<{type}[{rows}, {columns}]>"


def box_product(m, n, k, constants={}, **more):
    return ({"a": box("fp16", m, k), "b": box("fp16", n, k), "c": box("fp32", m, n), **SIZES, **more},
            {"M": m, "N": n, "K": k, **constants})


def box_attention(m, n, d):
    return ({"q": box("fp16", m, d), "k": box("fp16", n, d), "v": box("fp16", n, d), "o": box("fp32", m, d),
             "length": "i32", "scale": "fp32"}, {"M": m, "N": n, "D": d})


ATTENTION = ({"q": HALF, "k": HALF, "v": HALF, "o": SINGLE, "length": "i32", "scale": "fp32"},
             {"M": 64, "N": 32, "D": 64})
PROGRAMS = {
    # name: kernel, (arguments, constants), options, the targets
    "product_f16": (product, of(HALF, HALF, M=64, N=64, K=32), {"num_stages": 3}, (80, 90)),
    "product_f16_odd": (product, of(HALF, HALF, "", M=64, N=64, K=32), {"num_stages": 3}, (80, 90)),
    "product_f16_deep": (product, of(HALF, HALF, M=32, N=32, K=32), {"num_stages": 5, "num_warps": 2}, (80, 90)),
    "product_f16_wide": (product, of(HALF, HALF, M=128, N=128, K=64), {"num_stages": 3, "num_warps": 8}, (80, 90)),
    "product_f16_columns": (product, of(HALF, HALF, M=64, N=64, K=64, T=1), {"num_stages": 4}, (80, 90)),
    "product_bf16": (product, of(BRAIN, BRAIN, M=64, N=128, K=32), {"num_stages": 4}, (80, 90)),
    "product_bf16_plain": (product, of(BRAIN, BRAIN, M=64, N=64, K=32), {"num_stages": 1}, (80, 90)),
    "product_tf32": (product, of(SINGLE, SINGLE, M=64, N=64, K=32), {"num_stages": 3}, (80, 90)),
    "product_tf32x3": (product, of(SINGLE, SINGLE, M=64, N=32, K=32, PRECISION="tf32x3"), {"num_stages": 3}, (80, 90)),
    "product_f32": (product, of(SINGLE, SINGLE, M=32, N=32, K=16, PRECISION="ieee"), {"num_stages": 2}, (80, 90)),
    "product_s8": (product, of("*i8", "*i8", M=64, N=64, K=64), {"num_stages": 3}, (80, 90)),
    "product_s8_columns": (product, of("*i8", "*i8", M=64, N=64, K=64, T=1), {"num_stages": 3}, (80, 90)),
    "product_e5": (product, of("*fp8e5", "*fp8e5", M=64, N=64, K=64, T=1), {"num_stages": 3}, (80, 90)),
    "product_e4": (product, of("*fp8e4nv", "*fp8e4nv", M=64, N=64, K=64, T=1), {"num_stages": 3}, (90,)),
    "boxes": (boxes, box_product(128, 64, 64), {"num_stages": 3}, (90,)),
    "boxes_wide": (boxes, box_product(128, 128, 64), {"num_stages": 4, "num_warps": 8}, (90,)),
    "made_boxes": (made_boxes, ({"a": HALF, "b": HALF, "c": SINGLE, "m": "i32", "n": "i32:16", "k": "i32:16"},
                                {"M": 128, "N": 64, "K": 64}), {"num_stages": 3}, (90,)),
    "persistent": (persistent, box_product(128, 64, 64, {"FLAT": False}, blocks="i32"), {"num_stages": 3}, (90,)),
    "persistent_flat": (persistent, box_product(128, 64, 64, {"FLAT": True}, blocks="i32"), {"num_stages": 3}, (90,)),
    "box_sums": (box_sums, ({"x": box("fp32", 32, 32), "y": box("fp32", 32, 32)}, {"M": 32, "N": 32}), {}, (90,)),
    "causal": (causal, ATTENTION, {"num_stages": 3}, (80, 90)),
    "causal_wide": (causal, (ATTENTION[0], {"M": 128, "N": 64, "D": 64}), {"num_stages": 2, "num_warps": 8}, (80, 90)),
    "causal_boxes": (causal_boxes, box_attention(64, 64, 64), {"num_stages": 3}, (90,)),
    "row_softmax": (row_softmax, ({"x": SINGLE, "y": SINGLE, "rows": "i32", "columns": "i32"}, {"R": 4, "C": 512}), {},
                    (80, 90)),
    "norm": (norm, ({"x": BRAIN, "y": SINGLE, "scale": SINGLE, "shift": SINGLE, "columns": "i32", "epsilon": "fp32"},
                    {"C": 1024}), {"num_warps": 8}, (80, 90)),
    "totals": (totals, ({"x": WORD, "sum": WORD, "most": WORD, "least": WORD, "n": "i32"}, {"C": 512}), {}, (80, 90)),
    "last_block": (last_block, ({"x": WORD, "parts": WORD, "count": WORD, "sum": WORD, "n": "i32", "blocks": "i32"},
                                {"C": 256, "B": 16}), {}, (80, 90)),
    "locked": (locked, ({"lock": WORD, "value": WORD, "rounds": "i32"}, {}), {}, (80, 90)),
    "recurrence": (recurrence, ({"slopes": WORD, "shifts": WORD, "y": WORD, "rows": "i32"},
                                {"C": 256, "R": 2, "BACK": False}), {}, (80, 90)),
    "recurrence_back": (recurrence, ({"slopes": WORD, "shifts": WORD, "y": WORD, "rows": "i32"},
                                     {"C": 64, "R": 16, "BACK": True}), {"num_warps": 8}, (80, 90)),
    "sorted_rows": (sorted_rows, ({"x": WORD, "y": WORD}, {"C": 256, "R": 4, "DOWN": False}), {}, (80, 90)),
    "sorted_halves": (sorted_rows, ({"x": HALF, "y": HALF}, {"C": 128, "R": 4, "DOWN": True}), {}, (80, 90)),
    "bins": (bins, ({"x": WORD, "y": WORD, "n": "i32"}, {"C": 512, "B": 64}), {}, (80, 90)),
    "moved": (moved, ({"x": SINGLE, "index": WORD, "y": SINGLE, "z": SINGLE}, {"R": 64, "C": 32}), {}, (80, 90)),
}


def compiled(kernel, arguments, constants, options, target):
    names = kernel.arg_names
    signature = {name: arguments.get(name, "constexpr").removesuffix(":16") for name in names}
    multiples = {(names.index(name),): [["tt.divisibility", 16]]
                 for name, type in arguments.items() if type[0] == "*" or type.endswith(":16")}
    source = ASTSource(kernel, signature, constants, multiples)
    return triton.compile(source, target=GPUTarget("cuda", target, 32), options={"ptx_version": 86, **options})


def facts(made, constants):
    data = made.metadata
    lines = {"threads": 32 * data.num_warps, "shared": data.shared, "scratch": data.global_scratch_size,
             "profile": data.profile_scratch_size}
    lines |= {name: int(value) for name, value in constants.items() if not isinstance(value, str)}
    for number, each in enumerate(data.tensordesc_meta or []):
        lines[f"swizzle{number}"] = each["swizzle"]
        for axis, extent in enumerate(reversed(each["block_size"])):
            lines[f"box{number}.{axis}"] = extent
    return "".join(f"{name} {value}\n" for name, value in lines.items())


def main(folder, word=""):
    for name, (kernel, (arguments, constants), options, targets) in PROGRAMS.items():
        if word not in name:
            continue
        for target in targets:
            made = compiled(kernel, arguments, constants, options, target)
            stem = f"{name}.sm_{target}" + ("a" if target == 90 else "")
            (folder / f"{stem}.ptx").write_text(made.asm["ptx"])
            (folder / f"{stem}.txt").write_text(facts(made, constants))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), *sys.argv[2:])
