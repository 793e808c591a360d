// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/agents/bulk/tensor_map.hpp"

#include <cstring>

#include "tests/catch.hpp"
#include "tests/unit/cuda_driver/stand_in.hpp"

namespace ikat::tests {
namespace {

using emulator::MapSwizzle, emulator::MapType, emulator::TensorMap;

/// A matrix of 100 x 64 bf16 in boxes of 32 x 64, swizzled by 128 bytes.
TensorMap matrix() {
    TensorMap map{.type = MapType::Bf16, .rank = 2, .address = 0x1000};
    map.extents = {64, 100};
    map.strides = {128};
    map.box = {64, 32};
    map.element_strides = {1, 1};
    map.swizzle = MapSwizzle::B128;
    return map;
}

CUresult encode(CUtensorMap* out, const TensorMap& map) {
    return call("cuTensorMapEncodeTiled", out, unsigned(map.type), map.rank, reinterpret_cast<void*>(map.address),
                map.extents.data(), map.strides.data(), map.box.data(), map.element_strides.data(),
                unsigned(map.interleave), unsigned(map.swizzle), unsigned(map.l2_promotion),
                unsigned(map.fills_with_nan));
}

std::optional<TensorMap> decoded(const CUtensorMap& map) {
    std::array<std::byte, emulator::tensor_map_bytes> bytes;
    std::memcpy(bytes.data(), &map, sizeof bytes);
    return emulator::decode(bytes);
}

TEST_CASE("a tensor map is what it was made of") {
    CUtensorMap out{};
    CHECK(encode(&out, matrix()) == CUDA_SUCCESS);
    CHECK(decoded(out) == matrix());
    TensorMap moved = matrix();
    moved.address = 0x2000;
    CHECK(call("cuTensorMapReplaceAddress", &out, reinterpret_cast<void*>(0x2000)) == CUDA_SUCCESS);
    CHECK(decoded(out) == moved);
    TensorMap large = matrix();
    large.rank = 5;
    large.extents = {std::uint64_t{1} << 32, 2, 3, 4, 5};
    large.strides = {std::uint64_t{1} << 33, std::uint64_t{1} << 34, std::uint64_t{3} << 34, std::uint64_t{12} << 34};
    large.box = {64, 2, 1, 1, 1};
    large.element_strides = {1, 1, 1, 1, 1};
    large.fills_with_nan = true;
    CHECK(encode(&out, large) == CUDA_SUCCESS);
    CHECK(decoded(out) == large);
}

TEST_CASE("strides need not grow with the dimension") {
    // A matrix of 2048 x 1024 bf16 as columns of 64: {64, rows, columns / 64}.
    TensorMap columns = matrix();
    columns.rank = 3;
    columns.extents = {64, 2048, 16};
    columns.strides = {2048, 128};
    columns.box = {64, 128, 1};
    columns.element_strides = {1, 1, 1};
    CUtensorMap out{};
    CHECK(encode(&out, columns) == CUDA_SUCCESS);
    CHECK(decoded(out) == columns);
    columns.element_strides[0] = 2;  // has no meaning
    CHECK(encode(&out, columns) == CUDA_SUCCESS);
}

TEST_CASE("bytes that are no map are found out") {
    CUtensorMap out{};
    CHECK(!decoded(out));
    REQUIRE(encode(&out, matrix()) == CUDA_SUCCESS);
    for (std::size_t byte = 0; byte < 88; byte += 7) {
        CUtensorMap broken = out;
        reinterpret_cast<unsigned char*>(&broken)[byte] ^= 1;
        CHECK(!decoded(broken));
        CHECK(call("cuTensorMapReplaceAddress", &broken, reinterpret_cast<void*>(0x2000)) == CUDA_ERROR_INVALID_VALUE);
    }
}

TEST_CASE("what a driver refuses is refused") {
    CUtensorMap out{};
    const auto refused = [&](auto change) {
        TensorMap map = matrix();
        change(map);
        return encode(&out, map) == CUDA_ERROR_INVALID_VALUE;
    };
    CHECK(refused([](TensorMap& map) { map.address = 0x1008; }));
    CHECK(refused([](TensorMap& map) { map.address = 0; }));
    CHECK(refused([](TensorMap& map) { map.rank = 6; }));
    CHECK(refused([](TensorMap& map) { map.extents[1] = 0; }));
    CHECK(refused([](TensorMap& map) { map.extents[1] = (std::uint64_t{1} << 32) + 1; }));
    CHECK(refused([](TensorMap& map) { map.strides[0] = 136; }));
    CHECK(refused([](TensorMap& map) { map.strides[0] = std::uint64_t{1} << 40; }));
    CHECK(refused([](TensorMap& map) { map.box[1] = 257; }));
    CHECK(refused([](TensorMap& map) { map.box[1] = 0; }));
    CHECK(refused([](TensorMap& map) { map.box[0] = 60; }));
    CHECK(refused([](TensorMap& map) { map.swizzle = MapSwizzle::B64; }));
    CHECK(refused([](TensorMap& map) { map.element_strides[1] = 9; }));
    CHECK(refused([](TensorMap& map) { map.type = MapType(13); }));
    CHECK(refused([](TensorMap& map) {
        map.type = MapType::U16;
        map.fills_with_nan = true;
    }));
    CHECK(refused([](TensorMap& map) { map.interleave = 1; }));
    CHECK(encode(reinterpret_cast<CUtensorMap*>(reinterpret_cast<char*>(&out) + 16), matrix()) ==
          CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace ikat::tests
