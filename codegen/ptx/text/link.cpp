// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/text/link.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "codegen/ptx/table/target.hpp"
#include "codegen/ptx/text/copy.hpp"
#include "codegen/support/diagnostic.hpp"

namespace ikat::ptx {
namespace {

/// A function, or a variable outside functions, by name.
struct Global {
    bool is_function = false, is_definition = false;
    std::string_view linkage;  // "", ".visible", ".extern", ".weak", ".common"
    Location where{};
};

std::string_view linkage_of(const Module& module, const std::vector<Name>& linkage) {
    return linkage.empty() ? std::string_view() : module.text(linkage[0]);
}

template <class F>
void each_global(const Module& module, F f) {
    for (const Module::Item& item : module.items) {
        if (item.kind == Module::Item::Kind::Function) {
            const Function& function = module.functions[item.index];
            f(function.name, Global{true,
                                    function.has_body,
                                    linkage_of(module, function.linkage),
                                    {module.file, function.where.line, function.where.column}});
        } else if (item.kind == Module::Item::Kind::Variable) {
            const Variable& variable = module.variables[item.index];
            const std::string_view linkage = linkage_of(module, variable.linkage);
            for (const Variable::Declarator& each : variable.declarators)
                f(each.name,
                  Global{
                      false, linkage != ".extern", linkage, {module.file, variable.where.line, variable.where.column}});
        }
    }
}

[[noreturn]] void defined_twice(std::string_view name, const Global& one, const Global& other) {
    throw Error(Diagnostic{.where = other.where,
                           .message = std::string(name) + " is defined in two files",
                           .hint = "leave one of them out, or make it .weak",
                           .notes = {{one.where, "it is defined here"}},
                           .excerpt = {}});
}

class Linker {
public:
    explicit Linker(const std::vector<Module>& modules) : modules_(modules) {}

    Module run() {
        head();
        find_definitions();
        own_.resize(modules_.size());
        for (from_ = 0; from_ < modules_.size(); ++from_) rename_own();
        for (from_ = 0; from_ < modules_.size(); ++from_) add();
        return std::move(out_);
    }

private:
    /// The module that is being copied.
    const Module& module() const { return modules_[from_]; }

    void head();
    void find_definitions();
    void rename_own();
    void add();

    void add_function(const Function& from);
    void add_variable(const Variable& from);
    std::vector<Name> linkage(const Function& of);

    /// Copies from the module at hand.
    Copier copier() { return {module(), out_, &own_[from_]}; }
    Function function(const Function& from);

    const std::vector<Module>& modules_;
    Module out_;
    std::size_t from_ = 0;
    struct Definition {
        std::size_t module;
        Global global;
    };
    std::map<std::string, Definition, std::less<>> definitions_;  // of symbols visible to other modules
    std::set<std::string, std::less<>> taken_;                    // names of the modules added so far
    std::set<std::string, std::less<>> placed_;                   // those that are already in the result
    std::vector<std::map<Name, Name>> own_;                       // by module: symbols with a new name
};

void Linker::head() {
    const auto number = [](const Module& of) {
        const Target* target = of.target.empty() ? nullptr : find_target(of.text(of.target[0]));
        return target ? target->number * 2 + target->specific : 0;
    };
    const Module* highest = &modules_[0];
    for (const Module& each : modules_) {
        if (out_.version < each.version) out_.version = each.version;
        if (number(each) > number(*highest)) highest = &each;
        if (each.address_size != modules_[0].address_size)
            throw Error(std::string(modules_[0].file) + " and " + each.file + " have addresses of different sizes",
                        "compile both for 64 bits");
    }
    for (const Name name : highest->target) out_.target.push_back(out_.intern(highest->text(name)));
    out_.address_size = modules_[0].address_size;
    out_.file = modules_[0].file;
}

void Linker::find_definitions() {
    for (std::size_t m = 0; m < modules_.size(); ++m)
        each_global(modules_[m], [&](Name name, const Global& global) {
            if (!global.is_definition || global.linkage.empty()) return;
            const auto [place, is_new] =
                definitions_.try_emplace(std::string(modules_[m].text(name)), Definition{m, global});
            Global& known = place->second.global;
            if (is_new || place->second.module == m) return;
            const auto is_weak = [](const Global& of) { return of.linkage == ".weak" || of.linkage == ".common"; };
            if (known.is_function != global.is_function || (!is_weak(known) && !is_weak(global)))
                defined_twice(place->first, known, global);
            if (is_weak(known) && !is_weak(global)) place->second = {m, global};
        });
}

/// Renames local symbols that have the same name as a symbol of another module.
void Linker::rename_own() {
    std::map<Name, Name>& own = own_[from_];
    std::set<std::string, std::less<>> names;
    each_global(module(), [&](Name name, const Global& global) {
        const std::string text(module().text(name));
        names.insert(text);
        const bool is_own = global.linkage.empty();
        if (!is_own || own.contains(name) || !(taken_.contains(text) || definitions_.contains(text))) return;
        std::string fresh;
        for (std::size_t i = from_; fresh.empty() || taken_.contains(fresh) || module().find(fresh) != no_name; ++i)
            fresh = text + "$" + std::to_string(i);
        own.emplace(name, out_.intern(fresh));
        names.insert(fresh);
    });
    taken_.insert(names.begin(), names.end());
}

/// A declaration of a symbol defined in another module gets that definition's linkage.
std::vector<Name> Linker::linkage(const Function& of) {
    const auto found = definitions_.find(module().text(of.name));
    if (linkage_of(module(), of.linkage).empty() || found == definitions_.end()) return copier().words(of.linkage);
    return {out_.intern(found->second.global.linkage)};
}

Function Linker::function(const Function& from) {
    const Copier copy = copier();
    const auto each_of = [](const auto& list, auto&& copied) {
        auto made = list;
        for (auto& each : made) each = copied(each);
        return made;
    };
    const auto variables = [&](const std::vector<Variable>& list) {
        return each_of(list, [&](const Variable& each) { return copy.variable(each); });
    };
    const auto directives = [&](const std::vector<Directive>& list) {
        return each_of(list, [&](const Directive& each) { return copy.directive(each); });
    };
    Function made = from;
    made.linkage = linkage(from);
    made.attribute = copy.word(from.attribute);
    made.name = copy.symbol(from.name);
    made.results = variables(from.results), made.parameters = variables(from.parameters);
    made.directives = directives(from.directives);
    made.variables = variables(from.variables);
    made.body_directives = directives(from.body_directives);
    made.instructions = each_of(from.instructions, [&](const Instruction& each) { return copy.instruction(each); });
    made.body.clear();
    for (Statement each : from.body) {
        const bool is_location =
            each.kind == Statement::Kind::Directive && module().text(from.body_directives[each.index].name) == ".loc";
        if (is_location && from_ > 0) continue;  // its file numbers are those of its own module
        if (each.kind == Statement::Kind::Label) each.index = std::uint32_t(copy.symbol(Name(each.index)));
        made.body.push_back(each);
    }
    return made;
}

/// After its definition a function is not declared again, and of several definitions one is used.
void Linker::add_function(const Function& from) {
    const std::string name(module().text(from.name));
    const auto found = from.linkage.empty() ? definitions_.end() : definitions_.find(name);
    if (found != definitions_.end()) {
        if (from.has_body ? found->second.module != from_ : placed_.contains(name)) return;
        if (from.has_body) placed_.insert(name);
    }
    out_.items.push_back({Module::Item::Kind::Function, std::uint32_t(out_.functions.size())});
    out_.functions.push_back(function(from));
}

/// The first mention of a variable adds its definition, from whichever module has it.
void Linker::add_variable(const Variable& from) {
    const std::string name(module().text(from.declarators.front().name));
    const auto found = from.linkage.empty() ? definitions_.end() : definitions_.find(name);
    if (found != definitions_.end() && !placed_.insert(name).second) return;
    const std::size_t here = from_;
    const Variable* source = &from;
    if (found != definitions_.end() && found->second.module != from_) {
        from_ = found->second.module;
        const auto is_it = [&](const Variable& each) {
            return module().text(each.declarators.front().name) == name &&
                   linkage_of(module(), each.linkage) != ".extern";
        };
        const auto definition = std::ranges::find_if(module().variables, is_it);
        IKAT_ASSERT(definition != module().variables.end(), name);
        source = &*definition;
    }
    out_.items.push_back({Module::Item::Kind::Variable, std::uint32_t(out_.variables.size())});
    out_.variables.push_back(copier().variable(*source));
    from_ = here;
}

void Linker::add() {
    for (const Module::Item& item : module().items) {
        switch (item.kind) {
            case Module::Item::Kind::Function: add_function(module().functions[item.index]); break;
            case Module::Item::Kind::Variable: add_variable(module().variables[item.index]); break;
            case Module::Item::Kind::Directive:
                if (from_ > 0) break;
                out_.items.push_back({item.kind, std::uint32_t(out_.directives.size())});
                out_.directives.push_back(copier().directive(module().directives[item.index]));
        }
    }
}

}  // namespace

Module link(const std::vector<Module>& modules) { return Linker(modules).run(); }

}  // namespace ikat::ptx
