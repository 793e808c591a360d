// SPDX-License-Identifier: Apache-2.0
#include "tools/ptxas/options.hpp"

#include <algorithm>
#include <string_view>

#include "codegen/support/diagnostic.hpp"

namespace ikat::ptxas {
namespace {

enum class Kind { Flag, Value, Optional };  // Optional: a value only after '='

struct Option {
    std::string_view name, brief;
    Kind kind = Kind::Flag;
};

/// Of ptxas 13.0 and, at the end, of later ones.
constexpr Option known[] = {
    {"Ofast-compile", "Ofc", Kind::Value},
    {"allow-expensive-optimizations", "allow-expensive-optimizations", Kind::Value},
    {"compile-as-tools-patch", "astoolspatch"},
    {"compile-only", "c"},
    {"compiler-annotations", "annotate"},
    {"def-load-cache", "dlcm", Kind::Value},
    {"def-store-cache", "dscm", Kind::Value},
    {"device-debug", "g"},
    {"device-function-maxrregcount", "func-maxrregcount", Kind::Value},
    {"device-stack-protector", "device-stack-protector", Kind::Value},
    {"disable-optimizer-constants", "disable-optimizer-consts"},
    {"disable-warnings", "w"},
    {"dont-merge-basicblocks", "no-bb-merge"},
    {"entry", "e", Kind::Value},
    {"extensible-whole-program", "ewp"},
    {"fmad", "fmad", Kind::Value},
    {"force-load-cache", "flcm", Kind::Value},
    {"force-store-cache", "fscm", Kind::Value},
    {"g-tensor-memory-access-check", "g-tmem-access-check"},
    {"generate-line-info", "lineinfo"},
    {"gno-tensor-memory-access-check", "gno-tmem-access-check"},
    {"gpu-name", "arch", Kind::Value},
    {"help", "h"},
    {"legacy-bar-warp-wide-behavior", "legacy-bar-warp-wide-behavior"},
    {"machine", "m", Kind::Value},
    {"make-errors-visible-at-exit", "make-errors-visible-at-exit"},
    {"maxntid", "maxntid", Kind::Value},
    {"maxrregcount", "maxrregcount", Kind::Value},
    {"minnctapersm", "minnctapersm", Kind::Value},
    {"opt-level", "O", Kind::Value},
    {"optimize-float-atomics", "opt-fp-atomics"},
    {"output-file", "o", Kind::Value},
    {"override-directive-values", "override-directive-values"},
    {"position-independent-code", "pic", Kind::Value},
    {"preserve-relocs", "preserve-relocs"},
    {"register-usage-level", "regUsageLevel", Kind::Value},
    {"return-at-end", "ret-end"},
    {"sanitize", "sanitize", Kind::Value},
    {"sp-bounds-check", "sp-bounds-check"},
    {"split-compile", "split-compile", Kind::Value},
    {"suppress-async-bulk-multicast-advisory-warning", "suppress-async-bulk-multicast-advisory-warning"},
    {"suppress-debug-info", "suppress-debug-info"},
    {"suppress-double-demote-warning", "suppress-double-demote-warning"},
    {"suppress-sparse-mma-advisory-info", "suppress-sparse-mma-advisory-info"},
    {"suppress-stack-size-warning", "suppress-stack-size-warning"},
    {"verbose", "v"},
    {"version", "V"},
    {"warn-on-double-precision-use", "warn-double-usage"},
    {"warn-on-local-memory-usage", "warn-lmem-usage"},
    {"warn-on-spills", "warn-spills"},
    {"warning-as-error", "Werror"},
    {"regAllocOptLevel", "regAllocOptLevel", Kind::Optional},
};

/// The option that a word names, without its dashes and what is after '='.
const Option& find(std::string_view word) {
    const bool is_long = word.starts_with("--");
    const std::string_view name = word.substr(is_long ? 2 : 1, word.find('=') - (is_long ? 2 : 1));
    const auto is_it = [&](const Option& each) { return each.name == name || each.brief == name; };
    if (const auto found = std::ranges::find_if(known, is_it); found != std::end(known)) return *found;
    if (name.size() == 2 && name[0] == 'O') return *std::ranges::find(known, "opt-level", &Option::name);  // -O3
    throw Error("ptxas has no option '" + std::string(word) + "'", "see ptxas --help");
}

}  // namespace

Options parse(std::span<const std::string> words) {
    Options out;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (word.size() < 2 || word[0] != '-') {
            out.inputs.push_back(word);
            continue;
        }
        const Option& option = find(word);
        const std::size_t equals = word.find('=');
        std::string value = equals == word.npos ? "" : word.substr(equals + 1);
        const bool is_glued = word.size() == 3 && word.starts_with("-O");
        if (option.kind == Kind::Value && equals == word.npos && !is_glued) {
            if (++i == words.size()) throw Error("'" + word + "' has no value", "give it after a space or '='");
            value = words[i];
        }
        if (option.name == "gpu-name") out.target = value;
        if (option.name == "output-file") out.output = value;
        if (option.name == "compile-only") out.is_part = true;
        if (option.name == "version") out.asks_version = true;
        if (option.name == "help") out.asks_help = true;
    }
    return out;
}

}  // namespace ikat::ptxas
