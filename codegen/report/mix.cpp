// SPDX-License-Identifier: Apache-2.0
#include "codegen/report/mix.hpp"

#include <algorithm>

namespace ikat {
namespace {

/// What a kind is recognised by: one of these opcodes and, if a modifier is named, that one. The first row that fits
/// decides.
struct Kind {
    std::string_view name;
    std::string_view opcodes;  // separated by blanks; "*" are all
    std::string_view modifier{};
};

constexpr Kind kinds[] = {
    {"global loads", "ld ldu", ".global"},
    {"global stores", "st", ".global"},
    {"shared loads", "ld ldmatrix", ".shared"},
    {"shared stores", "st stmatrix", ".shared"},
    {"local loads", "ld", ".local"},
    {"local stores", "st", ".local"},
    {"parameter loads", "ld", ".param"},
    {"constant loads", "ld", ".const"},
    {"shared loads", "ldmatrix"},
    {"shared stores", "stmatrix"},
    {"other loads and stores", "ld ldu st"},
    {"atomics", "atom red multimem"},
    {"asynchronous copies", "cp mbarrier prefetch prefetchu tensormap"},
    {"textures and surfaces", "tex tld4 txq suld sust sured suq"},
    {"matrix products", "mma wmma wgmma tcgen05"},
    {"barriers and fences", "bar barrier membar fence griddepcontrol"},
    {"warp operations", "shfl vote match redux activemask elect movmatrix"},
    {"control flow", "bra brx call ret exit trap brkpt nanosleep"},
    {"conversions", "cvt cvta isspacep mapa getctarank"},
    {"comparisons and selections", "set setp selp slct testp vset vset2 vset4"},
    {"moves", "mov"},
    {"hints and settings", "pmevent setmaxnreg createpolicy discard applypriority clusterlaunchcontrol istypep"},
    {"stack", "alloca stacksave stackrestore"},
    {"bit operations",
     "and or xor not cnot lop3 shl shr shf bfe bfi bfind brev popc clz prmt bmsk szext fns vshl vshr"},
    {"special functions", "sin cos ex2 lg2 tanh rcp sqrt rsqrt"},
};

constexpr std::string_view floating = "floating point", integer = "integer arithmetic";

bool contains_word(std::string_view words, std::string_view word) {
    for (std::size_t at = words.find(word); at != words.npos; at = words.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
    }
    return false;
}

bool is_floating(std::string_view modifier) { return modifier.starts_with(".f") || modifier.starts_with(".bf"); }

}  // namespace

std::vector<std::string_view> instruction_kinds() {
    std::vector<std::string_view> out;
    const auto add = [&](std::string_view kind) {
        if (std::ranges::find(out, kind) == out.end()) out.push_back(kind);
    };
    for (const Kind& kind : kinds) add(kind.name);
    add(floating), add(integer);
    return out;
}

std::string_view kind_of(const nvptx::Module& module, const nvptx::Instruction& instruction) {
    const std::string_view opcode = module.text(instruction.opcode);
    const auto modifiers = module.modifiers(instruction.modifiers);
    const auto has = [&](std::string_view wanted) {
        return std::ranges::any_of(modifiers, [&](nvptx::Name name) {
            const std::string_view modifier = module.text(name);
            return modifier == wanted ||
                   (modifier.starts_with(wanted) && modifier.substr(wanted.size()).starts_with("::"));
        });
    };
    for (const Kind& kind : kinds)
        if (contains_word(kind.opcodes, opcode) && (kind.modifier.empty() || has(kind.modifier))) return kind.name;
    const bool computes_floats =
        std::ranges::any_of(modifiers, [&](nvptx::Name name) { return is_floating(module.text(name)); });
    return computes_floats ? floating : integer;
}

}  // namespace ikat
