// SPDX-License-Identifier: Apache-2.0
// The parameters of a kernel for what a caller gives with a function.
#pragma once
#include <string>

#include "dsl/kernel/more.hpp"
#include "stdlib/spec/given.hpp"

namespace ikat::stdlib {

/// Calls f<T>() for the type of an array's elements; false for others.
template <class F>
bool with_element(ir::Type type, F&& f) {
    switch (type) {
        case ir::Type::F32: return f.template operator()<float>(), true;
        case ir::Type::F16: return f.template operator()<half>(), true;
        case ir::Type::BF16: return f.template operator()<bfloat16>(), true;
        case ir::Type::I32: return f.template operator()<std::int32_t>(), true;
        case ir::Type::U32: return f.template operator()<std::uint32_t>(), true;
        case ir::Type::I8: return f.template operator()<std::int8_t>(), true;
        case ir::Type::U8: return f.template operator()<std::uint8_t>(), true;
        default: return false;
    }
}
/// For messages about others.
constexpr const char* given_elements = "they are f32, f16, bf16, i32, u32, i8 or u8";

inline GivenNumber next_number(ir::Type type, More& more) {
    if (type == ir::Type::U32) return {.u = value(more.next<u32>())};
    if (type == ir::Type::I32) return {.i = value(more.next<i32>())};
    return {.f = value(more.next<f32>())};
}
/// Adds the parameter for a number.
inline void add_number(ir::Type type, const std::string& name, MoreParameters& to) {
    if (type == ir::Type::U32)
        to.add<u32>(name);
    else if (type == ir::Type::I32)
        to.add<i32>(name);
    else
        to.add<f32>(name);
}

}  // namespace ikat::stdlib
