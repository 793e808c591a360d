// SPDX-License-Identifier: Apache-2.0
// The functions of quantised weights by their names, with arrays of bytes and words, against the references.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "stdlib/reference/quantised.hpp"
#include "stdlib/spec/functions.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"
#include "tests/differential/stdlib/case.hpp"
#include "tests/differential/stdlib/samples.hpp"
#include "tests/message.hpp"

namespace {

using namespace ikat;
using stdlib::NamedFunction, stdlib::Quantised;
using tests::message_of;
using Shape = std::vector<std::uint64_t>;
using Given = std::optional<Shape>;

const std::vector<Quantised> formats = test::quantised_formats();

const NamedFunction& named(const std::string& name) {
    const NamedFunction* const function = stdlib::find_function(name);
    INFO(name);
    REQUIRE(function);
    CHECK(function->name == name);
    return *function;
}

/// A call on arrays, each of its own type.
class Call {
public:
    Call(const NamedFunction& function, std::vector<Shape> shapes, const stdlib::FunctionSettings& settings = {})
        : function_(function), shapes_(std::move(shapes)), settings_(settings) {
        REQUIRE(function.arrays.size() == shapes_.size());
    }
    void operator()(const runtime::Device& device, const auto&... buffers) const {
        std::vector<runtime::MutableTensorView> arrays;
        const auto add = [&](const auto& buffer) {
            const std::size_t i = arrays.size();
            const NamedFunction::Array& array = function_.arrays[i];
            arrays.push_back(array.view(array.type, buffer.memory().whole(), shapes_[i],
                                        function_.pitches(array, shapes_[i], settings_)));
        };
        (add(buffers), ...);
        function_.run(device, arrays, settings_);
    }

private:
    const NamedFunction& function_;
    std::vector<Shape> shapes_;
    stdlib::FunctionSettings settings_;
};

/// How many elements are not the bits that they should be.
std::size_t different(const std::vector<float>& got, const std::vector<float>& want) {
    REQUIRE(got.size() == want.size());
    std::size_t out = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
        out += std::bit_cast<std::uint32_t>(got[i]) != std::bit_cast<std::uint32_t>(want[i]);
    return out;
}

/// Rows of W times x, and the sums of magnitudes.
void check_product(const std::vector<float>& y, const std::vector<float>& W, const std::vector<float>& x,
                   double tolerance) {
    REQUIRE(W.size() == y.size() * x.size());
    for (std::size_t row = 0; row < y.size(); ++row) {
        double sum = 0, scale = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double product = double(W[row * x.size() + i]) * x[i];
            sum += product, scale += std::abs(product);
        }
        CHECK(std::abs(y[row] - sum) <= scale * tolerance);
    }
}

}  // namespace

TEST_CASE("quantised functions by name") {
    const runtime::Device device = test::open_device();
    for (const Quantised format : formats) {
        const auto& [name, weights, bytes] = runtime::quantised_formats[std::size_t(format)];
        INFO(name);
        const std::uint64_t columns = 512, row = columns / weights * bytes;
        const std::vector<std::uint8_t> blocks = test::random_blocks(format, 6 * columns / weights, 5);
        const std::vector<float> W = stdlib::reference::dequantise(format, blocks);
        const auto w = device.upload(blocks, "W");

        const NamedFunction& decode = named("dequantise_" + std::string(name));
        const auto extents = decode.extents(std::vector<Given>{Shape{2, 3, row}, {}});
        CHECK(decode.shape(decode.arrays[0], extents) == Shape{2, 3, row});
        CHECK(decode.shape(decode.arrays[1], extents) == Shape{2, 3, columns});
        auto all = device.buffer<float>(W.size(), "y");
        Call(decode, {{2, 3, row}, {2, 3, columns}})(device, w, all);
        CHECK(different(all.download(), W) == 0);

        const auto of_x = test::random_elements<float>(columns, 3, -1, 1);
        const auto x = device.upload(of_x, "x");
        auto y = device.buffer<float>(6, "y");
        const NamedFunction& gemv = named("gemv_" + std::string(name));
        CHECK(gemv.shape(gemv.arrays[2], gemv.extents(std::vector<Given>{Shape{6, row}, Shape{columns}, {}})) ==
              Shape{6});
        Call(gemv, {{2, 3, row}, {columns}, {2, 3}})(device, w, x, y);
        check_product(y.download(), W, of_x, 0x1p-20);

        const NamedFunction& quantise = named("quantise_q8_1");
        CHECK(quantise.shape(quantise.arrays[1], quantise.extents(std::vector<Given>{Shape{2, columns}, {}})) ==
              Shape{2, columns / 32 * 9});
        auto q = device.buffer<std::uint32_t>(columns / 32 * 9, "q");
        Call(quantise, {{columns}, {columns / 32 * 9}})(device, x, q);
        CHECK(q.download() == stdlib::reference::quantise_q8_1(of_x));
        Call(named("gemv_" + std::string(name) + "_q8_1"), {{6, row}, {columns / 32 * 9}, {6}})(device, w, q, y);
        check_product(y.download(), W, stdlib::reference::dequantise_q8_1(q.download()), 0x1p-12);
    }
}

TEST_CASE("quantised functions by name: rows at pitches") {
    const runtime::Device device = test::open_device();
    const std::vector<std::uint8_t> blocks = test::random_blocks(Quantised::Q4_K, 5, 1);
    const auto W = stdlib::reference::dequantise(Quantised::Q4_K, blocks);
    stdlib::FunctionSettings settings;
    settings.set("W_pitch", "432"), settings.set("y_pitch", "300");
    auto y = device.upload(std::vector<float>(556, -77), "y");
    const auto w = device.upload(blocks, "W");
    Call(named("dequantise_q4_k"), {{2, 144}, {2, 256}}, settings)(device, w, y);
    const std::vector<float> got = y.download();
    CHECK(different({got.begin(), got.begin() + 256}, {W.begin(), W.begin() + 256}) == 0);
    CHECK(different({got.begin() + 256, got.begin() + 300}, std::vector<float>(44, -77)) == 0);
    CHECK(different({got.begin() + 300, got.end()}, {W.begin() + 3 * 256, W.begin() + 4 * 256}) == 0);
}

TEST_CASE("quantised functions by name: arrays that do not fit") {
    const NamedFunction& gemv = named("gemv_q4_k");
    const auto message = [&](const Shape& W, const Shape& x) {
        return message_of([&] { gemv.extents(std::vector<Given>{W, x, {}}); });
    };
    CHECK(message({3, 145}, {256}).contains("gemv_q4_k: 'W' is 3 x 145, and a block of q4_k has 144 elements"));
    CHECK(message({3, 144}, {512}).contains("'x' is 512: its columns is 512, and that of 'W' is 256"));
    CHECK(message({144}, {256}).contains("'W' has a shape of rank 1, 144"));
    const NamedFunction& quantise = named("quantise_q8_1");
    const auto extents = quantise.extents(std::vector<Given>{Shape{33}, {}});
    CHECK(message_of([&] {
              quantise.shape(quantise.arrays[1], extents);
          }).contains("quantise_q8_1: columns is 33, and 'q' has whole blocks of 32"));
    stdlib::FunctionSettings settings;
    settings.set("W_pitch", "145");
    CHECK(message_of([&] {
              gemv.pitches(gemv.arrays[0], Shape{3, 144}, settings);
          }).contains("'W_pitch' is 145, which is not whole blocks of 144 elements"));
}

TEST_CASE("quantised functions by other names") {
    CHECK(stdlib::find_function("quantize_q8_1") == stdlib::find_function("quantise_q8_1"));
    CHECK(stdlib::find_function("dequantise") == nullptr);  // of no format
    CHECK(stdlib::find_function("dequantize") == nullptr);
    CHECK(stdlib::nearest_name("dequantise") == "dequantise_q2_k");
    CHECK(stdlib::find_function("gemv")->name == "gemv");
}
