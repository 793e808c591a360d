// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/check/directives.hpp"

#include <algorithm>
#include <string>

namespace ikat::ptx {
namespace {

enum DirectivePlace : unsigned { InModule = 1, OnEntry = 2, OnFunction = 4, InBody = 8, AfterLabel = 16 };
constexpr unsigned any = 255;

struct Rule {
    std::string_view name;
    unsigned places;
    unsigned min = 0, max = any;  // operands; for some the parser checks more
    Version since{}, last{99, 9};
    std::uint32_t target = 0;
};

constexpr Version clusters{7, 8}, abi{9, 0};
constexpr Rule rules[] = {
    {".pragma", InModule | OnEntry | InBody},
    {".alias", InModule | InBody},
    {".file", InModule},
    {".section", InModule},
    {".loc", InBody},
    {".branchtargets", InBody | AfterLabel},
    {".calltargets", InBody | AfterLabel},
    {".callprototype", InBody | AfterLabel},
    {".maxntid", OnEntry, 1, 3},
    {".reqntid", OnEntry, 1, 3},
    {".maxnreg", OnEntry, 1, 1},
    {".minnctapersm", OnEntry, 1, 1},
    {".maxnctapersm", OnEntry, 1, 1, {}, {2, 0}},
    {".local_maxnreg", OnEntry | OnFunction, 1, 1, {8, 8}},
    {".noreturn", OnFunction, 0, 0, {6, 4}},
    {".explicitcluster", OnEntry, 0, 0, clusters, {99, 9}, 90},
    {".reqnctapercluster", OnEntry, 1, 3, clusters, {99, 9}, 90},
    {".maxclusterrank", OnEntry, 1, 1, clusters, {99, 9}, 90},
    {".blocksareclusters", OnEntry, 0, 0, abi, {99, 9}, 90},
    {".abi_preserve", OnFunction, 1, 1, abi},
    {".abi_preserve_control", OnFunction, 1, 1, abi},
};

std::string_view name_of(unsigned place) {
    return place & InModule     ? "outside of functions"
           : place & OnEntry    ? "on an .entry"
           : place & OnFunction ? "on a .func"
                                : "within a function";
}

void check(const Module& module, const Directive& directive, unsigned place, const Target* target,
           const Report& report) {
    const std::string name(module.text(directive.name));
    const auto rule = std::ranges::find(rules, name, &Rule::name);
    if (rule == std::end(rules)) {
        if (!(newest_version < module.version))
            report(directive.where, "there is no directive " + name + ' ' + std::string(name_of(place)), {});
        return;
    }
    if (!(rule->places & place))
        return report(directive.where, name + " is not allowed " + std::string(name_of(place)),
                      "it belongs " + std::string(name_of(rule->places)));
    const unsigned given = directive.operands.count;
    if (given < rule->min || given > rule->max)
        report(directive.where, name + " with " + std::to_string(given) + (given == 1 ? " number" : " numbers"),
               rule->max == rule->min ? "it takes " + std::to_string(rule->max)
                                      : "it takes " + std::to_string(rule->min) + " to " + std::to_string(rule->max));
    if (module.version < rule->since)
        report(directive.where, ".version " + to_text(module.version) + " does not have " + name,
               "it needs .version " + to_text(rule->since));
    if (rule->last < module.version)
        report(directive.where, ".version " + to_text(module.version) + " no longer supports " + name,
               "the last version with it is " + to_text(rule->last));
    if (target && target->number < rule->target)
        report(directive.where, std::string(target->name) + " does not have " + name,
               "it needs .target sm_" + std::to_string(rule->target) + " or higher");
}

/// Checks the numbers of launch bounds.
void check_counts(const Module& module, const Directive& directive, const Report& report) {
    const std::string name(module.text(directive.name));
    static constexpr std::string_view counted[] = {".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm",
                                                   ".maxnreg"};
    if (std::ranges::find(counted, name) == std::end(counted)) return;
    for (const Operand& each : module.operands(directive.operands))
        if (each.kind == Operand::Kind::Integer && std::int64_t(each.value) <= 0)
            report(directive.where, name + " " + print(module, each), "it must be at least 1");
}

}  // namespace

std::size_t count(const Module& module, const Function& function, std::string_view directive) {
    const auto name = [&](const Directive& each) { return module.text(each.name); };
    return std::size_t(std::ranges::count(function.directives, directive, name));
}

void check_module_directive(const Module& module, const Directive& directive, const Report& report) {
    check(module, directive, InModule, nullptr, report);
    const auto operands = module.operands(directive.operands);
    if (module.text(directive.name) == ".alias" && operands.size() == 2 && operands[0].name == operands[1].name)
        report(directive.where, std::string(module.text(operands[0].name)) + " is an .alias of itself",
               "the second name is the function's");
}

void check_head(const Module& module, const Function& function, const Target* target, const Report& report) {
    for (const Directive& each : function.directives) {
        check(module, each, function.is_entry ? OnEntry : OnFunction, target, report);
        check_counts(module, each, report);
    }
    const std::string name(module.text(function.name));
    const auto has = [&](std::string_view directive) { return count(module, function, directive) > 0; };
    if (has(".maxntid") && has(".reqntid"))
        report(function.where, name + " has both .maxntid and .reqntid",
               ".reqntid gives the exact size of blocks: leave .maxntid out");
    if (has(".reqnctapercluster") && has(".maxclusterrank"))
        report(function.where, name + " has both .reqnctapercluster and .maxclusterrank",
               ".reqnctapercluster gives the exact size of clusters: leave .maxclusterrank out");
    if (has(".blocksareclusters") && !(has(".reqntid") && has(".reqnctapercluster")))
        report(function.where, name + " has .blocksareclusters alone", "it needs .reqntid and .reqnctapercluster");
    if (function.is_entry && !function.has_body && !function.directives.empty())
        report(function.where, "a prototype of an entry with " + std::string(module.text(function.directives[0].name)),
               "directives belong where the entry has its body");
    if (count(module, function, ".noreturn") > 1)
        report(function.where, name + " is .noreturn twice", "leave one of them out");
    if (has(".noreturn") && !function.results.empty())
        report(function.where, name + " is .noreturn and has a result", "leave one of them out");
}

void check_attribute(const Module& module, Name attribute, Position where, std::string_view space, const Target* target,
                     const Report& report) {
    std::string_view rest = module.text(attribute);
    rest.remove_prefix(std::min(rest.find('('), rest.size()));
    for (std::size_t dot; (dot = rest.find('.')) != rest.npos;) {
        rest.remove_prefix(dot);
        const std::string name(rest.substr(0, rest.find_first_of("(), \t\n")));
        rest.remove_prefix(name.size());
        if (name != ".managed" && name != ".unified")
            return report(where, "there is no attribute " + name, "there are .managed and .unified");
        if (name == ".managed" ? space != ".global" : !space.empty() && space != ".global")
            return report(where, name + (space.empty() ? " on a function" : " in " + std::string(space)),
                          name == ".managed" ? "variables in .global may be managed"
                                             : "functions and variables in .global may be unified");
        if (name == ".unified" && target && target->number < 90)
            return report(where, std::string(target->name) + " does not have .unified",
                          "it needs .target sm_90 or higher");
    }
}

void check_body_directive(const Module& module, const Directive& directive, bool has_label, const Report& report) {
    const std::string name(module.text(directive.name));
    static constexpr std::string_view linkages[] = {".extern", ".visible", ".weak", ".common"};
    const bool is_linkage = std::ranges::find(linkages, name) != std::end(linkages);
    // A prototype is allowed here, though unusual.
    if (name == ".func" || (is_linkage && directive.raw.starts_with(".func"))) return;
    if (is_linkage) return report(directive.where, name + " within a function", "declare it outside of functions");
    check(module, directive, InBody, nullptr, report);
    const auto rule = std::ranges::find(rules, name, &Rule::name);
    if (rule != std::end(rules) && rule->places & AfterLabel && !has_label)
        report(directive.where, name + " without a label", "write a label before it, which names it");
}

}  // namespace ikat::ptx
