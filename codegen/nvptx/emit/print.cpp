// SPDX-License-Identifier: Apache-2.0
// print as PTX: the format is a string in global memory, the arguments go through a buffer in local memory.
//
//     .global .align 1 .b8 $text0[7] = {…};            one per text, at the top
//     .local .align 8 .b8 $print[16];                  one buffer for all, as large as the largest needs
//
//     st.local.u32 [$print], %r1;
//     mov.u64 %d1, $text0;
//     cvta.global.u64 %d1, %d1;
//     mov.u64 %d2, $print;
//     cvta.local.u64 %d2, %d2;
//     { .param … call.uni (result), vprintf, (format, arguments); }
//
// The instruction's two results are the registers for the addresses. They may share registers with operands that die
// here, because all operands are stored first.
#include <algorithm>

#include "codegen/nvptx/emit/instruction.hpp"
#include "codegen/nvptx/spelling/mnemonic.hpp"

namespace ikat::nvptx {
namespace {

using ir::Inst, ir::Op, ir::Value;

constexpr std::string_view buffer_name = "$print";

std::string text_name(std::size_t number) { return "$text" + std::to_string(number); }

std::vector<Inst> prints(const ir::Function& fn) {
    std::vector<Inst> out;
    for (ir::Block block : fn.blocks())
        for (Inst inst : fn[block].instructions)
            if (fn[inst].op == Op::Print) out.push_back(inst);
    return out;
}

}  // namespace

PrintLayout print_layout(const ir::Function& fn, Inst inst) {
    PrintLayout layout;
    for (Value value : fn.operands(inst)) {
        const std::uint32_t size = ir::info(fn.type(value)).bytes;
        layout.bytes = (layout.bytes + size - 1) / size * size;
        layout.offsets.push_back(layout.bytes);
        layout.bytes += size;
    }
    return layout;
}

namespace {

ptx::Variable array(ptx::Module& module, std::string_view space, std::uint32_t alignment, std::string_view name,
                    std::size_t bytes) {
    ptx::Variable out{.space = module.intern(space), .alignment = alignment, .type = module.intern(".b8")};
    out.declarators.push_back({.name = module.intern(name), .extents = {std::int64_t(bytes)}});
    return out;
}

/// A top-level array of the text's bytes and the closing zero.
void declare_text(Writer& writer, std::size_t number, std::string_view text) {
    std::vector<ptx::Operand> bytes;
    for (char c : text) bytes.push_back(Writer::integer(std::uint8_t(c)));
    bytes.push_back(Writer::integer(0));
    ptx::Variable variable = array(writer.module(), ".global", 1, text_name(number), bytes.size());
    const ptx::Operand value = writer.group(ptx::Operand::Kind::Vector, bytes);
    variable.declarators[0].initialiser = writer.module().add_operands({&value, 1});
    ptx::Module& module = writer.module();
    module.items.push_back({ptx::Module::Item::Kind::Variable, std::uint32_t(module.variables.size())});
    module.variables.push_back(std::move(variable));
}

/// .extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);
void declare_vprintf(ptx::Module& module) {
    ptx::Function function{.linkage = {module.intern(".extern")}, .has_body = false, .name = module.intern("vprintf")};
    function.results.push_back(parameter_variable(module, "b32", "result"));
    function.parameters.push_back(parameter_variable(module, "b64", "format"));
    function.parameters.push_back(parameter_variable(module, "b64", "arguments"));
    module.items.push_back({ptx::Module::Item::Kind::Function, std::uint32_t(module.functions.size())});
    module.functions.push_back(std::move(function));
}

}  // namespace

void InstructionEmitter::declare_print() {
    const std::vector<Inst> all = prints(fn_);
    if (all.empty()) return;
    declare_vprintf(writer_.module());
    std::uint32_t bytes = 0;
    for (Inst inst : all) {
        const auto [number, added] = text_numbers_.try_emplace(fn_[inst].attribute, text_numbers_.size());
        if (added) declare_text(writer_, number->second, fn_.texts[number->first]);
        bytes = std::max(bytes, print_layout(fn_, inst).bytes);
    }
    writer_.variable(array(writer_.module(), ".local", 8, buffer_name, std::max(bytes, 8u)));
}

void InstructionEmitter::emit_print(Inst inst) {
    const PrintLayout layout = print_layout(fn_, inst);
    const ptx::Operand buffer = writer_.name(buffer_name);
    for (std::size_t i = 0; Value value : fn_.operands(inst)) {
        const std::string store = "st.local." + std::string(data_type(fn_.type(value)));
        writer_.instruction(store, {writer_.address(buffer, layout.offsets[i++]), operand(value)});
    }
    const ptx::Operand format = operand(fn_.results(inst)[0]), arguments = operand(fn_.results(inst)[1]);
    writer_.instruction("mov.u64", {format, writer_.name(text_name(text_numbers_.at(fn_[inst].attribute)))});
    writer_.instruction("cvta.global.u64", {format, format});
    writer_.instruction("mov.u64", {arguments, buffer});
    writer_.instruction("cvta.local.u64", {arguments, arguments});

    writer_.open_scope();
    const ptx::Operand to_format = writer_.name("format"), to_arguments = writer_.name("arguments");
    const ptx::Operand result = writer_.name("result"), both[] = {to_format, to_arguments};
    writer_.variable(parameter_variable(writer_.module(), "b64", "format"));
    writer_.variable(parameter_variable(writer_.module(), "b64", "arguments"));
    writer_.variable(parameter_variable(writer_.module(), "b32", "result"));
    writer_.instruction("st.param.b64", {writer_.address(to_format, 0), format});
    writer_.instruction("st.param.b64", {writer_.address(to_arguments, 0), arguments});
    writer_.instruction("call.uni", {writer_.group(ptx::Operand::Kind::List, {&result, 1}), writer_.name("vprintf"),
                                     writer_.group(ptx::Operand::Kind::List, both)});
    writer_.close_scope();
}

}  // namespace ikat::nvptx
