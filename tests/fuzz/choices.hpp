// SPDX-License-Identifier: Apache-2.0
// Random choices for programs: numbers, one of a list, constants at the edges of their types.
#pragma once
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <type_traits>

#include "codegen/ir/op/evaluate.hpp"

namespace ikat::test {

class Choices {
public:
    explicit Choices(std::uint32_t seed) : random_(seed) {}

    std::uint32_t pick(std::uint32_t below) {
        return std::uniform_int_distribution<std::uint32_t>(0, below - 1)(random_);
    }
    bool one_in(std::uint32_t n) { return pick(n) == 0; }
    std::uint32_t any_number() { return std::uint32_t(random_()); }
    const auto& any_of(const auto& list) { return list[pick(std::uint32_t(std::size(list)))]; }

    /// A value of the type, mostly an edge case: 0, 1, the extremes, powers of two; infinities and NaN.
    ir::Word edge(ir::Type type) {
        using ir::Word;
        const int bits = ir::bits(type);
        const Word all = bits == 64 ? ~Word{0} : (Word{1} << bits) - 1, top = Word{1} << (bits - 1);
        if (type == ir::Type::Pred) return pick(2);
        if (ir::is_float(type)) return float_edge(type, all);
        const Word edges[] = {0,  1,  2,  3,   4,       8,   31,      32,
                              33, 63, 64, all, all - 1, top, top - 1, Word{1} << pick(std::uint32_t(bits))};
        return one_in(4) ? any_bits() & all : any_of(edges) & all;
    }

private:
    ir::Word any_bits() {
        const ir::Word high = any_number();
        return high << 32 | any_number();
    }
    ir::Word float_edge(ir::Type type, ir::Word all) {
        const double numbers[] = {0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 4.0, -8.0, 3.0, 1e-3, 100.0, 65504.0};
        if (one_in(4)) return any_bits() & all;
        const double x = one_in(5) ? std::numeric_limits<double>::infinity() : any_of(numbers);
        return ir::with_type(type, [&]<class T>() {
            if constexpr (is_small_float<T> || std::is_floating_point_v<T>)
                return one_in(10) ? ir::to_word(T(std::numeric_limits<float>::quiet_NaN())) : ir::to_word(T(x));
            else
                return any_bits() & all;  // two lanes
        });
    }

    std::mt19937 random_;
};

}  // namespace ikat::test
