// SPDX-License-Identifier: Apache-2.0
// Parameters whose number and types are data: for kernels whose parts are put together by the host.
//
//     MoreParameters more;
//     more.add<In<float>>("bias").add<f32>("slope");
//     kernel("k", params("x", "y", more), [](In<float> x, Out<float> y, More rest) {
//         const auto bias = rest.next<In<float>>();           in the order in which they were added
//         const auto slope = rest.next<f32>();
//         ...
//     });
// They come last. A launch gives them by name, or as arguments whose types are data.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "dsl/kernel/optional.hpp"

namespace ikat {

/// The types and names of parameters that the host knows when it makes the kernel, in order.
class MoreParameters {
public:
    /// One parameter more, of type P.
    template <class P>
    MoreParameters& add(std::string name) {
        using Traits = ParameterTraits<P>;
        static_assert(Traits::valid, "these are types of parameters: f32, In<float>, Optional<u32> ...");
        list_.push_back({std::move(name), {std::data(Traits::types), std::uint32_t(std::size(Traits::types))}});
        return *this;
    }
    /// All of another list.
    MoreParameters& add(const MoreParameters& more) {
        list_.insert(list_.end(), more.list_.begin(), more.list_.end());
        return *this;
    }
    operator trace::DeclaredName() const { return trace::DeclaredName(list_); }

private:
    std::vector<trace::FurtherParameter> list_;
};

/// These parameters within the kernel: next<P>() takes one after the other.
class More {
public:
    explicit More(const trace::Argument* next) : next_(next) {}
    /// The next parameter, which was added with this type.
    template <class P>
    P next() {
        return detail::make_parameter<P>(next_);
    }

private:
    const trace::Argument* next_;
};

template <>
struct ParameterTraits<More> {
    static constexpr bool valid = true;
    static constexpr std::array<trace::ParameterType, 0> types{};
    static More make(const trace::Argument* arguments) { return More(arguments); }
};

}  // namespace ikat
