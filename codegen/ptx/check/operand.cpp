// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/check/operand.hpp"

#include "codegen/ptx/table/fragments.hpp"
#include "codegen/ptx/table/special_registers.hpp"

namespace ikat::ptx {
namespace {

using Kind = Operand::Kind;

/// What an operand may be besides a register.
struct Allowed {
    bool wider = false, literal = false, special = false, address = false, sink = false, parts = false, lanes = false,
         minus = false, sum = false;  // sum: %r1+4
};

Allowed allowed(char letter) {
    switch (letter) {
        case 'o': return {.sink = true};
        case 'w': return {.wider = true};
        case 'D': return {.wider = true, .lanes = true};
        case 'M': return {.parts = true};
        case 's': return {.literal = true, .sum = true};
        case 'n': return {.literal = true, .minus = true, .sum = true};
        case 'c': return {.wider = true, .literal = true, .sum = true};
        case 'C': return {.wider = true, .literal = true, .special = true, .sum = true};
        case 'S': return {.wider = true, .literal = true, .lanes = true, .sum = true};
        case 'P': return {.sink = true, .lanes = true};
        case 'Q': return {.literal = true, .special = true, .lanes = true};
        case 'A': return {.literal = true, .special = true, .address = true, .parts = true, .sum = true};
        default: return {};
    }
}

/// "a 32-bit integer"
std::string describe(Type type) {
    const std::string width = std::to_string(type.bits) + "-bit ", an = type.bits == 8 ? "an " : "a ";
    switch (type.kind) {
        case Type::Kind::None: return "an operand without a type";
        case Type::Kind::Integer: return an + width + "integer";
        case Type::Kind::Float: return an + width + "float";
        case Type::Kind::Bits:
        case Type::Kind::Packed: return "an untyped " + width + "register";
        case Type::Kind::Predicate: return "a predicate";
        case Type::Kind::Opaque: return "a texture, surface or sampler";
    }
    return {};
}

class Judge {
public:
    Judge(const OperandContext& context, const OperandRule& rule) : context_(context), rule_(rule) {}

    std::string operator()(const Operand& operand) const {
        if (operand.kind == Kind::Pair) return pair(operand);
        return single(operand, rule_.letter);
    }

private:
    std::string pair(const Operand& operand) const {
        if (!rule_.second) return "is a pair, and this instruction has one destination";
        const std::span<const Operand> parts = context_.module.operands(operand.children);
        const std::string first = single(parts[0], rule_.letter);
        return first.empty() ? single(parts[1], rule_.second) : first;
    }

    std::string single(const Operand& operand, char letter) const {
        switch (letter) {
            case '*': return {};
            case 'm': return address(operand);
            case 'y': return tensor_memory(operand);
            case 'T': return tensor(operand);
            case 'X': return texture(operand);
            case 'g': return operand.kind == Kind::Address ? tensor_memory(operand) : value(operand, {}, wanted());
            case 'f': return operand.kind == Kind::Vector ? registers(operand, true) : value(operand, {}, bits64);
            case 'v': return registers(operand, true);
            case 'V': return registers(operand, false);
            case 'l': return label(operand, Declared::Kind::Label, "is not a label");
            case 'L': return label(operand, Declared::Kind::Targets, "is not the label of a .branchtargets directive");
            case 'i': return operand.kind == Kind::Integer ? "" : "must be an integer";
            case 'p': return predicate(operand, true);
            case 'q': return operand.kind == Kind::Sink ? "" : predicate(operand, false);
            default: return value(operand, allowed(letter), wanted());
        }
    }

    Type wanted() const {
        if (rule_.type == "t") return context_.match.t;
        if (rule_.type == "u") return context_.match.u;
        if (rule_.type == "wide") return {context_.match.t.kind, std::uint16_t(2 * context_.match.t.bits)};
        return find_type(rule_.type);
    }

    std::string address(const Operand& operand) const {
        if (operand.kind != Kind::Address) return "must be an address in brackets";
        if (operand.children.count != 1) return "is more than one address";
        return base(operand, context_.short_addresses ? 0u : context_.module.address_size);
    }

    std::string tensor_memory(const Operand& operand) const {
        if (operand.kind != Kind::Address || operand.children.count != 1) return "must be an address in brackets";
        return base(operand, 32);
    }

    /// `bits` is the required width of the base; 0 allows the address width and 32.
    std::string base(const Operand& address, std::uint32_t bits) const {
        const Operand& first = context_.module.operands(address.children)[0];
        const Declared* base = first.kind == Kind::Symbol ? context_.scopes.find(first.name) : nullptr;
        if (!base || base->kind != Declared::Kind::Register) return {};
        if (base->type.kind != Type::Kind::Integer && base->type.kind != Type::Kind::Bits)
            return "has a base that is " + describe(base->type);
        const bool suits =
            bits ? base->type.bits == bits : base->type.bits == 32 || base->type.bits == context_.module.address_size;
        return suits ? ""
                     : "has a base of " + std::to_string(base->type.bits) + " bits where addresses have " +
                           std::to_string(bits ? bits : context_.module.address_size);
    }

    /// [map, {coordinates}]
    std::string tensor(const Operand& operand) const {
        const std::span<const Operand> parts = context_.module.operands(operand.children);
        if (operand.kind != Kind::Address || parts.size() != 2 || parts[1].kind != Kind::Vector)
            return "must be a tensor map and its coordinates, [map, {x, ...}]";
        const std::uint32_t wanted = rule_.parts ? rule_.parts : context_.match.coordinates;
        return coordinates(parts[1], wanted, find_type("b32"));
    }

    /// [texture, coordinates] or [texture, sampler, coordinates]; a single coordinate needs no braces.
    std::string texture(const Operand& operand) const {
        const std::span<const Operand> parts = context_.module.operands(operand.children);
        if (operand.kind != Kind::Address || parts.size() < 2 || parts.size() > 3)
            return "must be a texture or surface and its coordinates, [name, {x, ...}]";
        const std::uint32_t wanted = context_.match.coordinates == 3 ? 4 : context_.match.coordinates;
        return coordinates(parts.back(), wanted, find_type("b32"));
    }

    std::string coordinates(const Operand& given, std::uint32_t wanted, Type type) const {
        const bool is_vector = given.kind == Kind::Vector;
        const std::uint32_t count = is_vector ? given.children.count : 1;
        const Declared* symbol = given.kind == Kind::Symbol ? context_.scopes.find(given.name) : nullptr;
        if (symbol && symbol->lanes == wanted) return {};
        if (count != wanted) return "has " + counted(count, "coordinate") + ", not " + std::to_string(wanted);
        return is_vector ? elements(context_.module.operands(given.children), {.literal = true, .sink = true}, type)
                         : value(given, {.literal = true}, type);
    }

    /// A vector in braces, with the length given by its rule, its matrix or the modifiers.
    std::string registers(const Operand& operand, bool is_source) const {
        const std::optional<Fragment> matrix = fragment(context_.match, rule_.type);
        const std::uint32_t length = rule_.parts ? rule_.parts : matrix ? matrix->registers : context_.match.vector;
        const Declared* symbol = operand.kind == Kind::Symbol ? context_.scopes.find(operand.name) : nullptr;
        if (symbol && (symbol->lanes == length || !is_sized(matrix))) return {};
        if (operand.kind != Kind::Vector) return "must be a vector";
        const std::span<const Operand> parts = context_.module.operands(operand.children);
        if (is_sized(matrix) && parts.size() != length)
            return "has " + counted(parts.size(), "element") + ", not " + std::to_string(length);
        const Type type = matrix ? matrix->type : wanted();
        return elements(parts, {.wider = type.bits == 8, .literal = is_source, .sink = !is_source}, type);
    }

    /// Whether the vector's length is known, which holds if the table gives it a type.
    bool is_sized(const std::optional<Fragment>& matrix) const {
        return matrix || rule_.parts != 0 || !rule_.type.empty();
    }

    static std::string counted(std::size_t count, const std::string& what) {
        return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
    }

    std::string label(const Operand& operand, Declared::Kind kind, const char* otherwise) const {
        if (operand.kind != Kind::Symbol) return otherwise;
        const Declared* symbol = context_.scopes.find(operand.name);
        return symbol && symbol->kind == kind ? "" : otherwise;
    }

    std::string predicate(const Operand& operand, bool is_source) const {
        constexpr Type wanted{Type::Kind::Predicate, 1};
        if (is_source && operand.kind == Kind::Integer) return {};
        Operand plain = operand;
        if (is_source) plain.negated = false;
        return value(plain, {}, wanted);
    }

    std::string value(const Operand& operand, const Allowed& may, Type type) const {
        const std::string want = type ? ", not " + describe(type) : "";
        switch (operand.kind) {
            case Kind::Sink: return may.sink ? "" : "may not be discarded with _";
            case Kind::Symbol: return symbol(operand, may, type);
            case Kind::Integer:
            case Kind::Float32:
            case Kind::Float64:
                if (!may.literal) return "is a literal where a register belongs";
                return literal_fits(operand, type) ? "" : "is " + literal_name(operand) + want;
            case Kind::Vector: return vector(operand, may, type);
            case Kind::Element: return may.address ? "" : "is an element of an array where a register belongs";
            case Kind::Address: return "is an address where a register belongs";
            default: return "is not an operand of this instruction";
        }
    }

    std::string symbol(const Operand& operand, const Allowed& may, Type type) const {
        const std::string_view text = context_.module.text(operand.name);
        if (text == "WARP_SZ") return may.literal ? "" : "is a constant where a register belongs";
        const Declared* found = context_.scopes.find(operand.name);
        if (!found) return special(operand, may, type);
        const bool is_function = found->kind == Declared::Kind::Function;
        if (is_function || found->kind == Declared::Kind::Variable)
            return may.address   ? ""
                   : is_function ? "is a function where a register belongs"
                                 : "is a variable where a register belongs";
        if (found->kind != Declared::Kind::Register) return "is a label where a register belongs";
        const bool has_bad_sum = operand.has_offset && (!may.sum || operand.suffix != no_name);
        const bool is_modified =
            has_bad_sum || (operand.minus && !may.minus) || (operand.negated && type.kind != Type::Kind::Predicate);
        if (is_modified) return "is not a plain register";
        if (may.lanes && context_.match.vector != found->lanes && operand.suffix == no_name)
            return "has " + counted(found->lanes, "element") + ", not " + std::to_string(context_.match.vector);
        if (found->lanes > 1 && operand.suffix == no_name && !may.lanes && !may.parts)
            return "is a vector where a single operand belongs";
        const bool is_whole_vector = found->lanes > 1 && (may.wider || may.parts);
        const bool suits = !type || operand.suffix != no_name || is_whole_vector || fits(found->type, type, may.wider);
        return suits ? "" : "is " + describe(found->type) + ", not " + describe(type);
    }

    std::string special(const Operand& operand, const Allowed& may, Type type) const {
        const SpecialRegister* found = find_special_register(context_.module.text(operand.name));
        if (!found) return {};
        if (!may.special) return "is a special register: read it with mov first";
        const bool is_whole = found->is_vector && operand.suffix == no_name;
        if (is_whole && may.lanes && context_.match.vector == 4)
            return type.bits <= 32 ? "" : "has elements of 32 bits";
        if (is_whole) return "needs .x, .y or .z";
        const bool suits = !type || fits(found->type, type, may.wider);
        return suits ? "" : "is " + describe(found->type) + ", not " + describe(type);
    }

    std::string vector(const Operand& operand, const Allowed& may, Type type) const {
        const std::span<const Operand> parts = context_.module.operands(operand.children);
        const bool is_one = context_.match.vector == 1 && parts.size() == 1 && context_.vectors_of_one;
        if (may.lanes && (context_.match.vector > 1 || is_one)) {
            if (parts.size() != context_.match.vector)
                return "has " + counted(parts.size(), "element") + ", not " + std::to_string(context_.match.vector);
            return elements(
                parts,
                {.wider = may.wider, .literal = may.literal, .special = may.special, .sink = !may.literal && !is_one},
                type);
        }
        if (!may.parts || type.kind != Type::Kind::Bits) return "is a vector where a single operand belongs";
        if (parts.empty() || type.bits % parts.size() != 0) return "does not divide into equal parts";
        const Type part{Type::Kind::Bits, std::uint16_t(type.bits / parts.size())};
        return elements(parts, {.literal = rule_.letter == 'A', .sink = rule_.letter == 'M'}, part);
    }

    std::string elements(std::span<const Operand> parts, const Allowed& may, Type type) const {
        for (const Operand& part : parts)
            if (const std::string wrong = value(part, may, type); !wrong.empty())
                return "has an element " + print(context_.module, part) + " that " + wrong;
        return {};
    }

    /// Integers go with integers and bits, floating-point literals with f32 and f64 and, as bits, with bits.
    bool literal_fits(const Operand& operand, Type type) const {
        if (!type) return true;
        if (operand.kind == Kind::Integer)
            return type.kind == Type::Kind::Integer || type.kind == Type::Kind::Bits ||
                   type.kind == Type::Kind::Predicate;
        if (type.kind == Type::Kind::Float) return type.bits >= 32;
        if (type.kind != Type::Kind::Bits) return false;
        const std::string_view spelling = context_.module.text(operand.name);
        const bool is_exact = spelling.empty() || spelling.starts_with("0d") || spelling.starts_with("0D");
        return operand.kind == Kind::Float32 ? type.bits == 32 : type.bits == 64 && is_exact;
    }

    static std::string literal_name(const Operand& operand) {
        return operand.kind == Kind::Integer ? "an integer" : "a floating-point literal";
    }

    static constexpr Type bits64{Type::Kind::Bits, 64};

    const OperandContext& context_;
    const OperandRule& rule_;
};

}  // namespace

std::string misfit(const OperandContext& context, const Operand& operand, const OperandRule& rule) {
    return Judge(context, rule)(operand);
}

}  // namespace ikat::ptx
