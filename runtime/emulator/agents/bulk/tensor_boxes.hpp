// SPDX-License-Identifier: Apache-2.0
// The box of a tensor that a bulk copy moves (PTX ISA, tensors in tile mode): a row of it after the other in shared
// memory, innermost dimension first, then its 16-byte parts exchanged as the map's swizzle says. Elements outside of
// the tensor are filled in on the way to shared memory, and left out on the way back, but for those that share 16 bytes
// with the end of a row: an H200 writes these, too. It ends kernels whose boxes begin within 16 bytes of a row, and
// that store one from before the tensor.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "codegen/ir/type.hpp"
#include "runtime/emulator/agents/bulk/image.hpp"
#include "runtime/emulator/agents/bulk/tensor_map.hpp"
#include "runtime/emulator/core/memory/memory.hpp"

namespace ikat::emulator {

/// The elements of a reduction.
ir::Type element_type(MapType type);

class TensorBox {
public:
    /// The box whose first element is `at`, at this address in shared memory.
    TensorBox(const TensorMap& map, const std::array<std::int32_t, 5>& at, std::uint64_t shared, bool is_stored);

    /// Why a device does not copy it; "" if it does.
    std::string problem() const;

    const TensorMap& map() const { return map_; }
    /// In shared memory.
    std::uint64_t bytes() const { return rows_ * row_bytes_; }
    /// What its address there must be a multiple of.
    static constexpr std::uint32_t alignment = 128;

    /// The part of a row that is inside of the tensor.
    struct Piece {
        std::uint64_t address = 0;  // in global memory
        std::uint64_t place = 0;    // in the box, before it is swizzled
        std::uint64_t bytes = 0;
        std::uint64_t tail = 0;  // what a store writes after it, to the end of 16 bytes
    };
    /// Calls f(piece) for each, until it returns false. Whether none did.
    template <class F>
    bool each_piece(F f) const {
        std::array<std::uint32_t, 5> index{};
        for (std::uint64_t row = 0; row < rows_; ++row) {
            const std::optional<Piece> piece = piece_of(row, index);
            if (piece && !f(*piece)) return false;
            for (std::uint32_t i = 1; i < map_.rank && ++index[i] == counts_[i]; ++i) index[i] = 0;
        }
        return true;
    }
    /// The first piece that is not in a buffer, with the bytes of the row.
    std::optional<Piece> outside(const Memory::State& memory) const;

    /// The box as it is in shared memory, read from global memory, of which all pieces are in buffers.
    Image read(const Memory::State& memory) const;
    /// The same image, or place, as it is before it is swizzled, or the other way round. 16 bytes change places by bits
    /// of their address in shared memory: 4 to 6 by 7 to 9 in a pattern of 128 bytes, 4 and 5 by 7 and 8 of 64, 4 by 7
    /// of 32.
    Image swizzled(const Image& image) const;
    std::uint64_t swizzled(std::uint64_t place) const;

private:
    std::optional<Piece> piece_of(std::uint64_t row, const std::array<std::uint32_t, 5>& index) const;
    void fill(Image& image) const;

    TensorMap map_;
    std::array<std::int32_t, 5> at_{};  // the first element
    bool is_stored_ = false;
    std::uint64_t shared_ = 0;               // its address there
    std::array<std::uint32_t, 5> counts_{};  // of elements that are taken
    std::uint64_t rows_ = 1, row_bytes_ = 0;
};

}  // namespace ikat::emulator
