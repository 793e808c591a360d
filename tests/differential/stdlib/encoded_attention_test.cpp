// SPDX-License-Identifier: Apache-2.0
// flash_attention() to caches of Q8_0 and e4m3: the bits of a cache of Q's type that has the decoded elements, which
// sums in double confirm.
#include <cstdint>
#include <string>
#include <vector>

#include "tests/differential/stdlib/attention_problem.hpp"
#include "tests/differential/stdlib/encoded_rows.hpp"
#include "tests/message.hpp"

namespace {

using namespace ikat;
using namespace ikat::tests;
using namespace ikat::tests::attention;
using Stored = std::vector<std::uint8_t>;

/// A problem whose K and V have been encoded; rows of these begin at a byte, with gaps.
template <class T>
struct EncodedProblem {
    Problem<T> problem;
    Encoding encoding;
    Stored k, v;
    std::uint32_t first = 0, gap = 0;  // gaps of blocks, or of elements

    EncodedProblem(const Shape& shape, std::uint32_t d, Encoding encoding, const Extra& extra = {})
        : problem(shape, d, extra), encoding(encoding) {
        k = encoded(encoding, problem.K.stored), v = encoded(encoding, problem.V.stored);
        decode();
    }
    void decode() { problem.K.stored = decoded<T>(encoding, k), problem.V.stored = decoded<T>(encoding, v); }

    auto run(const Device& device, const AttentionOptions& how = {}) const {
        const Shape& is = problem.shape;
        const EncodedLayout layout{encoding, problem.d, first, gap};
        const auto keys = device.upload(layout.spread(k), "K"), values = device.upload(layout.spread(v), "V");
        const auto view = [&](const auto& all) {
            return layout.view(all, is.batch, is.kv_heads, is.keys, is.heads_in_rows);
        };
        return problem.run(device, view(keys), view(values), how);
    }

    /// By the orders of threads in turn.
    void check(const Devices& devices) const {
        const Shape& is = problem.shape;
        INFO("encoding " << int(encoding) << ", queries " << is.queries << ", keys " << is.keys << ", heads "
                         << is.heads << "/" << is.kv_heads << ", d " << problem.d << ", block " << is.block
                         << ", first " << first << ", gap " << gap);
        static std::size_t number = 0;
        const AttentionOptions how{.path = AttentionPath::mma_sync, .queries_of_block = is.block};
        for (std::size_t seed = 0; seed < devices.any.size(); ++seed) {
            if (!tests::is_for_seed(number, seed, devices.any.size())) continue;
            const auto got = run(devices.any[seed], how), plain = problem.run(devices.any[seed], how);
            problem.compare(got, problem.rows());
            CHECK(are_same(got.first, plain.first));
            CHECK(got.second == plain.second);
        }
        ++number;
    }
};

Devices devices_with_races(int seeds) {
    Devices out = devices_of_seeds(seeds);
    out.any.push_back(test::open_device({.threads = 1, .check = "races", .schedules = 2}));
    return out;
}

}  // namespace

TEMPLATE_TEST_CASE("attention to encoded caches: lengths, and heads that share keys", "", half, bfloat16, float) {
    const Devices devices = devices_with_races(3), one = devices_of_seeds(1);
    const Extra causal{.options = {.causal = true}, .log_sum = true};
    for (const Encoding encoding : encodings)
        for (const std::uint32_t d : {64u, 128u}) {
            for (const std::uint32_t keys : {1u, 31u, 33u, 127u, 129u})  // all for each encoding
                if (d == 64 || keys == 33 || keys == 129)
                    EncodedProblem<TestType>({.queries = 9, .keys = keys, .heads = 2, .kv_heads = 1}, d, encoding,
                                             causal)
                        .check(devices);
            EncodedProblem<TestType>(
                {.queries = 70, .keys = 150, .heads = 2, .kv_heads = 1, .batch = 2, .heads_in_rows = true}, d, encoding,
                causal)
                .check(one);
        }
}

TEMPLATE_TEST_CASE("attention to encoded caches: windows, biases, caps, sinks, and all sizes of heads", "", half,
                   bfloat16, float) {
    const Devices devices = devices_of_seeds(2);
    for (const Encoding encoding : encodings) {
        const Extra extra{.options = {.window_left = 40, .window_right = 10, .soft_cap = 3},
                          .bias_batch = 1,
                          .bias_heads = 2,
                          .log_sum = true,
                          .sinks = true};
        EncodedProblem<TestType>({.queries = 80, .keys = 150, .heads = 2, .kv_heads = 2}, 64, encoding, extra)
            .check(devices);
        EncodedProblem<TestType>({.queries = 130, .keys = 140, .block = sizeof(TestType) == 4 ? 64u : 128u}, 64,
                                 encoding)
            .check(devices);
        EncodedProblem<TestType>({.queries = 30, .keys = 70}, 96, encoding).check(devices);
        EncodedProblem<TestType>({.queries = 30, .keys = 70}, 256, encoding).check(devices);
        if (encoding == Encoding::e4m3)
            EncodedProblem<TestType>({.queries = 30, .keys = 70}, 80, encoding).check(devices);
    }
}

TEST_CASE("attention to encoded caches: rows that begin anywhere") {
    const Devices devices = devices_of_seeds(2);
    for (const Encoding encoding : encodings)
        for (const std::uint32_t first : {0u, 2u, 4u, 1u})
            for (const std::uint32_t gap : {0u, 1u, 4u}) {
                if (first == 1 && encoding == Encoding::q8_0) continue;
                EncodedProblem<half> problem({.queries = 5, .keys = 70}, gap == 1 ? 64 : 128, encoding);
                problem.first = first, problem.gap = gap;
                problem.check(devices);
            }
}

TEST_CASE("attention to blocks whose scales are 0, subnormal, infinite or NaN") {
    const Device device = test::open_device();
    for (const std::uint16_t scale : {0x0000, 0x8001, 0x7bff, 0x7c00, 0x7e00})
        for (const bool is_of_k : {true, false}) {
            INFO("scale " << scale << ", of K " << is_of_k);
            EncodedProblem<bfloat16> problem({.queries = 9, .keys = 70}, 64, Encoding::q8_0);
            Stored& bytes = is_of_k ? problem.k : problem.v;
            for (std::size_t row = 0; row < 70; row += 7)
                bytes[row * 68 + row % 2 * 34] = std::uint8_t(scale),
                                           bytes[row * 68 + row % 2 * 34 + 1] = std::uint8_t(scale >> 8);
            problem.decode();
            CHECK(are_same(problem.run(device).first, problem.problem.run(device).first));
        }
}

TEMPLATE_TEST_CASE("attention to encoded caches of sequences of different lengths", "", half, float) {
    const Device device = test::open_device();
    constexpr std::uint32_t d = 64, rows = 260;
    for (const Encoding encoding : encodings) {
        const EncodedProblem<TestType> problem({.queries = 100, .keys = rows, .heads = 2, .kv_heads = 1}, d, encoding);
        AttentionOptions options{.causal = true};
        const auto queries = device.upload(std::vector<std::uint32_t>{0, 5, 5, 80, 100}, "query_offsets"),
                   keys = device.upload(std::vector<std::uint32_t>{3, 70, 70, 200, 260}, "key_offsets");
        EncodedProblem<TestType> ragged = problem;
        ragged.problem.extra.options.causal = true;
        ragged.problem.extra.options.query_offsets = queries, ragged.problem.extra.options.key_offsets = keys;
        CHECK(are_same(ragged.run(device).first, ragged.problem.run(device).first));
    }
}

TEST_CASE("attention to encoded caches: on sm_90a by mma.sync") {
    const Device device = test::open_device({.target = "sm_90a"});
    const EncodedProblem<half> problem({.queries = 70, .keys = 100}, 64, Encoding::q8_0);
    problem.problem.compare(problem.run(device), problem.problem.rows());
    CHECK_THAT(message_of([&] { problem.run(device, {.path = AttentionPath::wgmma}); }),
               contains("flash_attention: wgmma: K and V have elements of q8_0"));
}
