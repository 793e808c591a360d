// SPDX-License-Identifier: Apache-2.0
// The code of flash_attention(): assembled without spills and warnings. By wgmma, the softmax of a tile is between its
// scores and the wait for the product of the one before, and the loop does little else.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/nvdisasm.hpp"
#include "codegen/pipeline/compile.hpp"
#include "codegen/ptxas.hpp"
#include "stdlib/attention/attention.hpp"
#include "stdlib/attention/attention_kernels.hpp"
#include "stdlib/attention/wgmma_kernels.hpp"
#include "tests/catch.hpp"
#include "tests/differential/stdlib/code_lines.hpp"
#include "tests/ptxas.hpp"
#include "tests/targets.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;

using namespace tests::code;

/// With no options, causal, with most options, or by offsets.
template <class F>
void each_wgmma_kernel(F&& f, bool all = true) {
    for (const std::uint32_t d : {64u, 80u, 96u, 128u, 256u})
        for (std::uint32_t groups = 1; groups <= WgmmaAttentionTile::max_groups(d); ++groups) {
            WgmmaAttentionKernel is{.type = ir::Type::BF16, .head_dim = d, .groups = groups};
            if (all) f(is);
            is.has_many_keys = is.can_have_many_keys();
            if (is.has_many_keys) f(is);
            if (is.has_many_keys && all) {
                WgmmaAttentionKernel more = is;
                more.has_sinks = more.has_log_sum = true;
                f(more);
            }
            is.has_many_keys = false, is.has_after = true;
            f(is);
            is.has_before = is.has_cap = is.has_log_sum = true;
            if (all) f(is);
            is.has_bias = true;
            if (all) f(is);
            is.has_bias = false, is.has_offsets = true;
            if (all) f(is);
        }
}

}  // namespace

TEST_CASE("attention: kernels are assembled without spills") {
    if (tests::skip_without_ptxas()) return;
    tests::Sample sample(3);
    const auto check = [&](const AttentionKernel& is, const char* target) {
        if (!sample.next()) return;
        const auto report = tests::assemble(compile(is.handle().ast(), {.target = target}).ptx, target);
        INFO(is.name() << ", " << is.queries << " queries, for " << target << "\n" << report.log);
        CHECK(report.clean());
    };
    for (const char* target : {"sm_80", "sm_90a"})
        for (const std::uint32_t d : {64u, 80u, 96u, 128u, 256u}) {
            for (const std::uint32_t queries : {64u, 128u})
                for (const bool has_more : {false, true}) {
                    if (queries == 128 && d >= 128) continue;
                    AttentionKernel is{.type = ir::Type::BF16, .head_dim = d, .queries = queries, .has_after = true};
                    is.has_before = is.has_cap = is.has_log_sum = has_more;
                    is.has_bias = has_more && queries == 64;
                    check(is, target);
                    is.has_bias = false, is.has_offsets = true;
                    if (has_more) check(is, target);
                }
            AttentionKernel single{.type = ir::Type::F32, .head_dim = d, .queries = 64, .has_after = true};
            check(single, target);
            AttentionKernel large = single;
            large.queries = 128;
            if (d < 128) check(large, target);
            single.has_before = single.has_cap = single.has_log_sum = single.has_bias = true;
            check(single, target);
            large.has_before = large.has_cap = large.has_log_sum = large.has_offsets = true;
            if (d < 128) check(large, target);
        }
}

TEST_CASE("attention: heads of 128 in blocks of 128 queries are assembled without spills, whatever is masked") {
    if (tests::skip_without_ptxas()) return;
    for (const bool has_before : {false, true})
        for (const bool has_after : {false, true})
            for (const bool has_offsets : {false, true}) {
                AttentionKernel is{.type = ir::Type::BF16, .head_dim = 128, .queries = 128};
                is.has_before = has_before, is.has_after = has_after, is.has_offsets = has_offsets;
                is.has_sinks = has_offsets == has_after, is.has_log_sum = has_before != has_offsets;
                if (!has_after) is.q_access = is.k_access = is.v_access = has_before ? 0 : 8;
                const char* const target = has_before == has_after ? "sm_80" : "sm_90a";
                const auto report = tests::assemble(compile(is.handle().ast(), {.target = target}).ptx, target);
                INFO(is.name() << " for " << target << "\n" << report.log);
                CHECK(report.clean());
            }
}

TEST_CASE("attention: heads of 128 have few other instructions for each product") {
    const auto ptxas = ptxas::find();
    const auto program = nvdisasm::find();
    if (!ptxas || !program) return;
    // Of 128 queries, what is read of K and V is for twice as many products.
    for (const auto& [queries, has_after, limit] :
         {std::tuple{64u, false, 3.5}, {64u, true, 3.75}, {128u, false, 2.9}, {128u, true, 3.15}})
        for (const char* target : {"sm_80", "sm_90a"}) {
            AttentionKernel is{.type = ir::Type::BF16, .head_dim = 128, .queries = queries, .has_after = has_after};
            INFO(is.name() << ", " << queries << " queries, for " << target);
            const std::string ptx = compile(is.handle().ast(), {.target = target}).ptx;
            const std::string sass = nvdisasm::disassemble(*program, ptxas::assemble(*ptxas, ptx, target).cubin);
            const Code loop = loop_of(sass, '.', "HMMA", 2 * queries);
            REQUIRE(count(loop, "HMMA") == 2 * queries);
            CHECK(count(loop, "LDSM") == (queries == 64 ? 64 : 80));
            CHECK(double(count(loop, ";")) / double(2 * queries) - 1 <= limit);
        }
}

TEST_CASE("attention: kernels by wgmma are assembled without spills and warnings") {
    if (tests::skip_without_ptxas()) return;
    tests::Sample sample(3);
    each_wgmma_kernel([&](const WgmmaAttentionKernel& is) {
        if (!sample.next()) return;
        const auto report = tests::assemble(compile(is.handle().ast(), {.target = "sm_90a"}).ptx, "sm_90a");
        INFO(is.name() << ", " << is.groups << " warpgroups\n" << report.log);
        CHECK(report.clean());
    });
}

TEST_CASE("attention: kernels with functions of one's own are assembled without spills and warnings") {
    if (tests::skip_without_ptxas()) return;
    const auto device = runtime::Device::open({.device = "emulator"});
    const auto slopes = device.buffer<float>(8);
    const OwnAttention own(
        scores(
            "alibi",
            [](auto score, auto at, auto slopes) { return score - slopes[at.head] * cast<f32>(at.query - at.key); },
            slopes),
        sees(
            "window", [](auto at, auto window) { return (at.key <= at.query) & (at.key > at.query - window); }, 128),
        [](const std::string& message, std::string_view) { FAIL(message); });
    const auto check = [](const auto& is, const char* target) {
        const auto report = tests::assemble(compile(is.handle().ast(), {.target = target}).ptx, target);
        INFO(is.name() << ", for " << target << "\n" << report.log);
        CHECK(report.clean());
    };
    check(AttentionKernel{.type = ir::Type::BF16, .head_dim = 64, .queries = 128, .own = own}, "sm_80");
    for (const std::uint32_t queries : {64u, 128u})
        check(AttentionKernel{.type = ir::Type::BF16, .head_dim = 128, .queries = queries, .own = own}, "sm_80");
    check(WgmmaAttentionKernel{.type = ir::Type::BF16, .head_dim = 64, .groups = 3, .own = own}, "sm_90a");
    check(WgmmaAttentionKernel{.type = ir::Type::BF16, .head_dim = 128, .groups = 2, .own = own}, "sm_90a");
}

TEST_CASE("attention: by wgmma, the softmax is between a tile's scores and the wait for the sums") {
    each_wgmma_kernel([](const WgmmaAttentionKernel& is) {
        INFO(is.name() << ", " << is.groups << " warpgroups");
        const std::string ptx = compile(is.handle().ast(), {.target = "sm_90a"}).ptx;
        const std::size_t d = is.head_dim, keys = is.tile().keys(), scores = keys / 2;  // of a thread
        const Code loop = loop_of(ptx, '$', "wgmma.mma_async", d / 16 + keys / 16);
        REQUIRE(count(loop, "wgmma.mma_async") == d / 16 + keys / 16);
        // Both products are begun, then the first has ended, then comes the softmax, then the second has ended.
        const Code products = between(loop, "wgmma.fence", "wgmma.wait_group.sync.aligned 1");
        CHECK(count(products, "wgmma.mma_async") == d / 16 + keys / 16);
        CHECK(count(products, "wgmma.commit_group") == 2);
        const bool by_turns = is.groups > 1 && d <= 128;
        CHECK(count(loop, "bar.sync") == by_turns);
        CHECK(count(products, "bar.arrive") == by_turns);
        const Code softmax = between(loop, "wgmma.wait_group.sync.aligned 1", "wgmma.wait_group.sync.aligned 0");
        const std::size_t of_cap = is.has_cap ? scores : 0;
        CHECK(count(softmax, "ex2.approx") == scores + of_cap + 2);  // and two corrections
        CHECK(count(loop, "ex2.approx") == scores + of_cap + 2);
        CHECK(count(softmax, "mbarrier.try_wait") == 1);
        // The sums are multiplied once, there is no division, and nothing moves but the offsets of two rows.
        const Code rest = between(loop, "wgmma.wait_group.sync.aligned 0", "cvt.rn");
        CHECK(count(rest, "mul.f32") + count(rest, "mul.rn.f32") == d / 2);
        CHECK(count(loop, "div.") + count(loop, "rcp.") == of_cap);
        // ... and, of a bias, what stands for keys that there are not.
        CHECK(count(loop, "mov.b32") <= 2 + (is.has_bias ? scores : 0));
        CHECK(count(loop, "cvt.rn.bf16x2") == keys / 4);
    });
}

TEST_CASE("attention: by wgmma, ptxas keeps the softmax there") {
    const auto ptxas = ptxas::find();
    const auto program = nvdisasm::find();
    if (!ptxas || !program) return;
    each_wgmma_kernel(
        [&](const WgmmaAttentionKernel& is) {
            INFO(is.name() << ", " << is.groups << " warpgroups");
            const std::string ptx = compile(is.handle().ast(), {.target = "sm_90a"}).ptx;
            const std::string sass = nvdisasm::disassemble(*program, ptxas::assemble(*ptxas, ptx, "sm_90a").cubin);
            const std::size_t keys = is.tile().keys(), products = is.head_dim / 16 + keys / 16;
            const Code loop = loop_of(sass, '.', "HGMMA", products);
            REQUIRE(count(loop, "HGMMA") == products);
            const Code softmax = between(loop, "WARPGROUP.DEPBAR.LE gsb0, 0x1", "WARPGROUP.DEPBAR.LE gsb0, 0x0");
            CHECK(count(softmax, "MUFU.EX2") >= keys / 2 - 4);
            CHECK(count(loop, "LDL") + count(loop, "STL") == 0);
            // Of a score: the largest, a product, the exponential, the sum, half a rounding, and of few tiles the mask.
            CHECK(loop.size() <= 8 * keys / 2 + is.head_dim / 2 + 200);
        },
        false);
}
