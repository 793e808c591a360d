#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first steps of examples/train_mlp in float64, with NumPy: prints the loss of each.

    train_mlp_twin.py FILE         the file has the weights, the points and the classes of each step, and in its metadata
                                   the numbers of the optimiser; train_mlp --check makes it
"""
import json
import sys

import numpy as np


def read(path):
    """The tensors of a file in the format safetensors, and its metadata."""
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__", {})
    types = {"F32": np.float32, "I32": np.int32}
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        flat = np.frombuffer(data[8 + length + begin:8 + length + end], types[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors, metadata


def gradients(p, x, targets):
    """The mean loss and its gradients."""
    h1 = np.maximum(x @ p["1.weight"] + p["1.bias"], 0)
    h2 = np.maximum(h1 @ p["2.weight"] + p["2.bias"], 0)
    logits = h2 @ p["3.weight"] + p["3.bias"]
    rows = np.arange(len(targets))
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    loss = (log_sum[:, 0] - shifted[rows, targets]).mean()
    d3 = np.exp(shifted - log_sum)
    d3[rows, targets] -= 1
    d3 /= len(targets)
    d2 = (d3 @ p["3.weight"].T) * (h2 > 0)
    d1 = (d2 @ p["2.weight"].T) * (h1 > 0)
    return loss, {"1.weight": x.T @ d1, "1.bias": d1.sum(0), "2.weight": h1.T @ d2, "2.bias": d2.sum(0),
                  "3.weight": h2.T @ d3, "3.bias": d3.sum(0)}


def main():
    tensors, numbers = read(sys.argv[1])
    rate, decay, max_norm = (float(numbers[name]) for name in ("learning_rate", "weight_decay", "max_norm"))
    p = {name: t.astype(np.float64) for name, t in tensors.items() if name.endswith((".weight", ".bias"))}
    first = {name: np.zeros_like(t) for name, t in p.items()}
    second = {name: np.zeros_like(t) for name, t in p.items()}
    for step in range(1, len(tensors["points"]) + 1):
        loss, g = gradients(p, tensors["points"][step - 1].astype(np.float64), tensors["classes"][step - 1])
        print(repr(float(loss)))
        norm = np.sqrt(sum((t * t).sum() for t in g.values()))
        scale = min(1, max_norm / (norm + 1e-6))
        for name in p:
            first[name] = 0.9 * first[name] + 0.1 * scale * g[name]
            second[name] = 0.999 * second[name] + 0.001 * (scale * g[name]) ** 2
            p[name] *= 1 - rate * decay
            p[name] -= rate / (1 - 0.9**step) * first[name] / (np.sqrt(second[name] / (1 - 0.999**step)) + 1e-8)


main()
