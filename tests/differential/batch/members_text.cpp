// SPDX-License-Identifier: Apache-2.0
#include "tests/differential/batch/members_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

#include "stdlib/catalogue/registry.hpp"

namespace ikat::tests {
namespace {

using stdlib::Access;
using stdlib::NamedFunction;
using Array = NamedFunction::Array;

constexpr const char* head =
    "// SPDX-License-Identifier: Apache-2.0\n"
    "// The members of CatalogueMembers, a function of the library each: made from the catalogue by\n"
    "// `cmake --build --preset dev -t bless`, never edited by hand.\n";
constexpr std::size_t columns = 120;

bool is_made(const Array& array) { return array.access == Access::Out; }

bool has_common_type(const Array& array) {
    return array.type == ir::Type::Void && !array.is_of_any_type && !array.blocks.format;
}

std::string_view word(ir::Type type) {
    switch (type) {
        case ir::Type::F16: return "half";
        case ir::Type::BF16: return "bfloat16";
        case ir::Type::U32: return "std::uint32_t";
        case ir::Type::I32: return "std::int32_t";
        case ir::Type::U8: return "std::uint8_t";
        case ir::Type::I8: return "std::int8_t";
        case ir::Type::E4M3: return "e4m3";
        default: return "float";
    }
}

/// Whether each setting must be said: of functions whose numbers are those of their kernels.
bool needs_settings(const NamedFunction& function) {
    return std::ranges::any_of(stdlib::recipes(), [&](const stdlib::Recipe* recipe) {
        return recipe->settings.all().data() == function.family->settings.data() && !recipe->run;
    });
}

/// Text at an indentation, broken between words. Lines after the first begin with `next`.
std::string broken(const std::string& text, const std::string& first, const std::string& next) {
    std::string out, line = first;
    std::istringstream words(text);
    for (std::string each; words >> each;) {
        const bool is_begun = line != first && line != next;
        if (line.size() + is_begun + each.size() > columns)
            out += line + '\n', line = next + each;
        else
            line += (is_begun ? " " : "") + each;
    }
    return out + line + '\n';
}

std::string comment(const NamedFunction& function) {
    std::string arrays, settings;
    for (const Array& array : function.arrays)
        arrays += fmt::format("{}{}: {}{}", arrays.empty() ? "" : "; ", array.name,
                              array.shape.is_any() ? "a number" : array.shape.text(),
                              is_made(array)                  ? ", made"
                              : array.access == Access::InOut ? ", changed in place"
                                                              : "");
    for (const NamedFunction::Setting& setting : function.family->settings)
        settings += fmt::format("; {}: {}", setting.name, setting.meaning);
    const bool has_formula = !function.formula.empty() && !function.formula.contains('\n');
    return broken(fmt::format("{}{}{}. As stdlib::{}.", has_formula ? function.formula + ". " : "", arrays, settings,
                              function.call),
                  "/// ", "/// ");
}

/// The parts of a list in lines, after the text that opens it.
std::string listed(const std::string& open, const std::vector<std::string>& parts, const std::string& close) {
    std::string out, line = open;
    const std::string next(std::min(open.rfind('(') + 1, columns / 4), ' ');
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::string part = parts[i] + (i + 1 < parts.size() ? "," : close);
        const bool is_begun = line != open && line != next;
        if (line.size() + is_begun + part.size() > columns)
            out += line + '\n', line = next + part;
        else
            line += (is_begun ? " " : "") + part;
    }
    return out + line + '\n';
}

/// The outputs as make() has them: "ArrayOf<ElementOf<T0>>".
std::string outputs(const NamedFunction& function, const std::string& common) {
    std::string out;
    for (const Array& array : function.arrays) {
        if (!is_made(array)) continue;
        const std::string element = array.type != ir::Type::Void ? std::string(word(array.type))
                                    : array.is_of_any_type       ? "Y"
                                                                 : common;
        out += fmt::format("{}{}<{}>", out.empty() ? "" : ", ", array.shape.is_any() ? "NumberOf" : "ArrayOf", element);
    }
    return out;
}

std::string member(const NamedFunction& function) {
    std::vector<std::string> types, parameters, operands, settings;
    std::string common = "float";
    bool has_common = false;
    for (const Array& array : function.arrays) {
        if (is_made(array)) {
            if (array.is_of_any_type) types.insert(types.begin(), "class Y");
            continue;
        }
        const std::string type = fmt::format("T{}", operands.size());
        if (!has_common && has_common_type(array)) has_common = true, common = fmt::format("ElementOf<{}>", type);
        const bool changes = array.access == Access::InOut;
        types.push_back("class " + type);
        parameters.push_back(changes ? fmt::format("{}&& {}", type, array.name)
                                     : fmt::format("const {}& {}", type, array.name));
        operands.push_back(changes ? fmt::format("self().operand(std::forward<{}>({}), where)", type, array.name)
                                   : fmt::format("self().operand({}, where)", array.name));
    }
    const char* otherwise = needs_settings(function) ? "" : " = {}";
    for (const NamedFunction::Setting& setting : function.family->settings) {
        parameters.push_back(fmt::format("const Setting& {}{}", setting.name, otherwise));
        settings.push_back(fmt::format("{{\"{0}\", {0}}}", setting.name));
    }
    parameters.push_back("const Where& where = Where::current()");
    std::vector<std::string> arguments{fmt::format("{{\"{}\", where}}", function.name)};
    for (std::vector<std::string>* const list : {&operands, &settings}) {
        if (list->empty()) list->emplace_back();
        list->front() = '{' + list->front(), list->back() += '}';
        arguments.insert(arguments.end(), list->begin(), list->end());
    }
    return fmt::format("\n{}template <{}>\n{}", comment(function), fmt::join(types, ", "),
                       listed(fmt::format("auto {}(", function.name), parameters, ") const {")) +
           listed(fmt::format("    return self().template make<{}>(", outputs(function, common)), arguments, ");") +
           "}\n";
}

}  // namespace

bool is_member(const NamedFunction& function) {
    return function.family->form.find_first_of("[ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string_view::npos;
}

std::string members_text(std::span<const NamedFunction> functions) {
    std::string out = head;
    for (const NamedFunction& function : functions)
        if (is_member(function)) out += member(function);
    return out;
}

}  // namespace ikat::tests
