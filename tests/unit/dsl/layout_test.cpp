// SPDX-License-Identifier: Apache-2.0
// Layouts and swizzles: their laws, and CuTe's definitions taken literally.
#include <algorithm>
#include <ikat/ikat.hpp>
#include <ikat/layout.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/message.hpp"

namespace ikat::tests {
namespace {

using Number = Layout::Number;
using Mode = Layout::Mode;

std::vector<Number> places_of(const Layout& layout) {
    std::vector<Number> out;
    for (Number c = 0; c < layout.size(); ++c) out.push_back(layout(c));
    return out;
}

/// CuTe: a coordinate is idx2crd by the shape, colexicographic; its offset is the inner product with the stride.
Number place_by_definition(const Layout& layout, Number index) {
    Number place = 0;
    for (const Mode& mode : layout.modes())
        for (const Layout::Step& step : mode) {
            const Number coordinate = index % step.extent;
            index = (index - coordinate) / step.extent;
            place += coordinate * step.stride;
        }
    return place;
}

TEST_CASE("layouts: text, sizes, coordinates") {
    const Layout rows({4, 8}, {8, 1});
    CHECK(rows.text() == "(4,8):(8,1)");
    CHECK(rows.size() == 32);
    CHECK(rows.places() == 32);
    CHECK(rows.extent(1) == 8);
    CHECK(rows(2, 3) == 19);
    CHECK(rows(14) == 19);
    const Layout nested(std::vector<Mode>{{{2, 24}, {2, 2}}, {{3, 8}}});
    CHECK(nested.text() == "((2,2),3):((24,2),8)");
    CHECK(nested.rank() == 2);
    CHECK(nested.extent(0) == 4);
    CHECK(nested(3, 2) == 24 + 2 + 16);
    CHECK(Layout(5, 3).text() == "(5):(3)");
    CHECK(Layout({12, 1, 2, 3}, {1, 7, 12, 24}).coalesced() == Layout(72));
}

TEST_CASE("layouts: a table of the offsets") {
    CHECK(Layout({2, 6}, {6, 1}).drawn() == " 0  1  2  3  4  5\n 6  7  8  9 10 11\n");
    CHECK(Layout(3, 5).drawn() == " 0\n 5\n10\n");
    CHECK(compose(Swizzle(2, 0, 2), Layout({4, 4}, {4, 1})).drawn() ==
          " 0  1  2  3\n 5  4  7  6\n10 11  8  9\n15 14 13 12\n");
}

TEST_CASE("layouts: composition as CuTe's documentation shows it") {
    CHECK(compose(Layout({6, 2}, {8, 2}), Layout({4, 3}, {3, 1})).text() == "((2,2),3):((24,2),8)");
    CHECK(compose(Layout(20, 2), Layout({5, 4}, {4, 1})).text() == "(5,4):(8,2)");
    CHECK(compose(Layout({10, 2}, {16, 4}), Layout({5, 4}, {1, 5})).text() == "(5,(2,2)):(16,(80,4))");
}

/// With strides of all kinds: mostly a permutation of compact ones, sometimes arbitrary.
Layout random_layout(std::mt19937& random, Number max_places) {
    for (;;) {
        std::vector<Mode> modes(1 + random() % 3);
        std::vector<Layout::Step*> steps;
        for (Mode& mode : modes) {
            mode.resize(1 + random() % 2);
            for (Layout::Step& step : mode) {
                constexpr Number extents[] = {1, 2, 2, 3, 4, 4, 6, 8};
                step.extent = extents[random() % 8];
                steps.push_back(&step);
            }
        }
        std::ranges::shuffle(steps, random);
        Number stride = 1;
        for (Layout::Step* step : steps) {
            step->stride = random() % 8 == 0 ? random() % 5 : stride;
            stride *= step->extent;
        }
        const Layout out(modes);
        if (out.places() <= max_places) return out;
    }
}

TEST_CASE("layouts: places, coalescing and composition are what the definitions say") {
    std::mt19937 random(1);
    int composed = 0, refused = 0, associated = 0;
    for (int round = 0; round < 4000; ++round) {
        const Layout a = random_layout(random, 512);
        for (Number c = 0; c < a.size(); ++c) REQUIRE(a(c) == place_by_definition(a, c));
        REQUIRE(places_of(a.coalesced()) == places_of(a));
        REQUIRE(places_of(compose(a, Layout(a.size()))) == places_of(a));  // identities of both sides
        REQUIRE(places_of(compose(Layout(a.places()), a)) == places_of(a));

        const Layout b = random_layout(random, a.size()), c = random_layout(random, b.size());
        const auto composition = [&](const Layout& outer, const Layout& inner) -> std::vector<Layout> {
            try {
                return {compose(outer, inner)};
            } catch (const Error&) { return {}; }
        };
        const auto ab = composition(a, b), bc = composition(b, c);
        ++(ab.empty() ? refused : composed);
        if (!ab.empty()) {
            REQUIRE(ab[0].rank() == b.rank());
            for (std::size_t mode = 0; mode < b.rank(); ++mode) REQUIRE(ab[0].extent(mode) == b.extent(mode));
            for (Number i = 0; i < b.size(); ++i) REQUIRE(ab[0](i) == a(b(i)));
        }
        if (ab.empty() || bc.empty()) continue;
        const auto left = composition(ab[0], c), right = composition(a, bc[0]);
        if (left.empty() || right.empty()) continue;
        ++associated;
        REQUIRE(places_of(left[0]) == places_of(right[0]));
    }
    INFO(composed << " composed, " << refused << " refused, " << associated << " both ways");
    CHECK(composed > 1500);
    CHECK(associated > 500);
}

TEST_CASE("layouts: a swizzle is its own inverse and permutes each block of places") {
    for (unsigned bits = 0; bits <= 3; ++bits)
        for (unsigned base = 0; base <= 3; ++base)
            for (int shift = -4; shift <= 4; ++shift) {
                if (unsigned(std::abs(shift)) < bits) continue;
                const Swizzle swizzle(bits, base, shift);
                INFO(swizzle.text());
                const unsigned block = 1u << (bits + base + unsigned(std::abs(shift)));
                std::set<std::uint64_t> seen;
                for (std::uint64_t place = 0; place < 2 * block; ++place) {
                    // Bit by bit: the bits from `base` on are XORed with those `shift` above them.
                    std::uint64_t expected = place;
                    for (unsigned bit = 0; bit < bits; ++bit) {
                        const unsigned low = base + bit, high = low + unsigned(std::abs(shift));
                        const unsigned from = shift >= 0 ? high : low, to = shift >= 0 ? low : high;
                        expected ^= (place >> from & 1) << to;
                    }
                    REQUIRE(swizzle(place) == expected);
                    REQUIRE(swizzle(swizzle(place)) == place);
                    REQUIRE(swizzle(place) / block == place / block);
                    seen.insert(swizzle(place));
                }
                REQUIRE(seen.size() == 2 * block);
            }
}

TEST_CASE("layouts: a swizzle avoids bank conflicts") {
    // Rows of 128 bytes in 16-byte pieces: the pieces of a column are in eight different groups of banks.
    const auto swizzled = compose(Swizzle(3, 4, 3), Layout({8, 8}, {128, 16}));
    for (Number column = 0; column < 8; ++column) {
        std::set<Number> groups;
        for (Number row = 0; row < 8; ++row) groups.insert(swizzled(row, column) % 128 / 16);
        CHECK(groups.size() == 8);
    }
    CHECK(swizzled.text() == "Sw<3,4,3> o (8,8):(128,16)");
    const auto first_column = compose(swizzled, Layout(8));
    for (Number row = 0; row < 8; ++row) CHECK(first_column(row) == swizzled(row, 0));
}

TEST_CASE("layouts: invalid ones are errors") {
    const Layout rows({4, 8}, {8, 1});
    CHECK_THAT(message_of([&] { rows(4, 0); }), contains("coordinate 4 of (4,8):(8,1), which has 4"));
    CHECK_THAT(message_of([&] { rows(32); }), contains("coordinate 32 of (4,8):(8,1), which has 32"));
    CHECK_THAT(message_of([&] { rows(1, 1, 1); }), contains("3 coordinates of (4,8):(8,1)"));
    CHECK_THAT(message_of([] { Layout({4, 8}, {1}); }), contains("a layout of 2 extents and 1 strides"));
    CHECK_THAT(message_of([] { Layout(0); }), contains("an extent of a layout is 0"));
    CHECK_THAT(message_of([] { Layout(std::vector<Mode>{}); }), contains("a layout without extents"));
    CHECK_THAT(message_of([&] { compose(rows, Layout(33)); }), contains("has 33 places, and (4,8):(8,1) only 32"));
    CHECK_THAT(message_of([&] { compose(rows, Layout(2, 3)); }), contains("do not have constant strides"));
    // Each mode alone would be valid; together they carry: 3 + 3 is element 6, which is elsewhere.
    CHECK_THAT(message_of([] {
                   compose(Layout({4, 2}, {1, 10}), Layout({2, 2}, {3, 3}));
               }),
               contains("do not have constant strides"));
    CHECK_THAT(message_of([] { Swizzle(3, 0, 2); }), contains("the swizzle Sw<3,0,2> is invalid"));
    CHECK_THAT(message_of([] { Swizzle(8, 48, 16); }), contains("the swizzle Sw<8,48,16> is invalid"));
    CHECK_THAT(message_of([] {
                   (void)Layout({2, 2, 2}, {1, 2, 4}).drawn();
               }),
               contains("a layout of rank 3 cannot be drawn as a table"));
}

/// The places of all elements, by one index and by one for each of two modes, as a kernel computes them.
template <class L>
std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>> places_on_device(const L& layout, std::uint32_t size,
                                                                                   std::uint32_t rows) {
    const auto places =
        kernel("places", params("by_one", "by_two"), [&](Out<std::uint32_t> by_one, Out<std::uint32_t> by_two) {
            u32 i = thread_id().x;
            by_one[i] = layout(i);
            by_two[i] = layout(i % rows, i / rows);
        });
    const auto device = Device::open({.device = "emulator"});
    auto by_one = device.buffer<std::uint32_t>(size), by_two = device.buffer<std::uint32_t>(size);
    device.launch(places, Grid{{1}, {size}}, by_one, by_two);
    return {by_one.download(), by_two.download()};
}

TEST_CASE("layouts: places in kernels are those of the host") {
    for (const char* text : {"(4,8):(8,1)", "(8,64):(64,1)", "((2,2),3):((24,2),8)", "((3,2),(2,5)):((1,30),(3,6))",
                             "(6,4):(0,1)", "(1,7):(1,3)", "(5,1):(2,0)", "(1,1):(1,1)", "Sw<3,3,3> o (8,64):(64,1)",
                             "Sw<2,0,-3> o (8,4):(4,1)", "Sw<0,0,0> o (4,4):(1,4)"}) {
        INFO(text);
        const SwizzledLayout layout = parse_layout(text);
        const Number size = layout.layout.size(), rows = layout.layout.extent(0);
        for (const bool is_swizzled : {true, false}) {
            std::vector<std::uint32_t> wanted;
            for (Number c = 0; c < size; ++c)
                wanted.push_back(std::uint32_t(is_swizzled ? layout(c) : layout.layout(c)));
            const auto [by_one, by_two] =
                is_swizzled ? places_on_device(layout, std::uint32_t(size), std::uint32_t(rows))
                            : places_on_device(layout.layout, std::uint32_t(size), std::uint32_t(rows));
            CHECK(by_one == wanted);
            CHECK(by_two == wanted);
        }
    }
}

TEST_CASE("layouts: what is no place in a kernel") {
    const auto message = [](const Layout& layout, bool has_three) {
        return message_of([&] {
            kernel("places", params("y"),
                   [&](Out<std::uint32_t> y) {
                       u32 i = thread_id().x;
                       y[i] = has_three ? layout(i, i, 0) : layout(i);
                   })
                .handle()
                .info();
        });
    };
    CHECK_THAT(message(Layout({4, 8}, {8, 1}), true), contains("3 coordinates of (4,8):(8,1)"));
    CHECK_THAT(message(Layout(3, Number{1} << 31), false), contains("has 2^32 places or elements, or more"));
}

}  // namespace
}  // namespace ikat::tests
