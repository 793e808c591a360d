// SPDX-License-Identifier: Apache-2.0
// Kernels of one product of matrices each, d = a * b + c, that another compiler made, on the emulator: random matrices,
// compared with plain loops. Kernels take a, b and c, in which they leave d; a and c lie by rows, b by columns.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "codegen/ir/op/families.hpp"
#include "codegen/ir/op/forms/matrices.hpp"
#include "tests/unit/emulator/machine.hpp"
#include "tests/unit/emulator/tensor/elements.hpp"

namespace ikat::tests {

/// Every form of the language.
inline std::vector<ir::MatrixForm> matrix_forms() {
    std::vector<ir::MatrixForm> forms;
    const auto elements = std::size(ir::matrix_element_names);
    for (std::size_t shape = 0; shape < std::size(ir::matrix_shapes); ++shape)
        for (std::size_t a = 0; a < elements; ++a)
            for (std::size_t b = 0; b < elements; ++b)
                for (std::size_t sum = 0; sum < elements; ++sum)
                    for (std::size_t variant = 0; variant < std::size(ir::MatrixForm::variant_names); ++variant)
                        for (std::uint8_t flags = 0; flags < 4; ++flags) {
                            const ir::MatrixForm form{.extent = std::uint8_t(shape),
                                                      .a = ir::MatrixElement(a),
                                                      .b = ir::MatrixElement(b),
                                                      .sum = ir::MatrixElement(sum),
                                                      .variant = ir::MatrixForm::Variant(variant),
                                                      .flags = flags};
                            if (form.exists()) forms.push_back(form);
                        }
    return forms;
}

/// "m16n8k32_s8_u8_s32_sat"
inline std::string entry_of(ir::MatrixForm form) {
    std::string name = ir::attribute_text(ir::Op::Mma, ir::pack(form));
    for (char& c : name)
        if (c == '.') c = '_';
    return name;
}

class Products {
public:
    explicit Products(const std::string& ptx) : program_(ptx::parse(ptx, "products.ptx"), machine_.memory) {}

    std::size_t count() const { return program_.entries().size(); }
    bool has(const std::string& entry) const { return std::ranges::count(program_.entries(), entry) != 0; }

    /// Whether the kernel of the form's name gives the right d. Of n columns, if not of those of the form.
    bool right(ir::MatrixForm form, int m, int n, int products = 1) {
        using Variant = ir::MatrixForm::Variant;
        const int k = form.extents().k;
        const Matrix a = random(form.a, products * m * k), b = random(form.b, products * n * k),
                     c = random(form.sum, products * m * n);
        const auto at_a = machine_.buffer("a", a.bytes), at_b = machine_.buffer("b", b.bytes),
                   at_c = machine_.buffer("c", c.bytes);
        std::vector<std::byte> parameters;
        for (const std::uint64_t address : {at_a, at_b, at_c}) {
            const auto bytes = std::as_bytes(std::span(&address, 1));
            parameters.insert(parameters.end(), bytes.begin(), bytes.end());
        }
        program_.run({.entry = entry_of(form), .block = {32, 1, 1}, .parameters = parameters}, machine_.options);
        const auto found = machine_.get<std::uint8_t>(at_c, c.bytes.size());
        bool all = true;
        for (int i = 0; i < products * m * n; ++i) {
            const int row = i / n, column = i / (m * n) * n + i % n;
            double sum = c.values[std::size_t(i)];
            for (int j = 0; j < k; ++j) {
                const double x = a.values[std::size_t(row * k + j)], y = b.values[std::size_t(column * k + j)];
                sum += form.variant == Variant::Xor ? x != y : x * y;
            }
            constexpr double max = 0x7fffffff, min = -0x80000000ll;
            if (form.sum == ir::MatrixElement::S32)
                sum = form.variant == Variant::Saturates ? std::clamp(sum, min, max)
                                                         : std::int32_t(std::uint32_t(std::int64_t(sum)));
            const int bytes = int(ir::matrix_bits(form.sum)) / 8;
            std::uint64_t bits = 0;
            std::memcpy(&bits, &found[std::size_t(i * bytes)], std::size_t(bytes));
            all &= matrices::number_of(name(form.sum), bits) == sum;
        }
        return all;
    }
    bool right(ir::MatrixForm form) { return right(form, form.extents().m, form.extents().n, int(form.products())); }

private:
    struct Matrix {
        std::vector<double> values;
        std::vector<std::uint8_t> bytes;
    };
    static std::string name(ir::MatrixElement element) {
        return std::string(ir::matrix_element_names[std::size_t(element)]);
    }
    /// Sums of integers are near the ends of their range, or not.
    Matrix random(ir::MatrixElement element, int count) {
        const std::size_t width = ir::matrix_bits(element);
        Matrix out;
        out.bytes.resize(std::size_t(count) * width / 8);
        for (std::size_t i = 0; i < std::size_t(count); ++i) {
            auto [value, bits] = matrices::value_of(name(element), unsigned(random_()));
            if (element == ir::MatrixElement::S32 && i % 3) {
                bits = i % 3 == 1 ? 0x7fffffffu - i % 50 : 0x80000000u + i % 50;
                value = std::int32_t(bits);
            }
            out.values.push_back(value);
            for (std::size_t bit = 0; bit < width; ++bit)
                out.bytes[(i * width + bit) / 8] |= std::uint8_t((bits >> bit & 1) << (i * width + bit) % 8);
        }
        return out;
    }

    Machine machine_;
    emulator::Program program_;
    std::mt19937 random_{20261123};
};

}  // namespace ikat::tests
