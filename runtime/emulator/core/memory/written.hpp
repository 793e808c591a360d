// SPDX-License-Identifier: Apache-2.0
// Which bytes of a piece of memory have been written: a bit for each byte, lowest bit first.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace ikat::emulator::written {

inline std::uint8_t bits_from(std::uint64_t first, std::uint64_t count) {
    return std::uint8_t(((1u << count) - 1) << first);
}

/// Whether all of [at, at + count) has been written.
inline bool all(const std::uint8_t* bits, std::uint64_t at, std::uint64_t count) {
    const std::uint8_t* p = bits + at / 8;
    const std::uint64_t first = at % 8;
    if (first + count <= 8) {
        const std::uint8_t wanted = bits_from(first, count);
        return (*p & wanted) == wanted;
    }
    if (first) {
        const std::uint8_t wanted = bits_from(first, 8 - first);
        if ((*p++ & wanted) != wanted) return false;
        count -= 8 - first;
    }
    for (; count >= 64; count -= 64, p += 8) {
        std::uint64_t word;
        std::memcpy(&word, p, sizeof word);
        if (~word) return false;
    }
    for (; count >= 8; count -= 8)
        if (*p++ != 0xff) return false;
    const std::uint8_t wanted = bits_from(0, count);
    return !count || (*p & wanted) == wanted;
}

/// Whether any of [at, at + count) has been written.
inline bool any(const std::uint8_t* bits, std::uint64_t at, std::uint64_t count) {
    const std::uint8_t* p = bits + at / 8;
    const std::uint64_t first = at % 8;
    if (first + count <= 8) return *p & bits_from(first, count);
    if (first) {
        if (*p++ & bits_from(first, 8 - first)) return true;
        count -= 8 - first;
    }
    for (; count >= 64; count -= 64, p += 8) {
        std::uint64_t word;
        std::memcpy(&word, p, sizeof word);
        if (word) return true;
    }
    for (; count >= 8; count -= 8)
        if (*p++) return true;
    return count && (*p & bits_from(0, count));
}

/// How many of [at, at + count) have not been written, and the first of them.
struct Gap {
    std::uint64_t count = 0, first = 0;
};
inline Gap gap(const std::uint8_t* bits, std::uint64_t at, std::uint64_t count) {
    Gap found;
    for (const std::uint64_t end = at + count; at < end;) {
        const std::uint64_t here = std::min(8 - at % 8, end - at);
        const auto missing = std::uint8_t(~bits[at / 8] & bits_from(at % 8, here));
        if (missing && !found.count) found.first = at / 8 * 8 + unsigned(std::countr_zero(missing));
        found.count += unsigned(std::popcount(missing));
        at += here;
    }
    return found;
}

/// Changes bits of one byte; other host threads may change the rest of it.
inline void change(std::uint8_t* p, std::uint8_t bits, bool to, bool others) {
    if (others)
        to ? __atomic_fetch_or(p, bits, __ATOMIC_RELAXED)
           : __atomic_fetch_and(p, std::uint8_t(~bits), __ATOMIC_RELAXED);
    else
        *p = to ? std::uint8_t(*p | bits) : std::uint8_t(*p & ~bits);
}

inline void set(std::uint8_t* bits, std::uint64_t at, std::uint64_t count, bool others, bool to = true) {
    std::uint8_t* p = bits + at / 8;
    if (const std::uint64_t first = at % 8; first || count < 8) {
        const std::uint64_t here = std::min(8 - first, count);
        change(p++, bits_from(first, here), to, others);
        count -= here;
    }
    std::memset(p, to ? 0xff : 0, count / 8);
    if (count % 8) change(p + count / 8, bits_from(0, count % 8), to, others);
}

/// Copies [first, first + count) of `from` to [at, at + count). They must not overlap; other host threads may change
/// adjacent bits.
inline void copy(std::uint8_t* to, std::uint64_t at, const std::uint8_t* from, std::uint64_t first,
                 std::uint64_t count) {
    while (count) {
        const std::uint64_t place = at % 8, here = std::min(8 - place, count);
        unsigned bits = from[first / 8] >> first % 8;
        if (first % 8 + here > 8) bits |= unsigned(from[first / 8 + 1]) << (8 - first % 8);
        const std::uint8_t wanted = bits_from(place, here), is = std::uint8_t(bits << place) & wanted;
        change(to + at / 8, is, true, here < 8);
        change(to + at / 8, wanted & ~is, false, here < 8);
        at += here, first += here, count -= here;
    }
}

}  // namespace ikat::emulator::written
