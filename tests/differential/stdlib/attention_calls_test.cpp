// SPDX-License-Identifier: Apache-2.0
// What flash_attention() launches and refuses.
#include <cstdint>
#include <string>
#include <vector>

#include "tests/differential/stdlib/attention_problem.hpp"

namespace {

using namespace ikat;
using namespace ikat::tests::attention;
using Catch::Matchers::Contains;

}  // namespace

TEST_CASE("attention: by which products") {
    const auto entry = [](const Shape& shape, const char* target, const AttentionOptions& how,
                          std::uint32_t biases = 0) {
        std::vector<emulator::LaunchTraffic> traffic;
        const Device device = Device::open({.device = "emulator", .target = target, .traffic = &traffic});
        Problem<half>(shape, 64, {.bias_batch = biases, .bias_heads = biases}).run(device, how);
        return traffic.at(0).entry;
    };
    const std::string by_warps = "flash_attention_f16_d64", by_warpgroups = by_warps + "_wgmma";
    const Shape large{.queries = 65, .keys = 9};
    CHECK(entry(large, "sm_90a", {}) == by_warpgroups);
    CHECK(entry(large, "sm_90", {}) == by_warps);
    CHECK(entry(large, "sm_90a", {.path = AttentionPath::mma_sync}) == by_warps);
    CHECK(entry({.queries = 64, .keys = 9}, "sm_90a", {}) == by_warps);
    CHECK(entry({.queries = 64, .keys = 9}, "sm_90a", {.path = AttentionPath::wgmma}) == by_warpgroups);
    CHECK(entry({.queries = 65, .keys = 9, .gap = 4}, "sm_90a", {}) == by_warps);
    CHECK(entry(large, "sm_90a", {.queries_of_block = 192}) == by_warpgroups);
    CHECK(entry(large, "sm_90a", {}, 1) == by_warpgroups + "_bias");
}

TEST_CASE("attention: heads of 128 in blocks of 128 queries, where all multiprocessors have two") {
    const auto work = [](const Shape& shape, const AttentionOptions& how, const char* target = "sm_80",
                         std::uint32_t threads = 1) {
        std::vector<emulator::LaunchTraffic> traffic;
        const Device device =
            Device::open({.device = "emulator", .target = target, .threads = threads, .traffic = &traffic});
        Problem<half>(shape, 128, {.options = how}).run(device, how);
        return traffic.at(0).warp_instructions;
    };
    const Shape shape{.queries = 65, .keys = 9};
    const std::uint64_t small = work(shape, {.queries_of_block = 64}), large = work(shape, {.queries_of_block = 128});
    REQUIRE(small != large);
    CHECK(work(shape, {}) == large);
    CHECK(work(shape, {}, "sm_90") == work(shape, {.queries_of_block = 128}, "sm_90"));
    CHECK(work(shape, {}, "sm_86") == small);  // it has shared memory for one
    CHECK(work(shape, {}, "sm_80", 2) == small);
    const Shape few{.queries = 64, .keys = 9};
    CHECK(work(few, {}) == work(few, {.queries_of_block = 64}));
    CHECK(work(shape, {.soft_cap = 4}) == work(shape, {.soft_cap = 4, .queries_of_block = 64}));
}

TEST_CASE("attention: no elements, no launch") {
    const Device device = test::open_device();
    Problem<half>({.queries = 0, .keys = 5}, 64).check(devices_of_seeds(1));
    Problem<half>({.queries = 3, .keys = 5, .heads = 0, .kv_heads = 1}, 64).check(devices_of_seeds(1));
    Problem<half>({.queries = 3, .keys = 5, .batch = 0}, 64).check(devices_of_seeds(1));
}

TEST_CASE("attention: calls that do not fit together") {
    const Device device = test::open_device();
    auto x = device.buffer<half>(4096, "x"), y = device.buffer<half>(4096, "y");
    auto other = device.buffer<bfloat16>(4096, "other");
    auto sums = device.buffer<float>(64, "sums");
    auto to = device.buffer<float>(64, "to");
    const auto words = device.buffer<std::uint32_t>(64, "words");
    const auto message = [](const Device& on, const TensorView& Q, const TensorView& K, const TensorView& V,
                            const MutableTensorView& O, const AttentionOptions& options) {
        try {
            flash_attention(on, Q, K, V, O, options);
        } catch (const Error& error) { return std::string(error.what()); }
        return std::string("no error");
    };
    const auto run = [&](const TensorView& Q, const TensorView& K, const TensorView& V, const MutableTensorView& O,
                         const AttentionOptions& options = {}) { return message(device, Q, K, V, O, options); };
    const auto q = x.view(2, 4, 64), k = x.view(1, 5, 64);
    const auto o = y.view(2, 4, 64);
    CHECK_THAT(run(words.view(1, 64), k, k, o), Contains("flash_attention: Q has elements of u32"));
    CHECK_THAT(run(q, other.view(1, 5, 64), k, o), Contains("Q has elements of f16, K of bf16"));
    CHECK_THAT(run(q, k, k, other.view(2, 4, 64)), Contains("Q has elements of f16, O of bf16"));
    CHECK_THAT(run(q, k, k, x.view(2, 4, 64)), Contains("are the same memory"));
    CHECK_THAT(run(x, k, k, o), Contains("Q has 1 dimension") && Contains("sequences of heads of rows"));
    CHECK_THAT(run(q, k, k, y.view(1, 1, 2, 4, 64)), Contains("O has 5 dimensions"));
    CHECK_THAT(run(q, TensorView(k).permuted({0, 2, 1}), k, o), Contains("the elements of a row of K are 64 apart"));
    CHECK_THAT(run(x.view(2, 4, 72), k, k, o), Contains("rows of Q have 72 elements"));
    CHECK_THAT(run(q, x.view(1, 5, 80), k, o), Contains("K is 1 x 1 x 5 x 80, not 1 x 1 x 5 x 64"));
    CHECK_THAT(run(q, x.view(2, 1, 5, 64), k, o), Contains("K is 2 x 1 x 5 x 64, not 1 x 1 x 5 x 64"));
    CHECK_THAT(run(q, k, x.view(1, 6, 64), o), Contains("V is 1 x 1 x 6 x 64, not 1 x 1 x 5 x 64"));
    CHECK_THAT(run(q, k, k, y.view(2, 5, 64)), Contains("O is 1 x 2 x 5 x 64, not 1 x 2 x 4 x 64"));
    CHECK_THAT(run(q, x.view(3, 5, 64), x.view(3, 5, 64), o), Contains("Q has 2 heads, K and V have 3"));
    CHECK_THAT(run(q, k, k, o, {.bias = other.view(4, 5)}), Contains("Q has elements of f16, the bias of bf16"));
    CHECK_THAT(run(q, k, k, o, {.bias = x.view(4, 6)}), Contains("the bias is 1 x 1 x 4 x 6, not 1 x 1 x 4 x 5"));
    CHECK_THAT(run(q, k, k, o, {.log_sum = x.view(2, 4)}), Contains("log_sum has elements of f16"));
    CHECK_THAT(run(q, k, k, o, {.log_sum = sums.view(2, 5)}), Contains("log_sum is 1 x 1 x 2 x 5, not 1 x 1 x 2 x 4"));
    CHECK_THAT(run(q, k, k, o, {.sinks = x}), Contains("sinks has elements of f16"));
    CHECK_THAT(run(q, k, k, o, {.sinks = sums.slice(0, 1)}), Contains("sinks has 1 elements, and there are 2 heads"));
    CHECK_THAT(run(q, k, k, o, {.sinks = sums.view(1, 2)}), Contains("sinks has 2 dimensions"));
    CHECK_THAT(run(q, k, k, o, {.sinks = sums, .log_sum = sums.view(2, 4)}), Contains("are the same memory"));
    CHECK_THAT(run(q, k, k, o, {.scale = -1.0f}), Contains("a scale of -1"));
    CHECK_THAT(run(q, k, k, o, {.scale = NAN}), Contains("a scale of nan"));
    CHECK_THAT(run(q, k, k, o, {.soft_cap = -1}), Contains("a soft cap of -1"));
    CHECK_THAT(run(q, k, k, o, {.causal = true, .window_right = 2}), Contains("causal, and a window_right of 2"));
    CHECK_THAT(run(q, k, k, o, {.queries_of_block = 32}), Contains("32 queries of a block"));
    const AttentionPath wgmma = AttentionPath::wgmma;
    CHECK_THAT(message(test::open_device({.target = "sm_80"}), q, k, k, o, {.path = wgmma}),
               Contains("wgmma: the device is opened for sm_80, not sm_90a"));
    const Device hopper = test::open_device({.target = "sm_90a"});
    const auto on_hopper = [&](const TensorView& Q, const TensorView& K, AttentionOptions options = {}) {
        options.path = wgmma;
        return message(hopper, Q, K, K, o, options);
    };
    CHECK_THAT(on_hopper(x.slice(1, 512).view(2, 4, 64), k), Contains("do not begin at multiples of 16 bytes"));
    CHECK_THAT(on_hopper(q, x.view(1, 5, 64).pitched(330, 66)), Contains("do not begin at multiples of 16 bytes"));
    CHECK_THAT(message(hopper, sums.view(1, 64), sums.view(1, 64), sums.view(1, 64), to.view(1, 64), {.path = wgmma}),
               Contains("wgmma: elements are f32"));
    CHECK_THAT(run(sums.view(1, 64), sums.view(1, 64), sums.view(1, 64), to.view(1, 64),
                   {.bias = sums.view(1, 1), .queries_of_block = 128}),
               Contains("128 queries of a block"));
    const auto wide = x.view(2, 4, 128), wide_k = x.view(1, 5, 128);
    CHECK_THAT(
        run(wide, wide_k, wide_k, y.view(2, 4, 128), {.soft_cap = 4, .queries_of_block = 128}),
        Contains("128 queries of a block") && Contains("and of 128 elements of 16 bits, also without a soft cap"));
    CHECK_THAT(on_hopper(q, k, {.queries_of_block = 256}), Contains("wgmma: there are no blocks of 256 queries"));
    CHECK_THAT(on_hopper(q, k, {.queries_of_block = 96}), Contains("wgmma: there are no blocks of 96 queries"));
    TensorView far = TensorView(k).of_rank(4);
    far.extents[1] = 2, far.strides[1] = std::uint64_t{1} << 32;
    CHECK_THAT(run(q, far, far, o), Contains("a pitch of 4294967296 elements in K"));
    auto freed = std::optional(device.buffer<half>(4096, "freed"));
    const auto view = freed->view(2, 4, 64);
    freed.reset();
    CHECK_THAT(run(view, k, k, o), Contains("has been freed"));
}
