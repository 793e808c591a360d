// SPDX-License-Identifier: Apache-2.0
// Host functions called with device values. If all arguments are device values, HostGuard's conversion gives the error.
// These overloads are for calls that would be ambiguous, whose error would be in a library header, or that would
// compile: a printf would print the bytes of the host object.
//
//     std::fmax(1.0f, x)     std::max(x, y)     std::printf("%f\n", x)
// Adding overloads to namespace std is not allowed; but these have no bodies and cannot be called.
#pragma once
#include <concepts>

#include "dsl/values/expr.hpp"

namespace ikat::detail {

/// A parameter for anything that is not a device value.
struct HostArgument {
    template <class V>
    requires(!DeviceValue<V>) HostArgument(V&&);
};

}  // namespace ikat::detail

#define IKAT_DECLARE_PRINTF                                                                           \
    IKAT_PRINTF int printf(const char*, const ::ikat::HostGuard&, ...);                               \
    IKAT_PRINTF int printf(const char*, ::ikat::detail::HostArgument, const ::ikat::HostGuard&, ...); \
    IKAT_PRINTF int printf(const char*, ::ikat::detail::HostArgument, ::ikat::detail::HostArgument,   \
                           const ::ikat::HostGuard&, ...);
#define IKAT_PRINTF IKAT_REFUSED("printf writes on the host: print(\"x = {}\\n\", x) writes from the device")
#define IKAT_HOST_FUNCTION                                                                             \
    IKAT_REFUSED(                                                                                      \
        "a host function cannot take a device value: call ikat's min(), max(), fma(), copysign(), or " \
        "stdlib::pow()")

namespace ikat {
IKAT_DECLARE_PRINTF
}

namespace std {
IKAT_DECLARE_PRINTF

#define IKAT_MIXED(name)                                         \
    template <::ikat::HostNumber N>                              \
    IKAT_HOST_FUNCTION double name(const ::ikat::HostGuard&, N); \
    template <::ikat::HostNumber N>                              \
    IKAT_HOST_FUNCTION double name(N, const ::ikat::HostGuard&);
IKAT_MIXED(fmax)
IKAT_MIXED(fmin)
IKAT_MIXED(fmod)
IKAT_MIXED(pow)
IKAT_MIXED(atan2)
IKAT_MIXED(hypot)
IKAT_MIXED(copysign)
#undef IKAT_MIXED

#define IKAT_CHOICE(name)                                                                                           \
    template <::ikat::DeviceValue V>                                                                                \
    IKAT_HOST_FUNCTION const V& name(const V&, const V&);                                                           \
    template <class A, class B>                                                                                     \
    requires(!std::same_as<A, B> && (::ikat::DeviceValue<A> || ::ikat::DeviceValue<B>)) IKAT_HOST_FUNCTION const A& \
    name(const A&, const B&);
IKAT_CHOICE(max)
IKAT_CHOICE(min)
#undef IKAT_CHOICE
}  // namespace std

#undef IKAT_DECLARE_PRINTF
#undef IKAT_PRINTF
#undef IKAT_HOST_FUNCTION
