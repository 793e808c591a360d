// SPDX-License-Identifier: Apache-2.0
// Tensor maps, in the emulator's encoding.
#include "runtime/emulator/agents/bulk/tensor_map.hpp"

#include <cstring>

#include "tools/cuda_driver/state.hpp"

namespace ikat::cuda_driver {
namespace {

void write(CUtensorMap* to, const emulator::TensorMap& map) {
    if (const std::string wrong = problem(map); !wrong.empty()) refuse(CUDA_ERROR_INVALID_VALUE, wrong);
    const auto bytes = encode(map);
    std::memcpy(to, bytes.data(), sizeof bytes);
}

void check_place(const CUtensorMap* map) {
    require(map);
    if (reinterpret_cast<std::uintptr_t>(map) % emulator::tensor_map_alignment)
        refuse(CUDA_ERROR_INVALID_VALUE, "the map is not at a multiple of 64 bytes", "declare it as CUtensorMap");
}

}  // namespace

API(cuTensorMapEncodeTiled, CUtensorMap* out, unsigned type, unsigned rank, void* address, const std::uint64_t* extents,
    const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t* element_strides, unsigned interleave,
    unsigned swizzle, unsigned promotion, unsigned fill) {
    return guarded("cuTensorMapEncodeTiled", [&] {
        check_place(out);
        require(rank >= 1 && rank <= 5 && extents && box && element_strides && (strides || rank == 1));
        require(type <= 12 && swizzle <= 3 && promotion <= 3 && fill <= 1 && interleave <= 2);
        emulator::TensorMap map{
            .type = emulator::MapType(type), .rank = rank, .address = reinterpret_cast<std::uintptr_t>(address)};
        std::copy_n(extents, rank, map.extents.begin());
        std::copy_n(box, rank, map.box.begin());
        std::copy_n(element_strides, rank, map.element_strides.begin());
        map.element_strides[0] = 1;  // without an interleave it has no meaning
        if (rank > 1) std::copy_n(strides, rank - 1, map.strides.begin());
        map.interleave = std::uint8_t(interleave);
        map.swizzle = emulator::MapSwizzle(swizzle);
        map.l2_promotion = std::uint8_t(promotion);
        map.fills_with_nan = fill == 1;
        write(out, map);
    });
}

API(cuTensorMapReplaceAddress, CUtensorMap* out, void* address) {
    return guarded("cuTensorMapReplaceAddress", [&] {
        check_place(out);
        std::array<std::byte, emulator::tensor_map_bytes> bytes;
        std::memcpy(bytes.data(), out, sizeof bytes);
        auto map = emulator::decode(bytes);
        require(map.has_value());
        map->address = reinterpret_cast<std::uintptr_t>(address);
        write(out, *map);
    });
}

}  // namespace ikat::cuda_driver
