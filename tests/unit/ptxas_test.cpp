// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxas.hpp"

#include <cstdlib>

#include "codegen/ptxas.hpp"
#include "tests/catch.hpp"

using namespace ikat::tests;

TEST_CASE("spills, registers and warnings are read from the log") {
    const PtxasReport report = read_ptxas_log(0,
                                              "ptxas info    : Compiling entry function 'a' for 'sm_90'\n"
                                              "    0 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads\n"
                                              "ptxas info    : Used 24 registers, 368 bytes cmem[0]\n"
                                              "ptxas info    : Compiling entry function 'b' for 'sm_90'\n"
                                              "ptxas info    : Used 32 registers, used 1 barriers\n");
    CHECK(report.assembled);
    CHECK(report.spill_bytes == 40);
    CHECK(report.registers == 32);
    CHECK_FALSE(report.warned);
    CHECK_FALSE(report.clean());
}

TEST_CASE("the figures of each entry are read from the log") {
    const auto figures = ikat::ptxas::read_log(
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function 'a' for 'sm_80'\n"
        "ptxas info    : Function properties for a\n"
        "    8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads\n"
        "ptxas info    : Used 24 registers, used 1 barriers, 8192 bytes smem, 368 bytes cmem[0], 8 bytes cmem[2]\n"
        "ptxas info    : Compiling entry function 'b' for 'sm_90'\n"
        "ptxas info    : Used 8 registers\n");
    REQUIRE(figures.size() == 2);
    CHECK(figures[0].entry == "a");
    CHECK(figures[0].target == "sm_80");
    CHECK(figures[0].registers == 24);
    CHECK(figures[0].barriers == 1);
    CHECK(figures[0].stack_bytes == 8);
    CHECK(figures[0].spill_store_bytes == 16);
    CHECK(figures[0].spill_load_bytes == 24);
    CHECK(figures[0].shared_bytes == 8192);
    CHECK(figures[0].constant_bytes == 376);
    CHECK(figures[1].entry == "b");
    CHECK(figures[1].registers == 8);
}

TEST_CASE("a serialised wgmma is a warning") {
    const PtxasReport report =
        read_ptxas_log(0, "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions\n");
    CHECK(report.warned);
    CHECK_FALSE(report.clean());
}

TEST_CASE("a failed run is not assembled") {
    CHECK_FALSE(read_ptxas_log(255, "ptxas fatal\n").assembled);
    CHECK(read_ptxas_log(0, "").clean());
}

TEST_CASE("IKAT_PTXAS decides which ptxas is used") {
    setenv("IKAT_PTXAS", "none", 1);
    CHECK_FALSE(find_ptxas());
    CHECK(skip_without_ptxas());
    setenv("IKAT_PTXAS", "/bin/sh", 1);
    CHECK(find_ptxas() == "/bin/sh");
    unsetenv("IKAT_PTXAS");
}

TEST_CASE("ptxas accepts a kernel and refuses nonsense") {
    if (skip_without_ptxas()) return;
    const char* kernel = ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry empty() { ret; }\n";
    const PtxasReport good = assemble(kernel, "sm_90");
    INFO(good.log);
    CHECK(good.clean());
    CHECK(good.registers > 0);
    CHECK_FALSE(assemble("this is no PTX\n", "sm_90").assembled);
}
