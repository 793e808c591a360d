// SPDX-License-Identifier: Apache-2.0
// A container is a header and entries, each with a header of its own; a wrapper, as nvcc puts into programs, points to
// one. NVIDIA does not document the format; what is used of it:
//
//     wrapper    u32 magic 0x466243b1, u32 version, the container's address
//     container  u32 magic 0xba55ed50, u16 version, u16 bytes of this header, u64 bytes of the entries
//     entry      u16 kind (1: PTX, 2: ELF), u16, u32 bytes of this header, u64 bytes after it, u32 of them compressed,
//                u32, u16 minor and u16 major version of PTX, u32 target, u64, u64 flags, u64, u64 bytes of the text
#include "tools/cuda_driver/fat_binary.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "codegen/support/diagnostic.hpp"

namespace ikat::cuda_driver {
namespace {

constexpr std::uint32_t wrapper_magic = 0x466243b1, container_magic = 0xba55ed50;

struct Wrapper {
    std::uint32_t magic, version;
    const void* container;
};
struct Container {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t bytes;
};
struct Entry {
    std::uint16_t kind, version;
    std::uint32_t header_bytes;
    std::uint64_t bytes;
    std::uint32_t compressed_bytes, options;
    std::uint16_t minor, major;
    std::uint32_t target;
    std::uint64_t unused_1, flags, unused_2, text_bytes;
};
static_assert(sizeof(Container) == 16 && sizeof(Entry) == 64);
constexpr std::uint16_t kind_ptx = 1;
constexpr std::uint64_t flag_64_bits = 0x1, flag_lz4 = 0x2000, flag_zstd = 0x8000;

constexpr std::uint64_t max_text_bytes = std::uint64_t{1} << 32;

[[noreturn]] void damaged(std::string_view what) {
    throw Error(fmt::format("the fat binary is damaged: {}", what), "was it cut short, or overwritten?");
}

template <class T>
T read(const void* at) {
    T out;
    std::memcpy(&out, at, sizeof out);
    return out;
}

/// LZ4's block format: literals and copies of what has been written, by turns.
std::string from_lz4(std::string_view in, std::size_t bytes) {
    std::string out;
    out.reserve(bytes);
    std::size_t at = 0;
    const auto byte = [&] {
        if (at == in.size()) damaged("its LZ4 ends early");
        return std::uint8_t(in[at++]);
    };
    const auto length = [&](std::size_t begin) {  // 15 is followed by bytes to be added, up to one that is not 255
        if (begin != 15) return begin;
        for (std::uint8_t more = 255; more == 255;) begin += more = byte();
        return begin;
    };
    while (at < in.size()) {
        const std::uint8_t token = byte();
        const std::size_t literals = length(token >> 4);
        if (literals > in.size() - at || literals > bytes - out.size()) damaged("its LZ4 has literals beyond its end");
        out.append(in, at, literals);
        at += literals;
        if (at == in.size()) break;
        const std::size_t low = byte(), distance = low | std::size_t(byte()) << 8;
        const std::size_t count = length(token & 15) + 4;
        if (distance == 0 || distance > out.size() || count > bytes - out.size())
            damaged("its LZ4 copies from before its beginning, or beyond its end");
        for (std::size_t i = 0; i < count; ++i) out.push_back(out[out.size() - distance]);
    }
    return out;
}

/// By the system's library, which is looked for only here.
std::string from_zstd(std::string_view in, std::size_t bytes) {
    using Decompress = std::size_t (*)(void*, std::size_t, const void*, std::size_t);
    static void* const library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    const auto decompress = library ? reinterpret_cast<Decompress>(dlsym(library, "ZSTD_decompress")) : nullptr;
    if (!decompress)
        throw Error("the PTX in the fat binary is compressed by zstd, and there is no libzstd.so.1",
                    "install it, or compile with nvcc --compress-mode=none");
    std::string out(bytes, 0);
    if (decompress(out.data(), bytes, in.data(), in.size()) != bytes) damaged("its zstd cannot be decompressed");
    return out;
}

std::string text_of(const Entry& entry, const char* begin) {
    if (entry.text_bytes > max_text_bytes || entry.compressed_bytes > entry.bytes) damaged("its sizes contradict");
    const std::string_view compressed(begin, entry.compressed_bytes);
    std::string text;
    if (entry.flags & flag_zstd)
        text = from_zstd(compressed, entry.text_bytes);
    else if (entry.flags & flag_lz4)
        text = from_lz4(compressed, entry.text_bytes);
    else
        text.assign(begin, entry.bytes);
    text.resize(std::min(text.size(), text.find('\0')));  // padding
    return text;
}

/// "sm_90a", that the PTX names.
std::string_view target_of(std::string_view ptx) {
    constexpr std::string_view directive = ".target";
    const std::size_t found = ptx.find(directive);
    if (found == ptx.npos) return {};
    const std::size_t begin = ptx.find_first_not_of(" \t", found + directive.size());
    if (begin == ptx.npos) return {};
    return ptx.substr(begin, ptx.find_first_of(" \t\r\n,", begin) - begin);
}

}  // namespace

bool is_fat_binary(const void* image) {
    const auto magic = read<std::uint32_t>(image);
    return magic == wrapper_magic || magic == container_magic;
}

std::vector<std::string> ptx_in(const void* image) {
    if (read<std::uint32_t>(image) == wrapper_magic) image = read<Wrapper>(image).container;
    if (!image || read<std::uint32_t>(image) != container_magic) damaged("its wrapper does not point to a container");
    const auto container = read<Container>(image);
    const char* const begin = static_cast<const char*>(image) + container.header_bytes;
    std::vector<std::string> out;
    for (std::uint64_t at = 0; at < container.bytes;) {
        const std::uint64_t left = container.bytes - at;
        if (left < sizeof(Entry)) damaged("an entry is longer than the rest");
        const auto entry = read<Entry>(begin + at);
        if (entry.header_bytes < sizeof(Entry) || entry.header_bytes > left || entry.bytes > left - entry.header_bytes)
            damaged("an entry is longer than the rest");
        if (entry.kind == kind_ptx) out.push_back(text_of(entry, begin + at + entry.header_bytes));
        at += entry.header_bytes + entry.bytes;
    }
    return out;
}

std::string fat_binary_of(std::string_view ptx, std::uint32_t target_number) {
    std::string text(ptx);
    text.resize((ptx.size() / 8 + 1) * 8);  // with a zero after it
    Entry entry{};
    entry.kind = kind_ptx;
    entry.version = 0x101;
    entry.header_bytes = sizeof entry;
    entry.bytes = text.size();
    entry.target = target_number;
    entry.flags = flag_64_bits;
    const Container container{container_magic, 1, sizeof(Container), sizeof entry + text.size()};
    std::string out(sizeof container + sizeof entry, 0);
    std::memcpy(out.data(), &container, sizeof container);
    std::memcpy(out.data() + sizeof container, &entry, sizeof entry);
    return out + text;
}

unsigned accepted_number(const ptx::Target& device, std::string_view target) {
    unsigned number = 0;
    const char* const end = target.data() + target.size();
    const char* const letter = std::from_chars(std::min(target.data() + 3, end), end, number).ptr;
    return number == device.number || (number < device.number && letter == end) ? number : 0;
}

std::string ptx_for(const ptx::Target& device, const void* image) {
    std::string best, targets;
    unsigned best_rank = 0;
    for (const std::string& text : ptx_in(image)) {
        const std::string_view target = target_of(text);
        targets += (targets.empty() ? "" : ", ") + std::string(target);
        const unsigned rank = 2 * accepted_number(device, target) + (target == device.name);
        if (rank <= best_rank) continue;
        best_rank = rank;
        best = text;
    }
    if (best_rank) return best;
    if (targets.empty())
        throw Error("the fat binary has machine code only: the emulator runs PTX",
                    fmt::format("let nvcc keep it: -gencode arch=compute_{0},code=compute_{0}", device.number));
    throw Error(fmt::format("the fat binary has PTX for {}, not for {}", targets, device.name),
                "compile for it, or set IKAT_CUDA_TARGET");
}

}  // namespace ikat::cuda_driver
