// SPDX-License-Identifier: Apache-2.0
#include "codegen/report/report.hpp"

#include <set>

#include "codegen/report/mix.hpp"
#include "stdlib/catalogue/registry.hpp"
#include "tests/catch.hpp"
#include "tests/ptxas.hpp"

using namespace ikat;

TEST_CASE("a missing entry is an error") {
    const ptx::Module module = ptx::parse(".version 7.0\n.target sm_80\n.address_size 64\n", "empty.ptx");
    CHECK_THROWS_AS(report(module, "nothing"), Error);
}

TEST_CASE("every opcode that is not arithmetic has its own kind") {
    const std::set<std::string> arithmetic = {
        "abs",   "add",   "addc",  "copysign", "div",      "dp2a",      "dp4a",      "fma",    "mad",    "mad24",
        "madc",  "max",   "min",   "mul",      "mul24",    "neg",       "rem",       "sad",    "sub",    "subc",
        "vadd",  "vadd2", "vadd4", "vmad",     "vabsdiff", "vabsdiff2", "vabsdiff4", "vavrg2", "vavrg4", "vmax",
        "vmax2", "vmax4", "vmin",  "vmin2",    "vmin4",    "vsub",      "vsub2",     "vsub4"};
    for (std::size_t i = 1; i < ptx::opcode_count; ++i) {
        ptx::Module module;
        const ptx::Instruction instruction{.opcode = ptx::Opcode(i)};
        const std::string name(ptx::info(instruction.opcode).name);
        INFO(name);
        CHECK((kind_of(module, instruction) == "integer arithmetic") == arithmetic.contains(name));
    }
}

TEST_CASE("a report has one row for each architecture that runs the kernel") {
    const auto targets = [](const char* target) {
        std::string out;
        for (const auto& row : report(compile(stdlib::find("saxpy")->handle().ast(), {.target = target})).occupancy)
            out += std::string(row.target->name) + " ";
        return out;
    };
    CHECK(targets("sm_89") == "sm_89 sm_90 sm_100 sm_120 ");
    CHECK(targets("sm_90a") == "sm_90a ");
}

TEST_CASE("ptxas's figures are next to ours") {
    if (tests::skip_without_ptxas()) return;
    const Compiled gemm = compile(stdlib::find("gemm_tiled")->handle().ast(), {.target = "sm_90", .pressure = true});
    const KernelReport both = report(gemm, {.ptxas = tests::find_ptxas()});
    REQUIRE(both.occupancy[0].figures);
    const ptxas::Figures& figures = *both.occupancy[0].figures;
    CHECK(figures.shared_bytes == both.shared_bytes);
    CHECK(figures.registers > 8);
    CHECK(both.occupancy[0].assembled->registers == figures.registers);
    CHECK(to_text(both).find("sm_90   ptxas") != std::string::npos);
    CHECK(to_json(both).find("\"spill_store_bytes\": 0") != std::string::npos);
}

TEST_CASE("with line_info the machine code names the lines of the source") {
    const ast::KernelTree& kernel = stdlib::find("saxpy")->handle().ast();
    const Compiled compiled = compile(kernel, {.line_info = true});
    CHECK(compiled.ptx.find("saxpy.cpp\"") != std::string::npos);
    CHECK(ptx::print(ptx::parse(compiled.ptx, "saxpy.ptx")) == compiled.ptx);
    if (tests::skip_without_ptxas()) return;
    const auto names_source = [](const ptxas::Output& output) {
        const std::string_view bytes(reinterpret_cast<const char*>(output.cubin.data()), output.cubin.size());
        return bytes.find("saxpy.cpp") != bytes.npos && bytes.find(".debug_line") != bytes.npos;
    };
    const std::string program = tests::find_ptxas().value();
    CHECK(names_source(ptxas::assemble(program, compiled.ptx, "sm_80", "-lineinfo")));
    CHECK_FALSE(names_source(ptxas::assemble(program, compile(kernel).ptx, "sm_80", "-lineinfo")));
}
