// SPDX-License-Identifier: Apache-2.0
#include "codegen/support/bitset.hpp"

#include "tests/catch.hpp"

using ikat::Bitset;

namespace {

std::vector<std::size_t> elements(const Bitset& set) {
    std::vector<std::size_t> out;
    set.each([&](std::size_t i) { out.push_back(i); });
    return out;
}

}  // namespace

TEST_CASE("a new bit set is empty") {
    const Bitset set(130);
    CHECK(set.size() == 130);
    CHECK(set.count() == 0);
    CHECK_FALSE(set.test(0));
    CHECK_FALSE(set.test(129));
}

TEST_CASE("set and reset change one element, on either side of a word boundary") {
    const std::size_t i = GENERATE(0, 1, 63, 64, 65, 127, 128, 129);
    Bitset set(130);
    set.set(i);
    CHECK(elements(set) == std::vector<std::size_t>{i});
    set.reset(i);
    CHECK(set == Bitset(130));
}

TEST_CASE("insert says whether the element was new") {
    Bitset set(70);
    CHECK(set.insert(69));
    CHECK_FALSE(set.insert(69));
    CHECK(set.count() == 1);
}

TEST_CASE("merge is union and says whether anything was new") {
    Bitset a(100), b(100);
    a.set(3);
    b.set(3);
    CHECK_FALSE(a.merge(b));
    b.set(99);
    CHECK(a.merge(b));
    CHECK(elements(a) == std::vector<std::size_t>{3, 99});
    CHECK_FALSE(a.merge(b));
}

TEST_CASE("each goes in ascending order") {
    Bitset set(200);
    for (std::size_t i : {199, 0, 64, 63, 128}) set.set(i);
    CHECK(elements(set) == std::vector<std::size_t>{0, 63, 64, 128, 199});
}

TEST_CASE("clear keeps the size") {
    Bitset set(65);
    set.set(64);
    set.clear();
    CHECK(set == Bitset(65));
    CHECK(set.size() == 65);
}
