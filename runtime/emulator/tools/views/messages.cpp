// SPDX-License-Identifier: Apache-2.0
// What is said about an access outside of a view.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/emulator/core/checks/wording.hpp"
#include "runtime/emulator/machine/block.hpp"
#include "runtime/emulator/machine/messages.hpp"
#include "runtime/emulator/tools/views/views.hpp"

namespace ikat::emulator::views {

namespace {

/// "a view of 300 x 200 elements with a pitch of 256", "a slice of 32 elements"
std::string text_of(const LaunchView& view) {
    if (view.pitches.empty()) return fmt::format("a slice of {}", plural(view.extents[0], "element"));
    return fmt::format("a view of {} elements with a pitch of {}", fmt::join(view.extents, " x "),
                       fmt::join(view.pitches, " and "));
}

/// "column 203 of row 7 of"
std::string place_in(const LaunchView& view, std::uint64_t address) {
    if (address < view.address) return fmt::format("{} before", plural(view.address - address, "byte"));
    std::uint64_t offset = (address - view.address) / view.element_bytes;
    const std::size_t rank = view.extents.size();
    if (rank == 1) return fmt::format("element {} of", offset);
    constexpr std::string_view names[] = {"column", "row", "plane", "volume", "set"};
    std::vector<std::uint64_t> places(rank);
    const std::vector<std::size_t> dimensions = outwards(view.pitches);
    for (auto d = dimensions.rbegin(); d != dimensions.rend(); ++d) {
        const std::uint64_t pitch = view.pitches[*d];
        places[*d] = pitch ? offset / pitch : 0;
        if (pitch) offset %= pitch;
    }
    places[rank - 1] = offset;
    std::string text;
    for (std::size_t d = 0; d < rank; ++d) text = fmt::format("{} {} of {}", names[rank - 1 - d], places[d], text);
    text.pop_back();
    return text;
}

/// The view that was most likely meant: the last that begins before.
const LaunchView& nearest(const std::vector<const LaunchView*>& views, std::uint64_t address) {
    const LaunchView* best = views.front();
    for (const LaunchView* const each : views) {
        const bool begins_before = each->address <= address;
        if (best->address <= address ? begins_before && each->address > best->address : each->address < best->address)
            best = each;
    }
    return *best;
}

}  // namespace

bool BlockViews::describe(Diagnostic& diagnostic, const Fault& fault, std::string_view by) const {
    if (!found_ || fault.code != FaultCode::OutsideView) return false;
    const auto& [access, outside] = *found_;
    const std::vector<const LaunchView*> views = regions_.views_at(outside);
    const LaunchView& view = nearest(views, outside);
    constexpr std::string_view names[] = {"load", "store", "atomic"};
    diagnostic.message =
        fmt::format("global {} of {} {} {} argument '{}', {}, by {}", names[std::size_t(access.direction)],
                    plural(access.bytes, "byte"), outside == access.address ? "at" : "that reaches",
                    place_in(view, outside), view.argument, text_of(view), by);
    const AccessedBytes bytes{.address = outside, .bytes = 1};
    std::string where = "this is inside of its buffer, " + bytes_text(bytes, block_);
    if (views.size() > 1) where += fmt::format(", and outside of all {} arguments that are parts of it", views.size());
    diagnostic.notes.push_back({{}, std::move(where)});
    return true;
}

}  // namespace ikat::emulator::views
