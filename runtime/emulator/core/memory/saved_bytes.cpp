// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/core/memory/saved_bytes.hpp"

#include <algorithm>
#include <cstring>

namespace ikat::emulator {

namespace {

bool are_equal(std::span<const std::byte> a, std::span<const std::byte> b) {
    return std::memcmp(a.data(), b.data(), a.size()) == 0;
}

bool repeats(std::span<const std::byte> bytes, std::byte byte) {
    return bytes.front() == byte && are_equal(bytes.first(bytes.size() - 1), bytes.subspan(1));
}

/// f(page, its bytes) for each, the last of which may be shorter.
template <class Bytes, class F>
void each_page(Bytes bytes, std::size_t page_bytes, F f) {
    for (std::size_t i = 0; i * page_bytes < bytes.size(); ++i)
        f(i, bytes.subspan(i * page_bytes, std::min(page_bytes, bytes.size() - i * page_bytes)));
}

}  // namespace

SavedBytes::SavedBytes(std::span<const std::byte> bytes, std::shared_ptr<const SavedBytes> before)
    : size_(bytes.size()), before_(before && before->size() == bytes.size() ? std::move(before) : nullptr) {
    pages_.reserve((bytes.size() + page_bytes - 1) / page_bytes);
    each_page(bytes, page_bytes, [&](std::size_t i, std::span<const std::byte> page) {
        if (repeats(page, page.front())) return pages_.push_back({Page::Kind::Repeated, page.front()});
        if (before_ && before_->is_same(i, page)) return pages_.push_back({Page::Kind::Earlier});
        pages_.push_back({Page::Kind::Kept, {}, std::uint32_t(kept_.size() / page_bytes)});
        kept_.insert(kept_.end(), page.begin(), page.end());
        kept_.resize(pages_.back().number * page_bytes + page_bytes);
    });
}

bool SavedBytes::is_same(std::size_t i, std::span<const std::byte> bytes) const {
    const Page& page = pages_[i];
    switch (page.kind) {
        case Page::Kind::Repeated: return repeats(bytes, page.repeated);
        case Page::Kind::Earlier: return before_->is_same(i, bytes);
        case Page::Kind::Kept: return are_equal(bytes, kept(page, bytes.size()));
    }
    return false;
}

void SavedBytes::restore(std::span<std::byte> to) const {
    each_page(to, page_bytes, [&](std::size_t i, std::span<std::byte> bytes) {
        if (is_same(i, bytes)) return;
        const SavedBytes* from = this;
        while (from->pages_[i].kind == Page::Kind::Earlier) from = from->before_.get();
        const Page& page = from->pages_[i];
        if (page.kind == Page::Kind::Repeated)
            std::ranges::fill(bytes, page.repeated);
        else
            std::ranges::copy(from->kept(page, bytes.size()), bytes.begin());
    });
}

}  // namespace ikat::emulator
