// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/ops/edge_values.hpp"

namespace ikat::test {
namespace {

using ir::Type, ir::Word;

std::vector<Word> integers(int width) {
    const Word all = width == 64 ? ~Word{0} : (Word{1} << width) - 1;
    const Word top = Word{1} << (width - 1);
    std::vector<Word> out{0,       1,         2,       3,           7,         100,     all,
                          all - 1, all - 6,   top,     top + 1,     top - 1,   all / 3, all / 3 * 2,
                          top / 2, all / 255, all / 7, all / 3 - 1, width - 1u};
    if (width > 16) out.insert(out.end(), {255, 256, 65535, 65536, 0x12345678, all - 0xffff});
    if (width == 64) out.insert(out.end(), {0xffffffff, 0x100000000, 0x80000000, 0x7fffffff, Word(-0x80000000ll)});
    return out;
}

/// Edge values of a float format by exponent and mantissa width, with both signs.
std::vector<Word> floats(int exponent_bits, int mantissa_bits) {
    const Word exponents = (Word{1} << exponent_bits) - 1, mantissas = (Word{1} << mantissa_bits) - 1;
    const Word bias = exponents / 2;
    const auto number = [&](Word exponent, Word mantissa) { return exponent << mantissa_bits | mantissa; };
    std::vector<Word> out;
    for (Word magnitude : {
             number(0, 0),
             number(0, 1),
             number(0, mantissas),
             number(1, 0),
             number(1, 1),
             number(bias, 0),
             number(bias, 1),
             number(bias - 1, mantissas),
             number(bias + 1, 0),
             number(bias, mantissas / 2 + 1),      // 1.5
             number(bias + 1, mantissas / 4 + 1),  // 2.5
             number(bias - 1, 0),                  // 0.5
             number(bias - 2, mantissas / 3),
             number(bias + Word(mantissa_bits), 1),  // the last integers without a half
             number(bias + Word(mantissa_bits) + 1, mantissas),
             number(bias + 4, mantissas / 7 * 3),
             number(exponents - 1, mantissas),
             number(exponents - 1, 0),
             number(bias / 2, mantissas / 5),
             number(exponents, 0),  // infinity
             number(exponents, mantissas),
             number(exponents, mantissas / 2 + 1)  // NaNs
         }) {
        out.push_back(magnitude);
        out.push_back(magnitude | Word{1} << (exponent_bits + mantissa_bits));
    }
    return out;
}

/// Each edge value of a lane in the lower half, with another in the upper half.
std::vector<Word> pairs(Type lane) {
    const std::vector<Word> values = edge_values(lane);
    std::vector<Word> out;
    for (std::size_t i = 0; i < values.size(); ++i)
        out.push_back(values[i] | values[(i * 7 + 3) % values.size()] << ir::bits(lane));
    return out;
}

std::vector<Word> all_bytes() {
    std::vector<Word> out(256);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = i;
    return out;
}

}  // namespace

std::vector<Word> edge_values(Type type) {
    switch (type) {
        case Type::Pred: return {0, 1};
        case Type::F16: return floats(5, 10);
        case Type::F32: return floats(8, 23);
        case Type::F64: return floats(11, 52);
        case Type::BF16: return floats(8, 7);
        case Type::E4M3:
        case Type::E5M2: return all_bytes();
        case Type::F16x2:
        case Type::BF16x2:
        case Type::E4M3x2:
        case Type::E5M2x2: return pairs(lane(type));
        default: return integers(ir::bits(type));
    }
}

std::vector<Word> shift_amounts() { return {0, 1, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 0x80000000, 0xffffffff}; }

}  // namespace ikat::test
