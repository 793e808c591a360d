// SPDX-License-Identifier: Apache-2.0
// incremental_attention() to caches of Q8_0 and e4m3: the bits of a cache of Q's type that has the decoded elements,
// which sums in double confirm.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/differential/stdlib/encoded_rows.hpp"
#include "tests/differential/stdlib/incremental_problem.hpp"

namespace {

using namespace ikat;
using namespace ikat::tests;
using namespace ikat::tests::incremental;
using Stored = std::vector<std::uint8_t>;

/// A problem whose K and V have been encoded.
template <class T>
struct EncodedProblem {
    Problem<T> problem;
    Encoding encoding;
    Stored k, v;

    EncodedProblem(const Case& is, Encoding encoding) : problem(is), encoding(encoding) {
        k = encoded(encoding, problem.k), v = encoded(encoding, problem.v);
        decode();
    }
    void decode() { problem.k = decoded<T>(encoding, k), problem.v = decoded<T>(encoding, v); }

    Output<T> run(const Device& device) const {
        const Case& is = problem.is;
        const auto layout = [&](std::uint32_t first) { return EncodedLayout{encoding, is.d, first, is.gap}; };
        const auto upload = [&](const Stored& rows, std::uint32_t first) {
            const EncodedLayout at = layout(first);
            return device.upload(problem.stored(rows, first, at.row_bytes(), at.gap_bytes(), std::uint8_t(0x7f)),
                                 first ? "V" : "K");
        };
        const auto view = [&](const runtime::Buffer<std::uint8_t>& all, std::uint32_t first) {
            return layout(first).view(all, is.page_rows ? is.pages() : is.sequences(), is.kv_heads,
                                      is.page_rows ? is.page_rows : is.capacity(), is.heads_in_rows);
        };
        const auto keys = upload(k, is.first[1]), values = upload(v, is.first[2]);
        return problem.run(device, view(keys, is.first[1]), view(values, is.first[2]));
    }

    /// By the orders of threads in turn.
    void check(const std::vector<Device>& devices) const {
        const Case& is = problem.is;
        INFO("encoding " << int(encoding) << ", first length " << is.lengths[0] << ", heads " << is.heads << "/"
                         << is.kv_heads << ", queries " << is.queries << ", d " << is.d << ", parts " << is.parts
                         << ", page " << is.page_rows << ", gap " << is.gap << ", first " << is.first[1]);
        static std::size_t number = 0;
        for (std::size_t seed = 0; seed < devices.size(); ++seed) {
            if (!tests::is_for_seed(number, seed, devices.size())) continue;
            const Output<T> got = run(devices[seed]), plain = problem.run(devices[seed]);
            problem.compare(got);
            CHECK(got.o == plain.o);
            CHECK(got.log_sums == plain.log_sums);
        }
        ++number;
    }
};

template <class T>
void check_cases(const std::vector<Device>& devices, Encoding encoding, const std::vector<Case>& cases) {
    for (const Case& is : cases) EncodedProblem<T>(is, encoding).check(devices);
}

}  // namespace

TEMPLATE_TEST_CASE("incremental attention to encoded caches: lengths, heads that share keys, pages", "", half, bfloat16,
                   float) {
    auto devices = devices_of_seeds(3);
    devices.push_back(test::open_device({.threads = 1, .check = "races", .schedules = 2}));
    for (const Encoding encoding : encodings)
        for (const std::uint32_t d : {64u, 128u}) {
            const std::vector<Case> cases{
                {.lengths = {1, 31, 33, 127, 129}, .heads = 2, .d = d},
                {.lengths = {129, 31}, .heads = 8, .kv_heads = 2, .d = d, .parts = 2, .heads_in_rows = false},
                {.lengths = {127, 0, 33}, .heads = 4, .kv_heads = 1, .queries = 3, .d = d, .page_rows = 16},
                {.lengths = {200, 1},
                 .heads = 4,
                 .kv_heads = 2,
                 .queries = 5,
                 .d = d,
                 .parts = 3,
                 .page_rows = 32,
                 .causal = true},
            };
            check_cases<TestType>(devices, encoding, cases);
        }
}

TEMPLATE_TEST_CASE("incremental attention to encoded caches: windows, caps, sinks, and all sizes of heads", "", half,
                   bfloat16, float) {
    const auto devices = devices_of_seeds(2);
    for (const Encoding encoding : encodings) {
        std::vector<Case> cases{
            {.lengths = {100, 40}, .queries = 4, .causal = true, .before = 20, .soft_cap = 2},
            {.lengths = {150, 9},
             .heads = 4,
             .kv_heads = 2,
             .d = 128,
             .parts = 2,
             .page_rows = 32,
             .before = 60,
             .sinks = true},
            {.lengths = {70}, .heads = 2, .d = 96},
            {.lengths = {50}, .heads = 2, .d = 256, .page_rows = 16},
        };
        if (encoding == Encoding::e4m3) cases.push_back({.lengths = {70, 5}, .heads = 2, .d = 80, .parts = 1});
        check_cases<TestType>(devices, encoding, cases);
    }
}

TEST_CASE("incremental attention to encoded caches: rows that begin anywhere") {
    const auto devices = devices_of_seeds(2);
    for (const Encoding encoding : encodings)
        for (const std::uint32_t first : {0u, 2u, 4u, 8u, 1u}) {
            if (first == 1 && encoding == Encoding::q8_0) continue;
            for (const std::uint32_t gap : {0u, 1u, 4u}) {
                Case is{
                    .lengths = {41, 60}, .heads = 2, .kv_heads = 2, .d = gap == 4 ? 128u : 64u, .parts = 1, .gap = gap};
                is.first[1] = first, is.first[2] = first / 2 * 2;
                EncodedProblem<half>(is, encoding).check(devices);
            }
        }
}

TEMPLATE_TEST_CASE("incremental attention to blocks whose scales are 0, subnormal, infinite or NaN", "", half, bfloat16,
                   float) {
    const auto devices = devices_of_seeds(1);
    for (const std::uint16_t scale : {0x0000, 0x8000, 0x0001, 0x03ff, 0x8001, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x7c01})
        for (const bool is_of_k : {true, false}) {
            INFO("scale " << scale << ", of K " << is_of_k);
            EncodedProblem<TestType> problem({.lengths = {40, 33}, .heads = 2, .d = 64}, Encoding::q8_0);
            Stored& bytes = is_of_k ? problem.k : problem.v;
            for (std::size_t row = 0; row < 80; row += 7)
                bytes[row * 68 + row % 2 * 34] = std::uint8_t(scale), bytes[row * 68 + row % 2 * 34 + 1] = scale >> 8;
            problem.decode();
            const auto got = problem.run(devices[0]), plain = problem.problem.run(devices[0]);
            CHECK(are_same(got.o, plain.o));
            CHECK(are_same(got.log_sums, plain.log_sums));
        }
}

TEMPLATE_TEST_CASE("incremental attention decodes each byte of e4m3 and each of Q8_0", "", half, bfloat16, float) {
    const auto devices = devices_of_seeds(1);
    for (const Encoding encoding : encodings) {
        // A sequence of one key for each byte: O is its row of V, all but rounded.
        EncodedProblem<TestType> problem({.lengths = std::vector<std::uint32_t>(256, 1)}, encoding);
        for (std::size_t row = 0; row < 256; ++row)
            for (std::size_t e = 0; e < 64; ++e)
                problem
                    .v[row * bytes_of_row(encoding, 64) + (encoding == Encoding::q8_0 ? e / 32 * 34 + 2 + e % 32 : e)] =
                    std::uint8_t(row + e);
        problem.decode();
        const auto got = problem.run(devices[0]), plain = problem.problem.run(devices[0]);
        CHECK(are_same(got.o, plain.o));
    }
}

TEST_CASE("incremental attention to encoded caches: what does not fit") {
    const Device device = test::open_device();
    const auto q = device.upload(std::vector<half>(128), "Q");
    auto o = device.buffer<half>(128, "O");
    const auto bytes = device.upload(std::vector<std::uint8_t>(64 * 68 + 1), "cache");
    const std::uint64_t extents[] = {1, 32, 64};
    const auto view = [&](runtime::Quantised format, std::size_t first = 0) {
        return TensorView(format, bytes.memory().whole().from(first), extents);
    };
    const auto run = [&](const TensorView& K, const TensorView& V) {
        try {
            incremental_attention(device, q.view(2, 1, 64), K, V, o.view(2, 1, 64));
        } catch (const Error& error) { return std::string(error.what()); }
        return std::string("no error");
    };
    using runtime::Quantised;
    const TensorView eight(ir::Type::E4M3, bytes.memory().whole(), extents);
    CHECK(run(view(Quantised::Q8_0), view(Quantised::Q8_0)) == "no error");
    CHECK(run(eight, eight) == "no error");
    CHECK_THAT(run(view(Quantised::Q8_0), eight), contains("incremental_attention: K has elements of q8_0, V of e4m3"));
    CHECK_THAT(run(view(Quantised::Q4_0), view(Quantised::Q4_0)),
               contains("Q has elements of f16, K of q4_0") &&
                   contains("they have the same type, or K and V have e4m3, or blocks of q8_0"));
    CHECK_THAT(run(view(Quantised::Q8_0, 1), view(Quantised::Q8_0)), contains("K begins at byte 1 of its buffer"));
}
