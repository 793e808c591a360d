// SPDX-License-Identifier: Apache-2.0
// The arrays that a function of the library takes: their names, shapes and types; and how many elements those of its
// kernels have. The C++ compiler reads and checks them.
//
//     constexpr Operands of_layernorm{{"x", "... columns"}, {"gamma", "columns"}, {"y", "... columns", Access::Out}};
//
// Extents of one name are equal. "..." stands for any dimensions before, of the same extents in all arrays that have
// it. Names in brackets, which come first, may be left out: "[planes] m k". An array without a shape may have any.
//
//     constexpr ArraySizes of_kernel{{"x", "rows columns"}, {"gamma", "columns"}, {"y", "rows columns"}};
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "codegen/ir/access.hpp"
#include "codegen/ir/type.hpp"
#include "runtime/tensor_view.hpp"

namespace ikat::stdlib {

using ir::Access;

namespace detail {

constexpr void each_word(std::string_view text, auto&& f) {
    for (std::size_t end; (end = text.find(' ')) != text.npos; text.remove_prefix(end + 1)) f(text.substr(0, end));
    if (!text.empty()) f(text);
}
constexpr bool is_name(std::string_view word) {
    for (const char c : word)
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
    return !word.empty();
}

}  // namespace detail

/// The names of an array's extents, the outermost first.
class OperandShape {
public:
    static constexpr std::size_t max_extents = runtime::TensorView::max_dimensions;

    /// Any.
    constexpr OperandShape() = default;
    /// Names with spaces between them, after "..." or not. What is no shape does not compile.
    consteval OperandShape(const char* text) {
        detail::each_word(text, [&](std::string_view word) { add(word); });
    }

    constexpr bool is_any() const { return count_ == 0 && !has_more_; }
    constexpr bool has_more() const { return has_more_; }
    constexpr std::span<const std::string_view> names() const { return {names_.data(), count_}; }
    /// How many of the names may be left out, the first ones.
    constexpr std::size_t optional() const { return optional_; }
    /// Of the name; names().size() if there is none.
    constexpr std::size_t position(std::string_view name) const {
        std::size_t at = 0;
        while (at < count_ && names_[at] != name) ++at;
        return at;
    }
    /// "... x columns", "[planes x] m x k"; "any shape" for "..." alone.
    std::string text() const;

private:
    constexpr void add(std::string_view word) {
        if (word == "...") {
            if (count_ != 0 || has_more_) throw "'...' comes before the names";
            has_more_ = true;
            return;
        }
        if (word.starts_with('[') && word.ends_with(']')) {
            if (optional_ != count_ || has_more_) throw "names that may be left out come first, and without '...'";
            ++optional_;
            word = word.substr(1, word.size() - 2);
        }
        if (!detail::is_name(word) || count_ == max_extents)
            throw "a shape has one to five names, of small letters, digits and '_', with one space between them";
        if (position(word) != count_) throw "a shape has each name once";
        names_[count_++] = word;
    }

    std::array<std::string_view, max_extents> names_{};
    std::size_t count_ = 0, optional_ = 0;
    bool has_more_ = false;
};

/// What the elements of an array are, of which a shape says how many values they hold.
enum class Blocks : std::uint8_t {
    None,     // the values
    Weights,  // bytes of quantised weights, whose format is that of the kernel: a recipe has a kernel for each format
    Q8_1      // words of activations in GGML's Q8_1
};

/// An array that a function takes.
struct ArrayOperand {
    std::string_view name{};
    OperandShape shape{};
    Access access = Access::In;
    ir::Type type = ir::Type::Void;  // of its elements. Void: f32, f16 or bf16, the same for all such operands ...
    bool is_of_any_type = false;     // ... but for these, whose types the function checks itself
    bool is_computed = false;        // of an output: it has extents that no input has, see Recipe::extents
    Blocks blocks = Blocks::None;    // these have a type of their own
};

/// Of one function, in the order of its parameters.
class Operands {
public:
    static constexpr std::size_t max_operands = 8;

    constexpr Operands() = default;
    /// Those without a name are left out. In a constant, operands that do not fit each other do not compile.
    constexpr Operands(std::initializer_list<ArrayOperand> list) {
        for (const ArrayOperand& operand : list) {
            if (operand.name.empty()) continue;
            if (count_ == max_operands) throw "a function has at most eight arrays";
            if (operand.shape.optional() != 0) throw "an operand has all its extents, or '...'";
            for (const ArrayOperand& other : all())
                if (other.name == operand.name) throw "two operands have one name";
            list_[count_++] = operand;
        }
        for (const ArrayOperand& operand : all())
            if (operand.access == Access::Out && !operand.is_computed && !follows(operand.shape))
                throw "an output has an extent that no input has";
    }

    constexpr std::span<const ArrayOperand> all() const { return {list_.data(), count_}; }
    /// "x, y: ... x columns; gamma: columns"
    std::string shapes() const;

private:
    /// Whether others have the extents of a shape, which is one of these.
    constexpr bool follows(const OperandShape& shape) const {
        const auto some = [&](auto&& has) {
            for (const ArrayOperand& other : all())
                if (&other.shape != &shape && has(other.shape)) return true;
            return false;
        };
        if (shape.has_more() && !some([](const OperandShape& other) { return other.has_more(); })) return false;
        for (const std::string_view name : shape.names())
            if (!some([&](const OperandShape& other) { return other.position(name) < other.names().size(); }))
                return false;
        return true;
    }

    std::array<ArrayOperand, max_operands> list_{};
    std::size_t count_ = 0;
};

/// How many elements an array of a kernel has at least: a product of parameters of the kernel and of numbers, which is
/// made from left to right. "rows columns /32 9" is rows * columns / 32 * 9.
class SizeProduct {
public:
    static constexpr std::size_t max_factors = 5;
    struct Factor {
        std::string_view parameter{};  // or, without one, the number
        std::uint32_t number = 0;
        bool divides = false;
    };

    constexpr SizeProduct() = default;
    /// What is no product does not compile.
    consteval SizeProduct(const char* text) {
        detail::each_word(text, [&](std::string_view word) { add(word); });
        if (count_ == 0 || factors_[0].divides) throw "a size begins with a parameter or a number";
    }
    constexpr std::span<const Factor> factors() const { return {factors_.data(), count_}; }

private:
    constexpr void add(std::string_view word) {
        const bool divides = word.starts_with('/');
        if (divides) word.remove_prefix(1);
        if (!detail::is_name(word) || count_ == max_factors)
            throw "a size has one to five factors, with one space between them";
        std::uint32_t number = 0;
        bool is_number = true;
        for (const char c : word) is_number = is_number && c >= '0' && c <= '9', number = number * 10 + (c - '0');
        if (is_number && number == 0) throw "a factor of a size is not 0";
        factors_[count_++] = {is_number ? std::string_view() : word, is_number ? number : 0, divides};
    }

    std::array<Factor, max_factors> factors_{};
    std::size_t count_ = 0;
};

/// An array among a kernel's parameters, and its size.
struct ArraySize {
    std::string_view array{};
    SizeProduct size{};
};

/// Of the arrays of a kernel.
class ArraySizes {
public:
    static constexpr std::size_t max_arrays = 8;

    constexpr ArraySizes() = default;
    constexpr ArraySizes(std::initializer_list<ArraySize> list) {
        for (const ArraySize& each : list) {
            if (count_ == max_arrays || find(each.array)) throw "sizes are of at most eight arrays, of each once";
            list_[count_++] = each;
        }
    }
    constexpr bool is_empty() const { return count_ == 0; }
    /// nullptr for an array that may have any size.
    constexpr const SizeProduct* find(std::string_view array) const {
        for (std::size_t i = 0; i < count_; ++i)
            if (list_[i].array == array) return &list_[i].size;
        return nullptr;
    }

private:
    std::array<ArraySize, max_arrays> list_{};
    std::size_t count_ = 0;
};

}  // namespace ikat::stdlib
