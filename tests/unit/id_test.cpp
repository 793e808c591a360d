// SPDX-License-Identifier: Apache-2.0
#include "codegen/support/id.hpp"

#include <vector>

#include "tests/catch.hpp"

namespace {

enum class Thing : std::uint32_t {};
enum class Narrow : std::uint8_t {};

static_assert(ikat::Id<Thing>);
static_assert(!ikat::Id<Narrow>);
static_assert(!ikat::Id<std::uint32_t>);

}  // namespace

TEST_CASE("an id converts to its index and back") {
    CHECK(ikat::index(Thing(7)) == 7);
    CHECK(ikat::index(Thing(0)) == 0);
}

TEST_CASE("no_id differs from every id of a real vector") {
    CHECK(ikat::no_id<Thing> != Thing(0));
    CHECK(ikat::index(ikat::no_id<Thing>) == 0xffffffff);
}

TEST_CASE("ids lists all ids of a vector in order") {
    std::vector<std::uint32_t> seen;
    for (Thing thing : ikat::ids<Thing>(3)) seen.push_back(ikat::index(thing));
    CHECK(seen == std::vector<std::uint32_t>{0, 1, 2});
    CHECK(ikat::ids<Thing>(0).empty());
}
