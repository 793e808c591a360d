// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/check/declarations.hpp"

#include <algorithm>
#include <bit>

#include "codegen/ptx/check/directives.hpp"
#include "codegen/ptx/table/target.hpp"
#include "codegen/ptx/table/types.hpp"

namespace ikat::ptx {
namespace {

constexpr std::uint64_t max_vector_bits = 128, max_constant_bytes = 65536;
constexpr std::uint64_t max_parameter_bytes = 4352, max_large_parameter_bytes = 32764;
/// The ABI, which has no registers and local memory outside functions, came with 3.0; constant banks were removed
/// before.
constexpr Version first_abi{3, 0}, last_banks{2, 1}, first_wide{8, 3};

/// Whether a value in an initialiser is a number.
bool is_number(const Operand& value) {
    using Kind = Operand::Kind;
    return value.kind == Kind::Integer || value.kind == Kind::Float32 || value.kind == Kind::Float64;
}

class Declaration {
public:
    Declaration(const Module& module, const Variable& variable, Place place, const Report& report)
        : module_(module), variable_(variable), place_(place), report_(report), type_(find_type(text(variable.type))) {}

    void run() {
        if (!type_) return;  // reported elsewhere
        space();
        linkage();
        alignment();
        type();
        for (const Variable::Declarator& each : variable_.declarators) {
            extents(each);
            initialiser(each);
        }
    }

private:
    std::string_view text(Name name) const { return module_.text(name); }
    void error(std::string message, std::string hint) { report_(variable_.where, std::move(message), std::move(hint)); }
    std::string name(const Variable::Declarator& declarator) const { return std::string(text(declarator.name)); }
    bool is_in(std::string_view space) const { return text(variable_.space) == space; }
    bool is_parameter() const { return place_ != Place::Module && place_ != Place::Body; }
    bool is_extern() const {
        return std::ranges::any_of(variable_.linkage, [this](Name each) { return text(each) == ".extern"; });
    }

    void space();
    void linkage();
    void alignment();
    void type();
    void extents(const Variable::Declarator& declarator);
    void initialiser(const Variable::Declarator& declarator);
    std::string misfit(const Operand& value, std::span<const std::int64_t> extents, bool is_element) const;
    std::string misfit_of_element(const Operand& value) const;

    const Module& module_;
    const Variable& variable_;
    const Place place_;
    const Report& report_;
    const Type type_;
};

void Declaration::space() {
    const std::string space(text(variable_.space));
    const bool has_abi = !(module_.version < first_abi);
    if (place_ == Place::Module && (is_in(".param") || (has_abi && (is_in(".reg") || is_in(".local")))))
        error("a variable in " + space + " outside of functions", "declare it in the function that uses it");
    if (place_ == Place::EntryParameter && !is_in(".param"))
        error("a parameter of an entry in " + space, "parameters of entries are in .param");
    if (is_in(".sreg")) error("a variable in .sreg", "special registers have names of their own, such as %tid.x");
    if (is_in(".tex")) error("a variable in .tex", "textures are .global .texref outside of functions");
    if (space.starts_with(".const[") && last_banks < module_.version)
        error("constant memory has had no numbered banks since .version 2.2", "write .const");
}

void Declaration::linkage() {
    if (variable_.linkage.size() > 1)
        error("a variable has more than one of .extern, .visible, .weak and .common", "leave the others out");
}

void Declaration::alignment() {
    std::uint64_t given = variable_.alignment;
    for (std::size_t i = 0; i + 1 < variable_.pointer.size(); ++i)
        if (text(variable_.pointer[i]) == ".align") given = std::stoull(std::string(text(variable_.pointer[i + 1])));
    if (given && !std::has_single_bit(given))
        error(".align " + std::to_string(given) + " is not possible", "an alignment is a power of two");
}

void Declaration::type() {
    const std::string name(text(variable_.type));
    const bool is_vector = variable_.vector != no_name;
    const std::uint64_t lanes = is_vector ? text(variable_.vector)[2] - '0' : 1;
    if (type_.kind == Type::Kind::Predicate && (!is_in(".reg") || is_vector))
        error("a variable of " + name + " that is not a single register", "predicates are in .reg, and not in vectors");
    if (type_.kind == Type::Kind::Packed && name != ".f16x2")
        error("a variable of " + name + ", a type that only instructions use",
              "declare .b" + std::to_string(type_.bits) + ", which holds its bits");
    const bool has_place = (place_ == Place::Module && is_in(".global")) || place_ == Place::EntryParameter;
    if (type_.kind == Type::Kind::Opaque && !has_place)
        error("a variable of " + name + " in " + std::string(text(variable_.space)),
              "those are in .global outside of functions, or parameters of entries");
    if (is_vector && lanes != 2 && lanes != 4)
        error("a variable of " + std::string(text(variable_.vector)), "vector variables are .v2 or .v4");
    else if (lanes * type_.bits > max_vector_bits)
        error("a vector of " + std::to_string(lanes * type_.bits) + " bits",
              "one has at most " + std::to_string(max_vector_bits));
    if (type_.bits == 128 && module_.version < first_wide)
        error("a variable of " + name + " before .version 8.3", "it needs .version 8.3");
    if (is_parameter() && is_in(".param") && (is_vector || name == ".f16x2"))
        error("a parameter that is a vector", "declare its bytes, such as .align 16 .b8 x[16]");
}

void Declaration::extents(const Variable::Declarator& declarator) {
    const std::vector<std::int64_t>& extents = declarator.extents;
    if (is_in(".reg")) {
        if (!extents.empty()) error(name(declarator) + " is an array of registers", "write x<4> for x0 to x3");
        return;
    }
    if (is_parameter() && std::ranges::any_of(extents, [](std::int64_t each) { return each >> 32 > 0; }))
        error(name(declarator) + " has more elements than parameters have bytes", "pass the address of an array");
    const auto open = std::ranges::find_if(extents, [](std::int64_t each) { return each <= 0; });
    if (open == extents.end()) return;
    const bool is_outermost =
        open == extents.begin() && std::ranges::count_if(extents, [](std::int64_t each) { return each <= 0; }) == 1;
    const bool may_be_open =
        place_ == Place::LastParameter || is_extern() || (declarator.initialiser.count != 0 && *open < 0);
    if (!is_outermost || !may_be_open)
        error(name(declarator) + " has no size", "only .extern arrays and the last parameter of a .func may have none");
}

void Declaration::initialiser(const Variable::Declarator& declarator) {
    if (declarator.initialiser.count == 0 || type_.kind == Type::Kind::Opaque) return;
    if ((!is_in(".global") && !text(variable_.space).starts_with(".const")) || is_parameter())
        return error(name(declarator) + " in " + std::string(text(variable_.space)) + " has an initial value",
                     "only variables in .global and .const may have one");
    if (is_extern())
        return error(name(declarator) + " is .extern and has an initial value", "give it where it is defined");
    if (text(variable_.type) == ".f16")
        return error(name(declarator) + " of .f16 has an initial value", "declare .b16, which holds its bits");
    std::vector<std::int64_t> extents = declarator.extents;
    if (variable_.vector != no_name) extents.push_back(text(variable_.vector)[2] - '0');
    if (text(variable_.type) == ".f16x2") extents.push_back(2);
    const std::string wrong = misfit(module_.operands(declarator.initialiser)[0], extents, extents.empty());
    if (!wrong.empty()) error("the initial value of " + name(declarator) + " " + wrong, {});
}

/// The mistake in a value for an array of these extents, if any; omitted elements are zero, but a vector must be
/// complete.
std::string Declaration::misfit(const Operand& value, std::span<const std::int64_t> extents, bool is_element) const {
    if (is_element) return misfit_of_element(value);
    if (value.kind != Operand::Kind::Vector) return "has " + print(module_, value) + " where a list in braces belongs";
    const std::span<const Operand> given = module_.operands(value.children);
    const std::int64_t extent = extents.front();
    if (extent >= 0 && std::int64_t(given.size()) > extent)
        return "has " + std::to_string(given.size()) + " elements where " + std::to_string(extent) + " fit";
    const bool is_vector = extents.size() == 1 && (variable_.vector != no_name || text(variable_.type) == ".f16x2");
    if (is_vector && std::int64_t(given.size()) < extent)
        return "has " + std::to_string(given.size()) + " elements for a vector of " + std::to_string(extent);
    for (const Operand& each : given)
        if (std::string wrong = misfit(each, extents.subspan(1), extents.size() == 1); !wrong.empty()) return wrong;
    return {};
}

std::string Declaration::misfit_of_element(const Operand& value) const {
    if (value.kind == Operand::Kind::Vector) return "has a list in braces where a single value belongs";
    const bool is_float_type = type_.kind == Type::Kind::Float || type_.kind == Type::Kind::Packed;
    const bool is_integer = value.kind == Operand::Kind::Integer;
    const std::string shown = print(module_, value);
    if (type_.kind == Type::Kind::Integer && is_number(value) && !is_integer)
        return "has the floating-point number " + shown + " for an integer";
    if (is_float_type && (is_integer || !is_number(value))) return "has " + shown + " for a floating-point number";
    const bool is_address = value.kind == Operand::Kind::Symbol || value.kind == Operand::Kind::Generic;
    if (is_address && type_.bits < 32)
        return "has an address, which does not fit in " + std::to_string(type_.bits) + " bits";
    return {};
}

bool is_extern(const Module& module, const std::vector<Name>& linkage) {
    return std::ranges::any_of(linkage, [&](Name each) { return module.text(each) == ".extern"; });
}

}  // namespace

std::optional<Layout> layout(const Module& module, const Variable& variable, const Variable::Declarator& declarator) {
    const Type type = find_type(module.text(variable.type));
    if (!type) return std::nullopt;
    const std::string_view vector = module.text(variable.vector);
    const std::uint64_t element = std::uint64_t(type.bits + 7) / 8 * (vector.empty() ? 1u : unsigned(vector[2] - '0'));
    std::uint64_t bytes = element;
    for (const std::int64_t extent : declarator.extents)
        if (extent < 0 || __builtin_mul_overflow(bytes, std::uint64_t(extent), &bytes)) return std::nullopt;
    return Layout{bytes, std::max<std::uint64_t>(variable.alignment ? variable.alignment : element, 1)};
}

void check_declaration(const Module& module, const Variable& variable, Place place, const Report& report) {
    Declaration(module, variable, place, report).run();
}

void check_signature(const Module& module, const Function& function, bool large_parameters, const Report& report) {
    const std::string name(module.text(function.name));
    if (is_extern(module, function.linkage) && function.has_body)
        report(function.where, name + " is .extern and has a body", "leave one of them out");
    if (function.linkage.size() > 1)
        report(function.where, "a function has more than one of .extern, .visible and .weak", "leave the others out");
    if (!function.is_entry) return;
    if (!function.results.empty())
        report(function.where, "entry " + name + " has a result",
               "an entry stores what it computes: pass it an address");
    std::uint64_t end = 0;
    for (const Variable& parameter : function.parameters)
        for (const Variable::Declarator& each : parameter.declarators)
            if (const auto placed = layout(module, parameter, each); placed && std::has_single_bit(placed->alignment))
                end = (end + placed->alignment - 1) / placed->alignment * placed->alignment + placed->bytes;
    constexpr Version first_large{8, 1};
    const bool is_large = large_parameters && !(module.version < first_large);
    const std::uint64_t max_bytes = is_large ? max_large_parameter_bytes : max_parameter_bytes;
    if (end > max_bytes)
        report(function.where, "the parameters of " + name + " have " + std::to_string(end) + " bytes",
               "at most " + std::to_string(max_bytes) + " fit" +
                   (is_large ? "" : "; 32764 from .version 8.1 and .target sm_70 on"));
}

std::string difference(const Module& module, const Function& a, const Function& b) {
    if (is_extern(module, a.linkage) && b.has_body) return "the first is .extern";
    if (a.is_entry != b.is_entry) return "one of them is an entry";
    const auto returns = [&](const Function& function) { return count(module, function, ".noreturn") == 0; };
    if (returns(a) != returns(b)) return "one of them is .noreturn";
    if (a.results.size() != b.results.size() || a.parameters.size() != b.parameters.size())
        return "the numbers of parameters differ";
    const auto differ = [&](const Variable& x, const Variable& y) {
        const auto& dx = x.declarators.front();
        const auto& dy = y.declarators.front();
        return x.type != y.type || x.space != y.space || x.vector != y.vector || x.alignment != y.alignment ||
               dx.extents != dy.extents;
    };
    for (std::size_t i = 0; i < a.results.size(); ++i)
        if (differ(a.results[i], b.results[i])) return "the results differ";
    for (std::size_t i = 0; i < a.parameters.size(); ++i)
        if (differ(a.parameters[i], b.parameters[i])) return "parameter " + std::to_string(i + 1) + " differs";
    return {};
}

void check_constants(const Module& module, const Report& report) {
    std::uint64_t end = 0;
    bool is_full = false;
    const auto add = [&](const Variable& variable) {
        if (module.text(variable.space) != ".const" || is_extern(module, variable.linkage)) return;
        for (const Variable::Declarator& each : variable.declarators) {
            const auto placed = layout(module, variable, each);
            if (!placed || !std::has_single_bit(placed->alignment)) continue;
            end = (end + placed->alignment - 1) / placed->alignment * placed->alignment;
            if (__builtin_add_overflow(end, placed->bytes, &end)) end = ~std::uint64_t{0} / 2;
        }
        if (end > max_constant_bytes && !std::exchange(is_full, true))
            report(variable.where, "constant memory of " + std::to_string(end) + " bytes up to here",
                   "a module has at most 65536: put large tables into .global");
    };
    for (const Variable& variable : module.variables) add(variable);
    for (const Function& function : module.functions)
        for (const Variable& variable : function.variables) add(variable);
}

}  // namespace ikat::ptx
