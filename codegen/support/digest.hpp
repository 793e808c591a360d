// SPDX-License-Identifier: Apache-2.0
// What a value is, in 128 bits: values that differ have different digests but by a chance that nobody will meet. It is
// the same in every process, and no protection against those who seek equal ones.
#pragma once
#include <bit>
#include <compare>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace ikat {

struct Digest {
    std::uint64_t high = 0, low = 0;
    auto operator<=>(const Digest&) const = default;
};

/// Takes a value's parts one after another.
class Digester {
public:
    template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>) void operator()(T part) { mix(std::uint64_t(part)); }
    void operator()(std::string_view text) {
        mix(text.size());
        for (; text.size() >= sizeof(std::uint64_t); text.remove_prefix(sizeof(std::uint64_t))) mix(word(text));
        if (!text.empty()) mix(word(text));
    }
    template <class... T>
    requires(sizeof...(T) > 1) void operator()(const T&... parts) { ((*this)(parts), ...); }

    Digest digest() const { return {finished(first_), finished(second_)}; }

private:
    static std::uint64_t word(std::string_view text) {
        std::uint64_t out = 0;
        std::memcpy(&out, text.data(), text.size() < sizeof out ? text.size() : sizeof out);
        return out;
    }
    /// Two hashes by a product and a rotation, with constants of their own.
    void mix(std::uint64_t part) {
        first_ = (std::rotl(first_, 29) ^ part) * 0x9e3779b97f4a7c15;
        second_ = (std::rotl(second_, 37) + part) * 0xc2b2ae3d27d4eb4f + 1;
    }
    static std::uint64_t finished(std::uint64_t hash) {
        hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccd;
        hash = (hash ^ hash >> 29) * 0xc4ceb9fe1a85ec53;
        return hash ^ hash >> 32;
    }

    std::uint64_t first_ = 0x243f6a8885a308d3, second_ = 0x13198a2e03707344;
};

}  // namespace ikat
