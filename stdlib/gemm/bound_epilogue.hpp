// SPDX-License-Identifier: Apache-2.0
// An epilogue as part of a kernel: its code, by which kernels are told apart, and its function with the kernel's
// parameters for its arguments.
#pragma once
#include <compare>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/support/digest.hpp"
#include "dsl/kernel/more.hpp"
#include "stdlib/gemm/epilogue.hpp"

namespace ikat::stdlib {

/// Of each argument, what a kernel is made by.
struct EpilogueParameter {
    ir::Type type = ir::Type::Void;
    bool is_array = false;
    bool is_by_place = false, is_by_row = false, is_by_column = false;  // how the function reads it
    bool is_aligned = false;                                            // rows begin at multiples of 16 bytes

    std::string name(std::size_t number) const { return "epilogue" + std::to_string(number); }
    auto operator<=>(const EpilogueParameter&) const = default;
};

/// The key of an epilogue. Equal functions with parameters of the same kinds are the same epilogue.
class EpilogueCode {
public:
    EpilogueCode() = default;
    /// Calls the function once, as in a kernel. Throws Error with the mistakes in it, and for arrays that the function
    /// does not read, or in two ways that need different shapes.
    explicit EpilogueCode(const Epilogue& epilogue);

    explicit operator bool() const { return function_ != nullptr; }
    const std::string& name() const { return name_; }
    std::span<const EpilogueParameter> parameters() const { return parameters_; }
    const EpilogueFunction& function() const { return *function_; }
    /// Those of the kernel.
    MoreParameters more() const;

    std::strong_ordering operator<=>(const EpilogueCode& other) const;
    bool operator==(const EpilogueCode& other) const { return *this <=> other == 0; }

private:
    std::string name_;
    Digest digest_{};
    std::vector<EpilogueParameter> parameters_;
    std::shared_ptr<const EpilogueFunction> function_;
};

/// It, in a kernel that is being captured.
class BoundEpilogue {
public:
    /// Takes the parameters of code.more().
    BoundEpilogue(const EpilogueCode& code, More& more);
    ~BoundEpilogue();
    BoundEpilogue(const BoundEpilogue&) = delete;

    /// One element.
    Leaf<float> element(const Leaf<std::uint32_t>& matrix, const Leaf<std::uint32_t>& row,
                        const Leaf<std::uint32_t>& column, const Leaf<float>& sum) const;
    /// As many elements as there are sums, from a column on that is a multiple of their number.
    std::vector<Leaf<float>> elements(const Leaf<std::uint32_t>& matrix, const Leaf<std::uint32_t>& row,
                                      const Leaf<std::uint32_t>& column, std::span<const Leaf<float>> sums) const;

private:
    class Array;
    class Source;
    const EpilogueCode& code_;
    std::vector<std::unique_ptr<Array>> arrays_;  // by argument; null for numbers
    std::vector<GivenNumber> numbers_;            // in the place of an array, one that is not used
};

}  // namespace ikat::stdlib
