// SPDX-License-Identifier: Apache-2.0
// What incremental_attention() launches and refuses: the memory that it moves, calls that do not fit together, and the
// code of its kernels.
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/pipeline/compile.hpp"
#include "stdlib/attention/incremental/incremental.hpp"
#include "stdlib/attention/incremental/kernels.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/ptxas.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using Catch::Matchers::Contains;
using runtime::Device;

}  // namespace

TEST_CASE("incremental attention: no elements, no launch") {
    const Device device = test::open_device();
    const auto x = device.buffer<half>(1024, "x");
    auto o = device.buffer<half>(1024, "O");
    incremental_attention(device, x.view(2, 0, 64), x.view(1, 4, 64), x.view(1, 4, 64), o.view(2, 0, 64));
    incremental_attention(device, x.view(0, 2, 1, 64), x.view(0, 1, 4, 64), x.view(0, 1, 4, 64), o.view(0, 2, 1, 64));
}

TEST_CASE("incremental attention: calls that do not fit together") {
    const Device device = test::open_device();
    auto x = device.upload(std::vector<half>(8192), "x"), y = device.buffer<half>(8192, "y");
    auto other = device.buffer<bfloat16>(4096, "other");
    auto sums = device.buffer<float>(64, "sums");
    const auto words = device.upload(std::vector<std::uint32_t>(8, 1), "words");
    const auto bytes = device.upload(std::vector<std::uint8_t>(64, 1), "bytes");
    const auto run = [&](const TensorView& Q, const TensorView& K, const TensorView& V, const MutableTensorView& O,
                         const IncrementalOptions& options = {}) {
        try {
            incremental_attention(device, Q, K, V, O, options);
        } catch (const Error& error) { return std::string(error.what()); }
        return std::string("no error");
    };
    const auto q = x.view(2, 1, 64), k = x.view(1, 32, 64);
    const auto o = y.view(2, 1, 64);
    CHECK(run(q, k, k, o) == "no error");
    CHECK_THAT(run(words.view(1, 8), k, k, o), Contains("incremental_attention: Q has elements of u32"));
    CHECK_THAT(run(q, other.view(1, 5, 64), k, o), Contains("Q has elements of f16, K of bf16"));
    CHECK_THAT(run(q, k, k, x.view(2, 1, 64)), Contains("are the same memory"));
    CHECK_THAT(run(x.view(2, 1, 72), k, k, o), Contains("rows of Q have 72 elements"));
    CHECK_THAT(run(q, x.view(1, 5, 80), k, o), Contains("K is 1 x 1 x 5 x 80, not 1 x 1 x 5 x 64"));
    CHECK_THAT(run(q, k, x.view(1, 6, 64), o), Contains("V is 1 x 1 x 6 x 64, not 1 x 1 x 32 x 64"));
    CHECK_THAT(run(q, k, k, y.view(2, 2, 64)), Contains("O is 1 x 2 x 2 x 64, not 1 x 2 x 1 x 64"));
    CHECK_THAT(run(q, x.view(3, 5, 64), x.view(3, 5, 64), o), Contains("Q has 2 heads, K and V have 3"));
    TensorView far = TensorView(k).of_rank(4);
    far.extents[1] = 2, far.strides[1] = std::uint64_t{1} << 32;
    CHECK_THAT(run(q, far, far, o), Contains("a pitch of 4294967296 elements in K"));
    CHECK_THAT(run(q, k, k, o, {.lengths = words.view(2, 4)}), Contains("the lengths have 2 dimensions"));
    CHECK_THAT(run(q, k, k, o, {.lengths = sums}), Contains("lengths has elements of f32"));
    CHECK_THAT(
        run(x.view(9, 2, 1, 64), x.view(9, 1, 4, 64), x.view(9, 1, 4, 64), y.view(9, 2, 1, 64), {.lengths = words}),
        Contains("'lengths' has 8 elements for 9 sequences"));
    CHECK_THAT(run(q, k, k, o, {.pages = bytes.view(1, 4)}), Contains("pages has elements of u8"));
    CHECK_THAT(run(q, k, k, o, {.pages = words.view(2, 4)}), Contains("pages is 1 x 1 x 2 x 4, and there are 1"));
    CHECK_THAT(run(q, x.view(1, 24, 64), x.view(1, 24, 64), o, {.pages = words.view(1, 4)}),
               Contains("pages of 24 rows"));
    CHECK_THAT(run(q, x.view(1, 8, 64), x.view(1, 8, 64), o, {.pages = words.view(1, 4)}), Contains("pages of 8 rows"));
    IncrementalOptions options{};
    options.log_sum = x.view(2, 1);
    CHECK_THAT(run(q, k, k, o, options), Contains("log_sum has elements of f16"));
    options.log_sum = sums.view(2, 2);
    CHECK_THAT(run(q, k, k, o, options), Contains("log_sum is 1 x 1 x 2 x 2, not 1 x 1 x 2 x 1"));
    options = {};
    options.scale = 0.0f;
    CHECK_THAT(run(q, k, k, o, options), Contains("a scale of 0"));
    options = {};
    options.soft_cap = -1;
    CHECK_THAT(run(q, k, k, o, options), Contains("a soft cap of -1"));
    auto freed = std::optional(device.buffer<half>(4096, "freed"));
    const auto view = freed->view(2, 1, 64);
    freed.reset();
    CHECK_THAT(run(view, k, k, o), Contains("has been freed"));
}

TEST_CASE("incremental attention: kernels are assembled without spills") {
    if (tests::skip_without_ptxas()) return;
    const auto check = [](const DecodeKernel& kernel, const char* target) {
        const auto report = tests::assemble(compile(kernel.handle().ast(), {.target = target}).ptx, target);
        INFO(kernel.name() << " for " << target << "\n" << report.log);
        CHECK(report.clean());
    };
    using Step = DecodeKernel::Step;
    for (const ir::Type type : {ir::Type::F16, ir::Type::BF16, ir::Type::F32})
        for (const std::uint32_t d : {64u, 80u, 96u, 128u, 256u}) {
            const char* const target = type == ir::Type::F16 ? "sm_80" : "sm_90a";
            check({.step = Step::Part, .type = type, .head_dim = d, .has_lengths = true, .has_pages = true}, target);
            DecodeKernel all{.type = type, .head_dim = d, .has_lengths = true, .has_pages = true, .is_causal = true};
            all.has_before = all.has_cap = all.has_log_sum = true;
            check(all, target);
            all.q_access = all.k_access = 0, all.v_access = 4, all.o_is_aligned = false;
            if (type == ir::Type::F32) all.q_access = all.k_access = 4;
            check(all, target);
            for (all.rows = 1; all.rows < 16 && type == ir::Type::F32; all.rows *= 2) {
                check(all, target);
                check({.type = type, .head_dim = d, .rows = all.rows, .has_lengths = true, .has_pages = true}, target);
            }
            check({.step = Step::Merge, .type = type, .head_dim = d, .has_log_sum = true}, target);
            check({.step = Step::Merge, .type = type, .head_dim = d, .o_is_aligned = false}, target);
        }
}
