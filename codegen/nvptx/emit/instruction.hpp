// SPDX-License-Identifier: Apache-2.0
// One selected IR instruction as PTX: usually one instruction; a few for pointers and print.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/ir/op/accesses.hpp"
#include "codegen/nvptx/emit/allocation.hpp"
#include "codegen/nvptx/emit/writer.hpp"

namespace ikat::nvptx {

/// Names of parameters and symbols: as in the function, but made unique, also among the module's functions.
struct Names {
    std::vector<std::string> parameters, symbols;
};
Names unique_names(const ir::Function& fn, const ptx::Module& module);

/// A constant. PTX has no f16 literals: these are written as hexadecimal bits, as are integers that look like masks.
ptx::Operand literal(Writer& writer, ir::Type type, ir::Word bits);

/// Everything the spelling of an instruction depends on.
struct SpellingKey {
    ir::Op op{};
    ir::Type type{}, from{};
    ir::FloatInfo fp{};
    ir::MemoryInfo memory{};  // but for the offset
    bool result_is_read = false;
    ir::Form form{};  // or the mode

    SpellingKey(const ir::Instruction& inst, bool result_is_read)
        : op(inst.op),
          type(inst.type),
          from(inst.from),
          fp(inst.fp),
          memory(inst.memory),
          result_is_read(result_is_read) {
        memory.offset = 0;
        if (has_form(op) || info(op).attribute == ir::Attribute::Mode) form = inst.attribute;
    }
    bool operator==(const SpellingKey&) const = default;
    struct Hash {
        std::size_t operator()(const SpellingKey& key) const {
            std::uint64_t hash = std::uint64_t(key.op) << 8 | std::uint64_t(key.type);
            hash = hash << 8 | std::uint64_t(key.memory.space) << 4 | key.memory.count;
            for (const ir::Word word : key.form.words()) hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
            return hash ^ hash >> 32;
        }
    };
};

class InstructionEmitter {
public:
    InstructionEmitter(const ir::Module& module, const ir::Function& fn, const Names& names, const Registers& registers,
                       Writer& writer);

    void emit(ir::Inst inst);
    /// The function's return, with the returned value or no_value.
    void emit_return(ir::Value given);
    /// A register, or the immediate for a constant or a symbol.
    ptx::Operand operand(ir::Value value);
    /// The register of a predicate.
    ptx::Name register_name(ir::Value value) { return operand(value).name; }

    /// Declares what the print instructions need outside the body and at its beginning. To be called before the first
    /// emit.
    void declare_print();

private:
    void emit_barrier(ir::Inst inst);
    void emit_cluster_barrier(ir::Inst inst);
    void emit_call(ir::Inst inst);
    void emit_chain(ir::Inst inst);
    void emit_copy(ir::Inst inst);
    void emit_wait(ir::Inst inst);
    void emit_product(ir::Inst inst);
    void emit_wgmma(ir::Inst inst);
    void emit_matrices(ir::Inst inst);
    void emit_mbarrier(ir::Inst inst);
    void emit_bulk(ir::Inst inst);
    void emit_memory(ir::Inst inst);
    void emit_parameter(ir::Inst inst);
    ptx::Operand special_register(ir::Word which);
    void emit_print(ir::Inst inst);
    void emit_text(ir::Inst inst);
    void emit_truth(ir::Inst inst);
    void emit_plain(ir::Inst inst);
    void put(ir::Inst inst, std::span<const ptx::Operand> operands);
    Spelling spelling(ir::Inst inst);
    ptx::Operand destination(std::span<const ir::Value> results);
    ptx::Operand data(std::span<const ir::Value> values);
    ptx::Operand address(ir::Inst inst, const ir::MemoryAccess& access);
    bool result_is_read(ir::Inst inst) const;

    const ir::Module& module_;
    const ir::Function& fn_;
    const Names& names_;
    const Registers& registers_;
    Writer& writer_;
    std::vector<bool> read_;  // by value: whether it is used
    std::unordered_map<SpellingKey, Spelling, SpellingKey::Hash> spellings_;
    std::unordered_map<ir::Word, std::size_t> text_numbers_;  // of the texts that are printed, in order of declaration
    std::vector<ptx::Operand> scratch_;
};

/// The parameter through which a function returns its result.
inline constexpr std::string_view result_name = "$result";

/// `.param .b32 n`.
ptx::Variable parameter_variable(ptx::Module& module, std::string_view type, std::string_view name);

/// The size of the buffer with vprintf's arguments, and the offset of each.
struct PrintLayout {
    std::vector<std::uint32_t> offsets;
    std::uint32_t bytes = 0;
};
PrintLayout print_layout(const ir::Function& fn, ir::Inst inst);

}  // namespace ikat::nvptx
