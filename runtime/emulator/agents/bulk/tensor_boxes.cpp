// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/agents/bulk/tensor_boxes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ikat::emulator {

namespace {

constexpr std::uint64_t part = 16;  // bytes that a swizzle keeps together, and that are stored together

std::uint64_t span_of(MapSwizzle swizzle) { return swizzle == MapSwizzle::None ? 0 : part << int(swizzle); }

}  // namespace

ir::Type element_type(MapType type) {
    using enum ir::Type;
    constexpr ir::Type types[] = {U8, U16, U32, I32, U64, I64, F16, F32, F64, BF16, F32, F32, F32};
    return types[int(type)];
}

TensorBox::TensorBox(const TensorMap& map, const std::array<std::int32_t, 5>& at, std::uint64_t shared, bool is_stored)
    : map_(map), at_(at), is_stored_(is_stored), shared_(shared) {
    row_bytes_ = box_row_bytes(map);
    for (std::uint32_t i = 0; i < map.rank; ++i) {
        const std::uint32_t stride = i == 0 ? 1 : map.element_strides[i];
        counts_[i] = (map.box[i] + stride - 1) / stride;
        if (i > 0) rows_ *= counts_[i];
    }
}

std::string TensorBox::problem() const {
    const std::int64_t offset = std::int64_t(at_[0]) * element_bytes(map_.type);
    if (offset % std::int64_t(part))
        return fmt::format("a box begins at byte {} of the rows of its tensor, which is not a multiple of {}", offset,
                           part);
    for (std::uint32_t i = 0; i < map_.rank; ++i)
        if (is_stored_ && at_[i] < 0)
            return fmt::format(
                "a box that is stored begins at {} of dimension {} of its tensor, before the first element", at_[i], i);
    return {};
}

std::optional<TensorBox::Piece> TensorBox::piece_of(std::uint64_t row,
                                                    const std::array<std::uint32_t, 5>& index) const {
    std::uint64_t address = map_.address;
    for (std::uint32_t i = 1; i < map_.rank; ++i) {
        const std::int64_t position = at_[i] + std::int64_t(index[i]) * map_.element_strides[i];
        if (position < 0 || std::uint64_t(position) >= map_.extents[i]) return {};
        address += std::uint64_t(position) * map_.strides[i - 1];
    }
    const std::int64_t first = std::max<std::int64_t>(at_[0], 0),
                       end = std::min(at_[0] + std::int64_t(counts_[0]), std::int64_t(map_.extents[0]));
    if (first >= end) return {};
    const std::uint64_t bytes = element_bytes(map_.type);
    const std::uint64_t taken = std::uint64_t(end - first) * bytes;
    return Piece{address + std::uint64_t(first) * bytes, row * row_bytes_ + std::uint64_t(first - at_[0]) * bytes,
                 taken, is_stored_ ? (part - taken % part) % part : 0};
}

std::optional<TensorBox::Piece> TensorBox::outside(const Memory::State& memory) const {
    std::optional<Piece> found;
    each_piece([&](const Piece& piece) {
        const View view = memory.find(piece.address);
        const std::uint64_t offset = piece.address - view.base;
        if (view.bytes < piece.bytes || offset > view.bytes - piece.bytes) found = piece;
        return !found;
    });
    return found;
}

/// With what stands for elements outside: zeros, or a NaN.
void TensorBox::fill(Image& image) const {
    if (!map_.fills_with_nan) return;
    const std::uint32_t bytes = element_bytes(map_.type);
    for (std::size_t i = 0; i < image.bytes.size(); ++i) image.bytes[i] = std::byte((i + 1) % bytes == 0 ? 0x7f : 0xff);
}

Image TensorBox::read(const Memory::State& memory) const {
    Image image(bytes());
    fill(image);
    each_piece([&](const Piece& piece) {
        const View view = memory.find(piece.address);
        const std::uint64_t offset = piece.address - view.base;
        std::memcpy(image.bytes.data() + piece.place, view.host + offset, piece.bytes);
        image.take_written(piece.place, view.bits, offset, piece.bytes);
        return true;
    });
    return swizzled(image);
}

std::uint64_t TensorBox::swizzled(std::uint64_t place) const {
    const std::uint64_t span = span_of(map_.swizzle);
    return span ? place ^ ((shared_ + place) >> 3 & (span - part)) : place;
}

Image TensorBox::swizzled(const Image& image) const {
    if (map_.swizzle == MapSwizzle::None) return image;
    Image out(image.bytes.size());
    for (std::uint64_t at = 0; at < image.bytes.size(); at += part) {
        const std::uint64_t to = swizzled(at);
        std::memcpy(out.bytes.data() + to, image.bytes.data() + at, part);
        std::memcpy(out.written.data() + to / 8, image.written.data() + at / 8, part / 8);
    }
    return out;
}

}  // namespace ikat::emulator
