// SPDX-License-Identifier: Apache-2.0
// What the members of Batch and Async take and give: arrays, whose elements' types are known to the C++ compiler, and
// settings.
#pragma once
#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

#include "runtime/buffer.hpp"
#include "runtime/tensor_view.hpp"

namespace ikat::stdlib {

/// A number or a word that a function takes beside its arrays, or none.
class Setting {
public:
    Setting() = default;
    template <class N>
    requires std::is_arithmetic_v<N> Setting(N number) {
        if constexpr (std::is_same_v<N, bool>) {
            text_ = number ? "1" : "0";
        } else {
            char digits[64];
            text_.assign(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
        }
    }
    Setting(const char* word) : text_(word) {}
    Setting(std::string_view word) : text_(word) {}

    /// Empty: the function's own choice.
    const std::string& text() const { return text_; }

private:
    std::string text_{};
};

/// An output of a function, by the type of its elements: an array, or, where the function has a single one, a number.
template <class T>
struct ArrayOf {
    using Element = T;
};
template <class T>
struct NumberOf {
    using Element = T;
};

namespace detail {

template <class X>
struct ElementOf {};
template <class T>
struct ElementOf<runtime::Buffer<T>> {
    using type = T;
};
template <class T>
struct ElementOf<runtime::BufferSlice<T>> {
    using type = std::remove_const_t<T>;
};
template <class T, int r>
struct ElementOf<runtime::BufferView<T, r>> {
    using type = std::remove_const_t<T>;
};
template <class X>
requires requires { typename X::element_type_of_value; }
struct ElementOf<X> {
    using type = typename X::element_type_of_value;
};

template <class X>
constexpr auto element_of() {
    using Plain = std::remove_cvref_t<X>;
    constexpr bool is_known = requires { typename ElementOf<Plain>::type; };
    static_assert(is_known,
                  "the type of these elements is data: pass a buffer, a slice, a view or a value of the batch, or name "
                  "the result's type, call<float>(\"relu\", x)");
    if constexpr (is_known)
        return std::type_identity<typename ElementOf<Plain>::type>();
    else
        return std::type_identity<float>();
}

}  // namespace detail

namespace detail {

template <class X>
inline constexpr bool is_writable = std::is_same_v<X, runtime::MutableTensorView>;
template <class T>
inline constexpr bool is_writable<runtime::Buffer<T>> = true;
template <class T>
inline constexpr bool is_writable<const runtime::Buffer<T>> = false;
template <class T>
inline constexpr bool is_writable<runtime::BufferSlice<T>> = !std::is_const_v<T>;
template <class T>
inline constexpr bool is_writable<const runtime::BufferSlice<T>> = !std::is_const_v<T>;
template <class T, int r>
inline constexpr bool is_writable<runtime::BufferView<T, r>> = !std::is_const_v<T>;
template <class T, int r>
inline constexpr bool is_writable<const runtime::BufferView<T, r>> = !std::is_const_v<T>;

}  // namespace detail

/// The type of an array's elements: of a buffer, a slice, a view, or a value of a batch.
template <class X>
using ElementOf = typename decltype(detail::element_of<X>())::type;

}  // namespace ikat::stdlib
