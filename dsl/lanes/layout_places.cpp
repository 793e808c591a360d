// SPDX-License-Identifier: Apache-2.0
#include "dsl/lanes/layout_places.hpp"

#include <optional>

#include "codegen/support/diagnostic.hpp"
#include "dsl/values/bits.hpp"

namespace ikat::detail {
namespace {

/// The offset of one coordinate of a mode. The last step counts on beyond its extent.
LayoutIndex place_in(const Layout::Mode& mode, const LayoutIndex& coordinate) {
    LayoutIndex rest = coordinate;
    std::optional<LayoutIndex> out;
    for (std::size_t i = 0; i < mode.size(); ++i) {
        const std::uint32_t extent = std::uint32_t(mode[i].extent), stride = std::uint32_t(mode[i].stride);
        if (extent == 1) continue;
        const bool is_last = i + 1 == mode.size();
        const LayoutIndex term = is_last ? value(rest * stride) : value(rest % extent * stride);
        out = out ? value(*out + term) : term;
        if (!is_last) rest = value(rest / extent);
    }
    return out ? *out : LayoutIndex(Incoming<std::uint32_t>(0u).value());
}

}  // namespace

LayoutIndex place_of(const Layout& layout, const std::vector<LayoutIndex>& coordinate) {
    if (layout.places() >> 32 || layout.size() >> 32)
        throw Error("the layout " + layout.text() + " has 2^32 places or elements, or more",
                    "indices in kernels have 32 bits");
    if (coordinate.size() == 1) {
        Layout::Mode all;
        for (const Layout::Mode& mode : layout.modes()) all.insert(all.end(), mode.begin(), mode.end());
        return place_in(all, coordinate[0]);
    }
    layout.check_rank(coordinate.size());
    LayoutIndex out = place_in(layout.modes()[0], coordinate[0]);
    for (std::size_t i = 1; i < layout.rank(); ++i) out = value(out + place_in(layout.modes()[i], coordinate[i]));
    return out;
}

LayoutIndex place_of(const SwizzledLayout& layout, const std::vector<LayoutIndex>& coordinate) {
    const LayoutIndex place = place_of(layout.layout, coordinate);
    const auto [bits, base, shift] = layout.swizzle.numbers();
    if (bits == 0) return place;
    const std::uint32_t low = std::uint32_t((~std::uint64_t{0} >> (64 - bits)) << base);
    const std::uint32_t distance = std::uint32_t(shift < 0 ? -shift : shift);
    return shift < 0 ? value(place ^ ((place & low) << distance)) : value(place ^ ((place >> distance) & low));
}

}  // namespace ikat::detail
