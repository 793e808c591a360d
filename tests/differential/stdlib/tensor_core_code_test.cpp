// SPDX-License-Identifier: Apache-2.0
// The code of the products on tensor cores: assembled without spills and warnings, and main loops that do little but
// multiply. Their instructions are counted in PTX, and in machine code where a disassembler is found.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/nvdisasm.hpp"
#include "codegen/pipeline/compile.hpp"
#include "codegen/ptxas.hpp"
#include "stdlib/gemm/gemm.hpp"
#include "stdlib/gemm/tensor_kernels.hpp"
#include "tests/catch.hpp"
#include "tests/ptxas.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using Step = TensorKernel::Step;
using enum MatrixOrder;

bool is_product(std::string_view line) { return line.starts_with("mma.sync") || line.starts_with("wgmma.mma_async"); }

/// The instructions of the shortest loop with products.
std::vector<std::string_view> main_loop(std::string_view ptx) {
    std::map<std::string_view, std::size_t> labels;  // the number of the instruction after each
    std::vector<std::string_view> code, best;
    while (!ptx.empty()) {
        std::string_view line = ptx.substr(0, ptx.find('\n'));
        ptx.remove_prefix(std::min(ptx.size(), line.size() + 1));
        line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
        if (line.starts_with('$') && line.ends_with(':')) labels[line.substr(0, line.size() - 1)] = code.size();
        if (line.starts_with('.') || !line.ends_with(';')) continue;
        code.push_back(line);
        if (line.find("bra") == line.npos) continue;
        const auto label = line.substr(line.rfind(' ') + 1, line.size() - line.rfind(' ') - 2);
        const auto found = labels.find(label);
        if (found == labels.end()) continue;
        const std::vector<std::string_view> loop(code.begin() + std::ptrdiff_t(found->second), code.end());
        if (std::ranges::any_of(loop, is_product) && (best.empty() || loop.size() < best.size())) best = loop;
    }
    return best;
}

/// How many other instructions the main loop has for each product.
double others_in_ptx(std::string_view ptx) {
    const auto loop = main_loop(ptx);
    const auto products = double(std::ranges::count_if(loop, is_product));
    return (double(loop.size()) - products) / products;
}

void check_assembled(const TensorKernel& kernel, const char* target) {
    const tests::PtxasReport report = tests::assemble(compile(kernel.handle().ast(), {.target = target}).ptx, target);
    INFO(kernel.name() << " for " << target << ", tile " << int(kernel.tile) << ", step " << int(kernel.step) << "\n"
                       << report.log);
    CHECK(report.clean());
}

struct Limits {
    TensorKernel kernel;
    const char* target;
    double ptx, sass;
};

}  // namespace

TEST_CASE("tensor cores: main loops have few other instructions for each product") {
    const auto of = [](ir::Type type, MatrixOrder a, MatrixOrder b, TileSize tile, Step step = Step::Whole) {
        return TensorKernel{.step = step, .type = type, .a = a, .b = b, .tile = tile};
    };
    const auto in_turn = [](TensorKernel kernel) {
        kernel.takes_turns = true;
        return kernel;
    };
    const auto to_f32 = [](TensorKernel kernel) {
        kernel.c_is_f32 = true;
        return kernel;
    };
    using enum ir::Type;
    const Limits limits[] = {
        {of(BF16, Rows, Columns, TileSize::medium), "sm_80", 1.1, 1.05},
        {of(BF16, Rows, Rows, TileSize::medium), "sm_80", 1.19, 1.11},
        {of(F16, Columns, Rows, TileSize::medium), "sm_80", 1.38, 1.19},
        {of(F32, Rows, Columns, TileSize::medium), "sm_80", 1.1, 1.05},
        {of(I8, Rows, Columns, TileSize::medium), "sm_80", 1.1, 1.05},
        {of(BF16, Rows, Columns, TileSize::large), "sm_80", 0.69, 0.81},
        {of(BF16, Rows, Columns, TileSize::medium), "sm_90a", 1.1, 1.06},
        {of(BF16, Rows, Columns, TileSize::medium, Step::Stream), "sm_80", 1.11, 1.06},
        {of(BF16, Rows, Columns, TileSize::large, Step::Persistent), "sm_80", 0.69, 0.81},
        {of(BF16, Rows, Columns, TileSize::large, Step::ClusterPart), "sm_90a", 10.0, 10.0},
        {of(BF16, Rows, Columns, TileSize::large, Step::Boxes), "sm_90a", 10.0, 10.0},
        {of(BF16, Columns, Rows, TileSize::large, Step::Boxes), "sm_90a", 10.0, 10.0},
        {to_f32(of(BF16, Rows, Columns, TileSize::large)), "sm_80", 0.69, 0.81},
        {to_f32(of(F16, Rows, Columns, TileSize::large, Step::Boxes)), "sm_90a", 10.0, 10.0},
        {in_turn(of(BF16, Rows, Columns, TileSize::large, Step::Boxes)), "sm_90a", 10.0, 10.0},
        {of(F32, Rows, Columns, TileSize::medium, Step::Boxes), "sm_90a", 10.0, 10.0},
        {of(I8, Rows, Columns, TileSize::medium, Step::Boxes), "sm_90a", 10.0, 10.0},
    };
    const auto ptxas = ptxas::find();
    const auto program = nvdisasm::find();
    for (const Limits& limit : limits) {
        const std::string ptx = compile(limit.kernel.handle().ast(), {.target = limit.target}).ptx;
        INFO(limit.kernel.name() << " for " << limit.target);
        CHECK(others_in_ptx(ptx) <= limit.ptx);
        if (!ptxas || !program) continue;
        const std::string sass = nvdisasm::disassemble(*program, ptxas::assemble(*ptxas, ptx, limit.target).cubin);
        CHECK(nvdisasm::instructions_per_element(sass, {"MMA"}) - 1 <= limit.sass);
    }
}

TEST_CASE("tensor cores: main loops do not wait for what they multiply") {
    for (const TileSize size : {TileSize::small, TileSize::medium, TileSize::large}) {
        const TensorKernel kernel{.type = ir::Type::BF16, .b = Columns, .tile = size};
        const std::string ptx = compile(kernel.handle().ast(), {.target = "sm_80"}).ptx;
        const auto loop = main_loop(ptx);
        const auto first = [&](std::string_view what) {
            return std::ranges::find_if(loop, [&](std::string_view line) { return line.starts_with(what); });
        };
        INFO(kernel.name() << ", tile " << int(size));
        // The last step is multiplied after the barrier, by what was loaded before.
        const auto barrier = first("bar.sync");
        const std::uint32_t steps = tensor_tile(size).k_bytes / 32;
        CHECK(std::count_if(barrier, loop.end(), is_product) * steps == std::ranges::count_if(loop, is_product));
        for (const auto begin : {loop.begin(), barrier}) {
            const auto product = std::find_if(begin, loop.end(), is_product);
            // "mma.sync… {d}, {a}, {b}, {c};"
            const std::string_view operands = product->substr(product->find("}, {") + 4);
            const std::string_view register_of_a = operands.substr(0, operands.find(','));
            for (auto line = begin; line != product; ++line)
                if (line->starts_with("ldmatrix"))
                    CHECK(line->substr(0, line->find('}')).find(register_of_a) == line->npos);
        }
        // Copies are between products, not all before them.
        const auto is_copy = [](std::string_view line) { return line.starts_with("cp.async.c") && line.contains('['); };
        const auto products = std::find_if(loop.begin(), loop.end(), is_product);
        CHECK((steps == 2 || std::find_if(products, barrier, is_copy) != barrier));
        CHECK(std::find_if(barrier, loop.end(), is_copy) == loop.end());
    }
}

TEST_CASE("tensor cores: two blocks of medium tiles fit a multiprocessor") {
    const TensorTile tile = tensor_tile(TileSize::medium);
    // An A100's: 164 KiB of shared memory, of which a block has 1 KiB that is not its own, and 65536 registers.
    CHECK(2 * (tile.shared_bytes() + 1024) <= 164 * 1024);
    if (tests::skip_without_ptxas()) return;
    for (const ir::Type type : {ir::Type::F16, ir::Type::BF16, ir::Type::F32, ir::Type::I8}) {
        TensorKernel kernel{.type = type, .b = Columns, .tile = TileSize::medium};
        kernel.c_is_f32 = type == ir::Type::BF16;  // with more to store than bf16
        const auto report = tests::assemble(compile(kernel.handle().ast(), {.target = "sm_80"}).ptx, "sm_80");
        INFO(report.log);
        const std::uint32_t registers = (std::uint32_t(report.registers) + 7) / 8 * 8;
        CHECK(2 * registers * tile.threads() <= 65536);
    }
}

TEST_CASE("tensor cores: large tiles by wgmma have four stages of A and B beside C") {
    struct Case {
        bool takes_turns, c_is_f32;
        StagesOfC of_c;
    };
    const Case cases[] = {
        {false, false, {64, 2}}, {false, true, {32, 2}}, {true, false, {256, 1}}, {true, true, {64, 2}}};
    for (const Case& of : cases) {
        const ClusterTile tile = cluster_tile(TileSize::large, 2, of.takes_turns);
        const std::uint32_t bytes_of_c = of.c_is_f32 ? 4 : 2;
        const StagesOfC found = stages_of_c(tile, bytes_of_c);
        CHECK(tile.stages == 4);
        CHECK(found.columns == of.of_c.columns);
        CHECK(found.stages == of.of_c.stages);
        TensorKernel kernel{.step = Step::Boxes, .type = ir::Type::BF16, .c_is_f32 = of.c_is_f32, .b = Columns};
        kernel.tile = TileSize::large, kernel.takes_turns = of.takes_turns;
        const auto shared = compile(kernel.handle().ast(), {.target = "sm_90a"}).info.own_dynamic_shared_bytes;
        INFO(kernel.name() << ": " << shared);
        CHECK(shared >= 4 * (tile.m + tile.n) * 128 + found.stages * found.columns * 128 * bytes_of_c + 64);
        CHECK(shared <= 227 * 1024);
    }
    // Where sums are exchanged, there is room for three.
    CHECK(beside(cluster_tile(TileSize::large, 2), 8 * warpgroup_scratch * 4).stages == 3);
    CHECK(beside(cluster_tile(TileSize::large, 2, true), 8 * warpgroup_scratch * 4).stages == 4);
    CHECK(beside(cluster_tile(TileSize::medium, 2), 8 * warpgroup_scratch * 4).stages == 5);
}

TEST_CASE("tensor cores: warpgroups that take turns, without spills and warnings") {
    if (tests::skip_without_ptxas()) return;
    for (const bool c_is_f32 : {false, true}) {
        TensorKernel kernel{.step = Step::Boxes, .type = ir::Type::BF16, .c_is_f32 = c_is_f32, .b = Columns};
        kernel.tile = TileSize::large, kernel.takes_turns = true;
        check_assembled(kernel, "sm_90a");
        kernel.raster = Raster::hilbert;
        check_assembled(kernel, "sm_90a");
        kernel.step = Step::Cluster, kernel.type = ir::Type::F16, kernel.a = Columns, kernel.b = Rows;
        kernel.activation = Activation::gelu, kernel.has_bias = true, kernel.has_residual = true;
        check_assembled(kernel, "sm_90a");
    }
}

TEST_CASE("tensor cores: kernels are assembled without spills and warnings") {
    if (tests::skip_without_ptxas()) return;
    const auto check = check_assembled;
    for (const ir::Type type : {ir::Type::F16, ir::Type::BF16, ir::Type::F32, ir::Type::I8}) {
        const bool is_integer = type == ir::Type::I8, is_wide = type == ir::Type::F16 || type == ir::Type::BF16;
        const Activation activation = is_integer ? Activation::relu : Activation::gelu;
        check({.type = type, .a = Columns, .tile = TileSize::small, .access = {4, 4}, .has_bias = true}, "sm_80");
        check({.type = type, .tile = TileSize::medium, .access = {0, 0}, .c_is_aligned = false}, "sm_90");
        check({.type = type, .b = Columns, .tile = TileSize::large, .activation = activation, .has_residual = true},
              "sm_80");
        check({.type = type, .a = Columns, .tile = TileSize::medium, .access = {8, 8}}, "sm_80");
        check({.step = Step::Part, .type = type, .tile = TileSize::medium}, "sm_80");
        check({.step = Step::Persistent, .type = type, .b = Columns, .tile = TileSize::large, .has_bias = true},
              "sm_80");
        check({.step = Step::Stream, .type = type, .b = Columns, .tile = TileSize::large, .activation = activation},
              "sm_80");
        check({.step = Step::Stream, .type = type, .a = Columns, .tile = TileSize::medium, .has_residual = true},
              "sm_90");
        check({.step = Step::Join, .type = type, .activation = activation, .has_bias = true}, "sm_80");
        check({.step = Step::ClusterPart, .type = type, .b = Columns, .tile = TileSize::medium}, "sm_90a");
        check({.step = Step::Finish, .type = type, .activation = activation, .has_bias = true}, "sm_80");
        check({.step = Step::Scale, .type = type}, "sm_80");
        check({.step = Step::Cluster,
               .type = type,
               .b = Columns,
               .activation = activation,
               .has_bias = true,
               .has_residual = true},
              "sm_90a");
        if (is_wide)
            check({.step = Step::Cluster, .type = type, .a = Columns, .tile = TileSize::large, .has_residual = true},
                  "sm_90a");
    }
}

TEST_CASE("tensor cores: kernels with C of f32 are assembled without spills and warnings") {
    if (tests::skip_without_ptxas()) return;
    TensorKernel kernel{.type = ir::Type::BF16, .c_is_f32 = true, .b = Columns, .tile = TileSize::large};
    const auto check = [&](Step step, const char* target) {
        kernel.step = step;
        check_assembled(kernel, target);
    };
    check(Step::Boxes, "sm_90a");
    kernel.activation = Activation::gelu, kernel.has_bias = true, kernel.has_residual = true;
    for (const Step step : {Step::Whole, Step::Persistent, Step::Stream, Step::Finish, Step::Join, Step::Scale})
        check(step, "sm_80");
    check(Step::Cluster, "sm_90a");
    kernel.tile = TileSize::medium, kernel.type = ir::Type::F16;
    check(Step::Cluster, "sm_90a");
    check(Step::Stream, "sm_80");
}

TEST_CASE("gemm in f32: two blocks fit a multiprocessor, and the main loop does little but multiply") {
    if (tests::skip_without_ptxas()) return;
    for (const char* target : {"sm_75", "sm_80", "sm_90"}) {
        INFO(target);
        const std::string ptx = compile(gemm_tiled_large().ast(), {.target = target}).ptx;
        const tests::PtxasReport report = tests::assemble(ptx, target);
        CHECK(report.clean());
        CHECK(report.registers <= 128);
        const auto program = nvdisasm::find();
        if (!program || target == std::string_view("sm_75")) continue;
        const std::string sass = nvdisasm::disassemble(*program, ptxas::assemble(*ptxas::find(), ptx, target).cubin);
        CHECK(nvdisasm::instructions_per_element(sass, {"FFMA"}) <= 1.16);
    }
}
