// SPDX-License-Identifier: Apache-2.0
// Parameters that a kernel is made with, or without: the host decides, before it is captured.
//
//     auto scaled(bool has_bias) {
//         return kernel("scaled", params("x", only_if(has_bias, "bias"), "y", "n"),
//                       [](In<float> x, Optional<In<float>> bias, Out<float> y, u32 n) {
//                           u32 i = global_id().x;
//                           f32 sum = x[i];
//                           if (bias) sum += (*bias)[i];          // an if of the host: no branch
//                           y[i] = sum;
//                       });
//     }
//     device.launch(scaled(true), grid, x, bias, y, n);
//     device.launch(scaled(false), grid, x, std::nullopt, y, n);
//
// A kernel without it has no such parameter in its PTX. A launch gives it what P takes, or std::nullopt, or a
// std::optional of either; contracts about it hold where it is.
#pragma once
#include <optional>
#include <utility>

#include "dsl/kernel/kernel.hpp"

namespace ikat {

/// A parameter of type P that a kernel is made with or without. It converts to bool, a host number.
template <class P>
class Optional {
public:
    explicit Optional(P parameter) : parameter_(std::move(parameter)) {}
    /// What a kernel without the parameter gets.
    static Optional without(const char* name) { return Optional(name); }

    /// Whether the kernel is made with it.
    explicit operator bool() const { return parameter_.has_value(); }
    /// The parameter. Throws Error if the kernel is made without it.
    const P& operator*() const {
        if (!parameter_) trace::refuse_absent(name_);
        return *parameter_;
    }
    const P* operator->() const { return &**this; }

private:
    explicit Optional(const char* name) : name_(name) {}

    std::optional<P> parameter_{};
    const char* name_ = nullptr;  // if there is none
};

template <class P>
struct ParameterTraits<Optional<P>> {
    using optional = P;
    static constexpr bool valid = ParameterTraits<P>::valid;
    static constexpr auto& types = ParameterTraits<P>::types;
    static Optional<P> make(const trace::Argument* arguments) {
        return arguments->absent ? Optional<P>::without(arguments->absent)
                                 : Optional<P>(ParameterTraits<P>::make(arguments));
    }
};

}  // namespace ikat
