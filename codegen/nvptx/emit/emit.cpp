// SPDX-License-Identifier: Apache-2.0
// The frame of a PTX file: header, entry and its parameters, declarations of registers and memory. body.cpp emits the
// body.
#include "codegen/nvptx/emit/emit.hpp"

#include <algorithm>

#include "codegen/nvptx/emit/body.hpp"
#include "codegen/nvptx/emit/writer.hpp"
#include "codegen/nvptx/spelling/mnemonic.hpp"

namespace ikat::nvptx {
namespace {

class Emitter {
public:
    Emitter(const ir::Module& whole, const ir::Function& fn, const Registers& registers, ptx::Module& module,
            bool line_info)
        : whole_(whole),
          fn_(fn),
          names_(unique_names(fn, module)),
          registers_(registers),
          module_(module),
          writer_(module_, function_, line_info) {}

    /// Adds the function to the module; returns the source locations of its instructions.
    std::vector<Location> run() {
        signature();
        for (std::size_t i = 0; i < fn_.symbols.size(); ++i) declare(fn_.symbols[i], names_.symbols[i]);
        Body body(whole_, fn_, names_, registers_, writer_);
        body.declare_print();
        declare_registers();
        body.emit();
        module_.items.push_back({ptx::Module::Item::Kind::Function, std::uint32_t(module_.functions.size())});
        module_.functions.push_back(std::move(function_));
        declare_files();
        return writer_.take_places();
    }

private:
    void signature();
    void result();
    ptx::Variable parameter(const ir::Parameter& parameter, std::string_view name);
    void bound(std::string_view name, std::initializer_list<std::uint32_t> numbers);
    void declare(const ir::Symbol& symbol, std::string_view name);
    void initialise(ptx::Variable& variable, const ir::Symbol& symbol);
    void declare_registers();
    void declare_files();

    const ir::Module& whole_;
    const ir::Function& fn_;
    const Names names_;
    const Registers& registers_;
    ptx::Module& module_;
    ptx::Function function_;
    Writer writer_;
};

void Emitter::signature() {
    if (fn_.is_entry) function_.linkage = {module_.intern(".visible")};
    function_.is_entry = fn_.is_entry;
    result();
    function_.name = module_.intern(fn_.name);
    for (std::size_t i = 0; i < fn_.parameters.size(); ++i)
        function_.parameters.push_back(parameter(fn_.parameters[i], names_.parameters[i]));
    if (fn_.bounds.max_threads) bound(".maxntid", {fn_.bounds.max_threads, 1, 1});
    if (fn_.bounds.min_blocks) bound(".minnctapersm", {fn_.bounds.min_blocks});
    if (fn_.bounds.max_registers) bound(".maxnreg", {fn_.bounds.max_registers});
    const auto& cluster = fn_.bounds.cluster;
    if (fn_.bounds.cluster_blocks() == 1) return;
    bound(".explicitcluster", {});  // else ptxas makes code that also runs without a cluster, and the launch decides
    bound(".reqnctapercluster", {cluster[0], cluster[1], cluster[2]});
}

/// `(.param .b32 $result)` for a function that returns a value.
void Emitter::result() {
    if (fn_.gives != ir::Type::Void)
        function_.results.push_back(parameter_variable(module_, info(fn_.gives).bits, result_name));
}

/// `.param .f32 a`, for a pointer with a promised alignment `.param .u64 .ptr .global .align 16 x`, and for raw bytes
/// `.param .align 64 .b8 map[128]`.
ptx::Variable Emitter::parameter(const ir::Parameter& parameter, std::string_view name) {
    ptx::Variable out =
        parameter_variable(module_, fn_.is_entry ? data_type(parameter.type) : info(parameter.type).bits, name);
    if (parameter.bytes) {
        out.alignment = parameter.alignment;
        out.type = module_.intern(".b8");
        out.declarators[0].extents = {std::int64_t(parameter.bytes)};
    } else if (parameter.alignment)
        out.pointer = {module_.intern(".ptr"), module_.intern(".global"), module_.intern(".align"),
                       module_.intern(std::to_string(parameter.alignment))};
    return out;
}

void Emitter::bound(std::string_view name, std::initializer_list<std::uint32_t> numbers) {
    std::vector<ptx::Operand> operands;
    for (std::uint32_t number : numbers) operands.push_back(Writer::integer(number));
    function_.directives.push_back({.name = module_.intern(name), .operands = module_.add_operands(operands)});
}

/// `.shared .align 16 .b8 tile[4096];` in the body; before the entry, dynamic shared memory as external arrays, which
/// all begin at one place, with a comment that tells what part of it each stands for, and
/// `.const .align 16 .f32 table[2] = {0f3F800000, 0f40000000};`.
void Emitter::declare(const ir::Symbol& symbol, std::string_view name) {
    const std::uint32_t size = ir::info(symbol.element).bytes;
    ptx::Variable out{.space = module_.intern("." + std::string(ir::space_names[int(symbol.space)]))};
    out.alignment = std::max({symbol.alignment, size, symbol.dynamic ? 16u : 1u});
    out.type = module_.intern(".b8");
    const std::int64_t bytes = symbol.dynamic ? -1 : std::int64_t(symbol.count * size);
    out.declarators.push_back({.name = module_.intern(name), .extents = {bytes}});
    if (symbol.space == ir::Space::Const) {
        initialise(out, symbol);
    } else if (symbol.dynamic) {
        out.linkage = {module_.intern(".extern")};
        if (ir::own_dynamic_bytes(fn_.symbols)) out.part = {symbol.offset, symbol.count * size};
        for (const ir::Symbol& each : fn_.symbols)
            if (each.dynamic && out.part) out.alignment = std::max(out.alignment, each.alignment);
    } else {
        return writer_.variable(std::move(out));
    }
    module_.items.push_back({ptx::Module::Item::Kind::Variable, std::uint32_t(module_.variables.size())});
    module_.variables.push_back(std::move(out));
}

void Emitter::initialise(ptx::Variable& variable, const ir::Symbol& symbol) {
    std::vector<ptx::Operand> values;
    for (const ir::Word value : symbol.values) values.push_back(literal(writer_, symbol.element, value));
    const ptx::Operand list = writer_.group(ptx::Operand::Kind::Vector, values);
    variable.type = module_.intern("." + std::string(data_type(symbol.element)));
    variable.declarators[0].extents = {std::int64_t(symbol.count)};
    variable.declarators[0].initialiser = module_.add_operands({&list, 1});
}

void Emitter::declare_registers() {
    for (std::size_t pool = 0; pool < std::size(pools); ++pool) {
        const std::uint32_t count = registers_.allocation.used[pool];
        if (!count) continue;
        ptx::Variable out{.space = module_.intern(".reg"), .type = module_.intern(pools[pool].type)};
        out.declarators.push_back({.name = module_.intern(pools[pool].prefix), .range = count, .has_range = true});
        writer_.variable(std::move(out));
    }
}

/// `.file 1 "saxpy.cpp"`, for the .loc directives of the body.
void Emitter::declare_files() {
    for (std::uint32_t number = 0; std::string_view name : writer_.files()) {
        const ptx::Operand operands[] = {Writer::integer(++number),
                                         {.kind = ptx::Operand::Kind::String, .name = module_.intern(name)}};
        module_.items.push_back({ptx::Module::Item::Kind::Directive, std::uint32_t(module_.directives.size())});
        module_.directives.push_back({.name = module_.intern(".file"), .operands = module_.add_operands(operands)});
    }
}

}  // namespace

Emitted emit(const ir::Module& module, std::span<const Registers> registers, const ptx::Target& target,
             bool line_info) {
    Emitted out;
    const auto& functions = module.functions;
    for (std::size_t i = 0; i < functions.size(); ++i)
        out.places = Emitter(module, functions[i], registers[i], out.module, line_info && functions[i].is_entry).run();
    out.module.target = {out.module.intern(target.name)};
    out.module.version = lowest_version(target, features_of(out.module));
    return out;
}

}  // namespace ikat::nvptx
