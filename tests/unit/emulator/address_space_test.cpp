// SPDX-License-Identifier: Apache-2.0
// The address space of a device: which addresses buffers get, and how much host memory they take.
#include <unistd.h>

#include <fstream>

#include "runtime/emulator/core/memory/memory.hpp"
#include "tests/message.hpp"
#include "tests/unit/emulator/machine.hpp"

using namespace ikat;
using tests::contains;
using tests::kernel;
using tests::Machine;
using tests::message_of;

TEST_CASE("addresses of released buffers are not reused soon, and host copies are checked") {
    emulator::Memory memory;
    const auto first = memory.allocate(1000, "first");
    memory.release(first);
    for (int i = 0; i < 100; ++i) {
        const auto next = memory.allocate(1000);
        CHECK(next != first);
        memory.release(next);
    }
    std::vector<std::byte> bytes(16);
    const auto message = [&](auto f) -> std::string {
        try {
            f();
        } catch (const Error& error) { return error.what(); }
        return "none";
    };
    CHECK_THAT(message([&] { memory.read(first, bytes); }), contains("'first' there has been released"));
    CHECK_THAT(message([&] { memory.release(first); }), contains("a second time"));
    const auto second = memory.allocate(20, "second");
    CHECK_THAT(message([&] { memory.release(second + 4); }), contains("was not returned by allocate"));
    CHECK_THAT(message([&] { memory.write(second + 8, bytes); }), contains("'second' has 20 bytes"));
    CHECK_THAT(message([&] { memory.read(second - 1, bytes); }), contains("outside any buffer"));
    CHECK_THAT(message([&] { memory.allocate(std::size_t{1} << 50, "huge"); }),
               contains("no memory for buffer 'huge'"));
    CHECK(second % 256 == 0);
    CHECK(memory.allocate(0, "nothing") != 0);
}

TEST_CASE("no two memories have an address in common, and an access to another's says so") {
    emulator::Memory other;
    const auto theirs = other.allocate(64, "theirs");
    Machine machine;
    const auto ours = machine.empty<std::uint32_t>("ours", 16);
    CHECK(ours >> 36 != theirs >> 36);
    CHECK(machine.memory.buffer_of(theirs).bytes == 0);
    CHECK((emulator::Memory::is_device(ours) && emulator::Memory::is_device(theirs)));
    const auto store = [&](std::uint64_t at) {
        return machine.failure(kernel("ld.param.u64 %d1, [p0]; st.global.u32 [%d1], 1; ret;"), {}, at, at, at, 0u);
    };
    CHECK_THAT(
        store(theirs + 8),
        contains("at offset 8 of buffer 'theirs' (64 bytes), which is on another device, which has no name, by"));
    CHECK(machine.code == "no-buffer");
    std::vector<std::byte> bytes(4);
    CHECK_THAT(message_of([&] { machine.memory.write(theirs, bytes); }),
               contains("buffer 'theirs' there is on another device"));
    other.release(theirs);
    CHECK_THAT(store(theirs + 8), contains("where no buffer is"));
    CHECK_THAT(store(ours + 64), contains("right past the end of buffer 'ours'"));
}

TEST_CASE("memories that come and go leave their addresses to others") {
    emulator::Memory stays;
    const auto kept = stays.allocate(16, "kept");
    std::uint64_t last = 0;
    for (int i = 0; i < 3000; ++i) {
        emulator::Memory memory;
        const auto small = memory.allocate(16), mapped = memory.allocate_mapped(16), large = memory.allocate(2 << 20);
        for (const std::uint64_t address : {small, mapped, large}) {
            REQUIRE(address >> 36 != kept >> 36);
            REQUIRE(memory.buffer_of(address).bytes > 0);
        }
        REQUIRE(small >> 36 != last >> 36);
        last = small;
    }
    CHECK(!emulator::Memory::is_device(last));
    CHECK(stays.buffer_of(kept).bytes == 16);
}

TEST_CASE("a huge buffer can be had again and again", "[long]") {
    emulator::Memory memory;
    std::uint64_t first = 0;
    for (int i = 0; i < 80; ++i) {
        const auto huge = memory.allocate(std::size_t{5} << 30);
        if (!first) first = huge;
        REQUIRE((i == 0 || i > 60 || huge != first));
        memory.release(huge);
    }
}

TEST_CASE("fresh buffers are poisoned, whatever uses them first") {
    emulator::Memory memory;
    using Words = std::vector<std::uint32_t>;
    const auto get = [&](std::uint64_t address) {
        Words words(4);
        memory.read(address, std::as_writable_bytes(std::span(words)));
        return words;
    };
    const std::uint32_t seven[] = {7}, pattern[] = {1, 2};
    const std::byte zero[] = {std::byte{0}};
    const auto bytes = [](const auto& words) { return std::as_bytes(std::span(words)); };
    CHECK(get(memory.allocate(16)) == Words{~0u, ~0u, ~0u, ~0u});
    const auto part = memory.allocate(16), copy = memory.allocate(16), filled = memory.allocate(16);
    memory.write(part + 4, bytes(seven));
    CHECK(get(part) == Words{~0u, 7, ~0u, ~0u});
    memory.copy(copy + 8, part + 4, 8);
    CHECK(get(copy) == Words{~0u, ~0u, 7, ~0u});
    memory.fill(filled, zero, 16);
    CHECK(get(filled) == Words{0, 0, 0, 0});
    memory.fill(filled, bytes(pattern), 2);
    CHECK(get(filled) == Words{1, 2, 1, 2});
    memory.fill(filled + 4, bytes(seven), 2);
    CHECK(get(filled) == Words{1, 7, 7, 2});
    memory.fill(filled, zero, 16);
    CHECK(get(filled) == Words{0, 0, 0, 0});
    // A launch.
    Machine machine;
    const auto y = machine.empty<std::uint32_t>("y", 4);
    machine.run(kernel("ld.param.u64 %d1, [p0]; st.global.u32 [%d1+4], 5; ret;"), {}, y, y, y, 0u);
    CHECK(machine.get<std::uint32_t>(y, 4) == Words{~0u, 5, ~0u, ~0u});
}

/// Host memory of this process in use, in bytes.
std::size_t resident_bytes() {
    std::size_t all = 0, pages = 0;
    std::ifstream("/proc/self/statm") >> all >> pages;
    return pages * std::size_t(sysconf(_SC_PAGESIZE));
}

TEST_CASE("untouched zeros take no memory") {
    constexpr std::uint64_t large = 256 << 20;
    const std::size_t before = resident_bytes();
    Machine machine;
    const auto x = machine.memory.allocate(large, "x"), y = machine.empty<std::uint32_t>("y", 2);
    const std::byte zero[] = {std::byte{0}};
    machine.memory.fill(x, zero, large);
    machine.run(kernel("ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; ld.global.u32 %r1, [%d1+134217728];"
                       "ld.global.u32 %r2, [g+134217728]; st.global.u32 [%d2], %r1; st.global.u32 [%d2+4], %r2; ret;",
                       ".global .u32 g[67108864];"),
                {}, x, y, y, 0u);
    CHECK(machine.get<std::uint32_t>(y, 2) == std::vector<std::uint32_t>{0, 0});
    CHECK(resident_bytes() < before + large / 2);
}

TEST_CASE("a large buffer takes memory only where it is written, and the rest is poison") {
    constexpr std::uint64_t large = 256 << 20;
    const std::size_t before = resident_bytes();
    Machine machine;
    const auto x = machine.memory.allocate(large, "x"), y = machine.empty<std::uint32_t>("y", 3);
    const std::vector<std::byte> some(64, std::byte{7});
    machine.memory.write(x + large / 2, some);
    machine.run(kernel("ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; ld.global.u32 %r1, [%d1+134217728];"
                       "st.global.u32 [%d1+67108864], 9; ld.global.u32 %r2, [%d1+67108864];"
                       "st.global.u32 [%d2], %r1; st.global.u32 [%d2+4], %r2; ret;"),
                {}, x, y, y, 0u);
    CHECK(machine.get<std::uint32_t>(y, 3) == std::vector<std::uint32_t>{0x07070707, 9, ~0u});
    for (const std::uint64_t at : {std::uint64_t{0}, large / 4 + 4, large - 4})
        CHECK(machine.get<std::uint32_t>(x + at, 1)[0] == ~0u);
    CHECK(machine.memory.unwritten(x, large).count == large - 64 - 4);
    CHECK(machine.memory.unwritten(x + large / 4 - 1, 3).count == 1);
    CHECK(machine.memory.unwritten(x + large / 4 - 1, 3).first == large / 4 - 1);
    CHECK(resident_bytes() < before + large / 8);
}
