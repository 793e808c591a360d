// SPDX-License-Identifier: Apache-2.0
#include "codegen/support/chunked.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "tests/catch.hpp"

using namespace ikat;

namespace {

using Numbers = Chunked<int, 4>;

Numbers numbers(int count) {
    Numbers out;
    for (int i = 0; i < count; ++i) out.push_back(int(i));
    return out;
}
bool counts_to(const Numbers& all, int count) {
    int expected = 0;
    for (int each : all)
        if (each != expected++) return false;
    return expected == count && all.size() == std::size_t(count);
}

}  // namespace

TEST_CASE("a chunked list has what was added, wherever it stops") {
    for (int count = 0; count < 14; ++count) {
        const Numbers all = numbers(count);
        CHECK(counts_to(all, count));
        for (int i = 0; i < count; ++i) CHECK(all[std::size_t(i)] == i);
    }
}

TEST_CASE("a chunked list's elements stay where they are") {
    Numbers all = numbers(1);
    const int* const first = &all[0];
    for (int i = 1; i < 100; ++i) all.push_back(int(i));
    CHECK(&all[0] == first);
    CHECK(counts_to(all, 100));
}

TEST_CASE("a chunked list is cut, and grows again in the same memory") {
    for (int kept = 0; kept < 12; ++kept) {
        Numbers all = numbers(11);
        const std::size_t capacity = all.capacity();
        all.cut(std::size_t(kept));
        CHECK(counts_to(all, std::min(kept, 11)));
        for (int i = kept; i < 11; ++i) all.push_back(int(i));
        CHECK(counts_to(all, 11));
        CHECK(all.capacity() == capacity);
    }
}

TEST_CASE("a chunked list destroys what is cut") {
    Chunked<std::shared_ptr<int>, 4> all;
    const auto value = std::make_shared<int>(1);
    for (int i = 0; i < 6; ++i) all.push_back(std::shared_ptr(value));
    CHECK(value.use_count() == 7);
    all.cut(3);
    CHECK(value.use_count() == 4);
}

TEST_CASE("a copy of a chunked list is its own; what is moved from is empty") {
    Numbers all = numbers(6), copy = all;
    copy.push_back(6);
    copy[0] = 1;
    CHECK(counts_to(all, 6));
    CHECK(copy.size() == 7);
    const Numbers moved = std::move(all);
    CHECK(counts_to(moved, 6));
    CHECK(counts_to(all, 0));  // NOLINT(bugprone-use-after-move)
    all.push_back(0);
    CHECK(counts_to(all, 1));
    all = moved;
    CHECK(counts_to(all, 6));
}
