// SPDX-License-Identifier: Apache-2.0
// Sections of PTX that tell what a launch has to know, under libFuzzer: any bytes are read or refused, and what has
// been read is written as it was read. Preset fuzz:
//
//     cmake --preset fuzz && cmake --build --preset fuzz -t fuzz_section
//     build/fuzz/tests/fuzz/fuzz_section FOLDER                       # new inputs go to FOLDER
#include <cstddef>
#include <cstdint>

#include "codegen/kernel/section.hpp"

namespace {

using namespace ikat;

void read(const std::string& text) try {
    for (const KernelInfo& info : infos_in(text, "fuzz.ptx")) {
        const std::string section = section_of(info);
        const std::vector<KernelInfo> again = infos_in(section, "fuzz.ptx");
        IKAT_ASSERT(again.size() == 1 && section_of(again[0]) == section, section);
        for (const KernelInfo::MinSize& size : info.sizes) product(info, size);
        parameter_bytes(info);
    }
    without_sections(text);
} catch (const Error&) {}  // refused

}  // namespace

/// The first byte says whether the others are text, or the bytes of a section's words.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    if (data[0] % 4 == 0) return read(bytes), 0;
    std::string text = ".section .ikat {\n.b64 ";
    bytes.resize((bytes.size() + 7) / 8 * 8);
    for (std::size_t at = 0; at < bytes.size(); at += 8) {
        std::uint64_t word = 0;
        for (std::size_t i = 0; i < 8; ++i) word |= std::uint64_t(std::uint8_t(bytes[at + i])) << 8 * i;
        text += (at ? "," : "") + std::to_string(word);
    }
    read(text + "\n}\n");
    return 0;
}
