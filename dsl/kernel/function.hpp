// SPDX-License-Identifier: Apache-2.0
// Device functions that are called and not inlined:
//
//     const auto horner = device_fn("horner", params("x", "y"), [](f32 x, f32 y) { return fma(x, y, 1); });
//     y[i] = horner(x[i], 2) * horner(x[i], 3);
//
// In PTX each is one .func. Parameters and the result are numbers, by value. A function whose type is written out may
// call itself, under a condition:
//
//     const DeviceFunction<std::uint32_t, u32> factorial = device_fn("factorial", [](u32 n) -> u32 {
//         u32 product = 1;
//         if_(n > 1, [&] { product = n * factorial(n - 1); });
//         return product;
//     });
// return_value(v) returns early. C++ functions, which are inlined, can do more and are the usual choice; this is for
// long code that is called from several places.
#pragma once
#include "dsl/kernel/kernel.hpp"
#include "dsl/threads/control.hpp"

namespace ikat {

/// A function of the device that kernels call, and that is not inlined. R is void or the type of its result.
template <class R, class... P>
class DeviceFunction {
public:
    explicit DeviceFunction(trace::KernelHandle handle) : handle_(std::move(handle)) { handle_.make_function(); }

    template <Operand... A>
    Leaf<R> operator()(A&&... arguments) const {
        static_assert(sizeof...(A) == sizeof...(P),
                      "a device function is called with as many arguments as it has parameters");
        if constexpr (sizeof...(A) == sizeof...(P)) {
            const trace::Recorded values[] = {Incoming<DeviceTypeOf<P>>(std::forward<A>(arguments)).value()..., {}};
            return Leaf<R>(trace::call(handle_, ir::type_of<R>, {values, sizeof...(A)}, {}));
        } else {
            return Leaf<R>(trace::Recorded{});
        }
    }

private:
    trace::KernelHandle handle_;
};

namespace detail {

template <class F, class R>
struct FunctionBody {
    F body;
    trace::Where where;
    template <class... P>
    void operator()(P... parameters) {
        trace::Inlined scope(ir::type_of<R>, where);
        trace::give(scope.end(Incoming<R>(body(std::move(parameters)...)).value(), where), where);
    }
};

template <class F>
struct ResultOf;
template <class F, class R, class... A>
struct ResultOf<R (F::*)(A...) const> {
    using type = DeviceTypeOf<R>;
};

template <class F>
auto device_fn(const char* name, const trace::DeclaredName* names, F body, const trace::Where& where) {
    constexpr auto signature = signature_of<F>();
    static_assert(signature.found && !signature.returns_void,
                  "a device function is a lambda with all parameter types written out that returns a value: "
                  "[](f32 a, u32 n) { return a * 2; }");
    constexpr ir::TypeSet passed = ir::AnyNum | ir::Packed;
    using R = typename ResultOf<decltype(&F::operator())>::type;
    static_assert(ir::contains(passed, ir::type_of<R>), "a device function returns a number");
    return hana::unpack(signature.types, [&](auto... type) {
        constexpr bool numbers =
            (ir::contains(passed, ir::type_of<DeviceTypeOf<typename decltype(type)::type>>) && ...);
        static_assert(numbers, "a device function's parameters are numbers, by value");
        const trace::ParameterTypes list[] = {{std::data(ParameterTraits<typename decltype(type)::type>::types), 1}...,
                                              {}};
        return DeviceFunction<R, typename decltype(type)::type...>(trace::KernelHandle(
            name, names, list, sizeof...(type),
            code_of<typename decltype(type)::type...>(FunctionBody<F, R>{std::move(body), where}), where));
    });
}

}  // namespace detail

/// A DeviceFunction of a lambda, whose parameters and result are numbers. `name` is that of the .func in PTX.
template <class F>
auto device_fn(const char* name, F body, const trace::Where& where = trace::Where::current()) {
    return detail::device_fn(name, nullptr, std::move(body), where);
}
template <std::size_t count, class F>
auto device_fn(const char* name, const ParameterNames<count>& names, F body,
               const trace::Where& where = trace::Where::current()) {
    return detail::device_fn(name, names.names, std::move(body), where);
}

}  // namespace ikat
