// SPDX-License-Identifier: Apache-2.0
// What a layout leaves out, and layouts in tiles.
#include <algorithm>

#include "codegen/support/diagnostic.hpp"
#include "dsl/lanes/layout.hpp"

namespace ikat {
namespace {

/// All steps as one mode.
Layout::Mode one_mode(const Layout& layout) {
    Layout::Mode out;
    for (const Layout::Mode& mode : layout.modes()) out.insert(out.end(), mode.begin(), mode.end());
    return out;
}

std::string number(Layout::Number n) { return std::to_string(n); }

}  // namespace

Layout complement(const Layout& layout, Layout::Number size) {
    if (size == 0) throw Error("the complement of " + layout.text() + " in 0 places", "there is at least one place");
    Layout::Mode steps = one_mode(layout);
    std::erase_if(steps, [](const Layout::Step& step) { return step.extent == 1 || step.stride == 0; });
    std::ranges::sort(steps, {}, &Layout::Step::stride);
    Layout::Mode rest;
    Layout::Number covered = 1;  // the places below are covered by the steps so far and the rest
    for (const Layout::Step& step : steps) {
        if (step.stride % covered != 0)
            throw Error("the layout " + layout.text() + " has no complement: its stride " + number(step.stride) +
                            " is not a multiple of " + number(covered) + ", where its smaller steps end",
                        "in the order of strides, each is a multiple of the one before times its extent");
        rest.push_back({step.stride / covered, covered});
        covered = step.stride * step.extent;
    }
    rest.push_back({(size - 1) / covered + 1, covered});
    std::vector<Layout::Mode> modes;
    const Layout coalesced = Layout({rest}).coalesced();
    for (const Layout::Step& step : coalesced.modes()[0]) modes.push_back({step});
    return Layout(std::move(modes));
}

Layout logical_divide(const Layout& layout, const Layout& tiler) {
    const Layout tiles = complement(tiler, layout.size());
    const Layout both({one_mode(tiler), one_mode(tiles)});
    if (both.places() > layout.size())
        throw Error("the " + number(layout.size()) + " elements of " + layout.text() +
                        " are not a whole number of tiles " + tiler.text(),
                    "with its repetitions " + tiles.text() + " the tile covers " + number(both.places()) + " elements");
    return compose(layout, both);
}

Layout logical_product(const Layout& layout, const Layout& other) {
    const Layout places = compose(complement(layout, layout.size() * other.places()), other);
    return Layout({one_mode(layout), one_mode(places)});
}

}  // namespace ikat
