// SPDX-License-Identifier: Apache-2.0
// The special registers of a thread.
#include <algorithm>

#include "codegen/ptx/table/special_registers.hpp"
#include "runtime/emulator/decode/lowering.hpp"

namespace ikat::emulator {

namespace {

using Kind = Special::Kind;

struct SpecialRow {
    std::string_view name;
    Special special;
    bool is_vector = false;  // its axis is the operand's
};

/// By name.
constexpr SpecialRow special_rows[] = {
    {"%aggr_smem_size", {Kind::AllSharedBytes}},
    {"%cluster_ctaid", {Kind::ClusterCtaid}, true},
    {"%cluster_ctarank", {Kind::ClusterRank}},
    {"%cluster_nctaid", {Kind::ClusterNctaid}, true},
    {"%cluster_nctarank", {Kind::ClusterBlocks}},
    {"%clusterid", {Kind::ClusterId}, true},
    {"%ctaid", {Kind::Ctaid}, true},
    {"%current_graph_exec", {Kind::Zero}},  // the launch is in no graph
    {"%dynamic_smem_size", {Kind::DynamicSharedBytes}},
    {"%envreg1", {Kind::GridWorkspace, 1}},
    {"%envreg2", {Kind::GridWorkspace, 0}},
    {"%gridid", {Kind::GridId}},
    {"%laneid", {Kind::LaneId}},
    {"%lanemask_eq", {Kind::Lanemask, Special::Eq}},
    {"%lanemask_ge", {Kind::Lanemask, Special::Ge}},
    {"%lanemask_gt", {Kind::Lanemask, Special::Gt}},
    {"%lanemask_le", {Kind::Lanemask, Special::Le}},
    {"%lanemask_lt", {Kind::Lanemask, Special::Lt}},
    {"%nclusterid", {Kind::ClusterCount}, true},
    {"%nctaid", {Kind::Nctaid}, true},
    {"%nsmid", {Kind::NsmId}},
    {"%ntid", {Kind::Ntid}, true},
    {"%nwarpid", {Kind::NwarpId}},
    {"%reserved_smem_offset_0", {Kind::ReservedShared, Special::Begin}},
    {"%reserved_smem_offset_1", {Kind::ReservedShared, Special::Second}},
    {"%reserved_smem_offset_begin", {Kind::ReservedShared, Special::Begin}},
    {"%reserved_smem_offset_cap", {Kind::ReservedShared, Special::Bytes}},
    {"%reserved_smem_offset_end", {Kind::ReservedShared, Special::End}},
    {"%smid", {Kind::SmId}},
    {"%tid", {Kind::Tid}, true},
    {"%total_smem_size", {Kind::TotalSharedBytes}},
    {"%warpid", {Kind::WarpId}},
};
static_assert(std::ranges::is_sorted(special_rows, {}, &SpecialRow::name));

}  // namespace

std::optional<Special> special_register(const ptx::Module& module, const ptx::Operand& operand) {
    if (operand.kind != ptx::Operand::Kind::Symbol) return {};
    const std::string_view name = module.text(operand.name);
    const auto row = std::ranges::lower_bound(special_rows, name, {}, &SpecialRow::name);
    if (row == std::end(special_rows) || row->name != name) {
        const bool is_foreign = name.starts_with("%envreg") || name.starts_with("%pm");  // the driver's, a profiler's
        if (is_foreign && ptx::find_special_register(name)) return Special{Kind::Zero};
        return {};
    }
    if (!row->is_vector) return row->special;
    const std::string_view axis = module.text(operand.suffix);
    if (axis.size() != 2) return {};
    if (axis[1] == 'w') return Special{Kind::Zero};
    if (axis[1] < 'x' || axis[1] > 'z') return {};
    return Special{row->special.kind, std::uint8_t(axis[1] - 'x')};
}

std::optional<std::array<Special, 4>> special_vector(const ptx::Module& module, const ptx::Operand& operand) {
    if (operand.kind != ptx::Operand::Kind::Symbol || operand.suffix != ptx::no_name) return {};
    const auto row = std::ranges::lower_bound(special_rows, module.text(operand.name), {}, &SpecialRow::name);
    if (row == std::end(special_rows) || row->name != module.text(operand.name) || !row->is_vector) return {};
    const Kind kind = row->special.kind;
    return std::array<Special, 4>{Special{kind, 0}, Special{kind, 1}, Special{kind, 2}, Special{Kind::Zero}};
}

bool is_clock(const ptx::Module& module, const ptx::Operand& operand) {
    static constexpr std::string_view clocks[] = {"%clock",       "%clock64",        "%clock_hi",
                                                  "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"};
    return std::ranges::find(clocks, module.text(operand.name)) != std::end(clocks);
}

}  // namespace ikat::emulator
