// SPDX-License-Identifier: Apache-2.0
// Rows by their numbers, and sums of rows by their numbers: against plain loops in double, for ids that many tokens or
// none have, that are no rows, in more than one tile of the sort; the same bits in every order of the warps.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "stdlib/embedding/embedding.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/placed.hpp"
#include "tests/message.hpp"

namespace ikat::test {
namespace {
namespace embedding {

using runtime::Device;
using Ids = std::vector<std::uint32_t>;

/// Ids of rows below `rows`, now and then of one that there is not; every `same`th is 1.
Ids random_ids(std::size_t count, std::uint32_t rows, std::uint32_t same, std::uint32_t seed) {
    std::mt19937 random(seed);
    Ids out(count);
    for (std::size_t i = 0; i < count; ++i) {
        out[i] = rows == 0 ? 0 : std::uint32_t(random() % rows);
        if (i % 13 == 5) out[i] = rows + std::uint32_t(random() % 3);
        if (i % 17 == 4) out[i] = ~0u;
        if (same != 0 && i % same == 0) out[i] = 1;
    }
    return out;
}

/// Each sum has as many roundings as rows, and one more, of what was there.
template <class T>
void check_sums(const Device& device, const Ids& ids, std::uint32_t rows, std::uint32_t columns, Place place,
                bool accumulate) {
    INFO("tokens " << ids.size() << ", rows " << rows << ", columns " << columns << ", place " << int(place)
                   << ", accumulate " << accumulate << ", bytes " << sizeof(T));
    const Placed<T> dy(device, place, {ids.size(), columns}, 1);
    const Placed<float> table(device, place, {rows, columns}, 2);
    const std::vector<float> before = table.elements(), x = dy.elements();
    stdlib::embedding_backward(device, device.upload(ids, "ids"), dy, table, {.accumulate = accumulate});
    std::vector<double> want(before.size()), magnitude(before.size());
    std::vector<std::uint32_t> count(rows);
    for (std::size_t i = 0; accumulate && i < before.size(); ++i)
        want[i] = double(before[i]), magnitude[i] = std::abs(want[i]);
    for (std::size_t t = 0; t < ids.size(); ++t) {
        if (ids[t] >= rows) continue;
        ++count[ids[t]];
        for (std::size_t c = 0; c < columns; ++c) {
            want[ids[t] * columns + c] += double(x[t * columns + c]);
            magnitude[ids[t] * columns + c] += std::abs(double(x[t * columns + c]));
        }
    }
    const std::vector<float> got = table.elements();
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const double bound = (count[i / columns] + 1) * epsilon * magnitude[i];
        worst = std::max(worst,
                         bound == 0 ? (double(got[i]) == want[i] ? 0 : 2) : std::abs(double(got[i]) - want[i]) / bound);
    }
    CHECK(worst <= 1);
    CHECK(table.changed_gaps() == 0);
}

TEST_CASE("embedding_backward: sizes, tails, pitches and types") {
    const Device device = open_device();
    struct Size {
        std::uint32_t tokens, rows, columns, same;
    };
    const Size sizes[] = {{0, 3, 4, 0}, {3, 0, 4, 0},   {3, 4, 0, 0},      {1, 2, 1, 1},
                          {5, 2, 3, 0}, {70, 9, 36, 2}, {100, 40, 129, 3}, {9, 4, 1100, 0}};
    std::uint32_t number = 0;
    for (const auto& [tokens, rows, columns, same] : sizes)
        for (const Place place : {Place::packed, Place::aligned, Place::odd}) {
            const Ids ids = random_ids(tokens, rows, same, ++number);
            const bool accumulate = number % 2 == 0;
            if (rows == 0 || columns == 0 || tokens == 0) {
                if (place == Place::packed) check_sums<float>(device, ids, rows, columns, place, accumulate);
                continue;
            }
            check_sums<float>(device, ids, rows, columns, place, accumulate);
            check_sums<half>(device, ids, rows, columns, place, !accumulate);
            check_sums<bfloat16>(device, ids, rows, columns, place, accumulate);
        }
}

TEST_CASE("embedding_backward: several tiles of ids, all the same, in order and backwards") {
    const Device device = open_device();
    for (const std::uint32_t tokens : {1023u, 1024u, 1025u, 2500u}) {
        check_sums<float>(device, random_ids(tokens, 300, 0, tokens), 300, 4, Place::packed, false);
        check_sums<half>(device, random_ids(tokens, 2, 2, tokens), 2, 5, Place::packed, true);
    }
    Ids ids(1100, 1);
    check_sums<float>(device, ids, 3, 8, Place::packed, false);
    for (std::uint32_t t = 0; t < ids.size(); ++t) ids[t] = t / 2;
    check_sums<float>(device, ids, 550, 3, Place::packed, false);
    std::ranges::reverse(ids);
    check_sums<float>(device, ids, 550, 4, Place::packed, false);
    check_sums<float>(device, Ids(40, ~0u), 3, 8, Place::packed, true);  // padding alone
}

TEST_CASE("scatter_add_rows: the same bits in every order of the warps") {
    std::vector<Device> devices{open_device({.threads = 1, .check = "strict,races", .schedules = 4})};
    for (const char* seed : {"0", "1", "2", "3"}) devices.push_back(open_device({.schedule = seed}));
    std::vector<std::vector<float>> all;
    const Ids ids = random_ids(1200, 30, 3, 7);
    const std::uint32_t columns = 36;
    const std::vector<half> x = random_elements<half>(ids.size() * columns, 3);
    for (const Device& device : devices) {
        auto y = device.upload(std::vector<float>(30 * columns, 0.1f), "y");
        auto memory = device.buffer<std::uint8_t>(stdlib::scatter_add_rows_workspace(ids.size()), "memory");
        stdlib::scatter_add_rows(device, device.upload(ids, "ids"), device.upload(x, "x").view(ids.size(), columns),
                                 y.view(30, columns), memory);
        all.push_back(y.download());
        CHECK(all.back() == all.front());
    }
}

TEST_CASE("scatter_add_rows: infinities and NaNs reach their row alone") {
    const Device device = open_device();
    const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    auto y = device.upload(std::vector<float>{1, 1, 1, 1, 1}, "y");
    const std::vector<float> x{infinity, 2, nan, -infinity, 4, nan};
    stdlib::scatter_add_rows(device, device.upload(Ids{3, 1, 2, 0, 1, 5}, "ids"), device.upload(x, "x").view(6, 1),
                             y.view(5, 1));
    const std::vector<float> got = y.download();
    CHECK(got[0] == -infinity);
    CHECK(got[1] == 7);
    CHECK(std::isnan(got[2]));
    CHECK(got[3] == infinity);
    CHECK(got[4] == 1);
}

TEST_CASE("embedding: rows with gaps, and zeros for ids that are no rows") {
    const Device device = open_device();
    const Ids ids = random_ids(40, 7, 0, 5);
    const auto of_ids = device.upload(ids, "ids");
    for (const Place place : {Place::packed, Place::aligned, Place::odd, Place::permuted})
        for (const std::uint32_t columns : {1u, 6u, 64u, 301u}) {
            const Placed<half> table(device, place, {7, columns}, 1), y(device, place, {40, columns}, 2);
            stdlib::embedding(device, of_ids, table, y);
            const std::vector<float> from = table.elements(), got = y.elements();
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < got.size(); ++i) {
                const std::uint32_t id = ids[i / columns];
                wrong += got[i] != (id < 7 ? from[id * columns + i % columns] : 0);
            }
            CHECK(wrong == 0);
            CHECK(y.changed_gaps() == 0);
        }
}

TEST_CASE("embedding: mistakes") {
    const Device device = open_device();
    const auto ids = device.upload(Ids{0, 1}, "ids");
    auto x = device.upload(std::vector<float>(12, 1), "x"), y = device.upload(std::vector<float>(12, 1), "y");
    auto h = device.upload(std::vector<half>(12, half(1.0f)), "h");
    auto bytes = device.buffer<std::uint8_t>(8, "bytes");
    const auto message = [&](auto&& of, auto&& from, auto&& to, const stdlib::WorkspaceSlice& memory = {}) {
        return tests::message_of([&] { stdlib::scatter_add_rows(device, of, from, to, memory); });
    };
    CHECK(message(ids, x.view(2, 6), y.view(2, 6)).empty());
    CHECK(message(ids, x.view(3, 4), y.view(3, 4)).contains("'ids' has 2 elements, 'x' 3 rows"));
    CHECK(message(ids, x.view(2, 6), y.view(3, 4)).contains("'x' has 6 columns, 'y' 4"));
    CHECK(message(x, x.view(2, 6), y.view(2, 6)).contains("'ids' has elements of f32"));
    CHECK(message(ids, x.view(2, 6), h.view(2, 6)).contains("'y' has elements of f16"));
    CHECK(message(ids, x, y.view(2, 6)).contains("'x' has 1 dimension"));
    CHECK(message(ids, x.view(2, 6), x.view(2, 6)).contains("overlap"));
    CHECK(message(ids, x.view(2, 6), y.view(2, 6), bytes).contains("workspace"));
    CHECK(tests::message_of([&] { stdlib::embedding(device, ids, x.view(2, 6), h.view(2, 6)); }).contains("f16"));
    CHECK(tests::message_of([&] { stdlib::gather_rows(device, ids, x.view(3, 4), y.view(2, 6)); }).contains("width"));
}

}  // namespace embedding
}  // namespace
}  // namespace ikat::test
