// SPDX-License-Identifier: Apache-2.0
// Complements, divisions and products of layouts by their laws, and by results of CuTe; layouts from text.
#include <algorithm>
#include <ikat/layout.hpp>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/message.hpp"

namespace ikat::tests {
namespace {

using Number = Layout::Number;
using Mode = Layout::Mode;

Layout parsed(std::string_view text) {
    const SwizzledLayout out = parse_layout(text);
    REQUIRE(out.swizzle == Swizzle(0, 4, 3));
    return out.layout;
}

std::vector<Number> offsets(const Layout& layout) {
    std::vector<Number> out;
    for (Number c = 0; c < layout.size(); ++c) out.push_back(layout(c));
    return out;
}

/// The same function, with as many elements in each mode.
bool is_same(const Layout& a, const Layout& b) {
    if (a.rank() != b.rank()) return false;
    for (std::size_t mode = 0; mode < a.rank(); ++mode)
        if (a.extent(mode) != b.extent(mode)) return false;
    return offsets(a) == offsets(b);
}

// ---- what CuTe says: the examples of its documentation, and more that its Python version computed

struct ComplementFact {
    const char* layout;
    Number size;
    const char* result;
};
constexpr ComplementFact complements[] = {
    {"4:1", 24, "6:4"},
    {"6:4", 24, "4:1"},
    {"(4,6):(1,4)", 24, "1:0"},
    {"4:2", 24, "(2,3):(1,8)"},
    {"(2,4):(1,6)", 24, "3:2"},
    {"(2,2):(1,6)", 24, "(3,2):(2,12)"},
    {"1:0", 1, "1:0"},
    {"1:0", 5, "5:1"},
    {"4:1", 4, "1:0"},
    {"4:2", 1, "2:1"},
    {"4:1", 10, "3:4"},
    {"(2,4):(4,1)", 16, "2:8"},
    {"(2,2,2):(1,4,16)", 64, "(2,2,2):(2,8,32)"},
    {"(4,2):(2,64)", 128, "(2,8):(1,8)"},
    {"(2,2):(8,1)", 32, "(4,2):(2,16)"},
    {"3:5", 30, "(5,2):(1,15)"},
    {"4:0", 8, "8:1"},
    {"(8,8):(8,1)", 64, "1:0"},
    {"(2,3):(4,24)", 72, "(4,3):(1,8)"},
};

struct PairFact {
    const char *layout, *other, *result;
};
constexpr PairFact divisions[] = {
    {"(4,2,3):(2,1,8)", "4:2", "((2,2),(2,3)):((4,1),(2,8))"},
    {"24:1", "4:2", "(4,(2,3)):(2,(1,8))"},
    {"9:59", "3:3", "(3,3):(177,59)"},
    {"(4,8):(13,1)", "(2,4):(1,8)", "((2,4),(2,2)):((13,2),(26,1))"},
    {"16:1", "4:4", "(4,4):(4,1)"},
    {"16:3", "(2,2):(1,4)", "((2,2),(2,2)):((3,12),(6,24))"},
    {"(8,4):(4,1)", "8:1", "(8,4):(4,1)"},
    {"(4,6):(1,4)", "(2,2):(4,1)", "((2,2),(2,3)):((4,1),(2,8))"},
    {"48:1", "(2,6):(1,8)", "((2,6),4):((1,8),2)"},
    {"(2,8):(8,1)", "(4,2):(2,1)", "((4,2),2):((1,8),4)"},
};
constexpr PairFact products[] = {
    {"(2,2):(4,1)", "6:1", "((2,2),(2,3)):((4,1),(2,8))"},
    {"(2,2):(4,1)", "(4,2):(2,1)", "((2,2),(4,2)):((4,1),(8,2))"},
    {"4:1", "6:1", "(4,6):(1,4)"},
    {"4:1", "(2,3):(3,1)", "(4,(2,3)):(1,(12,4))"},
    {"4:2", "2:1", "(4,2):(2,1)"},
    {"(2,5):(5,1)", "(3,4):(1,3)", "((2,5),(3,4)):((5,1),(10,30))"},
    {"1:0", "4:1", "(1,4):(0,1)"},
    {"3:1", "(2,4):(4,1)", "(3,(2,4)):(1,(12,3))"},
    {"(4,2):(1,8)", "4:1", "((4,2),(2,2)):((1,8),(4,16))"},
    {"8:1", "(2,2):(0,1)", "(8,(2,2)):(1,(0,8))"},
    {"(2,2):(1,4)", "(2,3):(1,2)", "((2,2),(2,3)):((1,4),(2,8))"},
    {"4:1", "4:2", "(4,4):(1,8)"},
};
constexpr PairFact compositions[] = {
    {"(6,2):(8,2)", "(4,3):(3,1)", "((2,2),3):((24,2),8)"},
    {"20:2", "(5,4):(4,1)", "(5,4):(8,2)"},
    {"(3,6,2,8):(1,5,100,300)", "16:9", "((2,2,4)):((15,100,300))"},
    {"(4,3):(3,1)", "(6,2):(2,1)", "((2,3),2):((6,1),3)"},
    {"20:2", "(4,5):(5,1)", "(4,5):(10,2)"},
    {"(8,8):(8,1)", "(4,8):(2,8)", "(4,8):(16,1)"},
    {"(4,2,8):(2,1,8)", "(8,4):(1,16)", "((4,2),4):((2,1),16)"},
};

TEST_CASE("layout algebra: results are CuTe's") {
    for (const auto& [layout, size, expected] : complements) {
        const Layout result = complement(parsed(layout), size);
        INFO("complement of " << layout << " in " << size << ": " << result.text() << ", not " << expected);
        CHECK(is_same(result, parsed(expected)));
    }
    const auto hold = [](const auto& facts, auto&& operation) {
        for (const auto& [layout, other, expected] : facts) {
            const Layout result = operation(parsed(layout), parsed(other));
            INFO(layout << " and " << other << ": " << result.text() << ", not " << expected);
            CHECK(is_same(result, parsed(expected)));
        }
    };
    hold(divisions, logical_divide);
    hold(products, logical_product);
    hold(compositions, [](const Layout& a, const Layout& b) { return compose(a, b); });
}

// ---- laws

/// All layouts of up to three steps in one mode, with these extents and strides of up to `max_stride`.
std::vector<Layout> small_layouts(Number max_stride) {
    std::vector<Layout> out;
    std::vector<Layout::Step> steps;
    for (const Number extent : {1u, 2u, 3u, 4u})
        for (Number stride = 0; stride <= max_stride; ++stride) steps.push_back({extent, stride});
    for (const auto& a : steps) {
        out.emplace_back(std::vector<Mode>{{a}});
        for (const auto& b : steps) {
            out.emplace_back(std::vector<Mode>{{a}, {b}});
            if (a.extent + b.extent < 5 && a.stride != b.stride) out.emplace_back(std::vector<Mode>{{a, b}, {{2, 8}}});
        }
    }
    return out;
}

std::vector<Layout> result_of(auto&& f) {
    try {
        return {f()};
    } catch (const Error&) { return {}; }
}

TEST_CASE("layout algebra: a layout and its complement have each place once, in order") {
    int found = 0, refused = 0;
    for (const Layout& layout : small_layouts(13))
        for (const Number size : {1u, 7u, 24u, 48u}) {
            const std::vector<Number> own = offsets(layout);
            const auto rests = result_of([&] { return complement(layout, size); });
            if (rests.empty()) {
                ++refused;
                continue;
            }
            ++found;
            const Layout& rest = rests[0];
            INFO(layout.text() << " in " << size << ": " << rest.text());
            const std::vector<Number> others = offsets(rest);
            REQUIRE(std::ranges::is_sorted(others, std::less_equal{}));  // strictly ascending
            std::vector<Number> all;                                     // distinct places, as often as they come
            std::vector<Number> distinct = own;
            std::ranges::sort(distinct);
            distinct.erase(std::ranges::unique(distinct).begin(), distinct.end());
            for (const Number place : distinct)
                for (const Number further : others) all.push_back(place + further);
            std::ranges::sort(all);
            REQUIRE(all.size() >= size);
            for (Number i = 0; i < all.size(); ++i) REQUIRE(all[i] == i);
            Number period = 1;  // no more repetitions than are needed
            for (const Mode& mode : layout.modes())
                for (const auto& [extent, stride] : mode)
                    if (extent > 1) period = std::max(period, extent * stride);
            REQUIRE(all.size() == (size + period - 1) / period * period);
        }
    INFO(found << " complements, " << refused << " refused");
    CHECK(found > 2000);
    CHECK(refused > 2000);
}

TEST_CASE("layout algebra: a layout without a complement has steps that meet or leave odd gaps") {
    for (const char* text : {"(2,2):(1,1)", "(2,2):(1,3)", "(3,2):(2,3)", "(4,2):(1,2)"})
        CHECK(result_of([&] { return complement(parsed(text), 24); }).empty());
}

TEST_CASE("layout algebra: divisions have each element once, and the tiler's first") {
    int divided = 0, refused = 0;
    const Layout wholes[] = {parsed("24:1"), parsed("(4,6):(6,1)"), parsed("(6,4):(1,8)"),
                             parsed("((2,2),6):((1,12),2)")};
    for (const Layout& tiler : small_layouts(12)) {
        if (tiler.size() == 0 || std::ranges::any_of(tiler.modes(), [](const Mode& mode) {
                return std::ranges::any_of(mode, [](const auto& s) { return s.stride == 0 && s.extent > 1; });
            }))
            continue;  // one that repeats elements gives tiles that do
        for (const Layout& whole : wholes) {
            const auto results = result_of([&] { return logical_divide(whole, tiler); });
            ++(results.empty() ? refused : divided);
            if (results.empty()) continue;
            INFO(whole.text() << " by " << tiler.text() << ": " << results[0].text());
            REQUIRE(results[0].rank() == 2);
            REQUIRE(results[0].extent(0) == tiler.size());
            for (Number c = 0; c < tiler.size(); ++c) REQUIRE(results[0](c, 0) == whole(tiler(c)));
            const Number step = results[0].extent(1) > 1 ? 1 : 0;  // other tiles: the same elements further on
            const Layout rest = complement(tiler, whole.size());
            for (Number c = 0; c < tiler.size(); ++c) REQUIRE(results[0](c, step) == whole(tiler(c) + rest(step)));
            std::vector<Number> places = offsets(results[0]), all = offsets(whole);
            std::ranges::sort(places);
            std::ranges::sort(all);
            REQUIRE(places == all);
        }
    }
    INFO(divided << " divided, " << refused << " refused");
    CHECK(divided > 200);
    CHECK(refused > 200);
}

TEST_CASE("layout algebra: a product is the layout, repeated without overlaps") {
    int made = 0;
    for (const Layout& tile : small_layouts(6))
        for (const char* text : {"6:1", "(2,3):(3,1)", "(3,2):(2,1)", "4:2", "(2,2):(0,1)"}) {
            const Layout order = parsed(text);
            const auto results = result_of([&] { return logical_product(tile, order); });
            if (results.empty()) continue;
            ++made;
            INFO(tile.text() << " times " << text << ": " << results[0].text());
            REQUIRE(results[0].extent(0) == tile.size());
            REQUIRE(results[0].extent(1) == order.size());
            const Layout rest = complement(tile, tile.size() * order.places());
            for (Number t = 0; t < order.size(); ++t) {
                REQUIRE(results[0](0, t) == rest(order(t)));
                for (Number c = 0; c < tile.size(); ++c) REQUIRE(results[0](c, t) == tile(c) + results[0](0, t));
            }
        }
    INFO(made << " products");
    CHECK(made > 300);
}

TEST_CASE("layout algebra: what CuTe does not admit is an error with a hint") {
    CHECK_THAT(message_of([] { complement(parsed("(2,2):(1,3)"), 12); }),
               contains("the layout (2,2):(1,3) has no complement: its stride 3 is not a multiple of 2, where its "
                        "smaller steps end"));
    CHECK_THAT(message_of([] { complement(parsed("(2,2):(1,3)"), 12); }),
               contains("hint: in the order of strides, each is a multiple of the one before times its extent"));
    CHECK_THAT(message_of([] { complement(Layout(4), 0); }), contains("the complement of (4):(1) in 0 places"));
    CHECK_THAT(message_of([] { logical_divide(Layout(10), Layout(4)); }),
               contains("the 10 elements of (10):(1) are not a whole number of tiles (4):(1)"));
    CHECK_THAT(message_of([] { logical_divide(Layout(10), Layout(4)); }),
               contains("hint: with its repetitions (3):(4) the tile covers 12 elements"));
    CHECK_THAT(message_of([] { logical_divide(parsed("(4,6):(6,1)"), Layout(3)); }),
               contains("do not have constant strides"));
    CHECK_THAT(message_of([] { logical_product(parsed("(2,2):(1,3)"), Layout(2)); }), contains("has no complement"));
    CHECK_THAT(message_of([] { logical_product(Layout(2, 2), Layout(3)); }), contains("do not have constant strides"));
}

// ---- text

TEST_CASE("layouts from text: what text() writes is read") {
    for (const char* text : {"(4,8):(8,1)", "((2,2),3):((24,2),8)", "(5):(3)", "((2,3),(4,5),6):((1,0),(7,8),900)"}) {
        CHECK(parsed(text).text() == text);
        CHECK(parse_layout(text).layout == parsed(text));
    }
    CHECK(parse_layout("Sw<3,4,3> o (8,64):(64,1)").text() == "Sw<3,4,3> o (8,64):(64,1)");
    CHECK(parse_layout("Sw<2,0,-3> o 64:1").swizzle == Swizzle(2, 0, -3));
    CHECK(parsed("8:2") == Layout(8, 2));
    CHECK(parsed(" ( 4 , 8 ) : ( 8 , 1 ) ") == Layout({4, 8}, {8, 1}));
    CHECK(parsed("((2,(2,3)),4):((1,(2,4)),12)").text() == "((2,2,3),4):((1,2,4),12)");
    for (const Layout& layout : small_layouts(9)) REQUIRE(parsed(layout.text()) == layout);
}

TEST_CASE("layouts from text: malformed ones are errors with the column") {
    const auto message = [](std::string_view text) { return message_of([&] { (void)parse_layout(text); }); };
    CHECK_THAT(message("(4,8:(8,1)"), contains("this is no layout: column 5: expected ',' or ')'"));
    CHECK_THAT(message("(4,8:(8,1)"), contains("hint: layouts are (4,8):(8,1), ((2,2),3):((24,2),8) or Sw<3,4,3> o"));
    CHECK_THAT(message(""), contains("column 1: expected a number"));
    CHECK_THAT(message("(4,8)"), contains("column 6: expected ':'"));
    CHECK_THAT(message("(4,)"), contains("column 4: expected a number"));
    CHECK_THAT(message("()"), contains("column 2: expected a number"));
    CHECK_THAT(message("(4,x):(1,1)"), contains("column 4: expected a number"));
    CHECK_THAT(message("(4,-8):(1,1)"), contains("column 4: expected a number"));
    CHECK_THAT(message("(4,8):(8,1) 7"), contains("column 13: the layout ends before this"));
    CHECK_THAT(message("(4,8):(8)"), contains("column 7: the strides are not nested as the extents are"));
    CHECK_THAT(message("(4,8):8"), contains("column 7: the strides are not nested as the extents are"));
    CHECK_THAT(message("8:(8,1)"), contains("column 3: the strides are not nested as the extents are"));
    CHECK_THAT(message("((2,2),3):(24,8)"), contains("column 12: the strides are not nested as the extents are"));
    CHECK_THAT(message("(4,0):(8,1)"), contains("column 4: an extent is at least 1"));
    CHECK_THAT(message("99999999999999999999999:1"), contains("column 1: the number is too large"));
    CHECK_THAT(message("(2,281474976710656):(1,1)"), contains("column 4: the layout has more than 2^48 elements"));
    CHECK_THAT(message("(3,2):(1,281474976710656)"), contains("column 4: the layout has more than 2^48"));
    CHECK_THAT(message("Sw<3,4> o 8:1"), contains("column 7: expected ','"));
    CHECK_THAT(message("Sw<3,4,3> 8:1"), contains("column 11: expected 'o'"));
    CHECK_THAT(message("Sx"), contains("column 2: expected 'w'"));
    CHECK_THAT(message("Sw<3,4,99> o 8:1"), contains("column 8: the number is too large"));
    CHECK_THAT(message("Sw<3,4,2> o 8:1"), contains("column 1: the swizzle Sw<3,4,2> is invalid"));
    CHECK_THAT(message(std::string(40, '(')), contains("column 17: this is nested too deeply"));
}

}  // namespace
}  // namespace ikat::tests
