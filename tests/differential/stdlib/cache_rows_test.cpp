// SPDX-License-Identifier: Apache-2.0
// rope_scatter(), and kv_scatter() to caches of Q8_0 and e4m3: the bytes of the host's quantiser and of rope() and
// kv_scatter() one after the other, wherever rows and heads are; rows without a slot, and the rest of the cache, stay.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "stdlib/layout/layout.hpp"
#include "stdlib/quantised/quantise.hpp"
#include "stdlib/quantised/quantised.hpp"
#include "stdlib/spec/functions.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/placed.hpp"
#include "tests/message.hpp"

namespace ikat::test {
namespace {

using stdlib::Quantised;
using stdlib::quantised_view;
using stdlib::Rope;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t cache_rows = 9;
const std::vector<std::uint32_t> slots{4, 0, ~0u, 8, 9, 3};  // two tokens have none
constexpr std::uint32_t tokens = 6;

/// A cache of bytes: rows of heads of that many bytes, `gap` bytes apart.
struct ByteCache {
    std::uint32_t heads, of_head, first = 0, gap = 0;

    std::uint64_t head_pitch() const { return of_head + gap; }
    std::uint64_t row_pitch() const { return heads * head_pitch() + gap; }
    Bytes empty() const { return Bytes(first + cache_rows * row_pitch(), 0xa5); }
    /// With these heads of each token in the rows that slots say.
    Bytes filled(const Bytes& of_tokens) const {
        Bytes out = empty();
        for (std::uint32_t t = 0; t < tokens; ++t)
            for (std::uint32_t h = 0; slots[t] < cache_rows && h < heads; ++h)
                std::copy_n(of_tokens.begin() + std::ptrdiff_t((t * heads + h) * of_head), of_head,
                            out.begin() + std::ptrdiff_t(first + slots[t] * row_pitch() + h * head_pitch()));
        return out;
    }
    /// As a view of blocks of Q8_0, or of e4m3.
    MutableTensorView view(const runtime::Buffer<std::uint8_t>& buffer, bool is_q8_0) const {
        const runtime::BufferPart part = buffer.memory().whole().from(first);
        const std::uint64_t each = is_q8_0 ? 34 : 1, of = is_q8_0 ? 32 : 1;
        const std::uint64_t extents[] = {cache_rows, heads, of_head / each * of},
                            pitches[] = {row_pitch() / each * of, head_pitch() / each * of};
        return MutableTensorView(is_q8_0 ? TensorView(Quantised::Q8_0, part, extents, pitches)
                                         : TensorView(ir::Type::E4M3, part, extents, pitches));
    }
};

/// The nearest e4m3, of numbers beyond 448 that.
std::uint8_t nearest_e4m3(float x) {
    return std::isnan(x) ? std::uint8_t(0x7f) : e4m3(double(std::clamp(x, -448.0f, 448.0f))).bits;
}
Bytes encoded(const std::vector<float>& x, bool is_q8_0) {
    if (is_q8_0) return stdlib::stored::quantise(Quantised::Q8_0, x);
    Bytes out;
    for (const float each : x) out.push_back(nearest_e4m3(each));
    return out;
}

template <class T>
void check_scatter(const runtime::Device& device, bool is_q8_0) {
    for (const Place place : {Place::packed, Place::aligned, Place::odd})
        for (const std::uint32_t heads : {1u, 3u, 12u})
            for (const std::uint32_t d : {32u, 96u, 128u, 30u}) {
                if (is_q8_0 && d == 30) continue;
                INFO("q8_0 " << is_q8_0 << ", place " << int(place) << ", " << heads << " heads of " << d);
                const Placed<T> x(device, place, {tokens, heads, d}, heads + d);
                ByteCache is{.heads = heads, .of_head = is_q8_0 ? d / 32 * 34 : d};
                if (place == Place::odd) is.first = is_q8_0 ? 6 : 3, is.gap = is_q8_0 ? 34 : 5;
                if (place == Place::aligned) is.gap = is_q8_0 ? 68 : 4;
                const auto cache = device.upload(is.empty(), "cache");
                stdlib::kv_scatter(device, x, device.upload(slots, "slots"), is.view(cache, is_q8_0));
                CHECK(cache.download() == is.filled(encoded(x.elements(), is_q8_0)));
            }
}

/// rope_scatter(), and rope() with kv_scatter() after it, give a cache the same bytes.
template <class T>
void check_rope(const runtime::Device& device, const TensorView& given, auto&& make_cache) {
    const std::uint64_t heads = given.extents[1], d = given.extents[2];
    const auto positions = device.upload(std::vector<std::uint32_t>{0, 7, 3, 100000, 1, 65}, "positions"),
               of_slots = device.upload(slots, "slots");
    for (const Rope form : {Rope::Interleaved, Rope::Neox})
        for (const std::uint64_t rotary : {d, d / 4 * 2, std::uint64_t{6}}) {
            INFO("form " << int(form) << ", " << heads << " heads of " << d << ", rotary " << rotary);
            auto turned = device.buffer<T>(tokens * heads * d, "turned");
            const auto view = turned.view(tokens, heads, d);
            const auto every = device.upload(std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5}, "every");
            stdlib::rope_scatter(device, form, given, positions, every, view, 0, 10000);  // a copy
            stdlib::rope(device, form, view, positions, std::uint32_t(rotary), 10000);
            const auto [want, want_view] = make_cache();
            const auto [got, got_view] = make_cache();
            stdlib::kv_scatter(device, view, of_slots, want_view);
            stdlib::rope_scatter(device, form, given, positions, of_slots, got_view, std::uint32_t(rotary), 10000);
            const auto a = want->download(), b = got->download();
            CHECK(std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0);
        }
}

}  // namespace

TEMPLATE_TEST_CASE("kv_scatter to a quantised cache: the bytes of the host", "", float, half, bfloat16) {
    check_scatter<TestType>(open_device({.threads = 1, .check = "races", .schedules = 2}), true);
    check_scatter<TestType>(open_device(), false);
}

TEST_CASE("kv_scatter to e4m3: all numbers of f16, and f32 between those of e4m3") {
    const runtime::Device device = open_device();
    const auto slot = device.upload(std::vector<std::uint32_t>{0}, "slots");
    std::vector<half> all;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) all.push_back(half::from_bits(std::uint16_t(bits)));
    std::vector<float> between{INFINITY, -INFINITY, NAN, std::numeric_limits<float>::max(), 0x1p-149f, -0.0f};
    for (std::uint32_t bits = 0; bits < 0x7e; ++bits) {
        const float low = e4m3::from_bits(std::uint8_t(bits)), high = e4m3::from_bits(std::uint8_t(bits + 1));
        for (const float sign : {1.0f, -1.0f})
            for (const float end : {0.0f, 1000.0f}) {
                const float middle = sign * (low + high) / 2;
                between.push_back(middle), between.push_back(std::nextafter(middle, sign * end));
            }
    }
    while (between.size() % 4 != 3) between.push_back(464);  // by elements
    const auto check = [&]<class T>(const std::vector<T>& numbers) {
        auto cache = device.buffer<e4m3>(numbers.size(), "cache");
        stdlib::kv_scatter(device, device.upload(numbers, "x").view(1, numbers.size()), slot,
                           cache.view(1, numbers.size()));
        const std::vector<e4m3> got = cache.download();
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < numbers.size(); ++i) wrong += got[i].bits != nearest_e4m3(float(numbers[i]));
        CHECK(wrong == 0);
    };
    check(all), check(between);
}

TEST_CASE("kv_scatter: a block that has a NaN or an infinity decodes to NaN") {
    const runtime::Device device = open_device();
    for (const float bad : {NAN, INFINITY}) {
        std::vector<float> x(64, 1);
        x[40] = bad;
        auto cache = device.upload(Bytes(68), "cache");
        stdlib::kv_scatter(device, device.upload(x).view(1, 64), device.upload(std::vector<std::uint32_t>{0}),
                           MutableTensorView(quantised_view(cache, Quantised::Q8_0, {1, 64})));
        auto y = device.buffer<float>(64);
        stdlib::dequantise(device, quantised_view(cache, Quantised::Q8_0, {1, 64}), y);
        const std::vector<float> got = y.download();
        for (std::size_t i = 0; i < 64; ++i) CHECK(std::isnan(got[i]) == (i >= 32));
    }
}

TEMPLATE_TEST_CASE("rope_scatter has the bits of rope and kv_scatter", "", float, half, bfloat16) {
    const runtime::Device races = open_device({.threads = 1, .check = "races", .schedules = 2}), fast = open_device();
    for (const Place place : {Place::packed, Place::odd, Place::permuted})
        for (const std::uint32_t d : {64u, 30u, 128u}) {
            const runtime::Device& device = place == Place::odd && d == 64 ? races : fast;
            const std::uint32_t heads = place == Place::packed ? 5 : 2;
            if (place == Place::permuted && d == 128) continue;
            const Placed<TestType> x(device, place, {tokens, heads, d}, d);
            check_rope<TestType>(device, x, [&] {
                auto made = std::make_shared<runtime::Buffer<TestType>>(
                    device.upload(std::vector<TestType>(cache_rows * heads * d, TestType(9.0f)), "cache"));
                return std::pair(made, MutableTensorView(made->view(cache_rows, heads, d)));
            });
            for (const bool is_q8_0 : {true, false}) {
                if (is_q8_0 && d == 30) continue;
                const ByteCache is{.heads = heads, .of_head = is_q8_0 ? d / 32 * 34 : d};
                check_rope<TestType>(device, x, [&] {
                    const auto made =
                        std::make_shared<const runtime::Buffer<std::uint8_t>>(device.upload(is.empty(), "cache"));
                    return std::pair(made, is.view(*made, is_q8_0));
                });
            }
        }
}

TEST_CASE("rope_scatter: heads of a cache that are rows apart, and Q, K and V in one array") {
    const runtime::Device device = open_device();
    constexpr std::uint32_t heads = 3, d = 64;
    const auto qkv = device.upload(random_elements<half>(tokens * 5 * heads * d, 7, -2, 2), "QKV");
    const auto x = qkv.slice(heads * d, qkv.size() - heads * d).view(tokens, heads, d).pitched(5 * heads * d, d);
    check_rope<half>(device, x, [&] {
        auto made =
            std::make_shared<runtime::Buffer<half>>(device.upload(std::vector<half>(cache_rows * heads * d), "cache"));
        return std::pair(made, MutableTensorView(made->view(cache_rows, heads, d)));
    });
    // A page of (heads, rows, d), of which the rows are the first dimension.
    auto page = device.upload(std::vector<half>(heads * cache_rows * d, half(9.0f)), "page"),
         rows = device.upload(std::vector<half>(heads * cache_rows * d, half(9.0f)), "rows");
    const auto positions = device.upload(slots, "positions"), of_slots = device.upload(slots, "slots");
    const TensorView of_page = TensorView(page.view(heads, cache_rows, d)).permuted({1, 0, 2});
    stdlib::rope_scatter(device, Rope::Neox, x, positions, of_slots, MutableTensorView(of_page), d, 500);
    stdlib::rope_scatter(device, Rope::Neox, x, positions, of_slots, rows.view(cache_rows, heads, d), d, 500);
    const auto a = page.download(), b = rows.download();
    for (std::size_t row = 0; row < cache_rows; ++row)
        for (std::size_t head = 0; head < heads; ++head)
            CHECK(std::memcmp(&a[(head * cache_rows + row) * d], &b[(row * heads + head) * d], d * 2) == 0);
}

TEST_CASE("rope_scatter and kv_scatter by their names") {
    const runtime::Device device = open_device();
    const auto x = device.upload(random_elements<half>(tokens * 2 * 64, 3, -2, 2), "x");
    const auto positions = device.upload(std::vector<std::uint32_t>{0, 7, 3, 9, 1, 65}),
               of_slots = device.upload(slots);
    const ByteCache is{.heads = 2, .of_head = 68};
    const auto run = [&](const char* name, bool turns, const char* form) {
        const stdlib::NamedFunction* const function = stdlib::find_function(name);
        REQUIRE(function);
        const auto cache = device.upload(is.empty(), "cache");
        std::vector<MutableTensorView> arrays{MutableTensorView(TensorView(x.view(tokens, 2, 64)))};
        if (turns) arrays.push_back(MutableTensorView(TensorView(positions)));
        arrays.push_back(MutableTensorView(TensorView(of_slots)));
        arrays.push_back(is.view(cache, true));
        stdlib::FunctionSettings settings;
        if (turns) settings.set("form", form), settings.set("base", "500"), settings.set("rotary", "32");
        function->run(device, arrays, settings);
        return cache.download();
    };
    const auto direct = [&](auto&& write) {
        const auto cache = device.upload(is.empty(), "cache");
        write(is.view(cache, true));
        return cache.download();
    };
    const auto from = x.view(tokens, 2, 64);
    CHECK(run("kv_scatter_q8_0", false, "") ==
          direct([&](const auto& to) { stdlib::kv_scatter(device, from, of_slots, to); }));
    for (const Rope form : {Rope::Interleaved, Rope::Neox})
        CHECK(run("rope_scatter_q8_0", true, form == Rope::Neox ? "neox" : "interleaved") ==
              direct(
                  [&](const auto& to) { stdlib::rope_scatter(device, form, from, positions, of_slots, to, 32, 500); }));
}

TEST_CASE("rope_scatter and kv_scatter: what does not fit") {
    const runtime::Device device = open_device();
    auto x = device.buffer<half>(4 * 2 * 64, "x");
    auto bytes = device.buffer<std::uint8_t>(8 * 2 * 68 + 1, "bytes");
    auto wide = device.buffer<half>(2048, "wide");
    const auto words = device.buffer<std::uint32_t>(4, "words");
    auto small = device.buffer<e4m3>(8 * 2 * 64, "small");
    const auto from = x.view(4, 2, 64);
    const MutableTensorView to(small.view(8, 2, 64));
    const auto blocks = [&](Quantised format, std::initializer_list<std::uint64_t> extents,
                            std::initializer_list<std::uint64_t> pitches = {}) {
        return MutableTensorView(quantised_view(bytes, format, extents, pitches));
    };
    const auto turned = [&](const TensorView& x, const MutableTensorView& cache, std::uint32_t rotary) {
        return tests::message_of(
            [&] { stdlib::rope_scatter(device, Rope::Neox, x, words, words, cache, rotary, 10000); });
    };
    const auto moved = [&](const TensorView& x, const MutableTensorView& cache) {
        return tests::message_of([&] { stdlib::kv_scatter(device, x, words, cache); });
    };
    CHECK_THAT(turned(from, to, 65), tests::contains("rope_scatter: 'rotary' is larger than 'head_dim'"));
    CHECK_THAT(turned(from, to, 33), tests::contains("rope_scatter: a rotary of 33 elements of 64"));
    CHECK_THAT(turned(wide.view(1, 1, 1024), MutableTensorView(wide.view(2, 1, 1024)), 1024),
               tests::contains("rope_scatter: a rotary of 1024") && tests::contains("rope() takes more"));
    CHECK_THAT(turned(x.view(8, 64), to, 64), tests::contains("rope_scatter: 'x' has 2 dimensions"));
    CHECK_THAT(turned(from, MutableTensorView(small.view(8, 64, 2)), 64),
               tests::contains("rope_scatter: x is 4 x 2 x 64, 'cache' is 8 x 64 x 2"));
    CHECK_THAT(turned(x.view(8, 1, 64), MutableTensorView(small.view(16, 1, 64)), 64),
               tests::contains("rope_scatter: 'slots' is 4, and there are 8 tokens"));
    CHECK_THAT(turned(from, from, 64),
               tests::contains("rope_scatter: 'x' (read) and 'cache' (written) are the same memory"));
    CHECK_THAT(turned(from, MutableTensorView(device.buffer<float>(1024).view(8, 2, 64)), 64),
               tests::contains("rope_scatter: 'cache' has elements of f32, x of f16"));
    CHECK_THAT(moved(from, blocks(Quantised::Q4_0, {8, 2, 64})),
               tests::contains("kv_scatter: 'cache' has blocks of q4_0") &&
                   tests::contains("a quantised cache has blocks of q8_0"));
    CHECK_THAT(moved(small.view(4, 2, 64), blocks(Quantised::Q8_0, {8, 2, 64})),
               tests::contains("kv_scatter: 'x' has elements of e4m3"));
    CHECK_THAT(moved(from, MutableTensorView(small.view(2, 2, 2, 64))),
               tests::contains("kv_scatter: 'cache' has 4 dimensions"));
    const std::uint64_t extents[] = {8, 2, 64};
    CHECK_THAT(moved(from, MutableTensorView(TensorView(Quantised::Q8_0, bytes.memory().whole().from(1), extents))),
               tests::contains("kv_scatter: 'cache' begins at byte 1 of its buffer"));
}

}  // namespace ikat::test
