// SPDX-License-Identifier: Apache-2.0
#include "codegen/ir/function.hpp"

#include <algorithm>

namespace ikat::ir {

void Function::reserve(std::size_t instructions) {
    instructions_.reserve(instructions);
    values_.reserve(instructions + instructions / 2);
    operands_.reserve(3 * instructions);
    results_.reserve(instructions);
}

Block Function::add_block() {
    blocks_.emplace_back();
    return Block(blocks_.size() - 1);
}

Value Function::add_parameter(Block block, Type type) {
    const Value value{std::uint32_t(values_.size())};
    values_.push_back({.type = type, .block = block, .position = std::uint32_t((*this)[block].parameters.size())});
    (*this)[block].parameters.push_back(value);
    return value;
}

Inst Function::create(const Instruction& base, std::span<const Value> operands, std::span<const Type> results) {
    const Inst inst{std::uint32_t(instructions_.size())};
    Instruction& made = instructions_.emplace_back(base);
    made.operands = {std::uint32_t(operands_.size()), std::uint32_t(operands.size())};
    made.results = {std::uint32_t(results_.size()), std::uint32_t(results.size())};
    operands_.insert(operands_.end(), operands.begin(), operands.end());
    for (std::uint32_t position = 0; position < results.size(); ++position) {
        results_.push_back(Value(values_.size()));
        values_.push_back({.type = results[position], .instruction = inst, .position = position});
    }
    return inst;
}

Inst Function::append(Block block, const Instruction& base, std::span<const Value> operands,
                      std::span<const Type> results) {
    const Inst inst = create(base, operands, results);
    (*this)[block].instructions.push_back(inst);
    return inst;
}

void Function::set_operands(Inst inst, std::span<const Value> operands) {
    const std::vector<Value> copy(operands.begin(), operands.end());  // it may be a slice of the pool
    Range& range = (*this)[inst].operands;
    if (copy.size() > range.count) {
        range.first = std::uint32_t(operands_.size());
        operands_.resize(operands_.size() + copy.size());
    }
    range.count = std::uint32_t(copy.size());
    std::ranges::copy(copy, operands_.begin() + range.first);
}

void Function::set_parameters(Block block, std::vector<Value> parameters) {
    for (std::uint32_t position = 0; position < parameters.size(); ++position) {
        values_[index(parameters[position])].block = block;
        values_[index(parameters[position])].position = position;
    }
    (*this)[block].parameters = std::move(parameters);
}

void Function::keep_blocks(const std::vector<bool>& keep) {
    std::vector<Block> order;
    for (Block block : blocks())
        if (keep[index(block)]) order.push_back(block);
    order_blocks(order);
}

void Function::order_blocks(std::span<const Block> order) {
    std::vector<Block> renamed(blocks_.size(), no_id<Block>);
    std::vector<BasicBlock> ordered;
    ordered.reserve(order.size());
    for (Block block : order) {
        renamed[index(block)] = Block(ordered.size());
        ordered.push_back(std::move((*this)[block]));
    }
    blocks_ = std::move(ordered);
    for (BasicBlock& block : blocks_)
        for (Jump& jump : block.terminator.targets) jump.to = renamed[index(jump.to)];
    for (Definition& definition : values_)  // parameters of blocks dropped earlier no longer have one
        if (definition.instruction == no_inst && index(definition.block) < renamed.size())
            definition.block = renamed[index(definition.block)];
}

std::uint32_t Function::add_text(std::string_view text) {
    for (std::uint32_t i = 0; i < texts.size(); ++i)
        if (texts[i] == text) return i;
    texts.emplace_back(text);
    return std::uint32_t(texts.size() - 1);
}

std::uint64_t symbol_bytes(std::span<const Symbol> symbols, Space space) {
    std::uint64_t out = 0;
    for (const Symbol& symbol : symbols) {
        if (symbol.space != space || symbol.dynamic) continue;
        const std::uint64_t size = info(symbol.element).bytes;
        const std::uint64_t alignment = std::max<std::uint64_t>(symbol.alignment, size);
        out = (out + alignment - 1) / alignment * alignment + symbol.count * size;
    }
    return out;
}

std::uint64_t own_dynamic_bytes(std::span<const Symbol> symbols) {
    constexpr std::uint64_t unit = 16;
    std::uint64_t out = 0;
    for (const Symbol& symbol : symbols)
        if (symbol.dynamic) out = std::max(out, symbol.offset + symbol.count * info(symbol.element).bytes);
    return (out + unit - 1) / unit * unit;
}

std::optional<Word> constant(const Function& fn, Value value) {
    const Inst inst = fn[value].instruction;
    if (inst == no_inst || fn[inst].op != Op::Const) return {};
    return fn[inst].attribute;
}

}  // namespace ikat::ir
