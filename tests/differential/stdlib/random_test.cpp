// SPDX-License-Identifier: Apache-2.0
// Philox by its published vectors; dropout, its gradient and arrays of random numbers: the words of each element
// whatever the place and the type of an array, the distributions, a state on the device that a graph advances.
#include <cmath>
#include <limits>

#include "dsl/kernel/kernel.hpp"
#include "runtime/graph/graph.hpp"
#include "stdlib/random/random.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/placed.hpp"
#include "tests/message.hpp"

namespace ikat::test {
namespace {
namespace random_numbers {

using runtime::Device;
using stdlib::RandomState;

/// Source: kat_vectors of Random123, "philox4x32 10".
struct KnownAnswer {
    std::array<std::uint32_t, 4> counter;
    std::array<std::uint32_t, 2> key;
    std::array<std::uint32_t, 4> words;
};
constexpr KnownAnswer known_answers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};

TEST_CASE("Philox 4x32-10: the published vectors") {
    const Device device = open_device();
    const auto words = kernel("words", params("given", "words"), [](In<std::uint32_t> given, Out<std::uint32_t> words) {
        const auto at = [&](std::uint32_t i) { return value(given[i]); };
        const std::array counter{at(0), at(1), at(2), at(3)};
        const std::array key{at(4), at(5)};
        const auto got = stdlib::philox(counter, key);
        for (std::uint32_t i = 0; i < 4; ++i) words[i] = got[i];
    });
    for (const KnownAnswer& known : known_answers) {
        CHECK(stdlib::philox(known.counter, known.key) == known.words);
        std::vector<std::uint32_t> given(known.counter.begin(), known.counter.end());
        given.insert(given.end(), known.key.begin(), known.key.end());
        auto out = device.buffer<std::uint32_t>(4, "words");
        device.launch(words, runtime::grid(1, 1), device.upload(given, "given"), out);
        CHECK(out.download() == std::vector<std::uint32_t>(known.words.begin(), known.words.end()));
    }
}

std::uint32_t word_of(const RandomState& random, std::size_t i) {
    const std::uint64_t counter = random.offset + i / 4;
    return stdlib::philox({std::uint32_t(counter), std::uint32_t(counter >> 32), 0, 0},
                          {std::uint32_t(random.seed), std::uint32_t(random.seed >> 32)})[i % 4];
}

template <class T>
void check_dropout(const Device& device, Place place, const Extents& extents, const stdlib::DropoutOptions& options) {
    INFO("place " << int(place) << ", rank " << extents.size() << ", columns " << extents.back() << ", probability "
                  << options.probability << ", bytes " << sizeof(T));
    const Placed<T> x(device, place, extents, 1), y(device, place, extents, 2), dx(device, Place::odd, extents, 3);
    stdlib::dropout(device, x, y, options);
    stdlib::dropout_backward(device, x, dx, options);
    const std::vector<float> from = x.elements(), got = y.elements(), gradient = dx.elements();
    const float scale = float(1 / (1 - double(options.probability)));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
        const bool is_dropped = double(word_of(options.random, i) >> 1) < double(options.probability) * 0x1p31;
        const float want = is_dropped ? 0 : float(T(from[i] * scale));
        wrong += got[i] != want;
        wrong += gradient[i] != want;
    }
    CHECK(wrong == 0);
    CHECK(y.changed_gaps() + dx.changed_gaps() == 0);
}

TEST_CASE("dropout: the same elements wherever they are, forward and backward") {
    const Device device = open_device();
    const RandomState random{.seed = 0x123456789abcdef0, .offset = 0xfffffffe};  // whose upper word changes
    for (const Place place : {Place::packed, Place::aligned, Place::odd, Place::permuted})
        for (const Extents& extents : {Extents{1}, Extents{3, 37}, Extents{2, 3, 24}, Extents{2, 3, 2, 6}}) {
            check_dropout<float>(device, place, extents, {.probability = 0.25f, .random = random});
            check_dropout<half>(device, place, extents, {.probability = 0.5f, .random = random});
            check_dropout<bfloat16>(device, place, extents, {.probability = 0.9f, .random = random});
        }
}

TEST_CASE("dropout: as many as the probability says; special values") {
    const Device device = open_device();
    const std::size_t n = 20000;
    auto x = device.upload(std::vector<float>(n, 1), "x"), y = device.buffer<float>(n, "y");
    for (const float p : {0.0f, 0.1f, 0.5f, 0.75f, 1.0f}) {
        stdlib::dropout(device, x, y, {.probability = p, .random = {.seed = 3}});
        std::size_t dropped = 0, wrong = 0;
        for (const float v : y.download()) dropped += v == 0, wrong += v != 0 && v != float(1 / (1 - double(p)));
        CHECK(wrong == 0);
        CHECK(std::abs(double(dropped) - n * double(p)) <= 5 * std::sqrt(n * double(p) * (1 - double(p))));
    }
    // A NaN that is dropped is 0; one that is kept stays.
    x.fill(std::numeric_limits<float>::quiet_NaN());
    stdlib::dropout(device, x, y, {.probability = 0.5f});
    const std::vector<float> got = y.download();
    for (std::size_t i = 0; i < 100; ++i) CHECK((word_of({}, i) >> 31 ? std::isnan(got[i]) : got[i] == 0));
}

TEST_CASE("dropout: a state on the device, which a graph advances") {
    const Device device = open_device();
    const std::uint32_t n = 100;
    const std::vector<float> ones(n, 1);
    const auto x = device.upload(ones, "x");
    auto y = device.buffer<float>(n, "y"), want = device.buffer<float>(n, "want");
    auto state = device.upload(std::vector<std::uint32_t>{7, 9, 0xfffffff0, 1}, "state");
    const RandomState random{.offset = 3, .state = state};
    const auto step = runtime::Graph::record(device, [&](const runtime::Queue& queue) {
        stdlib::dropout(queue, x, y, {.probability = 0.5f, .random = random});
        stdlib::advance_random(queue, state, (n + 3) / 4);
    });
    const auto exec = step.instantiate();
    std::vector<std::vector<float>> all;
    for (std::uint64_t i = 0; i < 3; ++i) {
        exec.launch(device);
        all.push_back(y.download());
        const std::uint64_t offset = 0x1fffffff0 + 3 + i * 25;
        stdlib::dropout(device, x, want, {.probability = 0.5f, .random = {.seed = 0x900000007, .offset = offset}});
        CHECK(want.download() == all.back());
    }
    CHECK(all[0] != all[1]);
    CHECK(all[1] != all[2]);
    CHECK(state.download() == std::vector<std::uint32_t>{7, 9, 0xfffffff0 + 75, 2});
}

/// Of the moments of so many numbers: the mean, and that of the squares and of the fourth powers.
std::array<double, 3> moments(const std::vector<float>& x) {
    std::array<double, 3> out{};
    for (const double v : x)
        out[0] += v / double(x.size()), out[1] += v * v / double(x.size()), out[2] += v * v * v * v / double(x.size());
    return out;
}

TEST_CASE("fill_uniform and fill_normal: distributions") {
    const Device device = open_device();
    const std::size_t n = 20000;
    const double root = std::sqrt(double(n));
    auto x = device.buffer<float>(n, "x");
    stdlib::fill_uniform(device, x, -1, 1, {.seed = 5});
    const std::vector<float> uniform = x.download();
    CHECK(std::ranges::all_of(uniform, [](float v) { return v >= -1 && v <= 1; }));
    // Within five deviations of the mean: of v 1/sqrt 3, of v^2 sqrt(4/45).
    CHECK(std::abs(moments(uniform)[0]) <= 5 / std::sqrt(3.0) / root);
    CHECK(std::abs(moments(uniform)[1] - 1 / 3.0) <= 5 * std::sqrt(4 / 45.0) / root);
    stdlib::fill_normal(device, x, 0, 1, {.seed = 5});
    const auto [mean, square, fourth] = moments(x.download());
    CHECK(std::abs(mean) <= 5 / root);
    CHECK(std::abs(square - 1) <= 5 * std::sqrt(2.0) / root);
    CHECK(std::abs(fourth - 3) <= 5 * std::sqrt(96.0) / root);
    // Neighbours, which have a word pair in common, do not correlate.
    const std::vector<float> z = x.download();
    double product = 0;
    for (std::size_t i = 0; i < n; i += 2) product += double(z[i]) * double(z[i + 1]);
    CHECK(std::abs(product) <= 5 * std::sqrt(double(n) / 2));
}

template <class T>
void check_fills(const Device& device) {
    for (const Place place : {Place::aligned, Place::odd, Place::permuted}) {
        const Extents extents{2, 3, 2, 10};
        const std::size_t n = 120;
        auto packed = device.buffer<T>(n, "packed");
        const Placed<T> placed(device, place, extents, 1);
        const auto check = [&] {
            const std::vector<T> elements = packed.download();
            CHECK(placed.elements() == std::vector<float>(elements.begin(), elements.end()));
            CHECK(placed.changed_gaps() == 0);
        };
        const RandomState random{.seed = 11, .offset = 1};
        stdlib::fill_uniform(device, packed, -3, 2, random), stdlib::fill_uniform(device, placed, -3, 2, random);
        check();
        stdlib::fill_normal(device, packed, 5, 2, random), stdlib::fill_normal(device, placed, 5, 2, random);
        check();
    }
}

TEST_CASE("fill_uniform and fill_normal: the same numbers wherever an array is") {
    const Device device = open_device();
    check_fills<float>(device), check_fills<half>(device), check_fills<bfloat16>(device);
}

TEST_CASE("random numbers: the same bits in every order of the warps") {
    std::vector<Device> devices{open_device({.threads = 1, .check = "strict,races", .schedules = 2})};
    for (const char* seed : {"0", "1", "2", "3"}) devices.push_back(open_device({.schedule = seed}));
    std::vector<std::vector<float>> all;
    for (const Device& device : devices) {
        auto x = device.buffer<float>(1001, "x"), y = device.buffer<float>(1001, "y");
        stdlib::fill_normal(device, x, 0, 1, {.seed = 2});
        stdlib::dropout(device, x, y, {.random = {.seed = 3}});
        all.push_back(y.download());
        CHECK(all.back() == all.front());
    }
}

TEST_CASE("random numbers: mistakes") {
    const Device device = open_device();
    auto x = device.upload(std::vector<float>(8, 1), "x"), y = device.buffer<float>(8, "y");
    auto h = device.buffer<half>(8, "h");
    auto state = device.upload(std::vector<std::uint32_t>(3), "state");
    const auto message = [&](auto&& from, auto&& to, const stdlib::DropoutOptions& options) {
        return tests::message_of([&] { stdlib::dropout(device, from, to, options); });
    };
    CHECK(message(x, y, {}).empty());
    CHECK(message(x, y, {.probability = 1.5f}).contains("a probability of 1.5"));
    CHECK(message(x, y, {.probability = NAN}).contains("a probability of nan"));
    CHECK(message(x, h, {}).contains("f16"));
    CHECK(message(x.view(2, 4), y, {}).contains("the same shape"));
    CHECK(message(x, y, {.random = {.state = state}}).contains("fewer than four words"));
    CHECK(message(x, y, {.random = {.state = x}}).contains("'state'"));
    CHECK(tests::message_of([&] { stdlib::fill_normal(device, y, 0, 1, {.state = state}); }).contains("a state"));
    CHECK(tests::message_of([&] { stdlib::advance_random(device, state, 1); }).contains("fewer than four words"));
}

}  // namespace random_numbers
}  // namespace
}  // namespace ikat::test
