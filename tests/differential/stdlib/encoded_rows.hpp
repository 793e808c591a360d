// SPDX-License-Identifier: Apache-2.0
// Rows of Q8_0 and e4m3 for tests of attention: numbers, encoded and decoded again, and where they are in memory.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "codegen/support/half.hpp"
#include "runtime/device.hpp"
#include "runtime/tensor_view.hpp"
#include "stdlib/attention/attention.hpp"
#include "stdlib/quantised/quantise.hpp"
#include "stdlib/reference/quantised.hpp"

namespace ikat::tests {

enum class Encoding { q8_0, e4m3 };
inline constexpr Encoding encodings[] = {Encoding::q8_0, Encoding::e4m3};

inline std::uint32_t bytes_of_row(Encoding encoding, std::uint32_t d) {
    return encoding == Encoding::q8_0 ? d / 32 * 34 : d;
}

/// Numbers, encoded: what is not finite is NaN. Whole blocks.
template <class T>
std::vector<std::uint8_t> encoded(Encoding encoding, const std::vector<T>& all) {
    const std::vector<float> numbers(all.begin(), all.end());
    std::vector<std::uint8_t> out;
    if (encoding == Encoding::e4m3) {
        for (const float x : numbers) out.push_back(std::isfinite(x) ? e4m3(double(x)).bits : std::uint8_t(0x7f));
        return out;
    }
    for (std::size_t i = 0; i < numbers.size(); i += 32) {
        std::vector<float> block(numbers.begin() + std::ptrdiff_t(i), numbers.begin() + std::ptrdiff_t(i + 32));
        bool is_finite = true;
        for (float& x : block)
            if (!std::isfinite(x)) x = 0, is_finite = false;
        std::vector<std::uint8_t> bytes = stdlib::stored::quantise(runtime::Quantised::Q8_0, block);
        if (!is_finite) bytes[0] = 0, bytes[1] = 0x7e;
        out.insert(out.end(), bytes.begin(), bytes.end());
    }
    return out;
}

/// ... and decoded, each rounded to T.
template <class T>
std::vector<T> decoded(Encoding encoding, const std::vector<std::uint8_t>& bytes) {
    std::vector<T> out;
    if (encoding == Encoding::e4m3)
        for (const std::uint8_t byte : bytes) out.push_back(T(float(e4m3::from_bits(byte))));
    else
        for (const float x : stdlib::reference::dequantise(runtime::Quantised::Q8_0, bytes)) out.push_back(T(x));
    return out;
}

/// Rows of d elements in memory: from byte `first` on, with gaps of blocks or of elements.
struct EncodedLayout {
    Encoding encoding;
    std::uint32_t d, first = 0, gap = 0;

    bool is_q8_0() const { return encoding == Encoding::q8_0; }
    std::uint32_t row_bytes() const { return bytes_of_row(encoding, d); }
    std::uint32_t gap_bytes() const { return gap * (is_q8_0() ? 34 : 1); }
    std::uint32_t pitch() const { return row_bytes() + gap_bytes(); }
    /// Of rows that follow each other; the gaps are NaN.
    std::vector<std::uint8_t> spread(const std::vector<std::uint8_t>& rows) const {
        std::vector<std::uint8_t> out(first + rows.size() / row_bytes() * pitch(), 0x7f);
        for (std::size_t i = 0; i < rows.size(); ++i)
            out[first + i / row_bytes() * pitch() + i % row_bytes()] = rows[i];
        return out;
    }
    /// planes x heads x rows x d. heads_in_rows: the heads of a row follow each other, else the rows of a head.
    runtime::TensorView view(const runtime::Buffer<std::uint8_t>& all, std::uint64_t planes, std::uint64_t heads,
                             std::uint64_t rows, bool heads_in_rows) const {
        const std::uint64_t outer = heads_in_rows ? rows : heads, inner = heads_in_rows ? heads : rows,
                            row = is_q8_0() ? pitch() / 34 * 32 : pitch();
        const std::uint64_t extents[] = {planes, outer, inner, d}, pitches[] = {outer * inner * row, inner * row, row};
        const runtime::BufferPart part = all.memory().whole().from(first);
        const runtime::TensorView out = is_q8_0()
                                            ? runtime::TensorView(runtime::Quantised::Q8_0, part, extents, pitches)
                                            : runtime::TensorView(ir::Type::E4M3, part, extents, pitches);
        return heads_in_rows ? stdlib::heads_in_rows(out) : out;
    }
};

/// Whether two results have the same numbers, or NaN both.
template <class T>
bool are_same(const std::vector<T>& a, const std::vector<T>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (float(a[i]) != float(b[i]) && !(std::isnan(float(a[i])) && std::isnan(float(b[i])))) return false;
    return true;
}

}  // namespace ikat::tests
