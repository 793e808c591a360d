// SPDX-License-Identifier: Apache-2.0
#include "dsl/lanes/layout.hpp"

#include <algorithm>
#include <functional>
#include <optional>

#include "codegen/support/diagnostic.hpp"

namespace ikat {
namespace {

using Number = Layout::Number;
using Mode = Layout::Mode;

Number size_of(const Mode& mode) {
    Number out = 1;
    for (const Layout::Step& step : mode) out *= step.extent;
    return out;
}

/// The offset of one coordinate of a mode.
Number place_in(const Mode& mode, Number coordinate) {
    Number out = 0;
    for (const Layout::Step& step : mode) {
        out += coordinate % step.extent * step.stride;
        coordinate /= step.extent;
    }
    return out;
}

/// Merges two steps where the second continues where the first ends; drops those of extent 1.
Mode coalesced_steps(const std::vector<Mode>& modes) {
    Mode out;
    for (const Mode& mode : modes)
        for (const Layout::Step& step : mode) {
            if (step.extent == 1) continue;
            if (!out.empty() && out.back().extent * out.back().stride == step.stride)
                out.back().extent *= step.extent;
            else
                out.push_back(step);
        }
    if (out.empty()) out.push_back({1, 0});
    return out;
}

/// outer o step, for outer steps that are coalesced: every step.stride-th element of the outer layout, step.extent of
/// them. Nothing if their distances are not constant.
std::optional<Mode> composed(const Mode& outer, const Layout::Step& step) {
    if (step.extent == 1 || step.stride == 0) return Mode{{step.extent, 0}};
    Mode out;
    Number stride = step.stride, rest = step.extent;  // in elements of the rest of the outer layout
    for (std::size_t i = 0; i < outer.size() && rest > 1; ++i) {
        const auto [extent, distance] = outer[i];
        if (i + 1 == outer.size()) {
            out.push_back({rest, distance * stride});
            rest = 1;
        } else if (stride >= extent) {
            if (stride % extent != 0) return {};
            stride /= extent;
        } else {
            if (extent % stride != 0) return {};
            const Number taken = std::min(extent / stride, rest);
            if (rest % taken != 0) return {};
            out.push_back({taken, distance * stride});
            rest /= taken;
            stride = 1;
        }
    }
    return coalesced_steps({out});
}

std::string listed(const std::vector<Mode>& modes, Number Layout::Step::*number) {
    const auto joined = [](const auto& parts, auto&& text) {
        std::string out;
        for (const auto& part : parts) out += (out.empty() ? "" : ",") + text(part);
        return out;
    };
    return '(' +
           joined(modes,
                  [&](const Mode& mode) {
                      const std::string steps =
                          joined(mode, [&](const Layout::Step& step) { return std::to_string(step.*number); });
                      return mode.size() == 1 ? steps : '(' + steps + ')';
                  }) +
           ')';
}

/// A table with a row for each index of the first mode, and a column for each of the second.
std::string drawn_places(const Layout& layout, const std::function<Number(Number)>& place) {
    if (layout.rank() > 2)
        throw Error("a layout of rank " + std::to_string(layout.rank()) + " cannot be drawn as a table",
                    "drawn() is for ranks 1 and 2: compose it with a layout of fewer modes");
    const Number rows = layout.extent(0), columns = layout.rank() == 2 ? layout.extent(1) : 1;
    std::vector<std::string> cells;
    std::size_t width = 0;
    for (Number i = 0; i < rows; ++i)
        for (Number j = 0; j < columns; ++j) {
            cells.push_back(std::to_string(place(layout.rank() == 2 ? layout(i, j) : layout(i))));
            width = std::max(width, cells.back().size());
        }
    std::string out;
    for (std::size_t n = 0; n < cells.size(); ++n) {
        out += std::string(width - cells[n].size(), ' ') + cells[n];
        out += (n + 1) % columns == 0 ? '\n' : ' ';
    }
    return out;
}

}  // namespace

Layout::Layout(Number extent, Number stride) : Layout(std::vector<Number>{extent}, {stride}) {}
Layout::Layout(std::vector<Number> extents, std::vector<Number> strides) {
    if (extents.size() != strides.size())
        throw Error("a layout of " + std::to_string(extents.size()) + " extents and " + std::to_string(strides.size()) +
                        " strides",
                    "write a stride for each extent");
    for (std::size_t i = 0; i < extents.size(); ++i) modes_.push_back({{extents[i], strides[i]}});
    *this = Layout(std::move(modes_));
}
Layout::Layout(std::vector<Mode> modes) : modes_(std::move(modes)) {
    if (modes_.empty() || std::ranges::any_of(modes_, &Mode::empty))
        throw Error("a layout without extents", "a layout of one element is Layout(1)");
    for (const Mode& mode : modes_)
        for (const Step& step : mode)
            if (step.extent == 0) throw Error("an extent of a layout is 0", "extents are at least 1");
}

Number Layout::extent(std::size_t mode) const { return size_of(modes_.at(mode)); }

Number Layout::size() const {
    Number out = 1;
    for (const Mode& mode : modes_) out *= size_of(mode);
    return out;
}

Number Layout::places() const {
    Number last = 0;
    for (const Mode& mode : modes_)
        for (const Step& step : mode) last += (step.extent - 1) * step.stride;
    return last + 1;
}

Number Layout::at(const std::vector<Number>& coordinate) const {
    const auto inside = [&](Number index, Number extent) {
        if (index < extent) return;
        throw Error("coordinate " + std::to_string(index) + " of " + text() + ", which has " + std::to_string(extent),
                    "coordinates count from 0");
    };
    if (coordinate.size() == 1) {
        inside(coordinate[0], size());
        Mode all;
        for (const Mode& mode : modes_) all.insert(all.end(), mode.begin(), mode.end());
        return place_in(all, coordinate[0]);
    }
    check_rank(coordinate.size());
    Number out = 0;
    for (std::size_t i = 0; i < rank(); ++i) {
        inside(coordinate[i], extent(i));
        out += place_in(modes_[i], coordinate[i]);
    }
    return out;
}

void Layout::check_rank(std::size_t coordinates) const {
    if (coordinates == rank()) return;
    throw Error(std::to_string(coordinates) + " coordinates of " + text(),
                "write one coordinate, or one for each of its " + std::to_string(rank()) + " modes");
}

Layout Layout::coalesced() const { return Layout(std::vector<Mode>{coalesced_steps(modes_)}); }
std::string Layout::text() const { return listed(modes_, &Step::extent) + ':' + listed(modes_, &Step::stride); }
std::string Layout::drawn() const { return drawn_places(*this, std::identity()); }

Layout compose(const Layout& outer, const Layout& inner) {
    if (inner.places() > outer.size())
        throw Error("the layout " + inner.text() + " has " + std::to_string(inner.places()) + " places, and " +
                        outer.text() + " only " + std::to_string(outer.size()) + " elements",
                    "the inner layout picks elements of the outer one");
    const Mode steps = coalesced_steps(outer.modes());
    const auto none = [&]() -> Layout {
        throw Error(
            "the elements of " + outer.text() + " that " + inner.text() + " picks do not have constant strides",
            "extents and strides of the inner layout must divide those of the outer one, or be multiples of them");
    };
    std::vector<Mode> out;
    for (const Mode& mode : inner.modes()) {
        Mode of_mode;
        for (const Layout::Step& step : mode) {
            const std::optional<Mode> part = composed(steps, step);
            if (!part) return none();
            of_mode.insert(of_mode.end(), part->begin(), part->end());
        }
        out.push_back(std::move(of_mode));
    }
    // Sums of two modes of the inner layout may carry from one step of the outer one to the next. Then the result is no
    // layout.
    Layout result(std::move(out));
    for (Number c = 0; c < inner.size(); ++c)
        if (result(c) != outer(inner(c))) return none();
    return result;
}

Swizzle::Swizzle(unsigned bits, unsigned base, int shift) : bits_(bits), base_(base), shift_(shift) {
    const unsigned distance = unsigned(std::abs(shift));
    if (distance < bits || bits + base + distance > 64)
        throw Error(
            "the swizzle " + text() + " is invalid",
            distance < bits ? "the shift must be at least as large as the number of bits" : "a place has 64 bits");
}

std::uint64_t Swizzle::operator()(std::uint64_t place) const {
    const std::uint64_t low = bits_ == 0 ? 0 : (~std::uint64_t{0} >> (64 - bits_)) << base_;
    if (shift_ >= 0) return place ^ ((place >> shift_) & low);
    return place ^ ((place & low) << -shift_);
}

std::string Swizzle::text() const {
    return "Sw<" + std::to_string(bits_) + ',' + std::to_string(base_) + ',' + std::to_string(shift_) + '>';
}

std::string SwizzledLayout::drawn() const { return drawn_places(layout, std::cref(swizzle)); }

}  // namespace ikat
