// SPDX-License-Identifier: Apache-2.0
// Each form of mma that the language has, as products.cu has it from the ISA.
#include <cstdio>

#include "tests/foreign/compilers.hpp"
#include "tests/foreign/products.hpp"
#include "tests/foreign/values.hpp"

using namespace ikat;

TEST_CASE("every form of mma by the formulas of the ISA") {
    const auto ptx = tests::nvcc_ptx(tests::foreign_source("products.cu"), "-arch=sm_90 -std=c++17");
    if (!ptx) return void(std::puts("skipped: no nvcc"));
    tests::Products products(*ptx);
    const auto forms = tests::matrix_forms();
    CHECK(products.count() == forms.size());
    for (const ir::MatrixForm form : forms) {
        INFO(tests::entry_of(form));
        CHECK(products.right(form));
    }
}
