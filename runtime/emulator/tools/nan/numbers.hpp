// SPDX-License-Identifier: Apache-2.0
// The numbers in a lane's register.
#pragma once
#include "codegen/ir/type.hpp"
#include "runtime/emulator/core/micro_info.hpp"

namespace ikat::emulator::nans {

/// Calls f.operator()<T>() with the C++ type of a number.
constexpr decltype(auto) with_number(Type type, auto&& f) {
    return ir::with_type(type, [&]<class T>() {
        if constexpr (is_pair<T>)
            return f.template operator()<typename T::lane_type>();
        else
            return f.template operator()<T>();
    });
}

struct Numbers {
    Type type = Type::F32;
    unsigned bits = 32, count = 1;
    std::uint64_t exponent = 0;  // the bits that are all set if it is not finite; 0: it always is

    /// One number, or a pair; or as many as fill the register.
    static constexpr Numbers of(Type type, bool fill = false) {
        const auto bits = unsigned(ir::bits(ir::lane(type)));
        return {ir::lane(type), bits,
                fill && bits < 32     ? 32 / bits
                : ir::is_packed(type) ? 2
                                      : 1,
                exponent_of(ir::lane(type))};
    }
    std::uint64_t cell(const std::byte* at, unsigned lane) const {
        return bits == 64 ? reinterpret_cast<const std::uint64_t*>(at)[lane]
                          : reinterpret_cast<const std::uint32_t*>(at)[lane];
    }
    std::uint64_t number(std::uint64_t cell, unsigned i) const {
        return bits == 64 ? cell : cell >> bits * i & ((std::uint64_t{1} << bits) - 1);
    }
    bool is_finite(std::uint64_t number) const { return !exponent || (number & exponent) != exponent; }
    bool are_finite(std::uint64_t cell) const {
        for (unsigned i = 0; i < count; ++i)
            if (!is_finite(number(cell, i))) return false;
        return true;
    }
    double value(std::uint64_t number) const {
        return with_number(type, [&]<class T>() {
            if constexpr (is_small_float<T>)
                return double(float(T::from_bits(decltype(T::bits)(number))));
            else if constexpr (std::is_same_v<T, float>)
                return double(std::bit_cast<float>(std::uint32_t(number)));
            else if constexpr (std::is_same_v<T, double>)
                return std::bit_cast<double>(number);
            else
                return double(T(number));
        });
    }

private:
    static constexpr std::uint64_t exponent_of(Type type) {
        switch (type) {
            case Type::F16: return 0x7c00;
            case Type::BF16: return 0x7f80;
            case Type::F32: return 0x7f800000;
            case Type::F64: return 0x7ff0000000000000;
            case Type::E4M3: return 0x7f;
            case Type::E5M2: return 0x7c;
            default: return 0;
        }
    }
};

}  // namespace ikat::emulator::nans
