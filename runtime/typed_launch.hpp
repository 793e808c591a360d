// SPDX-License-Identifier: Apache-2.0
// The arguments of a typed launch, checked by the C++ compiler against the kernel's parameters: one static_assert for
// each, and no template overloads to choose from, so that a mistake is one error line and the call.
#pragma once
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "runtime/buffer.hpp"
#include "runtime/launch.hpp"

namespace ikat {

// Of dsl/kernel.hpp. Whoever has a kernel to launch has included it.
template <class... P>
class Kernel;
template <class P>
struct ParameterTraits;

}  // namespace ikat

namespace ikat::runtime {

/// A number as the host has it.
struct HostScalar {
    enum class Kind : std::uint8_t { Signed, Unsigned, Floating } kind;
    std::uint64_t integer = 0;  // Signed: two's complement
    double floating = 0;
};

/// The number as an argument of `type`: an integer for any type that can hold its value, a floating number rounded to
/// nearest for any floating type. Throws Error, naming parameter `position`, for one that does not fit.
Argument adapt(const HostScalar& number, ir::Type type, const ast::Kernel& kernel, std::size_t position,
               const Location& where);

namespace detail {

template <class A>
inline constexpr bool is_number = (std::is_arithmetic_v<A> && !std::is_same_v<A, bool>) || std::is_same_v<A, half>;
template <class A>
inline constexpr bool is_floating = std::is_floating_point_v<A> || std::is_same_v<A, half>;

template <class A>
HostScalar host_scalar(A number) {
    if constexpr (is_floating<A>)
        return {.kind = HostScalar::Kind::Floating, .floating = static_cast<double>(number)};
    else if constexpr (std::is_signed_v<A>)
        return {.kind = HostScalar::Kind::Signed, .integer = static_cast<std::uint64_t>(std::int64_t{number})};
    else
        return {.kind = HostScalar::Kind::Unsigned, .integer = number};
}

/// The argument `given` for a buffer parameter with elements T.
template <class T, bool written, class A>
Argument buffer_argument(const A& given) {
    using Given = std::remove_const_t<A>;
    if constexpr (!is_buffer<Given>) {
        static_assert(is_buffer<Given>, "launch: the kernel's parameter is In, Out or InOut: pass a Buffer");
        return {};
    } else if constexpr (!std::is_same_v<typename Given::value_type, T>) {
        static_assert(std::is_same_v<typename Given::value_type, T>,
                      "launch: the buffer's elements have another type than the kernel's In, Out or InOut parameter");
        return {};
    } else {
        static_assert(!written || !std::is_const_v<A>,
                      "launch: the kernel writes this buffer (Out, InOut), but it is const");
        return {.type = ir::type_of<T>, .memory = &given.memory()};
    }
}

/// The argument `given` for a scalar parameter of type T.
template <class T, class A>
Argument scalar_argument(const A& given, const ast::Kernel& kernel, std::size_t position, const Location& where) {
    using Given = std::remove_const_t<A>;
    if constexpr (!is_number<Given>) {
        static_assert(is_number<Given>, "launch: the kernel's parameter is a scalar: pass a number of the host");
        return {};
    } else if constexpr (is_floating<Given> && !is_floating<T>) {
        static_assert(is_floating<T>, "launch: a floating number does not become an integer parameter: convert it");
        return {};
    } else {
        return adapt(host_scalar<Given>(given), ir::type_of<T>, kernel, position, where);
    }
}

/// The argument `given` for a parameter of type P: f32, In<float> ... A is const where the caller's object is.
template <class P, class A>
Argument typed_argument(A& given, const ast::Kernel& kernel, std::size_t position, const Location& where) {
    using Traits = ParameterTraits<P>;
    using T = typename Traits::host_type;
    if constexpr (Traits::pointer)
        return buffer_argument<T, Traits::writes, A>(given);
    else
        return scalar_argument<T, A>(given, kernel, position, where);
}

}  // namespace detail
}  // namespace ikat::runtime
