// SPDX-License-Identifier: Apache-2.0
// Products of matrices that CuTe makes, of CUTLASS 4.2. Not all: it has none for m16n8k16 of 8-bit floats and for .xor
// on sm_90, its layout for m16n8k128 does not compile, and that of b for m16n8k32 of 4-bit integers has an element
// twice.
#include <cstdio>
#include <cstdlib>
#include <cstring>

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

TEST_CASE("products with a sparse matrix by CUTLASS") {
    const auto ptx = tests::cute_ptx(tests::foreign_source("cutlass_sparse.cu"), "-arch=sm_80 -std=c++17");
    if (!ptx) {
        std::puts("skipped: no nvcc, or no CUTLASS in $CUTLASS_PATH or python3");
        std::exit(77);
    }
    struct Form {
        std::string type;
        int k;
    };
    constexpr int extent = 64;
    for (const auto& [type, k] : {Form{"f16", 64}, Form{"bf16", 64}, Form{"tf32", 32}, Form{"s8", 128}}) {
        INFO(type);
        const bool is_tf32 = type == "tf32";
        const auto bytes = std::size_t(tests::matrices::bits_of(type)) / 8;
        const int held = k / 2, kept = is_tf32 ? 1 : 2, chunks = held / kept;
        std::mt19937 random(20261123);
        std::vector<std::byte> a, b, metadata(std::size_t(extent * chunks / 2));
        std::vector<double> dense(std::size_t(extent * k)), columns;
        const auto next = [&](std::vector<std::byte>& to) {
            const auto [value, bits] = tests::matrices::value_of(type, unsigned(random()));
            const auto* const from = reinterpret_cast<const std::byte*>(&bits);
            to.insert(to.end(), from, from + bytes);
            return value;
        };
        for (int row = 0; row < extent; ++row)
            for (int chunk = 0; chunk < chunks; ++chunk) {
                constexpr unsigned pairs[] = {0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110},
                                   ones[] = {0b0100, 0b1110};
                const unsigned bits = is_tf32 ? ones[random() % 2] : pairs[random() % 6];
                const int nibble = row * chunks + chunk;
                metadata[std::size_t(nibble / 2)] |= std::byte(bits << nibble % 2 * 4);
                for (int i = 0; i < kept; ++i) {
                    const int place = is_tf32 ? bits == 0b1110 : int(bits >> 2 * i & 3);
                    dense[std::size_t(row * k + 2 * kept * chunk + place)] = next(a);
                }
            }
        for (int i = 0; i < extent * k; ++i) columns.push_back(next(b));
        tests::Machine machine;
        const auto c = machine.empty<std::uint32_t>("c", extent * extent);
        machine.run(*ptx, {.entry = type, .block = {32, 1, 1}}, machine.buffer("a", a), machine.buffer("b", b), c,
                    machine.buffer("metadata", metadata));
        const auto found = machine.get<std::uint32_t>(c, extent * extent);
        int wrong = 0;
        for (int i = 0; i < extent * extent; ++i) {
            double sum = 0;
            for (int j = 0; j < k; ++j)
                sum += dense[std::size_t(i / extent * k + j)] * columns[std::size_t(i % extent * k + j)];
            wrong += tests::matrices::number_of(type == "s8" ? "s32" : "f32", found[std::size_t(i)]) != sum;
        }
        CHECK(wrong == 0);
    }
}
