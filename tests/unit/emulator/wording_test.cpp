// SPDX-License-Identifier: Apache-2.0
// In whose words findings name instructions: PTX's, or the language's.
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/emulator/core/checks/faults.hpp"
#include "runtime/emulator/core/checks/wording.hpp"
#include "tests/unit/emulator/machine.hpp"

using namespace ikat;
using Catch::Matchers::Contains;
using emulator::in_words;
using emulator::Vocabulary;
using tests::kernel;
using tests::Machine;

TEST_CASE("words between backquotes are PTX's or the language's") {
    const auto ptx = [](std::string_view text) { return in_words(Vocabulary::Ptx, text); };
    const auto language = [](std::string_view text) { return in_words(Vocabulary::Language, text); };
    CHECK(ptx("execute `wgmma.fence`, then `wgmma.wait_group 0`") == "execute wgmma.fence, then wgmma.wait_group 0");
    CHECK(language("execute `wgmma.fence`, then `wgmma.wait_group 0`") ==
          "execute wgmma_fence(), then wgmma_wait<0>()");
    for (const std::string text : {"", "nothing", "a `name` of the user's", "`", "one ` of them"}) {
        CHECK(ptx(text) == text);
        CHECK(language(text) == text);
    }
    CHECK(language("the user's `x`mapa`") == "the user's `xpeer()");
}

TEST_CASE("all findings have words for both") {
    for (const emulator::FaultInfo& row : emulator::fault_rows)
        for (const std::string text : {row.message, row.hint}) {
            INFO(text);
            CHECK(in_words(Vocabulary::Ptx, text).find('`') == std::string::npos);
            const std::string said = in_words(Vocabulary::Language, text);
            for (const std::string instruction : {"cp.async", "mbarrier", "wgmma.", "setmaxnreg", "fence.proxy", "%"})
                CHECK(said.find(instruction) == std::string::npos);
        }
}

TEST_CASE("the language has the names that findings say") {
    std::stringstream text;
    for (const auto& file : std::filesystem::recursive_directory_iterator(IKAT_SOURCE_DIR "/dsl"))
        if (file.path().extension() == ".hpp") text << std::ifstream(file.path()).rdbuf();
    const std::string headers = text.str();
    const auto is_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    for (const emulator::Words& each : emulator::words)
        for (std::size_t at = each.language.find('('); at != each.language.npos; at = each.language.find('(', at + 1)) {
            std::string_view name = each.language.substr(0, at);
            name = name.substr(0, std::min(name.find('<'), name.size()));
            std::size_t begin = name.size();
            while (begin > 0 && is_name(name[begin - 1])) --begin;
            name.remove_prefix(begin);
            INFO(each.language);
            const auto declared = [&](std::string_view before, char after) {
                return headers.find(std::string(before) + std::string(name) + after) != std::string::npos;
            };
            CHECK((declared(" ", '(') || declared("IKAT_REGISTER(", ',')));
        }
}

TEST_CASE("a kernel of the language gets its words, other PTX gets PTX's") {
    const std::string text = kernel(".shared .align 8 .b64 bar; mbarrier.arrive.shared.b64 _, [bar]; ret;");
    Machine machine;
    CHECK_THAT(machine.failure(text, {}, 0ull, 0ull, 0ull, 0u),
               Contains("mbarrier.init makes a barrier of 8 bytes") && Contains("kernel.ptx:"));
    for (std::uint32_t line = 0; line < 20; ++line) machine.source_lines.push_back({"k.cpp", line, 1});
    CHECK_THAT(machine.failure(text, {}, 0ull, 0ull, 0ull, 0u),
               Contains("init() makes a barrier of 8 bytes") && Contains("k.cpp:"));
    // of warnings, too
    machine.options.checks.set(emulator::Check::CopiesAtExit, emulator::Action::Warning);
    machine.run(kernel(".shared .align 16 .b8 to[16]; ld.param.u64 %d1, [p0]; mov.u32 %r1, to;\n"
                       "cp.async.ca.shared.global [%r1], [%d1], 16; ret;"),
                {}, machine.buffer("x", std::vector<std::uint32_t>(4)), 0ull, 0ull, 0u);
    REQUIRE(machine.warnings.size() == 1);
    CHECK_THAT(machine.warnings[0].hint, Contains("copy_wait()") && !Contains("cp.async"));
}
