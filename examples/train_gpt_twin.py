#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The network of gpt.hpp in float64 with NumPy: prints the losses of a training that begins as in FILE.

usage: train_gpt_twin.py FILE.safetensors

The file has the parameters at the start, "ids" and "targets" (steps x batch x context), and in its metadata the numbers
of layers and heads, the probability of dropout and the learning rate. Ends with status 77 without NumPy.
"""
import json
import sys

try:
    import numpy as np
except ImportError:
    sys.exit(77)

HEAD_DIM, NORM_EPSILON, BASE = 64, 1e-5, 10000.0
MAX_NORM, BETA1, BETA2, EPSILON, WEIGHT_DECAY = 1.0, 0.9, 0.99, 1e-8, 0.01


def read(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    types = {"F32": np.float32, "U32": np.uint32}
    arrays = {}
    for name, entry in header.items():
        if name not in ("__metadata__", "characters"):
            begin, end = entry["data_offsets"]
            arrays[name] = np.frombuffer(data[begin:end], types[entry["dtype"]]).reshape(entry["shape"])
    return arrays, header["__metadata__"]


def philox(blocks, seed):
    """The words of Philox 4x32-10 for these counters, in a row: 4 for each."""
    mask = np.uint64(0xFFFFFFFF)
    counter = [blocks & mask, blocks >> np.uint64(32), np.zeros_like(blocks), np.zeros_like(blocks)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = counter[0] * np.uint64(0xD2511F53), counter[2] * np.uint64(0xCD9E8D57)
        counter = [(b >> np.uint64(32)) ^ counter[1] ^ np.uint64(key[0]), b & mask,
                   (a >> np.uint64(32)) ^ counter[3] ^ np.uint64(key[1]), a & mask]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(counter, axis=-1).reshape(-1)


class Dropout:
    """Masks in the order of the calls: the state on the device is a seed of 1 and an offset."""

    def __init__(self, probability):
        self.probability, self.offset = probability, 0

    def mask(self, shape):
        count = int(np.prod(shape))
        blocks = (count + 3) // 4
        words = philox(np.arange(self.offset, self.offset + blocks, dtype=np.uint64), 1)[:count]
        self.offset += blocks
        limit = round(self.probability * 2**31)
        kept = (words >> np.uint64(1)) >= np.uint64(limit)
        return kept.reshape(shape) / (1 - self.probability)


def norm(x, gamma):
    factor = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + NORM_EPSILON)
    return x * factor * gamma, (x, factor, gamma)


def norm_backward(dy, kept):
    x, factor, gamma = kept
    n, g = x * factor, dy * gamma
    dx = (g - n * (g * n).mean(-1, keepdims=True)) * factor
    return dx, (dy * n).reshape(-1, n.shape[-1]).sum(0)


def gelu(x):
    # erf by the error function's integral would need SciPy: math.erf of each element.
    import math
    erf = np.vectorize(math.erf)(x / np.sqrt(2.0))
    return 0.5 * x * (1 + erf), 0.5 * (1 + erf) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


def turn(x, sign):
    """Rotates batch x heads x rows x 64: element i with element i + 32."""
    half = HEAD_DIM // 2
    angles = np.arange(x.shape[2])[:, None] * BASE ** (-np.arange(half) / half) * sign
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], -1)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def split(x, heads):
    batch, rows, _ = x.shape
    return x.reshape(batch, rows, heads, HEAD_DIM).transpose(0, 2, 1, 3)


def join(x):
    batch, heads, rows, _ = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, rows, heads * HEAD_DIM)


def attention(qkv, heads):
    q, k, v = (split(part, heads) for part in np.split(qkv, 3, -1))
    q, k = turn(q, 1), turn(k, 1)
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(HEAD_DIM)
    rows = scores.shape[-1]
    p = softmax(np.where(np.tril(np.ones((rows, rows), bool)), scores, -np.inf))
    return join(p @ v), (q, k, v, p)


def attention_backward(dy, kept, heads):
    q, k, v, p = kept
    do = split(dy, heads)
    dp = do @ v.transpose(0, 1, 3, 2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / np.sqrt(HEAD_DIM)
    dq, dk, dv = turn(ds @ k, -1), turn(ds.transpose(0, 1, 3, 2) @ q, -1), p.transpose(0, 1, 3, 2) @ do
    return np.concatenate([join(dq), join(dk), join(dv)], -1)


def product_backward(x, w, dy):
    rows = x.reshape(-1, x.shape[-1])
    return dy @ w.T, rows.T @ dy.reshape(-1, dy.shape[-1])


def step(w, ids, targets, layers, heads, dropout):
    """The loss, and the gradients by name."""
    kept, x = [], w["embedding"][ids]
    for i in range(layers):
        of = lambda part: w[f"layers.{i}.{part}"]
        masks = [dropout.mask(x.shape), dropout.mask(x.shape)]
        normed_1, norm_1 = norm(x, of("norm_1"))
        attended, of_attention = attention(normed_1 @ of("qkv"), heads)
        x = x + attended @ of("out") * masks[0]
        normed_2, norm_2 = norm(x, of("norm_2"))
        active, slope = gelu(normed_2 @ of("up"))
        x = x + active @ of("down") * masks[1]
        kept.append((masks, normed_1, norm_1, attended, of_attention, normed_2, norm_2, active, slope))
    normed, of_norm = norm(x, w["norm"])
    p = softmax(normed @ w["head"].T)
    hit = np.arange(ids.size), targets.reshape(-1)
    flat = p.reshape(ids.size, -1)
    loss = -np.log(flat[hit]).mean()

    g = {}
    flat[hit] -= 1
    p = p / ids.size
    g["head"] = p.reshape(ids.size, -1).T @ normed.reshape(ids.size, -1)
    dx, g["norm"] = norm_backward(p @ w["head"], of_norm)
    for i in reversed(range(layers)):
        name = lambda part: f"layers.{i}.{part}"
        masks, normed_1, norm_1, attended, of_attention, normed_2, norm_2, active, slope = kept[i]
        d_active, g[name("down")] = product_backward(active, w[name("down")], dx * masks[1])
        d_normed, g[name("up")] = product_backward(normed_2, w[name("up")], d_active * slope)
        past, g[name("norm_2")] = norm_backward(d_normed, norm_2)
        dx = dx + past
        d_attended, g[name("out")] = product_backward(attended, w[name("out")], dx * masks[0])
        d_qkv = attention_backward(d_attended, of_attention, heads)
        d_normed, g[name("qkv")] = product_backward(normed_1, w[name("qkv")], d_qkv)
        past, g[name("norm_1")] = norm_backward(d_normed, norm_1)
        dx = dx + past
    g["embedding"] = np.zeros_like(w["embedding"])
    np.add.at(g["embedding"], ids.reshape(-1), dx.reshape(ids.size, -1))
    return loss, g


def main():
    arrays, numbers = read(sys.argv[1])
    layers, heads, rate = (float(numbers[name]) for name in ("layers", "heads", "learning_rate"))
    dropout = Dropout(float(numbers["dropout"]))
    w = {name: x.astype(np.float64) for name, x in arrays.items() if name not in ("ids", "targets")}
    first, second = ({name: np.zeros_like(x) for name, x in w.items()} for _ in range(2))
    for number, (ids, targets) in enumerate(zip(arrays["ids"], arrays["targets"]), 1):
        loss, g = step(w, ids, targets, int(layers), int(heads), dropout)
        print(f"{loss:.9f}")
        scale = min(1, MAX_NORM / (np.sqrt(sum((x * x).sum() for x in g.values())) + 1e-6))
        for name, x in w.items():
            of = g[name] * scale
            first[name] = BETA1 * first[name] + (1 - BETA1) * of
            second[name] = BETA2 * second[name] + (1 - BETA2) * of * of
            root = np.sqrt(second[name] / (1 - BETA2**number)) + EPSILON
            w[name] = x * (1 - rate * WEIGHT_DECAY) - rate * first[name] / (1 - BETA1**number) / root


main()
