// SPDX-License-Identifier: Apache-2.0
// What a part of memory was, to make it so again. Only what is needed for that is kept and written:
//
//     pages of one byte again and again    that byte, as nothing has written to most of a large buffer
//     pages that an earlier copy has       where to find it: a launch changes few pages of those that there are
//     others                               their bytes
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ikat::emulator {

class SavedBytes {
public:
    explicit SavedBytes(std::span<const std::byte> bytes, std::shared_ptr<const SavedBytes> before = {});
    std::size_t size() const { return size_; }
    /// Writes where it differs.
    void restore(std::span<std::byte> to) const;
    /// How many are kept, of those that are neither repeated nor the earlier copy's.
    std::size_t kept() const { return kept_.size(); }

private:
    static constexpr std::size_t page_bytes = 4096;
    struct Page {
        enum class Kind : std::uint8_t { Repeated, Earlier, Kept };
        Kind kind = Kind::Repeated;
        std::byte repeated{};
        std::uint32_t number = 0;  // of those that are kept
    };
    bool is_same(std::size_t page, std::span<const std::byte> bytes) const;
    std::span<const std::byte> kept(const Page& page, std::size_t bytes) const {
        return std::span(kept_).subspan(page.number * page_bytes, bytes);
    }

    std::size_t size_ = 0;
    std::vector<Page> pages_;
    std::vector<std::byte> kept_;
    std::shared_ptr<const SavedBytes> before_;
};

}  // namespace ikat::emulator
