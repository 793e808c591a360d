// SPDX-License-Identifier: Apache-2.0
#include "tests/repository/layering.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace ikat::tests {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_uses = 16;

/// A layer, the path prefix of its files, and the layers directly below it. It may include itself and everything
/// reachable downwards.
struct Layer {
    std::string_view name;
    std::string_view prefix;
    std::array<std::string_view, max_uses> uses{};
};

// The order matters only for layer_of: the first matching prefix decides.
constexpr Layer layers[] = {
    {"support", "codegen/support/"},
    {"ir", "codegen/ir/", {"support"}},
    {"kernel", "codegen/kernel/", {"ir"}},
    {"ast", "codegen/ast/", {"kernel"}},
    {"analysis", "codegen/analysis/", {"ir"}},
    {"passes", "codegen/passes/", {"analysis"}},
    {"lower", "codegen/lower/", {"ast", "ir"}},
    {"regalloc", "regalloc/", {"support"}},
    {"ptx", "codegen/ptx/", {"support"}},
    {"target", "codegen/target.", {"kernel", "analysis", "regalloc"}},
    {"target", "codegen/pipeline/stage.hpp", {"kernel", "analysis", "regalloc"}},
    {"legalise", "codegen/legalise/", {"target"}},
    {"nvptx", "codegen/nvptx/", {"ptx", "legalise"}},
    {"pipeline", "codegen/pipeline/", {"ast", "lower", "passes", "nvptx"}},
    {"ptxas", "codegen/ptxas.", {"support"}},
    {"nvdisasm", "codegen/nvdisasm.", {"ptxas"}},
    {"report", "codegen/report/", {"pipeline", "ptxas"}},
    {"record", "dsl/record/", {"ast", "ptx"}},
    {"values", "dsl/values/", {"record"}},
    {"lanes", "dsl/lanes/", {"values"}},
    {"memory", "dsl/memory/", {"lanes"}},
    {"threads", "dsl/threads/", {"memory"}},
    {"dsl", "dsl/", {"threads"}},
    {"facts", "runtime/facts/", {"support"}},
    {"emulator's core", "runtime/emulator/core/", {"ir", "ptx", "facts"}},
    {"emulator's ops", "runtime/emulator/ops/", {"emulator's core"}},
    {"emulator's machine", "runtime/emulator/machine/", {"emulator's ops"}},
    {"emulator's agents", "runtime/emulator/agents/", {"emulator's machine"}},
    {"emulator's decode", "runtime/emulator/decode/", {"emulator's agents"}},
    {"emulator's tools", "runtime/emulator/tools/", {"emulator's decode"}},
    {"emulator's host", "runtime/emulator/host/", {"emulator's tools"}},
    {"", "runtime/emulator/"},  // outside of its rooms
    {"runtime", "runtime/", {"dsl", "pipeline", "report", "emulator's host"}},
    {"spec", "stdlib/spec/", {"runtime"}},
    {"math", "stdlib/math/", {"spec"}},
    {"reduce", "stdlib/reduce/", {"math"}},
    {"tile", "stdlib/tile/", {"reduce"}},
    {"attention", "stdlib/attention/", {"quantised"}},
    {"backward", "stdlib/backward/", {"elementwise", "gemm", "norm"}},
    {"conv", "stdlib/conv/", {"tile"}},
    {"elementwise", "stdlib/elementwise/", {"tile"}},
    {"epilogue", "stdlib/epilogue/", {"spec"}},
    {"gemm", "stdlib/gemm/", {"quantised"}},
    {"layout", "stdlib/layout/", {"quantised"}},
    {"loss", "stdlib/loss/", {"gemm"}},
    {"embedding", "stdlib/embedding/", {"tile"}},
    {"attention_backward", "stdlib/attention_backward/", {"attention"}},
    {"random", "stdlib/random/", {"tile"}},
    {"norm", "stdlib/norm/", {"tile"}},
    {"optimise", "stdlib/optimise/", {"tile"}},
    {"quantised", "stdlib/quantised/", {"elementwise", "epilogue"}},
    {"reduction", "stdlib/reduction/", {"tile"}},
    {"softmax", "stdlib/softmax/", {"tile"}},
    {"reference",
     "stdlib/reference/",
     {"conv", "elementwise", "embedding", "optimise", "quantised", "random", "reduction"}},
    {"catalogue",
     "stdlib/catalogue/",
     {"attention", "attention_backward", "backward", "conv", "elementwise", "embedding", "gemm", "layout", "loss",
      "norm", "optimise", "quantised", "random", "reduction", "softmax"}},
    {"batch", "stdlib/batch/", {"catalogue"}},
    {"", "stdlib/"},  // outside of its rooms
    {"ikat's text", "tools/cli/text/", {"catalogue", "reference"}},
    {"ikat's arguments", "tools/cli/arguments/", {"ikat's text"}},
    {"ikat's reports", "tools/cli/report/", {"ikat's text"}},
    {"ikat's pictures", "tools/cli/draw/", {"ikat's text"}},
    {"ikat's monitor", "tools/cli/monitor/", {"ikat's text"}},
    {"ikat's commands",
     "tools/cli/commands/",
     {"ikat's arguments", "ikat's reports", "ikat's pictures", "ikat's monitor"}},
    {"include", "include/", {"batch", "reference", "tools"}},
    {"tools", "tools/", {"catalogue", "reference", "ikat's commands"}},
    {"bench", "bench/", {"include", "nvdisasm"}},
    {"examples", "examples/", {"include"}},
    {"tests", "tests/", {"include", "nvdisasm"}},
};

const Layer* find_layer(std::string_view name) {
    const auto found = std::ranges::find(layers, name, &Layer::name);
    return found == std::end(layers) ? nullptr : found;
}

bool may_include(std::string_view from, std::string_view to) {
    if (from == to) return true;
    const Layer* layer = find_layer(from);
    return layer && std::ranges::any_of(
                        layer->uses, [&](std::string_view below) { return !below.empty() && may_include(below, to); });
}

struct Include {
    std::string_view path;
    bool quoted = false;
    std::size_t line = 0;
};

std::vector<std::string_view> split_lines(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        lines.push_back(text.substr(0, end));
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + 1);
    }
    return lines;
}

/// The includes of a file, from lines that begin with `#include <` or `#include "` (blanks allowed around the #).
std::vector<Include> includes_of(std::string_view text) {
    std::vector<Include> out;
    const std::vector<std::string_view> lines = split_lines(text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        std::string_view line = lines[i];
        const auto skip_blanks = [&] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
        const auto skip = [&](std::string_view word) {
            const bool found = line.starts_with(word);
            if (found) line.remove_prefix(word.size());
            skip_blanks();
            return found;
        };
        skip_blanks();
        if (!skip("#") || !skip("include") || line.empty()) continue;
        const bool quoted = line.front() == '"';
        if (!quoted && line.front() != '<') continue;
        out.push_back({line.substr(1, line.find(quoted ? '"' : '>', 1) - 1), quoted, i + 1});
    }
    return out;
}

/// The repository's file that an include names, or "" for other files.
std::string resolve(const Tree& tree, const Include& include) {
    for (const std::string prefix : {"", "include/"})
        if (tree.contains(prefix + std::string(include.path))) return prefix + std::string(include.path);
    return {};
}

bool is_header(std::string_view path) { return path.ends_with(".hpp"); }

std::string_view stem(std::string_view path) {
    path.remove_prefix(path.find_last_of('/') + 1);
    return path.substr(0, path.find_last_of('.'));
}

/// A source file whose name says that it is a parser: parse.cpp, parse_operands.cpp, npy_parser.cpp.
bool is_parser(std::string_view path) {
    const std::string_view name = stem(path);
    return path.ends_with(".cpp") && (name.starts_with("parse") || name.ends_with("_parser"));
}

std::string place(std::string_view path, std::size_t line) {
    return std::string(path) + ':' + std::to_string(line) + ": ";
}

void check_beginning(std::string_view path, std::string_view text, std::vector<std::string>& broken) {
    if (!text.starts_with("// SPDX-License-Identifier: Apache-2.0\n"))
        broken.push_back(place(path, 1) + "the first line must be // SPDX-License-Identifier: Apache-2.0");
    const std::vector<std::string_view> lines = split_lines(text);
    if (is_header(path) && std::ranges::find(lines, "#pragma once") == lines.end())
        broken.push_back(place(path, 1) + "a header needs #pragma once");
}

void check_library(std::string_view path, const Include& include, std::vector<std::string>& broken) {
    if (include.path.starts_with("boost/hana") && path != "dsl/memory/fields.hpp" && path != "dsl/kernel/kernel.hpp")
        broken.push_back(place(path, include.line) +
                         "Hana belongs in dsl/memory/fields.hpp and dsl/kernel/kernel.hpp alone");
}

/// Only ir::effects() may be asked what an operation does besides computing, so that there is one answer.
void check_effects(std::string_view path, std::string_view text, std::vector<std::string>& broken) {
    if (path == "codegen/ir/op/effects.hpp" || layer_of(path) == "tests") return;
    const std::vector<std::string_view> lines = split_lines(text);
    for (std::size_t i = 0; i < lines.size(); ++i)
        for (const std::string_view trait : {"Reads)", "Writes)", "Convergent)", "Fails)"})
            if (lines[i].find("has(") != lines[i].npos && lines[i].find(trait) != lines[i].npos)
                broken.push_back(place(path, i + 1) + "effects() says what an operation does, not its traits");
}

/// The library reads the environment in one place, and writes to standard error in two: a note, and an assertion.
void check_host(std::string_view path, std::string_view text, std::vector<std::string>& broken) {
    const std::string_view layer = layer_of(path);
    for (const std::string_view outside : {"tests", "tools", "bench", "examples"})
        if (layer == outside) return;
    const std::vector<std::string_view> lines = split_lines(text);
    const auto refuse = [&](std::string_view what, std::initializer_list<std::string_view> homes, const char* hint) {
        if (std::ranges::find(homes, path) != homes.end()) return;
        for (std::size_t i = 0; i < lines.size(); ++i)
            if (lines[i].find(what) != lines[i].npos) broken.push_back(place(path, i + 1) + hint);
    };
    refuse("getenv(", {"codegen/support/environment.cpp"}, "environment() reads the environment");
    for (const std::string_view stream : {" stderr", "std::cerr"})
        refuse(stream, {"codegen/support/diagnostic.cpp", "codegen/support/notes.cpp"},
               "the library throws Error, or says it with note()");
}

/// Above the language, a kernel is a handle, its KernelInfo and its PTX: what else could be launched has no AST.
void check_trees(std::string_view path, std::string_view text, std::vector<std::string>& broken) {
    constexpr std::string_view above[] = {"runtime/", "stdlib/", "tools/", "include/", "bench/", "examples/"};
    if (std::ranges::none_of(above, [&](std::string_view folder) { return path.starts_with(folder); })) return;
    if (path.starts_with("runtime/emulator/") || path.starts_with("runtime/facts/")) return;
    const std::vector<std::string_view> lines = split_lines(text);
    for (std::size_t i = 0; i < lines.size(); ++i)
        for (const std::string_view name : {" ast::", "(ast::", "<ast::", "\"codegen/ast/"})
            if (lines[i].find(name) != lines[i].npos)
                broken.push_back(place(path, i + 1) +
                                 "above dsl nothing names an AST: take a KernelHandle or a KernelInfo");
}

/// The library is written in the language that users have.
void check_language(std::string_view path, std::string_view text, std::vector<std::string>& broken) {
    if (!path.starts_with("stdlib/") && !path.starts_with("examples/")) return;
    const std::vector<std::string_view> lines = split_lines(text);
    for (std::size_t i = 0; i < lines.size(); ++i)
        if (lines[i].contains("trace::"))
            broken.push_back(place(path, i + 1) +
                             "the library names nothing of dsl's recorder: what it needs is part of "
                             "the language, or becomes it");
}

/// How PTX spells spaces, types, directives and modifiers, its own rooms know: others ask for their meanings.
void check_spellings(std::string_view path, std::string_view text, std::vector<std::string>& broken) {
    if (layer_of(path) == "ptx" || !(path.starts_with("codegen/") || path.starts_with("runtime/"))) return;
    const std::vector<std::string_view> lines = split_lines(text);
    for (std::size_t i = 0; i < lines.size(); ++i)
        for (const std::string_view compared : {"== \".", "!= \".", "find(\"."})
            if (lines[i].find(compared) != lines[i].npos)
                broken.push_back(place(path, i + 1) +
                                 "a comparison with a word of PTX: ask for what it means (codegen/ptx/text/words.hpp)");
}

void check_target(const Tree& tree, std::string_view path, const Include& include, std::vector<std::string>& broken) {
    const std::string target = resolve(tree, include);
    if (target.empty()) {
        if (include.quoted)
            broken.push_back(place(path, include.line) + '"' + std::string(include.path) +
                             "\" is no path from the repository's root");
        return;
    }
    const std::string_view from = layer_of(path), to = layer_of(target);
    if (!may_include(from, to))
        broken.push_back(place(path, include.line) + std::string(from) + " may not include " + std::string(to) + " (" +
                         target + ')');
}

std::size_t indentation(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

/// A function can be read without scrolling. As clang-format leaves it: it begins in its column, and ends with a brace
/// there.
void check_functions(std::string_view path, std::string_view text, std::vector<std::string>& broken) {
    constexpr std::size_t max_lines = 60, nowhere = ~std::size_t{0};
    const std::vector<std::string_view> lines = split_lines(text);
    const auto is_other = [](std::string_view head) {
        for (const std::string_view word : {"namespace", "struct", "class", "enum", "if", "for", "while", "switch",
                                            "do", "else", "try", "case", "}", "#", "//", "template <"})
            if (head.starts_with(word)) return true;
        return head.find('(') == head.npos && !head.ends_with(',');
    };
    for (const std::size_t column : {0u, 4u}) {
        std::size_t open = nowhere;
        for (std::size_t i = 0; i < lines.size(); ++i) {
            if (lines[i].empty() || indentation(lines[i]) < column) continue;
            const std::string_view line = lines[i].substr(column);
            if (line == "}") {
                if (open != nowhere && i - open - 1 > max_lines)
                    broken.push_back(place(path, open + 1) + "a function of " + std::to_string(i - open - 1) +
                                     " lines: divide it");
                open = nowhere;
            } else if (line.front() != ' ' && !line.starts_with("//")) {
                open = line.ends_with('{') && !is_other(line) ? i : nowhere;
            } else if (line.ends_with(") {") && line.starts_with("      ") && open == nowhere) {
                open = i;  // the end of a long head
            }
        }
    }
}

/// A file has one subject, and a folder can be taken in at a glance.
void check_sizes(const Tree& tree, std::vector<std::string>& broken) {
    constexpr std::size_t max_lines = 450, max_files = 25;
    std::map<std::string_view, std::size_t> files;
    for (const auto& [path, text] : tree) {
        const std::string_view name = path;
        const auto is_in = [&](std::string_view folder) { return name.starts_with(folder); };
        if (!is_in("codegen/") && !is_in("dsl/") && !is_in("regalloc/") && !is_in("runtime/")) continue;
        const std::size_t lines = split_lines(text).size();
        check_functions(path, text, broken);
        if (lines > max_lines && !path.ends_with(".def"))  // a table has as many rows as there are things
            broken.push_back(place(path, max_lines + 1) + "a file of " + std::to_string(lines) + " lines: split it");
        if (++files[name.substr(0, name.rfind('/'))] == max_files + 1)
            broken.push_back(place(path, 1) + "more than " + std::to_string(max_files) +
                             " files in a folder: divide it");
    }
}

/// The files of the repository that these include, directly or indirectly, and these themselves.
std::set<std::string> reached_from(const Tree& tree, std::vector<std::string> open) {
    std::set<std::string> reached;
    while (!open.empty()) {
        const std::string path = std::move(open.back());
        open.pop_back();
        if (!reached.insert(path).second) continue;
        for (const Include& include : includes_of(tree.at(path)))
            if (std::string target = resolve(tree, include); !target.empty()) open.push_back(std::move(target));
    }
    return reached;
}

/// X3 costs seconds per translation unit, so only parsers may include it. A header may hold a grammar if only they
/// include it.
void check_parsers(const Tree& tree, std::vector<std::string>& broken) {
    for (const auto& [path, text] : tree) {
        if (is_parser(path) || (is_header(path) && !path.starts_with("include/"))) continue;
        for (const std::string& reached : reached_from(tree, {path}))
            for (const Include& include : includes_of(tree.at(reached)))
                if (include.path.starts_with("boost/spirit"))
                    broken.push_back(place(reached, include.line) + "Spirit X3 is read by " + path +
                                     ", which is not called parse*.cpp or *_parser.cpp");
    }
}

void check_public_headers(const Tree& tree, std::vector<std::string>& broken) {
    std::vector<std::string> faces;
    for (const auto& [path, text] : tree)
        if (path.starts_with("include/")) faces.push_back(path);
    const std::set<std::string> reached = reached_from(tree, faces);
    for (const std::string& path : reached)
        for (const Include& include : includes_of(tree.at(path)))
            if (include.path.starts_with("fmt/"))
                broken.push_back(place(path, include.line) + "fmt in a header that include/ikat reaches");
    for (const std::string& path : reached)
        for (const std::string_view inside : {"runtime/emulator/", "regalloc/", "codegen/nvptx/"})
            if (path.starts_with(inside)) broken.push_back(place(path, 1) + "include/ikat reaches this header");
}

}  // namespace

std::string_view layer_of(std::string_view path) {
    const auto found = std::ranges::find_if(layers, [&](const Layer& layer) { return path.starts_with(layer.prefix); });
    return found == std::end(layers) ? std::string_view() : found->name;
}

std::vector<std::string> broken_rules(const Tree& tree) {
    std::vector<std::string> broken;
    for (const auto& [path, text] : tree) {
        check_beginning(path, text, broken);
        check_effects(path, text, broken);
        check_host(path, text, broken);
        check_trees(path, text, broken);
        check_language(path, text, broken);
        check_spellings(path, text, broken);
        if (layer_of(path).empty()) broken.push_back(place(path, 1) + "this folder is in no layer");
        for (const Include& include : includes_of(text)) {
            check_library(path, include, broken);
            check_target(tree, path, include, broken);
        }
    }
    check_parsers(tree, broken);
    check_public_headers(tree, broken);
    check_sizes(tree, broken);
    return broken;
}

Tree read_tree(const std::string& root) {
    Tree tree;
    for (const char* folder :
         {"include", "dsl", "codegen", "regalloc", "runtime", "stdlib", "tools", "bench", "tests", "examples"}) {
        if (!fs::is_directory(fs::path(root) / folder)) continue;
        for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(root) / folder)) {
            const fs::path extension = entry.path().extension();
            if (extension != ".hpp" && extension != ".cpp" && extension != ".def" && extension != ".inl") continue;
            std::ostringstream text;
            text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
            tree.emplace(fs::relative(entry.path(), root).generic_string(), text.str());
        }
    }
    return tree;
}

}  // namespace ikat::tests
