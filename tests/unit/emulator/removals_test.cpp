// SPDX-License-Identifier: Apache-2.0
// Kernels of which each wait, fence, arrival, commit and meeting is needed: without one, or with a weaker one, the
// result is wrong with some seed, or there is a finding. What survives is an instruction that the kernel does not need
// by the ISA, which is to be said here with the reason, or a mistake that the emulator does not see.
#include <algorithm>
#include <fstream>
#include <functional>
#include <regex>
#include <sstream>

#include "codegen/ir/type.hpp"
#include "runtime/emulator/agents/bulk/tensor_map.hpp"
#include "tests/unit/emulator/machine.hpp"

namespace ikat::tests::removals {

namespace {

constexpr std::uint32_t seeds = 16;

std::string source(const std::string& name) {
    std::ifstream file(IKAT_SOURCE_DIR "/tests/unit/emulator/removals/" + name);
    std::ostringstream text;
    text << file.rdbuf();
    REQUIRE(!text.str().empty());
    return text.str();
}

/// Small integers.
std::vector<std::uint16_t> factors(int count, int seed) {
    std::vector<std::uint16_t> all;
    for (int i = 0; i < count; ++i) all.push_back(bfloat16(float((i * 37 + seed * 11 + i / 7) % 13 - 6)).bits);
    return all;
}
std::vector<float> product(const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b, int n, int k) {
    const auto number = [](std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t(bits) << 16); };
    std::vector<float> c(a.size() / std::size_t(k) * std::size_t(n));
    for (std::size_t i = 0; i < c.size(); ++i)
        for (std::size_t l = 0; l < std::size_t(k); ++l)
            c[i] +=
                number(a[i / std::size_t(n) * std::size_t(k) + l]) * number(b[i % std::size_t(n) * std::size_t(k) + l]);
    return c;
}

/// "", "wrong result" or the code of what is found.
using Run = std::function<std::string(const std::string& text, std::uint32_t seed)>;

std::array<std::byte, emulator::tensor_map_bytes> map(std::uint64_t address, emulator::MapType type, int columns,
                                                      int rows, std::uint32_t width, std::uint32_t height,
                                                      emulator::MapSwizzle swizzle) {
    const std::uint64_t pitch = std::uint64_t(columns) * emulator::element_bytes(type);
    return encode(emulator::TensorMap{.type = type,
                                      .rank = 2,
                                      .address = address,
                                      .extents = {std::uint64_t(columns), std::uint64_t(rows)},
                                      .strides = {pitch},
                                      .box = {width, height},
                                      .element_strides = {1, 1},
                                      .swizzle = swizzle});
}
using enum emulator::MapType;
using enum emulator::MapSwizzle;

std::string run_boxes(const std::string& text, std::uint32_t seed) {
    constexpr int tiles = 3, m = 64 * tiles, n = 8, k = 320;
    static const auto a = factors(m * k, 1), b = factors(n * k, 2);
    static const auto expected = product(a, b, n, k);
    Machine machine;
    machine.options.seed = seed;
    machine.options.step_budget = 100000;
    const auto at_a = machine.buffer("a", a), at_b = machine.buffer("b", b), at_c = machine.empty<float>("c", m * n);
    const std::string said =
        machine.failure(text, {.block = {160, 1, 1}}, map(at_a, Bf16, k, m, 64, 64, B128),
                        map(at_b, Bf16, k, n, 64, 8, B128), map(at_c, F32, n, m, 8, 64, None), tiles, k / 64);
    if (said != "no failure") return machine.code.empty() ? said : machine.code;
    return machine.get<float>(at_c, m * n) == expected ? "" : "wrong result";
}

std::string run_pair(const std::string& text, std::uint32_t seed) {
    constexpr int tiles = 2, m = 2 * 64 * tiles, n = 16, k = 320;
    static const auto a = factors(m * k, 5), b = factors(n * k, 6);
    static const auto expected = product(a, b, n, k);
    Machine machine;
    machine.options.seed = seed;
    machine.options.step_budget = 100000;
    const auto at_a = machine.buffer("a", a), at_b = machine.buffer("b", b), at_c = machine.empty<float>("c", m * n);
    const std::string said =
        machine.failure(text, {.grid = {2, 1, 1}, .block = {160, 1, 1}}, map(at_a, Bf16, k, m, 64, 64, B128),
                        map(at_b, Bf16, k, n, 64, 8, B128), at_c, tiles, k / 64);
    if (said != "no failure") return machine.code.empty() ? said : machine.code;
    return machine.get<float>(at_c, m * n) == expected ? "" : "wrong result";
}

std::string run_threads(const std::string& text, std::uint32_t seed) {
    constexpr int m = 32, n = 8, k = 128;
    static const auto a = factors(m * k, 3), b = factors(n * k, 4);
    static const auto expected = product(a, b, n, k);
    Machine machine;
    machine.options.seed = seed;
    machine.options.step_budget = 100000;
    const auto at_a = machine.buffer("a", a), at_b = machine.buffer("b", b), at_c = machine.empty<float>("c", m * n);
    const std::string said = machine.failure(text, {.block = {64, 1, 1}}, at_a, at_b, at_c, k / 16);
    if (said != "no failure") return machine.code.empty() ? said : machine.code;
    return machine.get<float>(at_c, m * n) == expected ? "" : "wrong result";
}

std::string run_mixed(const std::string& text, std::uint32_t seed) {
    constexpr int tiles = 2, m = 64 * tiles, n = 8, k = 320;
    static const auto a = factors(m * k, 7), b = factors(n * k, 8);
    static const auto expected = product(a, b, n, k);
    Machine machine;
    machine.options.seed = seed;
    machine.options.step_budget = 100000;
    const auto at_a = machine.buffer("a", a), at_b = machine.buffer("b", b), at_c = machine.empty<float>("c", m * n);
    const std::string said = machine.failure(text, {.block = {256, 1, 1}}, at_a, at_b, at_c, tiles, k / 64);
    if (said != "no failure") return machine.code.empty() ? said : machine.code;
    return machine.get<float>(at_c, m * n) == expected ? "" : "wrong result";
}

struct Mutant {
    std::string change, text;  // "line: old -> new"
};

/// The lines of a program with one of them changed.
std::vector<Mutant> mutants_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    std::vector<Mutant> all;
    const auto add = [&](std::size_t at, const std::string& instead) {
        std::string changed;
        for (std::size_t i = 0; i < lines.size(); ++i) changed += (i == at ? instead : lines[i]) + "\n";
        const auto trimmed = [](const std::string& line) {
            return line.substr(std::min(line.find_first_not_of(' '), line.size()));
        };
        all.push_back({trimmed(lines[at]) + " -> " + trimmed(instead), changed});
    };
    const std::regex ordered("mbarrier\\.|fence|bar\\.sync|barrier\\.cluster|commit_group|wait_group");
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string& line = lines[i];
        std::smatch found;
        if (line.starts_with("//") || !std::regex_search(line, ordered) || line.find("mbarrier::") != line.npos)
            continue;
        // without it
        add(i, std::regex_search(line, found, std::regex("^\\w+:")) ? found.str() : "");
        // a number more or less
        const auto number = [&](const std::string& before, int step) {
            if (!std::regex_search(line, found, std::regex(before + "(\\d+);"))) return;
            const std::string value = std::to_string(std::stoi(found[1]) + step);
            add(i, line.substr(0, std::size_t(found.position(1))) + value + ";");
        };
        number("wait_group(?:\\.\\w+)* ", 1);
        for (const int step : {-1, 1}) number("mbarrier\\.init.*, ", step);
        for (const int step : {-32, 32})
            if (line.find(", 128;") != line.npos) number("mbarrier\\.init.*, ", step);
        for (const int step : {-16, 16}) number("expect_tx.*, ", step);
        for (const int step : {-32, 32}) number("bar\\.sync 1, ", step);
        if (std::regex_search(line, std::regex("mbarrier\\.arrive\\.(shared|release)")))
            add(i, std::regex_replace(line, std::regex("\\];"), "], 2;"));
        if (line.find(".noinc") != line.npos) add(i, std::regex_replace(line, std::regex("\\.noinc"), ""));
        // the other phase
        if (std::regex_search(line, found, std::regex("^(\\w+:.*\\], )(%r\\d+)(; .*)$")))
            add(i, "xor.b32 %r31, " + found.str(2) + ", 1;\n" + found.str(1) + "%r31" + found.str(3));
        // a weaker fence
        if (line.find("shared::cta;") != line.npos)
            add(i, std::regex_replace(line, std::regex("shared::cta;"), "global;"));
        if (line.find("fence.mbarrier_init") != line.npos) add(i, "fence.acq_rel.cta;");
    }
    return all;
}

/// The changes that no seed shows.
std::vector<std::string> survivors(const std::string& name, const Run& run) {
    const std::string text = source(name);
    for (std::uint32_t seed = 0; seed < seeds; ++seed) CHECK(run(text, seed) == "");
    std::vector<std::string> left;
    const std::vector<Mutant> mutants = mutants_of(text);
    CHECK(mutants.size() > 5);
    for (const Mutant& mutant : mutants) {
        bool is_found = false;
        for (std::uint32_t seed = 0; seed < seeds && !is_found; ++seed) {
            const std::string outcome = run(mutant.text, seed);
            is_found = !outcome.empty();
        }
        if (!is_found) left.push_back(mutant.change);
    }
    return left;
}

}  // namespace

TEST_CASE("each order is needed in a product of boxes by warps in roles") {
    CHECK(survivors("boxes.ptx", run_boxes) == std::vector<std::string>{});
}

TEST_CASE("each order is needed in a product by warpgroups whose tiles threads copy") {
    CHECK(survivors("mixed.ptx", run_mixed) == std::vector<std::string>{});
}

TEST_CASE("each order is needed in a product by warpgroups for which copies of threads arrive") {
    CHECK(survivors("arriving.ptx", run_mixed) == std::vector<std::string>{});
}

TEST_CASE("each order is needed in a product by the blocks of a cluster") {
    // The cluster's barrier, which follows, serves as well as the fence.
    CHECK(survivors("pair.ptx", run_pair) ==
          std::vector<std::string>{"fence.mbarrier_init.release.cluster; -> ",
                                   "fence.mbarrier_init.release.cluster; -> fence.acq_rel.cta;"});
}

TEST_CASE("each order is needed in a product whose tiles threads copy") {
    CHECK(survivors("threads.ptx", run_threads) == std::vector<std::string>{});
}

}  // namespace ikat::tests::removals
