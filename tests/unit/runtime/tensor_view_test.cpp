// SPDX-License-Identifier: Apache-2.0
// Views whose type and shape are data.
#include "runtime/tensor_view.hpp"

#include "tests/catch.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/emulator.hpp"

namespace ikat::tests {
namespace {

using runtime::MutableTensorView;
using runtime::TensorView;
using Shape = std::vector<std::uint64_t>;

Shape extents(const TensorView& view) { return {view.extents.begin(), view.extents.begin() + view.rank}; }
Shape strides(const TensorView& view) { return {view.strides.begin(), view.strides.begin() + view.rank}; }

TEST_CASE("tensor views: of buffers, slices and views of any type") {
    const runtime::Device device = emulator();
    auto x = device.buffer<float>(120, "x");
    const TensorView all = x;
    CHECK(all.type == ir::Type::F32);
    CHECK(extents(all) == Shape{120});
    CHECK(strides(all) == Shape{1});
    CHECK(all.part.bytes == 480);
    const TensorView slice = x.slice(8, 5);
    CHECK(extents(slice) == Shape{5});
    CHECK(slice.part.offset == 32);
    const MutableTensorView pitched = x.slice(1, 100).view(3, 4, 5).pitched(30, 6);
    CHECK(extents(pitched) == Shape{3, 4, 5});
    CHECK(strides(pitched) == Shape{30, 6, 1});
    CHECK(pitched.part.offset == 4);
    CHECK(pitched.part.bytes == (2 * 30 + 3 * 6 + 5) * 4);
    const auto words = device.buffer<std::uint16_t>(8);
    CHECK(TensorView(words.view(2, 4)).type == ir::Type::U16);
    CHECK(TensorView().rank == 0);
}

TEST_CASE("tensor views: more dimensions, and in another order") {
    const runtime::Device device = emulator();
    const auto x = device.buffer<half>(120, "x");
    const TensorView view = x.view(2, 3, 4).pitched(20, 5);
    const TensorView more = view.of_rank(5);
    CHECK(extents(more) == Shape{1, 1, 2, 3, 4});
    CHECK(strides(more) == Shape{0, 0, 20, 5, 1});
    CHECK(more.part.bytes == view.part.bytes);
    const TensorView turned = view.permuted({2, 0, 1});
    CHECK(extents(turned) == Shape{4, 2, 3});
    CHECK(strides(turned) == Shape{1, 20, 5});
    CHECK(view.shape<2>() == std::array<std::uint64_t, 2>{2, 3});
}

TEST_CASE("tensor views: of a part, with a shape that is data") {
    const runtime::Device device = emulator();
    const auto bytes = device.buffer<std::uint8_t>(96, "bytes");
    const Shape shape{2, 3, 4}, pitches{20, 5};
    const TensorView rows(ir::Type::F32, bytes.memory().whole(), shape);
    CHECK(strides(rows) == Shape{12, 4, 1});
    CHECK(rows.part.bytes == 96);
    const TensorView apart(ir::Type::F16, bytes.memory().whole(), shape, pitches);
    CHECK(strides(apart) == Shape{20, 5, 1});
    CHECK(apart.part.bytes == (20 + 2 * 5 + 4) * 2);
    CHECK_THAT(message_of([&] { TensorView(ir::Type::F64, bytes.memory().whole(), shape); }),
               contains("buffer 'bytes': a view of 2 x 3 x 4 elements"));
    const TensorView vector(ir::Type::F32, bytes.memory().whole(), Shape{24});
    CHECK(extents(vector) == Shape{24});
    CHECK_THROWS_AS(TensorView(ir::Type::F32, bytes.memory().whole(), Shape{25}), Error);
}

TEST_CASE("tensor views: quantised weights at pitches of whole blocks") {
    const runtime::Device device = emulator();
    const auto bytes = device.buffer<std::uint8_t>(11 * 34, "bytes");
    using runtime::Quantised;
    const TensorView plain = runtime::quantised_view(bytes, Quantised::Q8_0, {2, 64});
    CHECK(strides(plain) == Shape{64, 1});
    const TensorView apart = runtime::quantised_view(bytes, Quantised::Q8_0, {2, 2, 64}, {192, 96});
    CHECK(extents(apart) == Shape{2, 2, 64});
    CHECK(strides(apart) == Shape{192, 96, 1});
    CHECK(apart.part.bytes == 11 * 34);
    CHECK_THAT(message_of([&] {
                   runtime::quantised_view(bytes, Quantised::Q8_0, {2, 64}, {80});
               }),
               contains("a pitch of 80 weights is not whole blocks of q8_0"));
    CHECK_THAT(message_of([&] {
                   runtime::quantised_view(bytes, Quantised::Q8_0, {2, 64}, {32});
               }),
               contains("with a pitch of 34, which is less than 68"));
    CHECK_THAT(message_of([&] {
                   runtime::quantised_view(bytes, Quantised::Q8_0, {2, 2, 64}, {224, 96});
               }),
               contains("buffer 'bytes'"));
}

TEST_CASE("tensor views: an error says where the view is made") {
    const runtime::Device device = emulator();
    const auto bytes = device.buffer<std::uint8_t>(96, "bytes");
    using runtime::Quantised;
    const auto here = [](auto&& make, std::uint32_t line, const char* text) {
        const std::string place = std::string(__FILE__) + ":" + std::to_string(line) + ":";
        CHECK_THAT(message_of(make), Catch::Matchers::StartsWith(place) && contains(std::string(": error: ") + text));
    };
    const Shape shape{25};
    here([&] { TensorView(ir::Type::F32, bytes.memory().whole(), shape); }, __LINE__, "buffer 'bytes': a view of 25");
    here([&] { runtime::quantised_view(bytes, Quantised(99), {32}); }, __LINE__, "there is no format 99");
    here([&] { runtime::quantised_view(bytes, Quantised::Q8_0, {31}); }, __LINE__, "a row of 31 weights");
    here([&] { runtime::quantised_view(bytes, Quantised::Q8_0, {1, 32}, {5}); }, __LINE__, "a pitch of 5 weights");
    here([&] { runtime::quantised_view(bytes, Quantised::Q8_0, {99, 32}); }, __LINE__, "buffer 'bytes': a view of 99");
}

}  // namespace
}  // namespace ikat::tests
