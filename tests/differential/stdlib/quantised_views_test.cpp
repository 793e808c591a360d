// SPDX-License-Identifier: Apache-2.0
// Quantised weights whose rows have gaps and begin anywhere, and the arrays that they are multiplied with and become:
// the bits of the same arrays without gaps.
#include <bit>
#include <cstring>
#include <string>

#include "runtime/exec/recorder.hpp"
#include "stdlib/gemm/gemv.hpp"
#include "stdlib/quantised/quantised.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/placed.hpp"
#include "tests/differential/stdlib/samples.hpp"
#include "tests/message.hpp"

namespace ikat::test {
namespace {

using stdlib::Quantised;

const std::vector<Quantised> formats = test::quantised_formats();

/// Rows of weights in a buffer, with gaps of 0xff, which decode to NaN.
class PlacedWeights {
public:
    /// That many blocks between rows, and between the last dimension but one; byte `first` is the first weight's.
    PlacedWeights(const runtime::Device& device, Quantised format, const Extents& extents, std::uint32_t gap,
                  std::uint32_t first)
        : format_(format), extents_(extents), first_(first) {
        const std::uint32_t bytes = stdlib::bytes_of(format), weights = stdlib::weights_of(format);
        const std::uint64_t blocks = extents.back() / weights;
        std::uint64_t rows = 1, stride = blocks + gap;
        for (std::size_t d = extents.size() - 1; d-- > 0;) {
            pitches_.insert(pitches_.begin(), stride * weights);
            rows *= extents[d];
            stride = stride * extents[d] + gap;
        }
        const auto all = random_blocks(format, rows * blocks, 7);
        std::vector<std::uint8_t> host(first + stride * bytes + 3, 0xff);
        for (std::uint64_t row = 0; row < rows; ++row) {
            std::uint64_t at = 0, rest = row;
            for (std::size_t d = extents.size() - 1; d-- > 0; rest /= extents[d])
                at += rest % extents[d] * pitches_[d] / weights * bytes;
            std::memcpy(&host[first + at], &all[row * blocks * bytes], blocks * bytes);
        }
        buffer_.emplace(device.upload(host, "w"));
    }
    TensorView view() const { return TensorView(format_, buffer_->memory().whole().from(first_), extents_, pitches_); }
    runtime::Buffer<std::uint8_t>& buffer() { return *buffer_; }

private:
    Quantised format_;
    Extents extents_, pitches_{};
    std::uint32_t first_;
    std::optional<runtime::Buffer<std::uint8_t>> buffer_;
};

std::vector<std::uint32_t> bits_of(const std::vector<float>& numbers) {
    std::vector<std::uint32_t> out;
    for (const float number : numbers) out.push_back(std::bit_cast<std::uint32_t>(number));
    return out;
}

/// How many numbers differ.
std::size_t differ(const std::vector<std::uint32_t>& got, const std::vector<std::uint32_t>& want) {
    std::size_t out = got.size() == want.size() ? 0 : 1;
    for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i) out += got[i] != want[i];
    return out;
}

/// f(W) for weights in all places.
void for_all_places(const runtime::Device& device, Quantised format, const Extents& extents, auto&& f) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> places{{0, 2}, {0, 14}, {1, 0}, {1, 16}, {2, 34}, {1, 50}};
    if (stdlib::bytes_of(format) % 2 != 0) places.insert(places.end(), {{0, 1}, {1, 15}, {2, 33}});
    for (const auto& [gap, first] : places) {
        INFO("a gap of " << gap << " blocks, from byte " << first << " on");
        const PlacedWeights weights(device, format, extents, gap, first);
        f(weights.view());
    }
}

/// More units than a piece, a few blocks, and one.
std::vector<std::uint64_t> columns_of(Quantised format) {
    const std::uint64_t weights = stdlib::weights_of(format);
    return {weights, 3 * weights, 67 * 32 / weights * weights + weights};
}

}  // namespace

TEST_CASE("quantised products of views") {
    const runtime::Device device = open_device();
    for (const Quantised format : formats)
        for (const std::uint64_t columns : columns_of(format)) {
            INFO("format " << int(format) << ", " << columns << " columns");
            const Extents of_w{2, 3, columns};
            const PlacedWeights weights(device, format, of_w, 0, 0);
            const Placed<float> x(device, Place::packed, {columns}, 1), odd_x(device, Place::odd, {columns}, 1),
                y(device, Place::packed, {6}, 2);
            auto q = device.buffer<std::uint32_t>(columns / 32 * 9 + 1, "q");
            auto q_part = q.slice(0, columns / 32 * 9), odd_q = q.slice(1, columns / 32 * 9);
            const auto check = [&](const TensorView& W, const TensorView& of_x, const std::vector<float>& want) {
                const Placed<float> odd(device, Place::odd, {6}, 2), rows(device, Place::odd, {2, 3}, 2),
                    column(device, Place::odd, {2, 3, 1}, 2), turned(device, Place::permuted, {2, 3, 1}, 2);
                for (const Placed<float>* out : {&odd, &rows, &column, &turned}) {
                    stdlib::gemv(device, W, of_x, out->view());
                    CHECK(differ(bits_of(out->elements()), bits_of(want)) == 0);
                    CHECK(out->changed_gaps() == 0);
                }
            };
            stdlib::gemv(device, weights.view(), x, y);
            const auto want = y.elements();
            check(weights.view(), odd_x, want);
            for_all_places(device, format, of_w, [&](const TensorView& W) { check(W, x, want); });
            for_all_places(device, format, of_w, [&](const TensorView& W) { check(W, odd_x, want); });

            stdlib::quantise_q8_1(device, x, q_part);
            stdlib::gemv(device, weights.view(), q_part, y);
            const auto of_blocks = y.elements();
            stdlib::quantise_q8_1(device, x, odd_q);
            for_all_places(device, format, of_w, [&](const TensorView& W) { check(W, odd_q, of_blocks); });
            // The planes of W in another order.
            const TensorView turned = weights.view().permuted({1, 0, 2});
            stdlib::gemv(device, turned, odd_q, y);
            const auto got = y.elements();
            for (std::size_t i = 0; i < 6; ++i) CHECK(got[i] == of_blocks[i % 2 * 3 + i / 2]);
        }
}

TEST_CASE("quantised weights of views decode to rows with gaps") {
    const runtime::Device device = open_device();
    for (const Quantised format : formats)
        for (const std::uint64_t columns : columns_of(format)) {
            INFO("format " << int(format) << ", " << columns << " columns");
            const Extents extents{2, 3, columns};
            const PlacedWeights weights(device, format, extents, 0, 0);
            const Placed<float> y(device, Place::packed, extents, 2);
            stdlib::dequantise(device, weights.view(), y);
            const auto want = bits_of(y.elements());
            const auto check = [&](const TensorView& W) {
                for (const Place place : {Place::packed, Place::aligned, Place::odd, Place::permuted}) {
                    INFO("place " << int(place));
                    const Placed<float> out(device, place, extents, 2);
                    stdlib::dequantise(device, W, out);
                    CHECK(differ(bits_of(out.elements()), want) == 0);
                    CHECK(out.changed_gaps() == 0);
                }
                const Placed<float> flat(device, Place::odd, {6 * columns}, 2),
                    rows(device, Place::odd, {6, columns}, 2);
                stdlib::dequantise(device, W, flat);
                CHECK(differ(bits_of(flat.elements()), want) == 0);
                CHECK(flat.changed_gaps() == 0);
                if (W.strides[0] == 3 * columns) {
                    stdlib::dequantise(device, W, rows);
                    CHECK(differ(bits_of(rows.elements()), want) == 0);
                    CHECK(rows.changed_gaps() == 0);
                }
            };
            check(weights.view());
            for_all_places(device, format, extents, check);
        }
}

TEST_CASE("activations of views become the words of Q8_1") {
    const runtime::Device device = open_device();
    for (const std::uint64_t columns : {32u, 96u, 320u}) {
        INFO(columns << " columns");
        const Extents of_x{3, 2, columns}, of_q{3, 2, columns / 32 * 9};
        const Placed<float> x(device, Place::packed, of_x, 1);
        const Placed<std::uint32_t> q(device, Place::packed, of_q, 2);
        stdlib::quantise_q8_1(device, x, q);
        const auto want = q.exact();
        for (const Place of_input : {Place::packed, Place::aligned, Place::odd, Place::permuted})
            for (const Place of_output : {Place::packed, Place::aligned, Place::odd, Place::permuted}) {
                INFO("places " << int(of_input) << " and " << int(of_output));
                const Placed<float> in(device, of_input, of_x, 1);
                const Placed<std::uint32_t> out(device, of_output, of_q, 2);
                stdlib::quantise_q8_1(device, in, out);
                CHECK(differ(out.exact(), want) == 0);
                CHECK(out.changed_gaps() == 0);
            }
        // Without gaps x and q need not have the same dimensions.
        const Placed<float> flat(device, Place::odd, {6 * columns}, 1), rows(device, Place::odd, of_x, 1);
        const Placed<std::uint32_t> flat_q(device, Place::odd, {6 * columns / 32 * 9}, 2),
            rows_q(device, Place::odd, {6, columns / 32 * 9}, 2);
        stdlib::quantise_q8_1(device, flat, rows_q);
        CHECK(differ(rows_q.exact(), want) == 0);
        stdlib::quantise_q8_1(device, rows, flat_q);
        CHECK(differ(flat_q.exact(), want) == 0);
        CHECK(rows_q.changed_gaps() + flat_q.changed_gaps() == 0);
    }
}

TEST_CASE("quantised views without elements") {
    const runtime::Device device = open_device();
    const auto w = device.buffer<std::uint8_t>(0, "w");
    const Placed<float> x(device, Place::odd, {64}, 1), none(device, Place::odd, {0}, 1),
        y(device, Place::odd, {2, 3}, 1), nothing(device, Place::odd, {0, 3}, 1),
        no_rows(device, Place::odd, {0, 64}, 1);
    const Placed<std::uint32_t> no_words(device, Place::odd, {0, 18}, 1);
    stdlib::gemv(device, stdlib::quantised_view(w, Quantised::Q8_0, {0, 3, 64}), x, nothing);
    stdlib::gemv(device, stdlib::quantised_view(w, Quantised::Q8_0, {2, 3, 0}), none, y);
    CHECK(y.elements() == std::vector<float>(6));
    stdlib::dequantise(device, stdlib::quantised_view(w, Quantised::Q8_0, {0, 64}), no_rows);
    stdlib::quantise_q8_1(device, no_rows, no_words);
    CHECK(y.changed_gaps() + nothing.changed_gaps() + no_rows.changed_gaps() + no_words.changed_gaps() == 0);
}

TEST_CASE("quantised weights at pitches are copied without their gaps") {
    const runtime::Device device = open_device();
    const runtime::Queue queue(device);
    const Extents extents{2, 3, 64};
    PlacedWeights from(device, Quantised::Q8_0, extents, 1, 34), dense(device, Quantised::Q8_0, extents, 0, 0);
    auto copy = device.upload(std::vector<std::uint8_t>(12 * 34, 1), "copy");
    queue.copy(MutableTensorView(stdlib::quantised_view(copy, Quantised::Q8_0, {2, 3, 64})), from.view());
    auto want = dense.buffer().download();
    want.resize(12 * 34);
    CHECK(copy.download() == want);
    auto back = device.upload(std::vector<std::uint8_t>(20 * 34, 1), "back");
    const auto apart = stdlib::quantised_view(back, Quantised::Q8_0, {2, 3, 64}, {9 * 32, 3 * 32});
    queue.copy(MutableTensorView(apart), stdlib::quantised_view(copy, Quantised::Q8_0, {2, 3, 64}));
    const auto got = back.download();
    for (std::size_t block = 0; block < 20; ++block) {
        const bool is_gap = block % 3 == 2 || block >= 18;
        const std::uint8_t expected = is_gap ? 1 : want[(block / 3 * 2 + block % 3) * 34];
        CHECK(got[block * 34] == expected);
    }
}

TEST_CASE("the launches of quantised weights that one does not reach") {
    const runtime::Device device = runtime::Device::open({.device = "emulator", .is_plan = true});
    const std::uint64_t rows = 100000, columns = 65536, row_bytes = columns / 256 * 144;
    const auto w = device.buffer<std::uint8_t>(2 * rows * row_bytes, "w");
    const auto x = device.buffer<float>(columns, "x");
    auto y = device.buffer<float>(rows, "y"), all = device.buffer<float>(rows * columns, "all");
    for (const std::uint64_t pitch : {columns, 2 * columns}) {
        const TensorView W = stdlib::quantised_view(w, Quantised::Q4_K, {rows, columns}, {pitch});
        const runtime::Recorder recorder(device, runtime::Recorder::Runs::No);
        stdlib::gemv(recorder, W, x, y);
        stdlib::dequantise(recorder, W, all.view(rows, columns));
        std::uint64_t of_gemv = 0, elements = 0;
        for (const auto& launch : recorder.launches()) {
            const bool is_gemv = launch.kernel->name() == std::string("gemv_q4_k_pitched");
            CHECK(launch.arguments[0].part.bytes < std::uint64_t{1} << 32);
            const std::uint64_t r = launch.arguments[is_gemv ? 3 : 2].bits, c = launch.arguments[is_gemv ? 4 : 3].bits;
            if (is_gemv) {
                CHECK(launch.arguments[0].part.offset == of_gemv * pitch / 256 * 144);
                CHECK(launch.arguments[2].part.offset == of_gemv * 4);
                of_gemv += r;
            } else {
                CHECK(launch.kernel->name() == std::string("dequantise_q4_k_pitched"));
                CHECK(launch.arguments[1].part.offset == elements * 4);
                elements += r * c;
            }
        }
        CHECK(of_gemv == rows);
        CHECK(elements == rows * columns);
    }
}

TEST_CASE("views that quantised functions do not take") {
    const runtime::Device device = open_device();
    auto w = device.buffer<std::uint8_t>(34 * 12 + 2, "w");
    auto x = device.buffer<float>(400, "x"), y = device.buffer<float>(400, "y");
    auto words = device.buffer<std::uint32_t>(100, "words");
    const auto check = [](const std::string& wanted, const std::string& hint, auto&& call) {
        const std::string message = tests::message_of(call);
        CHECK_THAT(message, Catch::Contains(wanted) && Catch::Contains("quantised_views_test.cpp:"));
        CHECK_THAT(message, Catch::Contains(hint));
    };
    const TensorView W = stdlib::quantised_view(w, Quantised::Q8_0, {4, 64}, {96});
    check("gemv: W begins at byte 1 of its buffer", "blocks begin at even bytes", [&] {
        stdlib::gemv(device, stdlib::quantised_view(w.slice(1, 68), Quantised::Q8_0, {1, 64}), x.slice(0, 64), y);
    });
    check("dequantise: the weights of a row of W are 96 apart", "those of the last dimension follow each other", [&] {
        stdlib::dequantise(device, W.permuted({1, 0}), y);
    });
    TensorView between = W;
    between.strides[0] = 80;
    check("gemv: rows of W are 80 weights apart", "whole blocks of 32 weights",
          [&] { stdlib::gemv(device, between, x.slice(0, 64), y); });
    check("gemv: the elements of 'x' have gaps", "copy it to an array without gaps",
          [&] { stdlib::gemv(device, W, x.view(2, 32).pitched(40), y); });
    check("gemv: 'x' has 63 elements, 64 are needed", "check the dimensions",
          [&] { stdlib::gemv(device, W, x.slice(1, 63), y); });
    check("gemv: 'y' is 5 x 1, with gaps", "y has an element for each of its rows",
          [&] { stdlib::gemv(device, W, x.slice(0, 64), y.view(5, 1).pitched(2)); });
    check("gemv: 'y' has elements of u32", "they are f32", [&] { stdlib::gemv(device, W, x, words); });
    check("gemv: 'x' (read) and 'y' (written) are the same memory", "a buffer, or a slice, of its own",
          [&] { stdlib::gemv(device, W, x.slice(1, 64), x.slice(60, 4)); });
    check("dequantise: 'y' is 4 x 60, with gaps", "W is 4 x 64",
          [&] { stdlib::dequantise(device, W, y.view(4, 60).pitched(64)); });
    check("dequantise: 'y' has 255 elements, 256 are needed", "check the dimensions",
          [&] { stdlib::dequantise(device, W, y.slice(1, 255)); });
    check("dequantise: the elements of a row of 'y' are 4 apart", "those of the last dimension follow each other", [&] {
        stdlib::dequantise(device, W, MutableTensorView(TensorView(y.view(64, 4)).permuted({1, 0})));
    });
    check("quantise_q8_1: 'x' has gaps between rows of 48 elements", "pad rows with zeros",
          [&] { stdlib::quantise_q8_1(device, x.view(2, 48).pitched(50), words); });
    check("quantise_q8_1: 'q' is 2 x 17, with gaps", "9 words for 32 elements",
          [&] { stdlib::quantise_q8_1(device, x.view(2, 64).pitched(70), words.view(2, 17).pitched(20)); });
    check("quantise_q8_1: 'q' is 3 x 18, with gaps", "'x' is 128",
          [&] { stdlib::quantise_q8_1(device, x.slice(0, 128), words.view(3, 18).pitched(20)); });
    check("quantise_q8_1: 'q' has 35 elements, 36 are needed", "check the dimensions",
          [&] { stdlib::quantise_q8_1(device, x.view(2, 64).pitched(70), words.slice(1, 35)); });
    const runtime::Device plan = runtime::Device::open({.device = "emulator", .is_plan = true});
    const auto large = plan.buffer<float>(std::uint64_t{1} << 32, "large");
    auto many = plan.buffer<std::uint32_t>(std::uint64_t{9} << 27, "many");
    check("quantise_q8_1: 'x' has 4294967296 elements, more than a 32-bit index reaches", "several launches",
          [&] { stdlib::quantise_q8_1(plan, large, many); });
    CHECK_THROWS_WITH(stdlib::quantised_view(w, Quantised::Q8_0, {4, 64}, {80}),
                      Catch::Contains("a pitch of 80 weights is not whole blocks of q8_0"));
    CHECK_THROWS_WITH(stdlib::quantised_view(w, Quantised::Q8_0, {5, 64}, {96}), Catch::Contains("buffer 'w'"));
}

}  // namespace ikat::test
