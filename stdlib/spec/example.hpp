// SPDX-License-Identifier: Apache-2.0
// One launch on the host: a recipe's reference reads the arguments from it, and stores the expected outputs in it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "codegen/ir/type.hpp"

namespace ikat {
struct KernelInfo;
}

namespace ikat::stdlib {

class Example {
public:
    /// An argument of the kernel: a number, or what an array holds before the launch.
    struct Argument {
        ir::Type type{};
        bool is_number = false;
        std::uint64_t bits = 0;
        std::vector<std::byte> bytes{};
    };
    /// What an array must hold after the launch: each element within relative * |wanted| + absolute, plus a rounding to
    /// its type. `absolute` has one number for all elements, or one for each.
    struct Expected {
        std::size_t parameter;
        std::vector<double> wanted;
        double relative;
        std::vector<double> absolute;

        double bound(std::size_t i, ir::Type type) const;
    };

    Example(const KernelInfo& kernel, std::vector<Argument> arguments)
        : kernel_(kernel), arguments_(std::move(arguments)) {}

    /// By the parameter's name: the elements of an array as f32, as words, as bytes, or a number. No elements where the
    /// kernel has no such parameter.
    std::vector<float> operator[](std::string_view name) const;
    std::vector<std::uint32_t> words(std::string_view name) const;
    std::vector<std::uint8_t> bytes(std::string_view name) const;
    std::uint32_t number(std::string_view name) const;
    float real(std::string_view name) const;
    /// By position among the arrays that are only read, and among the f32 numbers; nothing, and 0, where there are
    /// fewer.
    std::vector<float> input(std::size_t i) const;
    float real(std::size_t i) const;

    /// The kernel's name.
    std::string_view name() const;

    void expect(std::string_view name, std::vector<double> wanted, double relative = 0,
                std::vector<double> absolute = {0});
    /// Expects exactly these numbers, rounded to the array's type, and returns the rounded ones.
    std::vector<double> expect_rounded(std::string_view name, std::vector<double> wanted);

    std::span<const Argument> arguments() const { return arguments_; }
    std::span<const Expected> expected() const { return expected_; }

private:
    std::size_t position(std::string_view name) const;
    std::vector<float> floats(std::size_t position) const;

    const KernelInfo& kernel_;
    std::vector<Argument> arguments_;
    std::vector<Expected> expected_{};
};

}  // namespace ikat::stdlib
