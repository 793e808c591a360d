// SPDX-License-Identifier: Apache-2.0
#include "codegen/nvptx/target.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>

#include "codegen/legalise/legalise.hpp"
#include "codegen/nvptx/emit/emit.hpp"
#include "codegen/nvptx/emit/pressure.hpp"
#include "codegen/nvptx/select/steps.hpp"

namespace ikat::nvptx {
namespace {

using pipeline::step;

struct Gpu : Target {
    const ptx::Target& machine;
};
const ptx::Target& machine(const Target& target) { return static_cast<const Gpu&>(target).machine; }

/// The types for which every target has the atomic.
struct Native {
    ir::Op op;
    ir::TypeSet types;
};
constexpr ir::TypeSet numbers = ir::Int | ir::set(ir::Type::F16, ir::Type::F32, ir::Type::F64, ir::Type::F16x2);
constexpr Native native[] = {
    {ir::Op::AtomicAdd, numbers},
    {ir::Op::AtomicMin, ir::Int},
    {ir::Op::AtomicMax, ir::Int},
    {ir::Op::AtomicAnd, ir::Words},
    {ir::Op::AtomicOr, ir::Words},
    {ir::Op::AtomicXor, ir::Words},
    {ir::Op::AtomicExchange, ir::Words | ir::Packed | ir::set(ir::Type::F32, ir::Type::F64)},
};

/// Whether PTX has the atomic, or the reduction of a vector, for this target.
bool has_atomic(const Target& target, const ir::Instruction& it) {
    if (it.op == ir::Op::VectorReduce) {
        const bool adds_singles = it.attribute == 0 || it.type != ir::Type::F32;
        return it.memory.space == ir::Space::Global && adds_singles &&
               supports(machine(target), ptx::Feature::VectorReduction);
    }
    const auto row = std::ranges::find(native, it.op, &Native::op);
    const bool adds_bfloats = it.op == ir::Op::AtomicAdd && lane(it.type) == ir::Type::BF16;
    return row == std::end(native) || contains(row->types, it.type) ||
           (adds_bfloats && supports(machine(target), ptx::Feature::Bfloat16Math));
}

Changed legal(ir::Function& fn, const Target& target) { return legalise(fn, machine(target)); }
Changed clamps(ir::Function& fn, const Target& target) { return fuse_clamps(fn, machine(target)); }

constexpr auto typed = ir::Level::Typed, selected = ir::Level::Selected;

constexpr pipeline::Stage steps[] = {
    step<legalise::merge_shared>("shared", typed),
    step<legalise::expand_copies>("copies", typed),
    step<expand_addresses>("indices", typed),
    step<fold_addresses>("address", typed),
    step<legalise::expand_atomics>("atomics", typed),
    step<legalise::lay_out>("blocks", typed),
    step<expand_prints>("print", typed),
    step<legalise::split_vectors>("vectors", selected),
    step<legalise::widen_bytes>("bytes", selected),
    step<legal>("legal", selected),
    step<sweep>("sweep", selected),
    step<chain_carries>("carries", selected),
    step<widen_accesses>("narrow", selected),
    step<clamps>("clamps", selected),
    step<fuse>("fuse", selected),
    step<materialise_constants>("immediates", selected),
};

constexpr std::string_view selection[] = {"shared",  "copies", "indices", "address", "cse",   "licm",  "dce",
                                          "atomics", "blocks", "print",   "vectors", "bytes", "legal", "sweep",
                                          "carries", "narrow", "sweep",   "clamps",  "fuse",  "sweep", "immediates"};

constexpr pipeline::Order order[] = {
    {"shared", "indices", "where an array lies in the dynamic one is part of its address"},
    {"copies", "address", "the loads that copies become may take the read-only path"},
    {"indices", "address", "what a sum of an address adds last is often a constant"},
    {"address", "cse", "sums without their constants are equal"},
    {"address", "dce", "the sums with their constants are used no more"},
    {"indices", "cse", "accesses by one index have a product in common"},
    {"indices", "licm", "a sum may change in a loop, and its product not"},
    {"indices", "dce", "some indices are used in addresses alone"},
    {"atomics", "blocks", "loops of compare and swap bring blocks"},
    {"print", "bytes", "a print's values are converted as others are"},
    {"vectors", "bytes", "taking a vector apart makes instructions at any type"},
    {"bytes", "legal", "a conversion is told by the widths of registers"},
    {"legal", "sweep", "legal leaves the operands of what it replaced"},
    {"legal", "narrow", "narrow looks for the conversions that legal makes"},
    {"carries", "fuse", "a chain that comes apart leaves sums"},
    {"address", "fuse", "what is part of an address is no sum to be fused"},
    {"clamps", "fuse", "a clamp is told by its comparisons"},
    {"fuse", "immediates", "a constant may be in what is fused, and not in its parts"},
};
static_assert(pipeline::are_in_order(selection, order));

constexpr auto pool_names = [] {
    std::array<std::string_view, std::size(pools)> out;
    std::ranges::transform(pools, out.begin(), &Pool::name);
    return out;
}();

std::deque<Gpu> all() {
    std::deque<Gpu> out;
    for (const ptx::Target& gpu : ptx::targets())
        out.push_back(
            {{.name = gpu.name,
              .shared_static = gpu.shared_static,
              .shared_opt_in = gpu.shared_opt_in,
              .vector_elements = 4,
              .async_copies = supports(gpu, ptx::Feature::AsyncCopy),
              .matrix_stores = supports(gpu, ptx::Feature::MatrixStore),
              .grids_overlap = supports(gpu, ptx::Feature::DependentLaunch),
              .has_atomic = has_atomic,
              .steps = steps,
              .selection = selection,
              .pools = pool_names,
              .allocate = allocate,
              .print = print,
              .complaint = complaint,
              .pressure = pressure_of,
              .emit = [](const ir::Module& module, std::span<const Registers> registers, const Target& target,
                         bool line_info) { return emit_text(module, registers, machine(target), line_info); }},
             gpu});
    return out;
}

}  // namespace

const Target& target(std::string_view name) {
    static const std::deque<Gpu> gpus = all();
    const ptx::Target& wanted = ptx::target(name);
    return *std::ranges::find(gpus, &wanted, [](const Gpu& gpu) { return &gpu.machine; });
}

}  // namespace ikat::nvptx
