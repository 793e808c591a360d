// SPDX-License-Identifier: Apache-2.0
// The code of attention_backward(): assembled without spills and warnings; loops have few other instructions for each
// product.
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "codegen/nvdisasm.hpp"
#include "codegen/pipeline/compile.hpp"
#include "codegen/ptxas.hpp"
#include "stdlib/attention_backward/kernels.hpp"
#include "tests/catch.hpp"
#include "tests/differential/stdlib/code_lines.hpp"
#include "tests/ptxas.hpp"
#include "tests/targets.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;

namespace code_of_attention_backward {

std::vector<Gradient> gradients_of(std::uint32_t d) {
    if (makes_both(d)) return {Gradient::Queries, Gradient::KeysAndValues, Gradient::Bias};
    return {Gradient::Queries, Gradient::Keys, Gradient::Values, Gradient::Bias};
}

/// Those by wgmma: with each mask, and by offsets.
template <class F>
void each_by_wgmma(F&& f) {
    for (const ir::Type type : {ir::Type::F16, ir::Type::BF16})
        for (const std::uint32_t d : {64u, 128u})
            for (const Gradient of : {Gradient::Queries, Gradient::KeysAndValues})
                for (const int which : {0, 1, 2, 3, 4}) {
                    GradientKernel is{.of = of, .type = type, .head_dim = d};
                    is.has_after = which == 1 || which == 3 || which == 4, is.has_before = which == 2 || which == 3;
                    is.has_offsets = which >= 3, is.by_wgmma = true;
                    f(is);
                }
}

}  // namespace code_of_attention_backward

}  // namespace

TEST_CASE("attention_backward: kernels are assembled without spills") {
    if (tests::skip_without_ptxas()) return;
    tests::Sample sample(11);
    for (const std::uint32_t d : {64u, 80u, 96u, 128u, 256u})
        for (const Gradient of : code_of_attention_backward::gradients_of(d))
            for (const int which : {0, 1, 2, 3, 4, 5, 6, 7})
                for (const char* target : {"sm_80", "sm_90a"}) {
                    GradientKernel is{.of = of, .type = ir::Type::BF16, .head_dim = d};
                    is.has_after = which >= 1 && which <= 5, is.has_before = which >= 2 && which != 5 && which != 6;
                    is.has_offsets = which == 2 || which >= 5, is.has_cap = which == 3 || which == 4;
                    is.has_bias = which == 4;
                    if (of == Gradient::Bias) is.has_bias = true;
                    if (!sample.next()) continue;
                    const auto report = tests::assemble(compile(is.handle().ast(), {.target = target}).ptx, target);
                    INFO(is.name() << " for " << target << "\n" << report.log);
                    CHECK(report.clean());
                }
}

TEST_CASE("attention_backward: loops have few other instructions for each product") {
    const auto ptxas = ptxas::find();
    const auto program = nvdisasm::find();
    if (!ptxas || !program) return;
    // Without a selection: the loop over whole tiles, of which no key is hidden.
    for (const auto& [of, d, has_after, limit] : {std::tuple{Gradient::Queries, 64u, false, 2.25},
                                                  {Gradient::Queries, 64u, true, 2.25},
                                                  {Gradient::KeysAndValues, 64u, false, 1.95},
                                                  {Gradient::KeysAndValues, 64u, true, 2.1},
                                                  {Gradient::Queries, 128u, false, 1.4},
                                                  {Gradient::Queries, 128u, true, 1.4},
                                                  {Gradient::KeysAndValues, 128u, false, 1.9},
                                                  {Gradient::KeysAndValues, 128u, true, 1.9}}) {
        GradientKernel is{.of = of, .type = ir::Type::BF16, .head_dim = d};
        is.has_after = has_after;
        INFO(is.name());
        const std::string ptx = compile(is.handle().ast(), {.target = "sm_80"}).ptx;
        const std::string sass = nvdisasm::disassemble(*program, ptxas::assemble(*ptxas, ptx, "sm_80").cubin);
        CHECK(nvdisasm::instructions_per_element(sass, {.anchor = "HMMA", .without = {"SEL"}}) - 1 <= limit);
    }
}

TEST_CASE("attention_backward: kernels by wgmma are assembled without spills, and products are not waited for") {
    if (tests::skip_without_ptxas()) return;
    tests::Sample sample(3);
    code_of_attention_backward::each_by_wgmma([&](const GradientKernel& is) {
        REQUIRE(is.can_be_by_wgmma());
        if (!sample.next()) return;
        const auto report = tests::assemble(compile(is.handle().ast(), {.target = "sm_90a"}).ptx, "sm_90a");
        INFO(is.name() << "\n" << report.log);  // of products that are waited for, ptxas warns
        CHECK(report.clean());
    });
}

TEST_CASE("attention_backward: by wgmma, loops are short, and ptxas keeps the exponentials among products") {
    const auto ptxas = ptxas::find();
    const auto program = nvdisasm::find();
    if (!ptxas || !program) return;
    code_of_attention_backward::each_by_wgmma([&](const GradientKernel& is) {
        if (is.has_offsets || is.type != ir::Type::BF16) return;
        using namespace tests::code;
        INFO(is.name());
        const bool are_keys = is.of != Gradient::Queries;
        const std::size_t products = is.head_dim / 8 + (are_keys ? 8 : 4);
        const std::string ptx = compile(is.handle().ast(), {.target = "sm_90a"}).ptx;
        const std::string sass = nvdisasm::disassemble(*program, ptxas::assemble(*ptxas, ptx, "sm_90a").cubin);
        const Code loop = loop_of(sass, '.', "HGMMA", products);
        REQUIRE(count(loop, "HGMMA") == products);
        CHECK(count(loop, "WARPGROUP.DEPBAR") == 2);
        CHECK(count(loop, "LDL") + count(loop, "STL") == 0);
        // With those of the mask, and of the thread that copies.
        const std::size_t masks = std::size_t(is.has_before) + std::size_t(is.has_after);
        CHECK(count(loop, ";") <= (is.head_dim == 64 ? 385u : 435u) + (masks > 0 ? 35 + 40 * masks : 0));
        const Code between_waits = between(loop, "WARPGROUP.DEPBAR.LE gsb0, 0x1", "WARPGROUP.DEPBAR.LE gsb0, 0x0");
        CHECK(count(between_waits, "MUFU.EX2") >= 20);
    });
}
