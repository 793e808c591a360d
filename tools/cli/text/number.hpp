// SPDX-License-Identifier: Apache-2.0
// Element types by their command line names, and their values as text: "u32" and "7", "f16" and "0.5", "b64" and
// "0x1f".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "codegen/ir/type.hpp"

namespace ikat::cli {

/// A type of the IR, or raw bits (b8 to b64), which match any type of their width.
struct NumberType {
    ir::Type type = ir::Type::Void;  // of raw bits: the unsigned integer
    bool raw = false;

    std::size_t bytes() const { return info(type).bytes; }
    std::string name() const;
    bool operator==(const NumberType&) const = default;
};

std::optional<NumberType> number_type(std::string_view name);
/// "u8 u16 ... b64", for messages.
std::string number_type_names();

/// The bits of a value, in the low bits of the result. Integers are decimal or 0x...; both must fit. Floats are
/// decimal, inf or nan, rounded to nearest. Throws Error.
std::uint64_t parse_number(NumberType type, std::string_view text);

/// The shortest text that parse_number reads back as the same value. Raw bits are hexadecimal.
std::string format_number(NumberType type, std::uint64_t bits);

/// The next number of a sequence that depends only on the seed: a float in [-1, 1), or an integer or raw bits of any
/// value.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t number(NumberType type);

private:
    std::uint64_t state_;
};

}  // namespace ikat::cli
