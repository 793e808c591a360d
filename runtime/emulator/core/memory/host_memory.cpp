// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/core/memory/host_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace ikat::emulator {
namespace {

constexpr int poison_byte = 0xff;
constexpr std::size_t alignment = 256;
constexpr std::size_t piece = 4 << 20;  // what is smaller is not worth pages of its own

/// A file of poison of one piece's size; -1 if the host gives none.
int make_poison() {
    const int file = memfd_create("ikat poison", MFD_CLOEXEC);
    if (file < 0) return -1;
    void* const view =
        ftruncate(file, piece) ? MAP_FAILED : mmap(nullptr, piece, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (view == MAP_FAILED) {
        close(file);
        return -1;
    }
    std::memset(view, poison_byte, piece);
    munmap(view, piece);
    return file;
}

}  // namespace

HostMemory allocate_host(std::size_t bytes) {
    HostMemory out{.bytes = (bytes + alignment - 1) / alignment * alignment, .is_mapped = bytes >= piece};
    if (out.is_mapped) {
        void* const pages = mmap(nullptr, out.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages != MAP_FAILED) out.begin = static_cast<std::byte*>(pages);
    } else if (void* const block = std::aligned_alloc(alignment, out.bytes)) {
        out.begin = static_cast<std::byte*>(std::memset(block, 0, out.bytes));
    }
    return out;
}

void release_host(const HostMemory& memory) noexcept {
    if (memory.begin && memory.is_mapped)
        munmap(memory.begin, memory.bytes);
    else
        std::free(memory.begin);
}

void poison_host(const HostMemory& memory) {
    static const int poison = make_poison();
    std::size_t at = 0;
    for (; memory.is_mapped && poison >= 0 && at < memory.bytes; at += piece) {
        const std::size_t bytes = std::min(piece, memory.bytes - at);
        if (mmap(memory.begin + at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, poison, 0) == MAP_FAILED)
            break;  // a process has only so many maps
    }
    if (at < memory.bytes) std::memset(memory.begin + at, poison_byte, memory.bytes - at);
}

}  // namespace ikat::emulator
