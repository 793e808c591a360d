// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/views/regions.hpp"

namespace ikat::emulator::views {

Region::Region(const LaunchView& view, bool with_halo) : view_(&view), begin_(view.address), end_(view.address) {
    const std::uint64_t element = view.element_bytes;
    const std::size_t rank = view.extents.size();
    if (std::ranges::find(view.extents, 0) != view.extents.end()) return;
    const auto halo = [&](std::size_t d) { return with_halo && !view.halo.empty() ? view.halo[d] : 0; };
    row_bytes_ = (view.extents[rank - 1] + 2 * halo(rank - 1)) * element;
    begin_ -= halo(rank - 1) * element;
    std::uint64_t inner = row_bytes_;  // from the first byte of an index to the last
    for (const std::size_t d : outwards(view.pitches)) {
        const std::uint64_t count = view.extents[d] + 2 * halo(d);
        const std::uint64_t pitch = std::max(view.pitches[d] * element, view.extents[d] == 1 ? inner : 0);
        begin_ -= halo(d) * pitch;
        const std::uint64_t all = inner + (count - 1) * pitch;
        Dimension* const rows = dimensions_.empty() ? nullptr : &dimensions_.front();
        if (rows && pitch <= rows->count * rows->pitch && pitch % rows->pitch == 0)
            rows->count += (count - 1) * (pitch / rows->pitch);
        else if (pitch <= inner)  // less, if halos overlap
            row_bytes_ = all, dimensions_.clear();
        else
            dimensions_.insert(dimensions_.begin(), {count, pitch});
        inner = all;
    }
    end_ = begin_ + inner;
}

std::optional<Run> Region::locate(std::uint64_t address) const {
    std::uint64_t offset = address - begin_;
    if (begin_ == end_ || address < begin_) return {};
    for (const Dimension& each : dimensions_) {
        if (offset / each.pitch >= each.count) return {};
        offset %= each.pitch;
    }
    return Run{address - offset, address - offset + row_bytes_};
}

Regions::Regions(std::span<const LaunchView> views, const Memory::State& memory) {
    for (const LaunchView& view : views) {
        const auto [host, base, bytes, stride, writable, bits, written, denial] = memory.find(view.address);
        const Run all{base, base + bytes};
        auto buffer = std::ranges::find(buffers_, base, [](const Buffer& each) { return each.bytes.begin; });
        if (buffer == buffers_.end()) buffer = buffers_.insert(buffers_.end(), Buffer{all});
        buffer->read.emplace_back(view, true);
        buffer->written.emplace_back(view, false);
        const Region& own = buffer->written.back();
        are_parts_ |= !own.is_one_run() || own.span().begin != all.begin || own.span().end != all.end;
    }
}

std::optional<Run> Regions::around(std::uint64_t address, bool reads) const {
    if (const Buffer* const buffer = buffer_of(address)) {
        for (const Region& region : buffer->of(reads))
            if (const auto row = region.row(address)) return row;
        return {};
    }
    Run gap{0, ~std::uint64_t{0}};
    for (const Buffer& each : buffers_)
        if (each.bytes.end <= address)
            gap.begin = std::max(gap.begin, each.bytes.end);
        else
            gap.end = std::min(gap.end, each.bytes.begin);
    return gap;
}

std::optional<std::uint64_t> Regions::outside(std::uint64_t address, std::uint64_t bytes, bool reads,
                                              std::uint64_t reach) const {
    const Buffer* const buffer = buffer_of(address);
    if (!buffer || !buffer->bytes.has(address, bytes)) return {};
    const std::uint64_t end = address + bytes;
    for (std::uint64_t at = address; at < end;) {
        const std::uint64_t before = at;
        for (const Region& region : buffer->of(reads)) {
            if (const auto row = region.row(at)) at = row->end;
            if (at == before && reads && at > address && end - at < reach)
                if (const auto gap = region.padding(at)) at = gap->end;
        }
        if (at == before) return at;
    }
    return {};
}

std::vector<const LaunchView*> Regions::views_at(std::uint64_t address) const {
    std::vector<const LaunchView*> views;
    if (const Buffer* const buffer = buffer_of(address))
        for (const Region& region : buffer->written) views.push_back(&region.view());
    return views;
}

}  // namespace ikat::emulator::views
