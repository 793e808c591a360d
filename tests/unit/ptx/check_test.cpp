// SPDX-License-Identifier: Apache-2.0
// check() compared with ptxas: instructions.txt, and a file for each "a" target, has a line for each instruction,
// marked '+' if ptxas accepts it and '-' if not.
#include "codegen/ptx/check/check.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "codegen/ptx/table/forms.hpp"
#include "tests/catch.hpp"
#include "tests/ptxas.hpp"

using namespace ikat;
using tests::contains;

namespace {

/// A kernel around an instruction, with registers of all kinds.
std::string kernel(const std::string& instruction, const std::string& version = "9.0",
                   const std::string& target = "sm_90") {
    return ".version " + version + "\n.target " + target +
           "\n.address_size 64\n"
           ".global .f32 gv;\n.global .u32 ga[4];\n.shared .b32 sh[8];\n"
           ".visible .entry k(.param .u64 x)\n{\n"
           ".reg .pred %p<5>;\n.reg .b16 %h<5>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .f32 %f<9>;\n"
           ".reg .f64 %fd<9>;\n.reg .u32 %u<9>;\n.reg .s32 %s<9>;\n.reg .f16 %hf<4>;\n.reg .b8 %b<4>;\nL:\n" +
           instruction + "\nret;\n}\n";
}

constexpr std::size_t first_line = 20;  // of the instruction in the kernel

std::vector<Diagnostic> findings(const std::string& text) {
    return ptx::check(ptx::parse(text, "k.ptx"), {.unknown_opcodes = Severity::Error});
}

std::string rendered(const std::vector<Diagnostic>& diagnostics) {
    std::string out;
    for (const Diagnostic& each : diagnostics) out += to_string(each) + '\n';
    return out;
}

/// The verdict of check; text that the parser rejects is an error, too.
std::string verdict(const std::string& instruction, const std::string& target) {
    try {
        return rendered(findings(kernel(instruction, "9.0", target)));
    } catch (const Error& error) { return error.what(); }
}

struct Line {
    bool accepted;
    std::string instruction;
};

/// "m64nNk16" with a number for N
std::string with_a_number(std::string_view alternative) {
    std::string text(alternative);
    if (const std::size_t at = text.find("nN"); at != text.npos) text.replace(at + 1, 1, "24");
    return text;
}

/// The lines for a target.
struct Lines {
    std::string target;
    std::vector<Line> lines;
};

std::vector<Lines> instructions() {
    std::vector<Lines> out;
    for (const std::string target : {"sm_90", "sm_90a", "sm_100a", "sm_120a"}) {
        const std::string file = target == "sm_90" ? "instructions.txt" : "instructions_" + target + ".txt";
        std::ifstream in(IKAT_SOURCE_DIR "/tests/unit/ptx/" + file);
        out.push_back({target, {}});
        for (std::string line; std::getline(in, line);)
            if (line.starts_with("+ ") || line.starts_with("- "))
                out.back().lines.push_back({line[0] == '+', line.substr(2)});
    }
    return out;
}

}  // namespace

TEST_CASE("check accepts what ptxas accepts") {
    std::size_t count = 0;
    for (const auto& [target, lines] : instructions())
        for (const auto& [accepted, instruction] : lines) {
            INFO(target << ": " << instruction);
            const std::string said = verdict(instruction, target);
            if (accepted)
                CHECK(said == "");
            else
                CHECK_FALSE(said.empty());
            ++count;
        }
    CHECK(count > 900);
}

namespace {

struct Declarations {
    bool accepted;
    std::string text, target;
};

/// The lines of declarations.txt, marked like instructions.txt; each is a module of .version 8.3 for sm_75, or as given
/// in brackets before it.
std::vector<Declarations> declarations() {
    std::vector<Declarations> out;
    std::ifstream in(IKAT_SOURCE_DIR "/tests/unit/ptx/declarations.txt");
    for (std::string line; std::getline(in, line);) {
        std::string version = "8.3", target = "sm_75", text = line.substr(2);
        if (text[0] == '[') {
            std::istringstream(text.substr(1, text.find(']') - 1)) >> version >> target;
            text = text.substr(text.find(']') + 2);
        }
        out.push_back({line[0] == '+',
                       ".version " + version + "\n.target " + target + "\n.address_size 64\n" + text + '\n', target});
    }
    return out;
}

}  // namespace

TEST_CASE("check accepts the declarations that ptxas accepts") {
    const std::vector<Declarations> all = declarations();
    CHECK(all.size() > 260);
    for (const auto& [accepted, text, target] : all) {
        INFO(text);
        std::string said;
        try {
            said = rendered(findings(text));
        } catch (const Error& error) { said = error.what(); }
        if (accepted)
            CHECK(said == "");
        else
            CHECK_FALSE(said.empty());
    }
}

TEST_CASE("the declarations' marks agree with ptxas") {
    if (tests::skip_without_ptxas()) return;
    for (const auto& [accepted, text, target] : declarations()) {
        INFO(text);
        CHECK(tests::assemble(text, target).assembled == accepted);
    }
}

TEST_CASE("in a complete module, used functions and those without .extern have a body") {
    const std::string head = ".version 8.0\n.target sm_80\n.address_size 64\n";
    for (const std::string& text :
         {std::string(".extern .func g(); .entry k() {call g; ret;}"),
          std::string(".func g(); .entry k() {call g; ret;}"),
          std::string(".extern .func g(); .func f() {call g; ret;}"),
          std::string(".weak .func g(); .entry k() {call g; ret;}"),
          std::string(".extern .func g(); .entry k() {.reg .b64 x; mov.b64 x, g; ret;}"),
          std::string(".extern .func g(); .global .u64 p = g; .entry k() {ret;}"),
          std::string(".func g(); .entry k() {ret;}"), std::string(".visible .func g(); .entry k() {ret;}"),
          std::string(".weak .func g(); .entry k() {ret;}")}) {
        INFO(text);
        const ptx::Module module = ptx::parse(head + text, "k.ptx");
        CHECK(ptx::check(module).empty());  // something may be linked to it
        CHECK_THAT(rendered(ptx::check(module, {.is_complete = true})),
                   contains("g is declared but has no body") && contains("--link"));
        if (!tests::skip_without_ptxas()) CHECK_FALSE(tests::assemble(head + text, "sm_80").assembled);
    }
    for (const std::string& text :
         {std::string(".extern .func g(); .entry k() {ret;}"),
          std::string(".func g(); .entry k() {call g; ret;} .func g() {ret;}"),
          std::string(".visible .func h() {ret;} .visible .func g(); .alias g, h; .entry k() {call g; ret;}"),
          std::string(".extern .func free(.param .b64 a); .entry k() {.reg .b64 x; call free, (x); ret;}")}) {
        INFO(text);
        CHECK(ptx::check(ptx::parse(head + text, "k.ptx"), {.is_complete = true}).empty());
        if (!tests::skip_without_ptxas()) CHECK(tests::assemble(head + text, "sm_80").assembled);
    }
}

TEST_CASE("known versions and targets") {
    const auto said = [](const std::string& version, const std::string& target) {
        return rendered(findings(kernel("ret;", version, target)));
    };
    for (const std::string version : {"1.6", "2.4", "5.2", "5.9", "6.6", "7.9", "8.9", "10.0", "99.0"}) {
        INFO(version);
        CHECK_THAT(said(version, "sm_52"), contains("error: there is no .version " + version));
    }
    for (const std::string version : {"1.4", "4.3", "5.1", "6.5", "7.8", "8.8", "9.0"}) {
        INFO(version);
        CHECK(said(version, "sm_52").find("there is no") == std::string::npos);
    }
    CHECK_THAT(said("9.1", "sm_90"), contains("warning: there is no .version 9.1"));  // of a later toolkit
    CHECK_THAT(said("9.0", "sm_999"), contains("error: there is no .target sm_999"));
    CHECK_THAT(said("9.1", "sm_130"), contains("warning: the features of .target sm_130 are not known"));
    CHECK_THAT(said("9.0", "sm_90, nonsense"), contains("error: .target has no option nonsense"));
}

TEST_CASE("each rejected instruction gives one error, with its location, a mark and a hint") {
    std::set<std::string_view> seen;
    for (const auto& [target, lines] : instructions())
        for (const auto& [accepted, instruction] : lines) {
            const std::string_view stem = std::string_view(instruction).substr(0, instruction.find_first_of(". "));
            static constexpr std::string_view wide[] = {"mbarrier", "wgmma", "tcgen05", "multimem", "tensormap", "cp",
                                                        "tex",      "tld4",  "suld",    "sust",     "sured",     "vmad",
                                                        "mma",      "txq",   "suq",     "ldmatrix", "stmatrix"};
            if (accepted || std::ranges::find(wide, stem) == std::end(wide)) continue;
            INFO(target << ": " << instruction);
            std::vector<Diagnostic> said = findings(kernel(instruction, "9.0", target));
            REQUIRE(said.size() >= 1);
            CHECK(said[0].where.line == first_line);
            CHECK(said[0].severity == Severity::Error);
            if (said[0].message.find(" does not have ") == std::string::npos)  // of the target
                CHECK_THAT(said[0].excerpt, contains("\n") && contains("^"));
            CHECK_FALSE(said[0].hint.empty());
            seen.insert(stem);
        }
    CHECK(seen.size() == 17);
}

TEST_CASE("the instructions' marks agree with ptxas") {
    if (tests::skip_without_ptxas()) return;
    for (const auto& [target, lines] : instructions()) {
        std::string good;
        std::vector<std::string> open;
        for (const auto& [accepted, instruction] : lines)
            if (accepted)
                good += instruction + '\n';
            else
                open.push_back(instruction);
        const tests::PtxasReport all_good = tests::assemble(kernel(good, "9.0", target), target);
        INFO(all_good.log);
        CHECK(all_good.assembled);
        // A run lists all lines with errors, unless one of them is fatal: that one is removed for the next run.
        for (bool again = true; again;) {
            again = false;
            std::string refused;
            for (const std::string& each : open) refused += each + '\n';
            const std::string log = tests::assemble(kernel(refused, "9.0", target), target).log;
            for (std::size_t i = 0; i < open.size(); ++i) {
                const std::string line = ", line " + std::to_string(first_line + i) + "; ";
                again |= log.find(line + "fatal") != log.npos;
                if (log.find(line + "error") != log.npos || log.find(line + "fatal") != log.npos) open[i].clear();
            }
        }
        for (const std::string& each : open)
            CHECK((each.empty() || !tests::assemble(kernel(each, "9.0", target), target).assembled));
    }
}

TEST_CASE("the table knows every opcode of PTX 9.0") {
    static constexpr std::string_view opcodes[] = {
        "abs",          "activemask",    "add",       "addc",       "alloca",
        "and",          "applypriority", "atom",      "bar",        "barrier",
        "bfe",          "bfi",           "bfind",     "bmsk",       "bra",
        "brev",         "brkpt",         "brx",       "call",       "clusterlaunchcontrol",
        "clz",          "cnot",          "copysign",  "cos",        "cp",
        "createpolicy", "cvt",           "cvta",      "discard",    "div",
        "dp2a",         "dp4a",          "elect",     "ex2",        "exit",
        "fence",        "fma",           "fns",       "getctarank", "griddepcontrol",
        "isspacep",     "istypep",       "ld",        "ldmatrix",   "ldu",
        "lg2",          "lop3",          "mad",       "mad24",      "madc",
        "mapa",         "match",         "max",       "mbarrier",   "membar",
        "min",          "mma",           "mov",       "movmatrix",  "mul",
        "mul24",        "multimem",      "nanosleep", "neg",        "not",
        "or",           "pmevent",       "popc",      "prefetch",   "prefetchu",
        "prmt",         "rcp",           "red",       "redux",      "rem",
        "ret",          "rsqrt",         "sad",       "selp",       "set",
        "setmaxnreg",   "setp",          "shf",       "shfl",       "shl",
        "shr",          "sin",           "slct",      "sqrt",       "st",
        "stackrestore", "stacksave",     "stmatrix",  "sub",        "subc",
        "suld",         "suq",           "sured",     "sust",       "szext",
        "tanh",         "tcgen05",       "tensormap", "testp",      "tex",
        "tld4",         "trap",          "txq",       "vabsdiff",   "vabsdiff2",
        "vabsdiff4",    "vadd",          "vadd2",     "vadd4",      "vavrg2",
        "vavrg4",       "vmad",          "vmax",      "vmax2",      "vmax4",
        "vmin",         "vmin2",         "vmin4",     "vote",       "vset",
        "vset2",        "vset4",         "vshl",      "vshr",       "vsub",
        "vsub2",        "vsub4",         "wgmma",     "wmma",       "xor"};
    for (const std::string_view opcode : opcodes) {
        INFO(opcode);
        CHECK_FALSE(ptx::forms_of(ptx::find_opcode(opcode)).empty());
    }
    CHECK(ptx::find_opcode("abc") == ptx::Opcode::Unknown);
    CHECK(ptx::find_opcode("") == ptx::Opcode::Unknown);
    CHECK(ptx::forms_of(ptx::Opcode::Unknown).empty());
}

TEST_CASE("an opcode's row agrees with its forms") {
    using ptx::OpcodeInfo;
    for (std::size_t i = 1; i < ptx::opcode_count; ++i) {
        const auto opcode = ptx::Opcode(i);
        const std::span<const ptx::Form> forms = ptx::forms_of(opcode);
        const bool together = std::ranges::any_of(forms, [](const ptx::Form& form) {
            return std::ranges::any_of(form.groups, [](const ptx::Group& group) {
                return std::ranges::any_of(group.alternatives, [](ptx::Modifier each) {
                    return each == ptx::Modifier::Sync || each == ptx::Modifier::Aligned;  // of a warp, or of more
                });
            });
        });
        INFO(ptx::info(opcode).name);
        CHECK(ptx::info(opcode).is(OpcodeInfo::Bare) ==
              std::ranges::any_of(forms, [](const auto& form) { return form.operands.empty(); }));
        CHECK(ptx::info(opcode).is(OpcodeInfo::Convergent) == (together || opcode == ptx::Opcode::Activemask));
    }
}

TEST_CASE("each row of the table can be read, and its first alternatives suit it") {
    for (std::size_t i = 1; i < ptx::opcode_count; ++i) {
        for (const ptx::Form& form : ptx::forms_of(ptx::Opcode(i))) {
            ptx::Module module;
            std::vector<ptx::Name> modifiers;
            for (const ptx::Group& group : form.groups)
                if (!group.rest)
                    modifiers.push_back(module.intern("." + with_a_number(ptx::name(group.alternatives[0]))));
            ptx::Instruction instruction{.opcode = form.opcode, .modifiers = module.add_modifiers(modifiers)};
            const ptx::Match match = ptx::match(module, instruction);
            INFO(ptx::syntax(form));
            CHECK(match.problems == 0);
        }
    }
}

TEST_CASE("the modifiers are those of the forms") {
    std::set<ptx::Modifier> used;
    for (std::size_t i = 1; i < ptx::opcode_count; ++i)
        for (const ptx::Form& form : ptx::forms_of(ptx::Opcode(i)))
            for (const ptx::Group& group : form.groups)
                used.insert(group.alternatives.begin(), group.alternatives.end());
    for (std::size_t i = 1; i < ptx::modifier_count; ++i) {
        const auto modifier = ptx::Modifier(i);
        INFO(ptx::name(modifier));
        CHECK(used.contains(modifier));
        CHECK(ptx::find_modifier(ptx::name(modifier)) == modifier);
    }
    CHECK(ptx::spelled_modifier(".rn") == ptx::Modifier::Rn);
    for (const char* other : {"", ".", "rn", "..rn", ".Rn", ".rnn", ".m64nNk16"})
        CHECK(ptx::spelled_modifier(other) == ptx::Modifier::Unknown);
}

TEST_CASE("a shape whose N is any multiple of 8 up to 256") {
    const auto said = [](const std::string& n) {
        return verdict("wgmma.mma_async.sync.aligned.m64n" + n + "k16.f32.f16.f16 {%f1}, %rd1, %rd2, 1, 1, 1, 0, 0;",
                       "sm_90a");
    };
    for (const char* n : {"8", "24", "256"}) CHECK_THAT(said(n), !contains("does not take"));
    for (const char* n : {"0", "4", "264", "N", "8888", ""}) CHECK_THAT(said(n), contains("does not take"));
}

TEST_CASE("names are looked up in their scopes") {
    const auto said = [](const std::string& body) { return rendered(findings(kernel(body))); };
    CHECK(said("{ .reg .b32 a; mov.u32 a, 1; { mov.u32 a, 2; } }") == "");
    CHECK(said("{ .reg .b64 %r1; mov.u64 %r1, 1; } mov.u32 %r1, 1;") == "");
    CHECK(said("{ bra inner; inner: bra L; }") == "");
    CHECK_THAT(said("{ .reg .b32 a; } mov.u32 a, 1;"), contains("a is not declared here"));
    CHECK_THAT(said("mov.u32 a, 1; .reg .b32 a;"), contains("a is not declared here"));
    CHECK_THAT(said(".reg .b32 a; .reg .b32 a;"), contains("a is declared twice"));
    CHECK_THAT(said("mov.u32 %r9, 1;"), contains("%r<9> ends with %r8"));
    CHECK_THAT(said("mov.u32 %r07, 1;"), contains("%r07 is not declared"));
    CHECK_THAT(said("{ inner: ret; } bra inner;"), contains("inner is not declared here"));
    CHECK_THAT(said("{ L: bra L; } L: ret;"), contains("L is declared twice"));
    CHECK_THAT(said("@%r1 ret;"), contains("the guard %r1 is not a predicate"));
    CHECK_THAT(said("@%q ret;"), contains("%q is not declared"));
    CHECK(said("ts: .branchtargets L, M; M: brx.idx %r1, ts;") == "");
    CHECK_THAT(said("ts: .branchtargets L, N; brx.idx %r1, ts;"), contains("N is not declared"));
    CHECK_THAT(said(".reg .nonsense a;"), contains(".nonsense is not a type"));
}

TEST_CASE("features need their target and version") {
    const auto said = [](const std::string& body, const std::string& version, const std::string& target) {
        return rendered(findings(kernel(body, version, target)));
    };
    CHECK(said("cp.async.wait_all;", "7.0", "sm_80") == "");
    CHECK(said("cvt.rn.f16x2.e4m3x2 %r1, %h1;", "7.8", "sm_90") == "");
    CHECK_THAT(said("cvt.rn.f16x2.e4m3x2 %r1, %h1;", "8.0", "sm_89"), contains("it needs .version 8.1"));
    CHECK(said("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%rd1], %r1;", "8.0", "sm_90") == "");
    CHECK_THAT(said("mbarrier.arrive.relaxed.cta.shared.b64 %rd1, [%rd1];", "8.0", "sm_90"),
               contains("it needs .version 8.6"));
    CHECK_THAT(said("cp.async.wait_all;", "7.0", "sm_75"), contains("it needs .target sm_80 or higher"));
    CHECK_THAT(said("ld.global.L1::no_allocate.f32 %f1, [%rd1];", "7.0", "sm_75"), contains("it needs .version 7.4"));
    CHECK_THAT(said("mov.u32 %r1, %cluster_ctarank;", "8.0", "sm_80"), contains("sm_80 does not have clusters"));
    CHECK_THAT(said("wgmma.fence.sync.aligned;", "8.0", "sm_90"), contains("it needs .target sm_90a"));
    CHECK_THAT(said("ret;", "6.3", "sm_90"), contains(".version 6.3 does not support .target sm_90"));
    CHECK_THAT(said("ret;", "8.0", "sm_52"), contains("the features of .target sm_52 are not known"));
    CHECK_THAT(rendered(findings(".entry k() { ret; }")), contains("the module has no .target"));
}

TEST_CASE("the features of a module decide its version") {
    const auto lowest = [](const std::string& body) {
        const ptx::Module module = ptx::parse(kernel(body), "k.ptx");
        const ptx::Version version = ptx::lowest_version(ptx::target("sm_90a"), ptx::features_of(module));
        return version.major * 10 + version.minor;
    };
    CHECK(lowest("ret;") == 80);
    CHECK(lowest("red.global.add.v2.f32 [%rd1], {%f1, %f2};") == 81);
    CHECK(lowest("cvta.param::entry.u64 %rd1, %rd2;") == 83);
    CHECK(lowest("lop3.or.b32 %r1|%p1, %r1, %r2, %r3, 5, %p2;") == 82);
    CHECK(ptx::features_of(ptx::parse(kernel("mov.u32 %r1, %clusterid.x; fma.rn.bf16 %h1, %h1, %h1, %h1;"), "k.ptx")) ==
          std::vector{ptx::Feature::Bfloat16Fma, ptx::Feature::Clusters});
}

TEST_CASE("ptxas accepts each instruction on the first target and version with its features") {
    if (tests::skip_without_ptxas()) return;
    std::map<std::pair<std::string, std::string>, std::string> groups;  // by target and version
    for (const auto& [target, lines] : instructions())
        for (const auto& [accepted, instruction] : lines) {
            if (!accepted) continue;
            const ptx::Module module = ptx::parse(kernel(instruction, "9.0", target), "k.ptx");
            const std::vector<ptx::Feature> features = ptx::features_of(module);
            const auto first = std::ranges::find_if(ptx::targets(), [&](const ptx::Target& each) {
                return std::ranges::all_of(features, [&](ptx::Feature f) { return ptx::supports(each, f); });
            });
            REQUIRE(first != ptx::targets().end());
            const ptx::Version version = ptx::lowest_version(*first, features);
            groups[{std::string(first->name), std::to_string(version.major) + '.' + std::to_string(version.minor)}] +=
                instruction + '\n';
        }
    CHECK(groups.size() > 8);
    for (const auto& [where, lines] : groups) {
        const tests::PtxasReport report = tests::assemble(kernel(lines, where.second, where.first), where.first);
        INFO(where.first << ", .version " << where.second << "\n" << report.log);
        CHECK(report.assembled);
    }
}

TEST_CASE("an unknown opcode is reported as asked") {
    const ptx::Module module = ptx::parse(kernel("frobnicate.s32 %r1, %r2;"), "k.ptx");
    CHECK(ptx::check(module).at(0).severity == Severity::Error);
    const ptx::Module newer = ptx::parse(kernel("frobnicate.s32 %r1, %r2;", "9.1"), "k.ptx");
    CHECK(ptx::check(newer).at(1).severity == Severity::Note);
    CHECK(ptx::check(module, {.unknown_opcodes = std::nullopt}).empty());
    CHECK(ptx::check(module, {.unknown_opcodes = Severity::Warning}).at(0).severity == Severity::Warning);
    CHECK_THROWS_AS(ptx::check_or_throw(module), Error);
    CHECK_NOTHROW(ptx::check_or_throw(newer));
    CHECK_THROWS_AS(ptx::check_or_throw(ptx::parse(kernel("add.s32 %r1;"), "k.ptx")), Error);
}
