// SPDX-License-Identifier: Apache-2.0
// A function for each form; one that is missing does not compile.
#include "codegen/nvptx/spelling/suffix.hpp"

#include "codegen/ir/op/forms/all.hpp"

namespace ikat::nvptx {
namespace {

using namespace std::string_literals;
using ir::MatrixElement;

/// ".f32"
template <class Member>
std::string dotted(std::span<const std::string_view> names, Member which) {
    const std::string_view name = names[std::size_t(which)];
    return name.empty() ? "" : '.' + std::string(name);
}
std::string dotted(MatrixElement element) { return dotted(ir::matrix_element_names, element); }

/// Selection makes sums of addresses.
std::string suffix_of(const ir::AddressForm&) { return ""; }

std::string suffix_of(const ir::BarrierForm& form) {
    using enum ir::BarrierForm::Kind;
    switch (form.kind) {
        case Arrive: return ".arrive";
        case And: return ".red.and.pred";
        case Or: return ".red.or.pred";
        case Count: return ".red.popc.u32";
        default: return ".sync";
    }
}

std::string suffix_of(const ir::ClusterBarrierForm& form) { return dotted(form.names, form.kind); }

/// ".acq_rel.gpu", ".proxy.async"
std::string suffix_of(const ir::FenceForm& form) {
    switch (form.order) {
        case ir::FenceOrder::Async: return ".proxy.async";
        case ir::FenceOrder::AsyncShared: return ".proxy.async.shared::cta";
        case ir::FenceOrder::BarrierInit: return ".mbarrier_init.release.cluster";
        default: return dotted(form.names, form.order) + dotted(ir::scope_names, form.scope);
    }
}

std::string suffix_of(const ir::RegistersForm& form) {
    return form.kind == ir::RegistersForm::Kind::Grow ? ".inc" : ".dec";
}

std::string suffix_of(const ir::ShuffleForm& form) { return dotted(form.names, form.mode); }

/// ".cg.shared.global.L2::128B"
std::string suffix_of(const ir::CopyForm& form) {
    const std::string_view prefetch = form.prefetch_names[std::size_t(form.prefetch)];
    return dotted(form.cache_names, form.cache) + ".shared.global" +
           (prefetch.empty() ? "" : ".L2::" + std::string(prefetch));
}

std::string suffix_of(const ir::GroupsForm& form) { return form.count == ir::all_copies ? ".wait_all" : ".wait_group"; }

/// ".init.shared", ".arrive.release.cluster.shared::cluster", ".try_wait.parity.acquire.cluster.shared"
std::string suffix_of(const ir::MbarrierForm& form) {
    constexpr std::string_view kinds[] = {".init",
                                          ".inval",
                                          ".arrive",
                                          ".arrive_drop",
                                          ".expect_tx",
                                          ".arrive.expect_tx",
                                          ".test_wait.parity",
                                          ".try_wait.parity",
                                          ".arrive"};
    const std::string kind(kinds[std::size_t(form.kind)]);
    switch (form.reach) {
        case ir::MbarrierForm::Reach::Cluster: return kind + ".acquire.cluster.shared";
        case ir::MbarrierForm::Reach::Peer:
            // The default, .release.cta, orders nothing for another block. Like .relaxed.cluster, it is one instruction
            // without a fence; but PTX 8.0 has it, and .relaxed is of 8.6.
            if (form.kind == ir::MbarrierForm::Kind::ArriveRelaxed) return kind + ".shared::cluster";
            return kind + (form.arrives() ? ".release" : ".relaxed") + ".cluster.shared::cluster";
        default: return kind + ".shared";
    }
}

/// ".async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes", ".reduce.async.bulk.…"
std::string suffix_of(const ir::BulkForm& form) {
    const bool reduces = form.reduction != ir::BulkForm::Reduction::None;
    const std::string tensor = form.rank ? ".tensor." + std::to_string(form.rank) + 'd' : "";
    const std::string tile = form.rank ? ".tile" : "";
    const std::string reduction = dotted(form.reduction_names, form.reduction);
    switch (form.kind) {
        case ir::BulkForm::Kind::Send: return ".async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes";
        case ir::BulkForm::Kind::Prefetch: return ".async.bulk.prefetch" + tensor + ".L2.global" + tile;
        case ir::BulkForm::Kind::Store:
            return (reduces ? ".reduce.async.bulk" : ".async.bulk") + tensor + ".global.shared::cta" +
                   (form.rank ? reduction + tile + ".bulk_group" : ".bulk_group" + reduction);
        default:
            return ".async.bulk" + tensor + ".shared::cluster.global" + tile + ".mbarrier::complete_tx::bytes" +
                   (form.multicast ? ".multicast::cluster" : "");
    }
}

/// ".m16n8k16.row.col.f32.bf16.bf16.f32": D's, A's, B's and C's elements
std::string suffix_of(const ir::MatrixForm& form) {
    const std::string_view variants[] = {"", ".satfinite", "", ""}, bits[] = {"", "", ".xor.popc", ".and.popc"};
    return '.' + std::string(form.extents().name) + (form.has(ir::MatrixForm::TransposesA) ? ".col" : ".row") +
           (form.has(ir::MatrixForm::TransposesB) ? ".row" : ".col") +
           std::string(variants[std::size_t(form.variant)]) + dotted(form.sum) + dotted(form.a) + dotted(form.b) +
           dotted(form.sum) + std::string(bits[std::size_t(form.variant)]);
}

/// ".x4", ".x4.trans"
std::string suffix_of(const ir::MatricesForm& form) {
    return ".x" + std::to_string(form.count) + (form.transposed ? ".trans" : "");
}

/// ".m64n128k16.f32.bf16.bf16": D's, A's and B's elements
std::string suffix_of(const ir::WgmmaForm& form) {
    return '.' + form.write(form) + (form.has(ir::WgmmaForm::Saturates) ? ".satfinite" : "") + dotted(form.sum) +
           dotted(form.a) + dotted(form.b) + (form.a == MatrixElement::B1 ? ".and.popc" : "");
}

}  // namespace

std::string suffix(ir::Op op, ir::Form attribute) {
    const std::string_view mode =
        ir::mode_name(op, info(op).attribute == ir::Attribute::Mode ? ir::Word{attribute} : 0);
    return ir::with_form(op, attribute, mode.empty() || mode == "plain" ? ""s : '.' + std::string(mode),
                         [](const auto& form) { return suffix_of(form); });
}

}  // namespace ikat::nvptx
