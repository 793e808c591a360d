// SPDX-License-Identifier: Apache-2.0
// Products of matrices that CuTe makes, of CUTLASS 4.2. Not all: it has none for m16n8k16 of 8-bit floats and for .xor
// on sm_90, its layout for m16n8k128 does not compile, and that of b for m16n8k32 of 4-bit integers has an element
// twice.
#include <cstdio>
#include <cstdlib>

#include "tests/foreign/compilers.hpp"
#include "tests/foreign/products.hpp"
#include "tests/foreign/values.hpp"

using namespace ikat;

TEST_CASE("products by CuTe's atoms") {
    const auto ptx = tests::cute_ptx(tests::foreign_source("cute_products.cu"), "-arch=sm_90a -std=c++17");
    if (!ptx) {
        std::puts("skipped: no nvcc, or no CUTLASS in $CUTLASS_PATH or python3");
        std::exit(77);
    }
    tests::Products products(*ptx);
    std::size_t found = 0;
    for (const ir::MatrixForm form : tests::matrix_forms()) {
        const std::string entry = tests::entry_of(form);
        INFO(entry);
        if (!products.has(entry)) continue;
        ++found;
        CHECK((form.of_quad_pairs() ? products.right(form, 16, 16) : products.right(form)));
    }
    CHECK(found == products.count());
}
