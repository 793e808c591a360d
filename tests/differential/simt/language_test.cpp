// SPDX-License-Identifier: Apache-2.0
// Parts of the language that need their results checked: ranges that count down, shuffles in groups, the lowest bit, an
// InOut that is read as an In.
#include <bit>
#include <limits>

#include "tests/differential/simt/run.hpp"

namespace ikat::test {
namespace {

/// x[0] counts the iterations; after it come the values of the loop variable.
template <class V, int step>
auto counting_down() {
    using T = DeviceTypeOf<V>;
    return kernel("counting_down", params("x", "begin", "end"), [](InOut<T> x, V begin, V end) {
        u32 at = 1;
        for (auto i : range(begin, end, step)) {
            x[at] = i;
            at += 1;
        }
        x[0] = cast<T>(at - 1);
    });
}

template <class V, int step>
void check_down(DeviceTypeOf<V> begin, DeviceTypeOf<V> end) {
    using T = DeviceTypeOf<V>;
    std::vector<T> expected(1);
    for (__int128 i = begin; i > end; i += step) expected.push_back(T(i));
    expected[0] = T(expected.size() - 1);
    const std::size_t count = expected.size();
    auto got = run(counting_down<V, step>(), 1, 1, std::vector<T>(count + 4), begin, end);
    got.resize(count);
    INFO("from " << +begin << " down to " << +end << " by " << step);
    CHECK(got == expected);
}

TEST_CASE("ranges count down to just above their end") {
    check_down<u32, -1>(5, 0);
    check_down<u32, -2>(5, 0);
    check_down<u32, -1>(3, 3);
    check_down<u32, -1>(3, 4);
    check_down<u32, -1>(3, ~0u);
    check_down<u32, -1000000007>(~0u, 0);
    check_down<i32, -3>(5, -5);
    check_down<i32, -1>(std::numeric_limits<int>::min() + 3, std::numeric_limits<int>::min());
    check_down<i32, -2000000000>(std::numeric_limits<int>::max(), std::numeric_limits<int>::min());
    check_down<i8, -100>(100, -128);
    check_down<u16, -30000>(65535, 0);
    check_down<i64, -2000000000>(4000000000, -4000000000);
    check_down<u64, -1>(3, 1);
}

const auto groups = kernel("groups", params("x"), [](InOut<std::uint32_t> x) {
    u32 lane = lane_id();
    u32 down = shuffle_down(lane, 3, all_lanes, 8), up = shuffle_up(lane, 3, all_lanes, 8);
    u32 other = shuffle_xor(lane, 5, all_lanes, 4), index = shuffle_idx(lane, 6, all_lanes, 4);
    u64 wide = shuffle_idx(cast<u64>(lane) << 32, 1, all_lanes, 16);
    x[lane] = down;
    x[32 + lane] = up;
    x[64 + lane] = other;
    x[96 + lane] = index;
    x[128 + lane] = cast<u32>(wide >> 32);
});

TEST_CASE("shuffles within groups of lanes") {
    const auto got = run(groups, 1, 32, std::vector<std::uint32_t>(160));
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
        INFO("lane " << lane);
        CHECK(got[lane] == (lane % 8 + 3 < 8 ? lane + 3 : lane));
        CHECK(got[32 + lane] == (lane % 8 >= 3 ? lane - 3 : lane));
        // As in CUDA: lanes of higher groups are out of reach, those of lower groups are not.
        CHECK(got[64 + lane] == ((lane ^ 5) / 4 <= lane / 4 ? lane ^ 5 : lane));
        CHECK(got[96 + lane] == lane / 4 * 4 + 6 % 4);
        CHECK(got[128 + lane] == lane / 16 * 16 + 1);
    }
}

const auto lowest = kernel("lowest", params("x", "a", "b"), [](InOut<std::uint32_t> x, i32 a, u64 b) {
    x[0] = ffs(a);
    x[1] = ffs(b);
});

TEST_CASE("ffs is one more than the lowest bit's position") {
    for (std::uint64_t bits : {0ull, 1ull, 2ull, 0x80000000ull, 0xfffffff0ull, 1ull << 63, ~0ull, 0x100000000ull}) {
        const auto got = run(lowest, 1, 1, std::vector<std::uint32_t>(2), std::int32_t(bits), bits);
        CHECK(got[0] == std::uint32_t(__builtin_ffs(std::int32_t(bits))));
        CHECK(got[1] == std::uint32_t(__builtin_ffsll(std::int64_t(bits))));
    }
}

f32 element(In<float> x, const u32& i) { return x[i]; }
f32 element(In<float, 2> x, const u32& i) { return x[i, 1]; }

const auto reads_itself = kernel("reads_itself", params("x", "A"), [](InOut<float> x, InOut<float, 2> A) {
    u32 i = thread_id().x;
    x[0] = 5;
    A[i, 1] = 7;
    x[1] = element(x, i) + element(A, i);
});

TEST_CASE("an InOut is an In for a function that only reads it, and its loads see its stores") {
    CHECK(compile(reads_itself.ast()).ptx.find(".nc") == std::string::npos);
    auto x = simt_device().upload(std::vector<float>(2), "x"), a = simt_device().upload(std::vector<float>(4), "A");
    simt_device().launch(reads_itself, runtime::Grid{{1}, {1}}, x, a.view(2, 2));
    CHECK(x.download()[1] == 12);
}

const auto checks = kernel("checks", params("x", "n"), [](InOut<float> x, u32 n) {
    u32 i = thread_id().x;
    check(i < n, "{} is not below {:#x}: {:.2f}%", i, n, x[64]);
    x[i] = 1;
});

TEST_CASE("the text of a failed check is the error's message") {
    std::string printed;
    const auto device = runtime::Device::open({.device = "emulator", .printed = &printed});
    auto x = device.upload(std::vector<float>(65, 1.5f), "x");
    CHECK_THROWS_WITH(
        device.launch(checks, runtime::Grid{{1}, {64}}, x, 40u),
        Catch::Contains("check failed: 40 is not below 0x28: 1.50%, in") && Catch::Contains("language_test.cpp:"));
    CHECK_THAT(printed, Catch::Contains("check failed: 63 is not below 0x28: 1.50%\n"));
}

}  // namespace
}  // namespace ikat::test
