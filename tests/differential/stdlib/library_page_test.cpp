// SPDX-License-Identifier: Apache-2.0
// What is said of recipes: docs/library.md has their table, and a family takes few lines beside its kernels.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "dsl/record/capture.hpp"
#include "stdlib/catalogue/registry.hpp"
#include "stdlib/spec/functions.hpp"
#include "tests/catch.hpp"
#include "tools/testing/golden.hpp"

namespace ikat::test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
    std::ostringstream out;
    out << std::ifstream(file).rdbuf();
    return out.str();
}

/// The kernels for the first of its types, and the types of all.
std::string row_of(const stdlib::Recipe& recipe) {
    constexpr const char* type_names[] = {"f32", "f16", "bf16"};
    std::string kernels, types;
    for (const stdlib::Variant& variant : recipe.variants()) {
        kernels += std::string(kernels.empty() ? "`" : " `") + variant.instances[0]().name() + "`";
        for (std::size_t type = 0; type < 3 && &variant == recipe.kernels; ++type)
            if (variant.instances[1] && variant.instances[type])
                types += std::string(types.empty() ? "" : " ") + type_names[type];
    }
    const bool has_function = !recipe.call.empty();
    return "| " + (has_function ? "`" + std::string(recipe.call) + "`" : "by its name alone") + " | " +
           recipe.operands.shapes() + " | " + kernels + " | " + types + " | " +
           std::string(recipe.note.empty() ? recipe.kernels[0].summary : recipe.note) + " |\n";
}

/// The page with the rows of the recipes in the place of those that it has.
std::string with_table(const std::string& page) {
    const std::string head = "| function | shapes | kernels | types | |\n|---|---|---|---|---|\n";
    const std::size_t begin = page.find(head);
    REQUIRE(begin != page.npos);
    const std::size_t end = std::min(page.find("\n\n", begin), page.size() - 1) + 1;
    std::string rows;
    for (const stdlib::Recipe* recipe : stdlib::recipes()) rows += row_of(*recipe);
    return page.substr(0, begin) + head + rows + page.substr(end);
}

constexpr const char* first_line = "\n// ---- the recipe";

/// Code after the line that begins the recipes of a family: no blank lines, comments or lines of text alone.
std::size_t lines_of_recipes(const std::string& source) {
    static const std::regex no_code(R"(\s*(//.*|".*|#undef .*|\}  // namespace.*)?)");
    std::istringstream rest(source.substr(source.find(first_line)));
    std::size_t lines = 0;
    for (std::string line; std::getline(rest, line);) lines += !std::regex_match(line, no_code);
    return lines;
}

std::size_t count(const std::string& text, const std::regex& what) {
    return std::size_t(std::distance(std::sregex_iterator(text.begin(), text.end(), what), {}));
}

}  // namespace

TEST_CASE("docs/library.md is the table of recipes") {
    const fs::path file = IKAT_SOURCE_DIR "/docs/library.md";
    const auto result = golden::compare(file.string(), with_table(text_of(file)));
    INFO(result.message);
    CHECK(result.passed);
}

TEST_CASE("a family takes at most 25 lines beside its kernels") {
    std::size_t recipes = 0;
    for (const auto& file : fs::recursive_directory_iterator(IKAT_SOURCE_DIR "/stdlib")) {
        const std::string source = text_of(file.path());
        // A template of recipes stands for each that it makes.
        const std::size_t here = count(source, std::regex("\nconstexpr Recipe \\w+_recipes?(\\{|\\[| =)")) +
                                 count(source, std::regex(R"( recipe_of<\d>\(\),?)"));
        if (file.path().extension() != ".cpp" || here == 0) continue;
        INFO(file.path().string());
        REQUIRE(source.find(first_line) != source.npos);
        INFO(lines_of_recipes(source) << " lines for " << here << " recipes");
        CHECK(lines_of_recipes(source) <= 25 * here);
        recipes += here;
    }
    CHECK(recipes >= 20);
}

TEST_CASE("recipes say what they have to") {
    for (const stdlib::Recipe* recipe : stdlib::recipes()) {
        const stdlib::Variant& first = recipe->variants().front();
        INFO(recipe->call << first.summary);
        CHECK((recipe->call.empty() || recipe->call.find("(queue, ") != recipe->call.npos));
        CHECK(recipe->traffic.empty() != recipe->bound_by.empty());
        CHECK((recipe->steps == nullptr) == (recipe->workspace == nullptr));
        for (const stdlib::Variant& variant : recipe->variants()) CHECK(variant.instances[0]);
        CHECK(recipe->variants().back().max_columns == ~0u);  // some kernel takes any rows
    }
}

TEST_CASE("calls that tools print have the options in the order of their struct") {
    const std::array<const char*, 3> all[] = {
        {"gemm_tensor_core_bf16_tt_bias_gelu_residual", "gemm/tensor_core.hpp", "struct GemmOptions {"},
        {"flash_attention_causal_bias_offsets_log_sum_f16", "attention/attention.hpp", "struct AttentionOptions {"},
        {"incremental_attention_causal_lengths_pages_log_sum_f16", "attention/incremental/incremental.hpp",
         "struct IncrementalOptions {"}};
    for (const auto& [name, header, head] : all) {
        const std::string call = stdlib::find_function(name)->call;
        INFO(call);
        std::string fields = text_of(fs::path(IKAT_SOURCE_DIR "/stdlib") / header);
        fields = std::regex_replace(fields.substr(fields.find(head)), std::regex("//.*"), "");
        std::size_t at = 0, options = 0;
        const std::regex option("\\.(\\w+) = ");
        for (std::sregex_iterator i(call.begin(), call.end(), option), end; i != end; ++i, ++options) {
            INFO((*i)[1]);
            std::smatch field;
            REQUIRE(std::regex_search(fields.cbegin() + std::ptrdiff_t(at), fields.cend(), field,
                                      std::regex("\\b" + (*i)[1].str() + "( = |\\{)")));
            at += std::size_t(field.position() + field.length());
        }
        CHECK(options >= 4);
    }
}

}  // namespace ikat::test
