// SPDX-License-Identifier: Apache-2.0
// Conditions of graphs as parameters: a kernel sets the number that decides whether a body is done, or done again.
//
//     kernel("step", params("x", "n", "more"), [](InOut<float> x, u32 n, Condition more) {
//         ...
//         if_(global_id().x == 0u, [&] { set_condition(more, norm > limit); });
//     });
//
// In PTX it is an address, .param .u64 more, of 32 bits. A launch takes a GraphCondition
// (runtime/graph/conditions.hpp), or a buffer of one std::uint32_t.
#pragma once
#include <cstdint>
#include <type_traits>
#include <utility>

#include "dsl/kernel/kernel.hpp"

namespace ikat {

/// A parameter: the condition of an `if` or a `while` of a graph. set_condition() gives it a number.
class Condition {
public:
    explicit Condition(const trace::Array& number) : number_(number) {}
    Pointer<std::uint32_t, trace::Direction::Write> number() const { return number_; }

private:
    Pointer<std::uint32_t, trace::Direction::Write> number_;
};

template <>
struct ParameterTraits<Condition> {
    static constexpr bool valid = true, writes = true;
    static constexpr int rank = 1;
    using host_type = std::uint32_t;
    static constexpr trace::ParameterType types[] = {
        {.type = ir::Type::U32, .pointer = true, .direction = trace::Direction::Write, .rank = 1}};
    static Condition make(const trace::Argument* argument) { return Condition(argument->array); }
};

/// The condition is this u32 from now on, or a pred: 1 or 0. One thread of a launch does it: two that do are a race.
template <class V>
void set_condition(const Condition& condition, V&& value, const trace::Where& where = trace::Where::current()) {
    if constexpr (std::is_same_v<DeviceTypeOf<V>, bool> && DeviceValue<V>)
        condition.number()[0u] = Incoming<std::uint32_t>(select(std::forward<V>(value), 1u, 0u), where);
    else
        condition.number()[0u] = Incoming<std::uint32_t>(std::forward<V>(value), where);
}

}  // namespace ikat
