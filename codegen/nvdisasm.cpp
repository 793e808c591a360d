// SPDX-License-Identifier: Apache-2.0
#include "codegen/nvdisasm.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "codegen/ptxas.hpp"
#include "codegen/support/diagnostic.hpp"
#include "codegen/support/environment.hpp"

namespace ikat::nvdisasm {
namespace {

struct Instruction {
    std::string text;        // "@P0 BRA `(.L_x_1)"
    std::size_t target = 0;  // of a backward branch: the start of the loop
    bool loops = false;
};

/// "        /*0080*/                   IADD3 R0, -R4, UR4, RZ ;" and labels ".L_x_1:".
std::vector<Instruction> parse(std::string_view sass) {
    std::vector<Instruction> out;
    std::map<std::string, std::size_t> labels;
    std::istringstream lines{std::string(sass)};
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(".L_")) labels[line.substr(0, line.find(':'))] = out.size();
        const std::size_t end = line.find(';'), address = line.find("/*");
        if (line.starts_with("//") || end == line.npos || address == line.npos) continue;
        const std::size_t begin = line.find_first_not_of(" \t", line.find("*/", address) + 2);
        Instruction it{line.substr(begin, end - begin)};
        if (it.text.find("NOP") == 0) continue;
        const std::size_t label = it.text.find("`(");
        if (it.text.find("BRA") != it.text.npos && label != it.text.npos) {
            const auto found = labels.find(it.text.substr(label + 2, it.text.find(')') - label - 2));
            it.loops = found != labels.end();
            if (it.loops) it.target = found->second;
        }
        if (it.loops && it.target == out.size()) continue;  // the endless jump after the end
        out.push_back(std::move(it));
    }
    return out;
}

double count(const std::vector<Instruction>& code, std::size_t first, std::size_t last, std::string_view anchor) {
    double out = 0;
    for (std::size_t i = first; i <= last && i < code.size(); ++i)
        if (code[i].text.find(anchor) != std::string::npos)
            out += code[i].text.contains(".128") && anchor == "LDG" ? 4 : 1;
    return out;
}

}  // namespace

std::optional<std::string> find() {
    if (const std::string chosen(environment("IKAT_NVDISASM")); !chosen.empty()) return chosen;
    const auto ptxas = ptxas::find();
    return find_program("nvdisasm", ptxas ? std::filesystem::path(*ptxas).parent_path().string() : "");
}

std::string disassemble(const std::string& nvdisasm, const std::vector<std::byte>& cubin) {
    const auto file = std::filesystem::temp_directory_path() / ("ikat-" + std::to_string(getpid()) + ".cubin");
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(cubin.data()), std::streamsize(cubin.size()));
    FILE* pipe = popen((nvdisasm + " -c " + file.string() + " 2>&1").c_str(), "r");
    if (!pipe) throw Error("cannot start " + nvdisasm, "IKAT_NVDISASM selects another one");
    std::string out;
    std::array<char, 4096> part;
    while (const std::size_t size = std::fread(part.data(), 1, part.size(), pipe)) out.append(part.data(), size);
    const int status = pclose(pipe);
    std::filesystem::remove(file);
    if (status != 0) throw Error(nvdisasm + " failed: " + out, "IKAT_NVDISASM selects another one");
    return out;
}

std::size_t count_instructions(std::string_view sass) { return parse(sass).size(); }

double instructions_per_element(std::string_view sass, const Loop& loop) {
    const std::vector<Instruction> code = parse(sass);
    double best = 0, result = double(code.size());
    for (std::size_t last = 0; last < code.size(); ++last) {
        if (!code[last].loops) continue;
        const std::size_t first = code[last].target;
        bool innermost = true;
        for (std::size_t i = first; i < last; ++i) innermost &= !code[i].loops || code[i].target < first;
        const auto has = [&](std::string_view opcode) { return count(code, first, last, opcode) > 0; };
        const double anchors = count(code, first, last, loop.anchor);
        if (!innermost || anchors <= best || !has(loop.with) || std::ranges::any_of(loop.without, has)) continue;
        best = anchors;
        result = double(last - first + 1) / (anchors / loop.each);
    }
    return best > 0 ? result : result / std::max(1.0, count(code, 0, code.size() - 1, loop.anchor) / loop.each);
}

std::size_t text_size(const std::vector<std::byte>& cubin) {
    // ELF64: the section headers' offset, size and number, and the section that holds their names.
    const auto read = [&]<class T>(std::size_t at, T) {
        T out{};
        if (at + sizeof out <= cubin.size()) std::memcpy(&out, cubin.data() + at, sizeof out);
        return out;
    };
    const auto table = read(0x28, std::uint64_t{});
    const auto size = read(0x3a, std::uint16_t{}), number = read(0x3c, std::uint16_t{}),
               names = read(0x3e, std::uint16_t{});
    const auto name_table = read(table + std::uint64_t(names) * size + 0x18, std::uint64_t{});
    for (std::uint64_t i = 0; i < number; ++i) {
        const std::uint64_t header = table + i * size;
        const std::uint64_t name = name_table + read(header, std::uint32_t{});
        if (name + 6 < cubin.size() && std::memcmp(cubin.data() + name, ".text.", 6) == 0)
            return read(header + 0x20, std::uint64_t{});
    }
    return 0;
}

}  // namespace ikat::nvdisasm
