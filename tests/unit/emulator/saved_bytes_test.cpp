// SPDX-License-Identifier: Apache-2.0
// What is kept of memory, to make it so again.
#include "runtime/emulator/core/memory/saved_bytes.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <catch2/catch.hpp>

using namespace ikat;

TEST_CASE("saved bytes are restored, and keep only what is needed for it") {
    std::vector<std::byte> memory(5 * 4096 + 100, std::byte{0xff});
    memory[4096 + 17] = std::byte{1};  // page 1
    std::fill_n(memory.begin() + 2 * 4096, 4096, std::byte{0});
    memory.back() = std::byte{2};
    const auto whole = memory;
    const auto before = std::make_shared<const emulator::SavedBytes>(memory);
    CHECK(before->size() == memory.size());
    CHECK(before->kept() == 2 * 4096);  // of page 1 and the last one

    memory[3 * 4096] = std::byte{3}, memory[2 * 4096 + 5] = std::byte{4};
    const auto changed = memory;
    const emulator::SavedBytes after(memory, before);
    CHECK(after.kept() == 2 * 4096);  // of pages 2 and 3
    const emulator::SavedBytes same(memory, std::make_shared<const emulator::SavedBytes>(after));
    CHECK(same.kept() == 0);

    const auto restored = [&](const emulator::SavedBytes& saved) {
        std::vector<std::byte> to(memory.size(), std::byte{9});
        to[4096 + 17] = std::byte{1};
        saved.restore(to);
        return to;
    };
    CHECK(restored(*before) == whole);
    CHECK(restored(after) == changed);
    CHECK(restored(same) == changed);
    // Of another size, an earlier copy says nothing.
    const std::span part = std::span(memory).first(4096 + 20);
    CHECK(emulator::SavedBytes(part, before).kept() == 4096);
    emulator::SavedBytes({}).restore({});
}

TEST_CASE("pages that are as they should be are not written") {
    // A restored page that is not written stays shared: here, it may not be written at all.
    const std::size_t bytes = 2 * 4096;
    void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages != MAP_FAILED);
    const std::span memory(static_cast<std::byte*>(pages), bytes);
    memory[4096] = std::byte{1};
    const emulator::SavedBytes saved(memory);
    REQUIRE(mprotect(pages, bytes, PROT_READ) == 0);
    saved.restore(memory);
    munmap(pages, bytes);
}
