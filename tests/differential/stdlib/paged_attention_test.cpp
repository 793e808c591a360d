// SPDX-License-Identifier: Apache-2.0
// flash_attention() to keys in pages, encoded or not: the bits of keys that follow each other.
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "stdlib/attention/attention.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/encoded_rows.hpp"
#include "tests/message.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using namespace ikat::tests;
using runtime::Device;

struct Paged {
    std::vector<std::uint32_t> queries, keys;  // of sequences
    std::uint32_t heads = 4, kv_heads = 2, d = 64, page_rows = 16, gap = 0;
    bool heads_in_rows = false;  // of pages
    AttentionOptions options{};

    std::uint32_t sequences() const { return std::uint32_t(keys.size()); }
    std::uint32_t max_pages() const { return (*std::max_element(keys.begin(), keys.end()) - 1) / page_rows + 1; }
    /// One of them belongs to nobody.
    std::uint32_t pages() const { return sequences() * max_pages() + 1; }
    std::uint32_t page(std::uint32_t s, std::uint32_t key) const {
        return pages() - 1 - (s * max_pages() + key / page_rows);
    }
};

/// Numbers between -1 and 1.
float small(std::size_t i) { return float((i * 2654435761u >> 7) % 129) / 64 - 1; }
std::vector<std::uint32_t> sums_of(const std::vector<std::uint32_t>& counts) {
    std::vector<std::uint32_t> out{0};
    for (const std::uint32_t count : counts) out.push_back(out.back() + count);
    return out;
}

/// A view of rows of heads, of elements of T, or of bytes as they are encoded.
template <class E>
TensorView view_of(const runtime::Buffer<E>& all, const std::vector<std::uint64_t>& extents,
                   const std::vector<std::uint64_t>& pitches, Encoding encoding) {
    const runtime::BufferPart part = all.memory().whole();
    if (!std::is_same_v<E, std::uint8_t>) return TensorView(ir::type_of<E>, part, extents, pitches);
    return encoding == Encoding::q8_0 ? TensorView(runtime::Quantised::Q8_0, part, extents, pitches)
                                      : TensorView(ir::Type::E4M3, part, extents, pitches);
}

/// O of the same call with keys one after the other, by offsets, and in pages. E: T, or bytes of an encoding.
template <class T, class E>
void check_paged(const Device& device, const Paged& is, Encoding encoding = Encoding::e4m3) {
    INFO("page " << is.page_rows << ", d " << is.d << ", bytes " << sizeof(E) << ", encoding " << int(encoding));
    const auto query_starts = sums_of(is.queries), key_starts = sums_of(is.keys);
    const std::uint32_t of_row = sizeof(E) == 1 ? bytes_of_row(encoding, is.d) : is.d;
    const std::uint64_t all_keys = key_starts.back(), all_queries = query_starts.back(), heads = is.kv_heads;
    // Rows of keys, then heads.
    const auto rows = [&](std::size_t seed) {
        std::vector<float> numbers;
        for (std::size_t n = 0; n < all_keys * heads * is.d; ++n) numbers.push_back(small(n + seed));
        if constexpr (std::is_same_v<E, std::uint8_t>)
            return encoded(encoding, numbers);
        else
            return std::vector<T>(numbers.begin(), numbers.end());
    };
    const std::uint32_t gap = is.gap * (sizeof(E) == 1 && encoding == Encoding::q8_0 ? 34 : 1), pitch = of_row + gap;
    const auto in_pages = [&](const std::vector<E>& from) {
        std::vector<E> out(std::size_t(is.pages()) * is.page_rows * heads * pitch, sizeof(E) == 1 ? E(0x7f) : E(NAN));
        for (std::uint32_t s = 0; s < is.sequences(); ++s)
            for (std::uint32_t j = 0; j < is.keys[s]; ++j)
                for (std::uint32_t h = 0; h < heads; ++h) {
                    const std::size_t plane = is.page(s, j), row = j % is.page_rows;
                    const std::size_t at = is.heads_in_rows ? (plane * is.page_rows + row) * heads + h
                                                            : (plane * heads + h) * is.page_rows + row;
                    std::copy_n(from.begin() + std::ptrdiff_t(((key_starts[s] + j) * heads + h) * of_row), of_row,
                                out.begin() + std::ptrdiff_t(at * pitch));
                }
        return out;
    };
    std::vector<std::uint32_t> numbers(std::size_t(is.sequences()) * is.max_pages(), 0xfffffff0);
    for (std::uint32_t s = 0; s < is.sequences(); ++s)
        for (std::uint32_t j = 0; j < is.keys[s]; ++j) numbers[s * is.max_pages() + j / is.page_rows] = is.page(s, j);
    const auto table = device.upload(numbers, "pages"), query_offsets = device.upload(query_starts, "query_offsets"),
               key_offsets = device.upload(key_starts, "key_offsets");
    const auto k = rows(5), v = rows(99);
    const auto K = device.upload(k, "K"), V = device.upload(v, "V"), K_pages = device.upload(in_pages(k), "K pages"),
               V_pages = device.upload(in_pages(v), "V pages");
    std::vector<T> q;
    for (std::size_t n = 0; n < all_queries * is.heads * is.d; ++n) q.push_back(T(small(n)));
    const auto Q = device.upload(q, "Q");
    const auto weights = [&](std::uint64_t elements) {
        return sizeof(E) == 1 && encoding == Encoding::q8_0 ? elements / 34 * 32 : elements;
    };
    const auto plain = [&](const auto& x) {
        return heads_in_rows(
            view_of(x, {1, all_keys, heads, is.d}, {all_keys * heads * is.d, heads * is.d, is.d}, encoding));
    };
    const auto paged = [&](const auto& x) {
        const std::uint64_t row = weights(pitch), outer = is.heads_in_rows ? is.page_rows : heads,
                            inner = is.heads_in_rows ? heads : is.page_rows;
        const TensorView out =
            view_of(x, {is.pages(), outer, inner, is.d}, {outer * inner * row, inner * row, row}, encoding);
        return is.heads_in_rows ? heads_in_rows(out) : out;
    };
    const auto run = [&](const TensorView& K, const TensorView& V, bool has_pages) {
        auto O = device.buffer<T>(q.size(), "O");
        auto log_sum = device.buffer<float>(all_queries * is.heads, "log_sum");
        AttentionOptions options = is.options;
        options.path = AttentionPath::mma_sync;
        options.query_offsets = query_offsets, options.key_offsets = key_offsets;
        options.log_sum = log_sum.view(is.heads, all_queries);
        if (has_pages) options.pages = table.view(is.sequences(), is.max_pages());
        const auto heads_of = [&](auto& x) { return heads_in_rows(x.view(1, all_queries, is.heads, is.d)); };
        flash_attention(device, heads_of(Q), K, V, heads_of(O), options);
        return std::pair(O.download(), log_sum.download());
    };
    const auto want = run(plain(K), plain(V), false), got = run(paged(K_pages), paged(V_pages), true);
    CHECK(got.first == want.first);
    CHECK(got.second == want.second);
}

}  // namespace

TEMPLATE_TEST_CASE("attention to pages gives the bits of keys that follow each other", "", half, bfloat16, float) {
    const Device devices[] = {test::open_device({.schedule = "1"}),
                              test::open_device({.threads = 1, .check = "races", .schedules = 2})};
    const Paged cases[] = {
        {.queries = {5, 0, 17}, .keys = {9, 40, 80}, .heads = 2, .kv_heads = 1, .options = {.causal = true}},
        {.queries = {20, 1}, .keys = {129, 31}, .heads = 2, .d = 128, .page_rows = 64, .heads_in_rows = true},
        {.queries = {66, 3},
         .keys = {100, 127},
         .heads = 2,
         .d = 64,
         .page_rows = 128,
         .gap = 1,
         .options = {.window_left = 40, .soft_cap = 2}},
        {.queries = {9, 20},
         .keys = {33, 50},
         .heads = 2,
         .kv_heads = 1,
         .d = 256,
         .page_rows = 32,
         .options = {.causal = true}},
    };
    static std::size_t number = 0;  // each type has half of the encodings of each case
    for (std::size_t i = 0; i < std::size(cases); ++i) {
        const Device& device = devices[i == 0];
        check_paged<TestType, TestType>(device, cases[i]);
        check_paged<TestType, std::uint8_t>(device, cases[i], encodings[number++ % 2]);
    }
    ++number;
    check_paged<TestType, TestType>(devices[0], {.queries = {9}, .keys = {50}, .d = 80, .options = {.causal = true}});
}

TEST_CASE("attention to pages: without offsets all pages are full") {
    const Device device = test::open_device();
    std::vector<half> numbers;
    for (std::size_t n = 0; n < 4 * 16 * 64; ++n) numbers.push_back(half(small(n)));
    const auto cache = device.upload(numbers, "cache"),
               q = device.upload(std::vector<half>(2 * 3 * 64, half(0.5f)), "Q");
    const auto table = device.upload(std::vector<std::uint32_t>{0, 1, 2, 3}, "pages");
    auto by_pages = device.buffer<half>(2 * 3 * 64), at_once = device.buffer<half>(2 * 3 * 64);
    const auto pages = cache.view(4, 1, 16, 64), sequences = cache.view(2, 1, 32, 64);
    flash_attention(device, q.view(2, 1, 3, 64), pages, pages, by_pages.view(2, 1, 3, 64),
                    {.causal = true, .pages = table.view(2, 2)});
    flash_attention(device, q.view(2, 1, 3, 64), sequences, sequences, at_once.view(2, 1, 3, 64), {.causal = true});
    CHECK(by_pages.download() == at_once.download());
}

TEST_CASE("attention to pages: what does not fit, and a page that does not exist") {
    const Device device = test::open_device(), hopper = test::open_device({.target = "sm_90a"});
    const auto run = [&](const Device& device, std::uint32_t last, std::uint32_t page_rows,
                         const AttentionOptions& more = {}, std::uint32_t rows = 1) {
        const auto cache = device.upload(std::vector<half>(4 * 16 * 64), "cache"),
                   q = device.upload(std::vector<half>(64), "Q");
        const auto table = device.upload(std::vector<std::uint32_t>{3, 0, 1, last}, "pages");
        auto o = device.buffer<half>(64, "O");
        AttentionOptions options = more;
        options.pages = table.view(rows, 4 / rows);
        const auto pages = cache.view(64 / page_rows, 1, page_rows, 64);
        return message_of(
            [&] { flash_attention(device, q.view(1, 1, 1, 64), pages, pages, o.view(1, 1, 1, 64), options); });
    };
    CHECK(run(device, 2, 16) == "");
    CHECK_THAT(run(device, 2, 8), contains("flash_attention: pages of 8 rows"));
    CHECK_THAT(run(device, 2, 16, {}, 2),
               contains("flash_attention: pages is 1 x 1 x 2 x 2, and there are 1 sequences"));
    CHECK_THAT(run(hopper, 2, 16, {.path = AttentionPath::wgmma}),
               contains("flash_attention: wgmma: K and V are in pages"));
    if (!std::getenv("IKAT_DEVICE")) CHECK_THAT(run(device, 4, 16), contains("past the end of buffer 'cache'"));
}
