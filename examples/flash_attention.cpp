// SPDX-License-Identifier: Apache-2.0
// Attention on tensor cores: new tokens of a sequence look at all keys so far, each at none after its own (causal).
// Then the same in two parts, the keys before these tokens and their own, put together by the logarithms of the sums of
// exp(score). So parts can be computed at different times, or on different devices.
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace ikat;

// Two heads of Q share one of K and V.
constexpr std::uint32_t heads = 4, kv_heads = 2, queries = 40, before = 100, keys = before + queries, dim = 64;

// O = (exp(l) O + exp(l') O') / (exp(l) + exp(l')), a thread for each element; a row has one of each logarithm.
const auto combine = kernel("combine", params("O", "l", "more", "more_l", "n"),
                            [](InOut<half> O, In<float> l, In<half> more, In<float> more_l, u32 n) {
                                u32 i = global_id().x;
                                return_if(i >= n);
                                f32 share = stdlib::sigmoid(more_l[i / dim] - l[i / dim]);
                                f32 x = cast<f32>(O[i]), y = cast<f32>(more[i]);
                                O[i] = cast<f16>(fma(share, y - x, x));
                            });

std::vector<half> numbers(std::uint32_t count, double step) {
    std::vector<half> out;
    for (std::uint32_t i = 0; i < count; ++i) out.emplace_back(std::sin(step * i));
    return out;
}

/// The largest difference to attention by plain loops.
double difference(const std::vector<half>& o, const std::vector<half>& q, const std::vector<half>& k,
                  const std::vector<half>& v) {
    double worst = 0;
    for (std::uint32_t head = 0; head < heads; ++head)
        for (std::uint32_t i = 0; i < queries; ++i) {
            const std::uint32_t row = (head * queries + i) * dim, first = head / (heads / kv_heads) * keys * dim;
            double total = 0, wanted[dim] = {};
            for (std::uint32_t j = 0; j <= before + i; ++j) {
                double score = 0;
                for (std::uint32_t e = 0; e < dim; ++e) score += double(q[row + e]) * double(k[first + j * dim + e]);
                const double weight = std::exp(score / std::sqrt(double(dim)));
                total += weight;
                for (std::uint32_t e = 0; e < dim; ++e) wanted[e] += weight * double(v[first + j * dim + e]);
            }
            for (std::uint32_t e = 0; e < dim; ++e)
                worst = std::max(worst, std::abs(double(o[row + e]) - wanted[e] / total));
        }
    return worst;
}

int main() try {
    const auto q = numbers(heads * queries * dim, 0.7), k = numbers(kv_heads * keys * dim, 0.3),
               v = numbers(kv_heads * keys * dim, 0.11);
    const auto device = Device::open();
    const auto Q = device.upload(q, "Q"), K = device.upload(k, "K"), V = device.upload(v, "V");
    auto O = device.buffer<half>(q.size(), "O"), more = device.buffer<half>(q.size(), "more");
    auto l = device.buffer<float>(heads * queries, "l"), more_l = device.buffer<float>(heads * queries, "more_l");

    // The last query belongs to the last key.
    stdlib::flash_attention(device, Q.view(heads, queries, dim), K.view(kv_heads, keys, dim),
                            V.view(kv_heads, keys, dim), O.view(heads, queries, dim), {.causal = true});
    const double whole = difference(O.download(), q, k, v);

    // Heads of a part are as far apart as those of the whole.
    const auto first = [](const Buffer<half>& x) { return x.view(kv_heads, before, dim).pitched(keys * dim, dim); };
    const auto rest = [](const Buffer<half>& x) {
        return x.slice(before * dim, x.size() - before * dim).view(kv_heads, queries, dim).pitched(keys * dim, dim);
    };
    stdlib::flash_attention(device, Q.view(heads, queries, dim), first(K), first(V), O.view(heads, queries, dim),
                            {.log_sum = l.view(heads, queries)});
    stdlib::flash_attention(device, Q.view(heads, queries, dim), rest(K), rest(V), more.view(heads, queries, dim),
                            {.causal = true, .log_sum = more_l.view(heads, queries)});
    device.launch(combine, grid(O.size(), 256), O, l, more, more_l, O.size());
    const double parts = difference(O.download(), q, k, v);

    // Weights and results are rounded to half, of which 1 has an error of 2^-11.
    const bool right = whole <= 0x1p-10 && parts <= 0x1p-9;
    std::printf("at once: %s, in two parts: %s\n", whole <= 0x1p-10 ? "right" : "WRONG",
                parts <= 0x1p-9 ? "right" : "WRONG");
    return right ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
