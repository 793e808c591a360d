// SPDX-License-Identifier: Apache-2.0
// Attention whose scores and sight are one's own: ALiBi, a slope for each head by which scores fall with the distance,
// within a window, and the first keys of the sequence, which all queries see. By both kinds of products, in four orders
// of the warps, looking for races.
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace ikat;
using namespace ikat::stdlib;

constexpr std::uint32_t heads = 2, queries = 100, keys = 300, d = 64;
constexpr int window = 70, sinks = 4;

template <class T>
std::vector<T> numbers(std::uint32_t count, float by) {
    std::vector<T> out;
    for (std::uint32_t i = 0; i < count; ++i) out.emplace_back(std::sin(by * float(i)));
    return out;
}

/// How many elements of O are not those of double, within some roundings to half.
std::uint32_t wrong_of(const std::vector<half>& o, const auto& q, const auto& k, const auto& v, const auto& slopes) {
    std::uint32_t wrong = 0;
    for (std::uint32_t h = 0; h < heads; ++h)
        for (std::uint32_t i = 0; i < queries; ++i) {
            const int p = int(i + keys - queries);
            double sums[d] = {}, total = 0;
            for (int j = 0; j <= p; ++j) {
                if (j <= p - window && j >= sinks) continue;
                double score = 0;
                for (std::uint32_t e = 0; e < d; ++e)
                    score += double(q[(h * queries + i) * d + e]) * double(k[(h * keys + j) * d + e]);
                const double weight = std::exp(score / std::sqrt(d) - double(slopes[h]) * (p - j));
                total += weight;
                for (std::uint32_t e = 0; e < d; ++e) sums[e] += weight * double(v[(h * keys + j) * d + e]);
            }
            for (std::uint32_t e = 0; e < d; ++e)
                wrong += !(std::abs(sums[e] / total - double(o[(h * queries + i) * d + e])) < 0x1p-9);
        }
    return wrong;
}

int main() try {
    const auto q = numbers<half>(heads * queries * d, 0.1f), k = numbers<half>(heads * keys * d, 0.7f),
               v = numbers<half>(heads * keys * d, 0.3f);
    const std::vector<float> slopes{0.5f, 0.0625f};

    const auto device = Device::open({.device = "emulator", .target = "sm_90a", .check = "races", .schedules = 4});
    const auto Q = device.upload(q, "Q"), K = device.upload(k, "K"), V = device.upload(v, "V");
    const auto Slopes = device.upload(slopes, "slopes");
    auto O = device.buffer<half>(heads * queries * d, "O");
    AttentionOptions options;
    options.scores = scores(
        "alibi",
        [](auto score, auto at, auto slopes) { return score - slopes[at.head] * cast<f32>(abs(at.query - at.key)); },
        Slopes);
    options.sees = sees(
        "window_and_sinks",
        [](auto at, auto window) { return (at.key <= at.query) & ((at.key > at.query - window) | (at.key < sinks)); },
        window);
    std::uint32_t wrong = 0;
    for (const auto path : {AttentionPath::mma_sync, AttentionPath::wgmma}) {
        options.path = path;
        flash_attention(device, Q.view(heads, queries, d), K.view(heads, keys, d), V.view(heads, keys, d),
                        O.view(heads, queries, d), options);
        wrong += wrong_of(O.download(), q, k, v, slopes);
    }
    std::printf("ALiBi within a window and with sinks, by both paths: %u elements wrong\n", wrong);
    return wrong != 0;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
