// SPDX-License-Identifier: Apache-2.0
// The places and the initial values of a module's .global and .const variables.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "codegen/ptx/text/layout.hpp"
#include "runtime/emulator/decode/decode.hpp"
#include "runtime/emulator/decode/lowering.hpp"

namespace ikat::emulator {

namespace {

/// The bytes of an initialiser, element after element.
class Initialiser {
public:
    Initialiser(const ptx::Module& module, const ModuleMemory& variables, std::span<std::byte> to, unsigned element)
        : module_(module), variables_(variables), to_(to), element_(element) {}

    void write(const ptx::Operand& operand) {
        using Kind = ptx::Operand::Kind;
        if (operand.kind == Kind::Vector) {
            for (const ptx::Operand& child : module_.operands(operand.children)) write(child);
            return;
        }
        std::uint64_t bits = operand.value;
        if (operand.kind == Kind::Float64 && element_ == 4)
            bits = std::bit_cast<std::uint32_t>(float(std::bit_cast<double>(operand.value)));
        if (operand.kind == Kind::Symbol) bits = address(operand, false);
        if (operand.kind == Kind::Mask) bits = masked(operand);
        if (operand.kind == Kind::String) return text(module_.text(operand.name));
        if (operand.kind == Kind::Generic) bits = address(operand, true);
        if (at_ + element_ <= to_.size()) std::memcpy(to_.data() + at_, &bits, element_);
        at_ += element_;
    }

private:
    /// 0xff00(symbol): the bits of its address under the mask, shifted down.
    std::uint64_t masked(const ptx::Operand& operand) const {
        const ptx::Operand& of = module_.operands(operand.children)[0];
        const std::uint64_t bits = address(of, of.kind == ptx::Operand::Kind::Generic);
        return operand.value ? (bits & operand.value) >> std::countr_zero(operand.value) : 0;
    }

    /// The characters between quotes, with C's escapes.
    void text(std::string_view characters) {
        for (std::size_t i = 0; i < characters.size(); ++i) {
            char c = characters[i];
            if (c == '\\' && i + 1 < characters.size()) {
                c = characters[++i];
                c = c == 'n' ? '\n' : c == 't' ? '\t' : c == '0' ? '\0' : c;
            }
            if (at_ < to_.size()) to_[at_] = std::byte(c);
            ++at_;
        }
    }

    std::uint64_t address(const ptx::Operand& operand, bool generic) const {
        const ptx::Operand& symbol = generic ? module_.operands(operand.children)[0] : operand;
        if (const ptx::Function* const function = module_.find_function(module_.text(symbol.name)); function) {
            if (symbol.has_offset || operand.has_offset)
                throw Error(fmt::format("an initialiser names a place inside function '{}'", module_.text(symbol.name)),
                            "the address of a function is its name alone");
            return function_address(std::uint64_t(function - module_.functions.data()));
        }
        const auto found = variables_.variables.find(symbol.name);
        if (found == variables_.variables.end())
            throw Error(fmt::format("an initialiser names '{}', which is not a variable of the module",
                                    module_.text(symbol.name)),
                        "only .global and .const variables have an address before a launch");
        const bool window = generic && found->second.space != Space::Global;
        return found->second.address + symbol.value + (generic ? operand.value : 0) +
               (window ? window_address(found->second.space) : 0);
    }

    const ptx::Module& module_;
    const ModuleMemory& variables_;
    std::span<std::byte> to_;
    unsigned element_;
    std::size_t at_ = 0;
};

template <class F>
void each_declarator(const ptx::Module& module, std::string_view space, F f) {
    const auto each = [&](const std::vector<ptx::Variable>& variables, bool in_function) {
        for (const ptx::Variable& variable : variables)
            if (module.text(variable.space) == space)
                for (const auto& declarator : variable.declarators) f(variable, declarator, in_function);
    };
    each(module.variables, false);
    for (const ptx::Function& function : module.functions) each(function.variables, true);
}

ModuleMemory::Variable& place_of(ModuleMemory& memory, const ptx::Variable::Declarator& declarator, bool in_function) {
    return in_function ? memory.of_functions[&declarator] : memory.variables[declarator.name];
}

}  // namespace

ModuleMemory place_variables(const ptx::Module& module, Memory& memory) {
    ModuleMemory result;
    std::uint64_t global_bytes = 0;
    const auto limit = [&](std::uint64_t bytes, std::uint64_t max_bytes, std::string_view space,
                           const auto& declarator) {
        if (bytes > max_bytes)
            throw Error(fmt::format("'{}' brings the module's {} variables to over {} bytes",
                                    module.text(declarator.name), space, max_bytes),
                        "allocate large arrays with the runtime");
    };
    each_declarator(module, ".global", [&](const ptx::Variable& variable, const auto& declarator, bool in_function) {
        const std::uint64_t bytes = ptx::variable_bytes(module, variable, declarator);
        limit(global_bytes += bytes, std::uint64_t{1} << 31, ".global", declarator);
        const std::uint64_t address = memory.allocate(bytes, module.text(declarator.name));
        result.buffers.push_back(address);
        place_of(result, declarator, in_function) = {Space::Global, address, bytes};
    });
    each_declarator(module, ".const", [&](const ptx::Variable& variable, const auto& declarator, bool in_function) {
        const std::uint64_t bytes = ptx::variable_bytes(module, variable, declarator);
        const std::uint64_t offset = rounded_up(result.constants.packed, ptx::variable_alignment(module, variable));
        limit(offset + bytes, 11 * 65536, ".const", declarator);  // eleven banks
        const NamedRange& range =
            result.constants.add(module.text(declarator.name), bytes, ptx::variable_alignment(module, variable));
        place_of(result, declarator, in_function) = {Space::Const, range.address, bytes, range.host};
    });
    result.constant.resize(result.constants.host_bytes);
    result.constant_views = result.constants.views(result.constant.data(), 0, false);
    // Without an initialiser they are zero, and take memory only where they are used.
    const auto host_bytes = [&](const ModuleMemory::Variable& placed) -> std::span<std::byte> {
        if (placed.space == Space::Const) return {result.constant.data() + placed.host, placed.bytes};
        constexpr std::byte zero[] = {std::byte{0}};
        memory.fill(placed.address, zero, placed.bytes);
        return {memory.state().range(placed.address, placed.bytes, "a variable", true).begin, placed.bytes};
    };
    const auto initialise = [&](const ptx::Variable& variable, const auto& declarator, bool in_function) {
        const ModuleMemory::Variable& placed = place_of(result, declarator, in_function);
        const unsigned element = ptx::element_bytes(module.text(variable.type));
        if (declarator.initialiser.count && (element == 0 || element > 8))
            throw Error(fmt::format("'{}' of type {} cannot have an initial value", module.text(declarator.name),
                                    module.text(variable.type)),
                        "initial values are of types of 8 to 64 bits");
        Initialiser initialiser(module, result, host_bytes(placed), element);
        for (const ptx::Operand& operand : module.operands(declarator.initialiser)) initialiser.write(operand);
    };
    each_declarator(module, ".global", initialise);
    each_declarator(module, ".const", initialise);
    return result;
}

}  // namespace ikat::emulator
