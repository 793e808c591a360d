// SPDX-License-Identifier: Apache-2.0
// Which one of its family an instruction is: its attribute, a plain value of a fixed size. Of most ops it is a number
// (a constant's bits, which parameter, a mode); an op with a form keeps the struct there byte by byte (forms/), so that
// it is compared, hashed and copied by content, and a function remains a plain value without any pool beside it.
#pragma once
#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "codegen/ir/type.hpp"

namespace ikat::ir {

class Form {
public:
    static constexpr std::size_t capacity = 16;  // bytes

    constexpr Form(Word number = 0) : words_{number, 0} {}
    /// The number.
    constexpr operator Word() const { return words_[0]; }
    constexpr const auto& words() const { return words_; }
    friend constexpr bool operator==(const Form& a, const Form& b) {  // quicker than that of arrays
        return a.words_[0] == b.words_[0] && a.words_[1] == b.words_[1];
    }
    template <std::integral Number>
    friend constexpr bool operator==(const Form& form, Number number) {
        return form == Form(Word(number));
    }

private:
    template <class F>
    friend constexpr Form pack(F form);
    template <class F>
    friend constexpr F unpack(Form form);
    std::array<Word, 2> words_;
    static_assert(sizeof words_ == capacity);
};

/// A struct as a form, its first byte the lowest of the first word, and back.
template <class F>
constexpr Form pack(F form) {
    static_assert(sizeof(F) <= Form::capacity, "this form has outgrown Form: raise Form::capacity");
    static_assert(std::has_unique_object_representations_v<F>,
                  "the bytes of a form are all its own: fill gaps between its members with `unused`");
    Form out;
    const auto bytes = std::bit_cast<std::array<std::uint8_t, sizeof(F)>>(form);
    for (std::size_t i = 0; i < sizeof(F); ++i) out.words_[i / 8] |= Word{bytes[i]} << (8 * (i % 8));
    return out;
}
template <class F>
constexpr F unpack(Form form) {
    std::array<std::uint8_t, sizeof(F)> bytes;
    for (std::size_t i = 0; i < sizeof(F); ++i) bytes[i] = std::uint8_t(form.words_[i / 8] >> (8 * (i % 8)));
    return std::bit_cast<F>(bytes);
}

}  // namespace ikat::ir
