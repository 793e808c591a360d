// SPDX-License-Identifier: Apache-2.0
#include "codegen/ir/op/families.hpp"

#include <algorithm>
#include <charconv>

#include "codegen/ir/op/async.hpp"
#include "codegen/ir/op/matrix.hpp"
#include "codegen/ir/op/wgmma.hpp"
#include "codegen/support/names.hpp"

namespace ikat::ir {
namespace {

std::string name_in(const auto& names, std::size_t place) {
    return place < std::size(names) ? std::string(names[place]) : std::string();
}

std::optional<Word> number(std::string_view text, Word highest) {
    Word out = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc{} || end != text.data() + text.size() || out > highest) return {};
    return out;
}

/// What stands before the first dot, which goes with it.
std::string_view take_word(std::string_view& text) {
    const std::size_t dot = std::min(text.find('.'), text.size());
    const std::string_view word = text.substr(0, dot);
    text.remove_prefix(std::min(dot + 1, text.size()));
    return word;
}

/// "acq_rel.gpu", "async"
std::string text(FenceForm form) {
    const std::string order = name_in(fence_order_names, std::size_t(form.order));
    const std::string scope = name_in(scope_names, std::size_t(form.scope));
    if (!form.has_scope()) return scope.empty() ? order : std::string();
    return order.empty() || scope.empty() ? std::string() : order + '.' + scope;
}
std::optional<Word> fence_named(std::string_view text) {
    const auto order = find_name(fence_order_names, take_word(text));
    const auto scope = text.empty() ? std::optional<std::size_t>(0) : find_name(scope_names, text);
    if (!order || !scope) return {};
    const FenceForm form{FenceOrder(*order), Scope(*scope)};
    return form.has_scope() == (form.scope != Scope::None) ? std::optional(pack(form)) : std::nullopt;
}

/// "3", "sync"
std::string text(BarrierForm form) {
    if (form.kind == BarrierForm::Kind::All) return std::to_string(form.id);
    return form.id == 0 ? name_in(barrier_kind_names, std::size_t(form.kind)) : std::string();
}
std::optional<Word> barrier_named(std::string_view text) {
    if (const auto kind = find_name(barrier_kind_names, text)) return pack(BarrierForm{0, BarrierForm::Kind(*kind)});
    const auto id = number(text, 255);
    return id ? std::optional(pack(BarrierForm{.id = std::uint8_t(*id)})) : std::nullopt;
}

/// "4", "4+16", "4-8"
std::string text(AddressForm form) {
    const std::string constant = form.constant ? std::to_string(form.constant) : "";
    return std::to_string(form.scale) + (form.constant > 0 ? "+" : "") + constant;
}
std::optional<Word> address_named(std::string_view text) {
    const std::size_t sign = std::min(text.find_first_of("+-"), text.size());
    const auto scale = number(text.substr(0, sign), ~std::uint32_t{0});
    const bool is_negative = sign < text.size() && text[sign] == '-';
    const auto constant =
        sign == text.size() ? Word{0} : number(text.substr(sign + 1), is_negative ? 0x80000000 : 0x7fffffff);
    if (!scale || !constant) return {};
    const auto bytes = std::int64_t(*constant);
    return pack(AddressForm{std::uint32_t(*scale), std::int32_t(is_negative ? -bytes : bytes)});
}

/// "16.cg", "16.cg.128B"; the offset stands at the address
std::string text(CopyForm form) {
    const std::string cache = name_in(copy_cache_names, std::size_t(form.cache));
    const std::string prefetch = name_in(copy_prefetch_names, std::size_t(form.prefetch));
    if (cache.empty() || std::size_t(form.prefetch) >= std::size(copy_prefetch_names) || form.unused) return {};
    return std::to_string(form.bytes) + '.' + cache + (prefetch.empty() ? "" : '.' + prefetch);
}
std::optional<Word> copy_named(std::string_view text) {
    const auto bytes = number(take_word(text), 255);
    const auto cache = find_name(copy_cache_names, take_word(text));
    const auto prefetch = text.empty() ? std::optional<std::size_t>(0) : find_name(copy_prefetch_names, text);
    if (!bytes || !cache || !prefetch) return {};
    return pack(CopyForm{
        .bytes = std::uint8_t(*bytes), .cache = CopyForm::Cache(*cache), .prefetch = CopyForm::Prefetch(*prefetch)});
}

/// "m16n8k16.bf16.bf16.f32", "m16n8k32.s8.u8.s32.sat", "m8n8k4.f16.f16.f32.trans_a"
std::string text(MatrixForm form) {
    if (!exists(form) || form.unused[0] || form.unused[1]) return {};
    std::string out(form.extents().name);
    for (const MatrixElement element : {form.a, form.b, form.sum})
        (out += '.') += matrix_element_names[std::size_t(element)];
    if (form.variant != MatrixForm::Variant::Plain) (out += '.') += matrix_variant_names[std::size_t(form.variant)];
    for (std::size_t flag = 0; flag < std::size(matrix_flag_names); ++flag)
        if (form.flags >> flag & 1) (out += '.') += matrix_flag_names[flag];
    return out;
}
std::optional<Word> matrix_named(std::string_view name) {
    std::string_view rest = name;
    const auto shape = std::ranges::find(matrix_shapes, take_word(rest), &MatrixShape::name);
    std::optional<std::size_t> elements[3];
    for (auto& element : elements) element = find_name(matrix_element_names, take_word(rest));
    if (shape == std::end(matrix_shapes) || !elements[0] || !elements[1] || !elements[2]) return {};
    MatrixForm form{.shape = std::uint8_t(shape - matrix_shapes),
                    .a = MatrixElement(*elements[0]),
                    .b = MatrixElement(*elements[1]),
                    .sum = MatrixElement(*elements[2])};
    while (!rest.empty()) {
        const std::string_view word = take_word(rest);
        if (const auto variant = find_name(matrix_variant_names, word))
            form.variant = MatrixForm::Variant(*variant);
        else if (const auto flag = find_name(matrix_flag_names, word))
            form.flags |= std::uint8_t(1 << *flag);
        else
            return {};
    }
    return text(form) == name ? std::optional(pack(form)) : std::nullopt;
}
/// ".m16n8k16.row.col.f32.bf16.bf16.f32": D's, A's, B's and C's elements
std::string matrix_suffix(MatrixForm form) {
    const auto element = [](MatrixElement one) { return '.' + std::string(matrix_element_names[std::size_t(one)]); };
    const std::string_view variants[] = {"", ".satfinite", "", ""}, bits[] = {"", "", ".xor.popc", ".and.popc"};
    return '.' + std::string(form.extents().name) + (form.has(MatrixForm::TransposesA) ? ".col" : ".row") +
           (form.has(MatrixForm::TransposesB) ? ".row" : ".col") + std::string(variants[std::size_t(form.variant)]) +
           element(form.sum) + element(form.a) + element(form.b) + element(form.sum) +
           std::string(bits[std::size_t(form.variant)]);
}

std::string shape_text(WgmmaForm form) { return "m64n" + std::to_string(form.n()) + 'k' + std::to_string(form.k()); }
/// "m64n128k16.bf16.bf16.f32", "m64n8k32.s8.u8.s32.pred.registers.sat"
std::string text(WgmmaForm form) {
    if (!exists(form) || form.unused[0] || form.unused[1]) return {};
    std::string out = shape_text(form);
    for (const MatrixElement element : {form.a, form.b, form.sum})
        (out += '.') += matrix_element_names[std::size_t(element)];
    if (form.adds != WgmmaForm::Sum::Adds) (out += '.') += wgmma_sum_names[std::size_t(form.adds)];
    for (std::size_t flag = 0; flag < std::size(wgmma_flag_names); ++flag)
        if (form.flags >> flag & 1) (out += '.') += wgmma_flag_names[flag];
    return out;
}
std::optional<Word> wgmma_named(std::string_view text) {
    const std::string_view shape = take_word(text);
    std::optional<std::size_t> elements[3];
    for (auto& element : elements) element = find_name(matrix_element_names, take_word(text));
    const std::size_t k = shape.find('k');
    const auto n = shape.starts_with("m64n") && k != shape.npos ? number(shape.substr(4, k - 4), 256) : std::nullopt;
    if (!n || *n % 8 || !elements[0] || !elements[1] || !elements[2]) return {};
    WgmmaForm form{.columns = std::uint8_t(*n / 8),
                   .a = MatrixElement(*elements[0]),
                   .b = MatrixElement(*elements[1]),
                   .sum = MatrixElement(*elements[2])};
    while (!text.empty()) {
        const std::string_view word = take_word(text);
        if (const auto adds = find_name(wgmma_sum_names, word))
            form.adds = WgmmaForm::Sum(*adds);
        else if (const auto flag = find_name(wgmma_flag_names, word))
            form.flags |= std::uint8_t(1 << *flag);
        else
            return {};
    }
    return exists(form) && shape == shape_text(form) ? std::optional(pack(form)) : std::nullopt;
}
/// ".m64n128k16.f32.bf16.bf16": D's, A's and B's elements
std::string wgmma_suffix(WgmmaForm form) {
    const auto element = [](MatrixElement one) { return '.' + std::string(matrix_element_names[std::size_t(one)]); };
    return '.' + shape_text(form) + (form.has(WgmmaForm::Saturates) ? ".satfinite" : "") + element(form.sum) +
           element(form.a) + element(form.b) + (form.a == MatrixElement::B1 ? ".and.popc" : "");
}

/// "x4", "x4.trans"
std::string text(MatricesForm form) {
    if (!exists(form)) return {};
    return 'x' + std::to_string(form.count) + (form.transposed ? ".trans" : "");
}
std::optional<Word> matrices_named(std::string_view text) {
    const std::string_view count = take_word(text);
    const auto matrices = count.starts_with('x') ? number(count.substr(1), 4) : std::nullopt;
    if (!matrices || !(text.empty() || text == "trans")) return {};
    const MatricesForm form{.count = std::uint8_t(*matrices), .transposed = !text.empty()};
    return exists(form) ? std::optional(pack(form)) : std::nullopt;
}

/// "arrive", "arrive.peer", "try.cluster"
std::string text(MbarrierForm form) {
    if (!exists(form)) return {};
    const std::string_view reach = mbarrier_reach_names[std::size_t(form.reach)];
    return std::string(mbarrier_names[std::size_t(form.kind)]) + (reach.empty() ? "" : '.' + std::string(reach));
}
std::optional<Word> mbarrier_named(std::string_view text) {
    const auto kind = find_name(mbarrier_names, take_word(text));
    const auto reach = text.empty() ? std::optional<std::size_t>(0) : find_name(mbarrier_reach_names, text);
    if (!kind || !reach) return {};
    const MbarrierForm form{MbarrierForm::Kind(*kind), MbarrierForm::Reach(*reach)};
    return exists(form) ? std::optional(pack(form)) : std::nullopt;
}
/// ".init.shared", ".arrive.release.cluster.shared::cluster", ".try_wait.parity.acquire.cluster.shared"
std::string mbarrier_suffix(MbarrierForm form) {
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
        case MbarrierForm::Reach::Cluster: return kind + ".acquire.cluster.shared";
        case MbarrierForm::Reach::Peer:
            // The default, .release.cta, orders nothing for another block. Like .relaxed.cluster, it is one instruction
            // without a fence; but PTX 8.0 has it, and .relaxed is of 8.6.
            if (form.kind == MbarrierForm::Kind::ArriveRelaxed) return kind + ".shared::cluster";
            return kind + (form.arrives() ? ".release" : ".relaxed") + ".cluster.shared::cluster";
        default: return kind + ".shared";
    }
}

/// "grow.240"
std::string text(RegistersForm form) {
    if (std::size_t(form.kind) >= std::size(registers_kind_names) || form.unused) return {};
    return std::string(registers_kind_names[std::size_t(form.kind)]) + '.' + std::to_string(form.count);
}
std::optional<Word> registers_named(std::string_view text) {
    const auto kind = find_name(registers_kind_names, take_word(text));
    const auto count = number(text, 0xffff);
    if (!kind || !count) return {};
    return pack(RegistersForm{.kind = RegistersForm::Kind(*kind), .count = std::uint16_t(*count)});
}

/// "load", "load.2d.multicast", "store.2d.add"
std::string text(BulkForm form) {
    if (!exists(form)) return {};
    std::string out(bulk_names[std::size_t(form.kind)]);
    if (form.rank) ((out += '.') += std::to_string(form.rank)) += 'd';
    if (form.multicast) out += ".multicast";
    if (form.reduction != BulkForm::Reduction::None) (out += '.') += bulk_reduction_names[std::size_t(form.reduction)];
    return out;
}
std::optional<Word> bulk_named(std::string_view text) {
    const auto kind = find_name(bulk_names, take_word(text));
    if (!kind) return {};
    BulkForm form{.kind = BulkForm::Kind(*kind)};
    while (!text.empty()) {
        const std::string_view word = take_word(text);
        if (word.size() == 2 && word[0] >= '1' && word[0] <= '5' && word[1] == 'd')
            form.rank = std::uint8_t(word[0] - '0');
        else if (word == "multicast")
            form.multicast = true;
        else if (const auto reduction = find_name(bulk_reduction_names, word))
            form.reduction = BulkForm::Reduction(*reduction);
        else
            return {};
    }
    return exists(form) ? std::optional(pack(form)) : std::nullopt;
}
/// ".async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes", ".reduce.async.bulk.…"
std::string bulk_suffix(BulkForm form) {
    const bool reduces = form.reduction != BulkForm::Reduction::None;
    const std::string tensor = form.rank ? ".tensor." + std::to_string(form.rank) + 'd' : "";
    const std::string tile = form.rank ? ".tile" : "";
    const std::string reduction =
        reduces ? '.' + std::string(bulk_reduction_names[std::size_t(form.reduction)]) : std::string();
    switch (form.kind) {
        case BulkForm::Kind::Send: return ".async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes";
        case BulkForm::Kind::Prefetch: return ".async.bulk.prefetch" + tensor + ".L2.global" + tile;
        case BulkForm::Kind::Store:
            return (reduces ? ".reduce.async.bulk" : ".async.bulk") + tensor + ".global.shared::cta" +
                   (form.rank ? reduction + tile + ".bulk_group" : ".bulk_group" + reduction);
        default:
            return ".async.bulk" + tensor + ".shared::cluster.global" + tile + ".mbarrier::complete_tx::bytes" +
                   (form.multicast ? ".multicast::cluster" : "");
    }
}

/// "2", "all"
std::string groups_text(Word groups) { return groups == all_copies ? "all" : std::to_string(groups); }
std::optional<Word> groups_named(std::string_view text) {
    return text == "all" ? std::optional(all_copies) : number(text, all_copies - 1);
}

}  // namespace

std::string attribute_text(Op op, Word attribute) {
    switch (info(op).attribute) {
        case Attribute::Special: return name_in(special_register_names, attribute);
        case Attribute::Shuffle: return name_in(shuffle_mode_names, attribute);
        case Attribute::Mode: return std::string(mode_name(op, attribute));
        case Attribute::Table: return std::to_string(attribute);
        case Attribute::Scale: return text(unpack<AddressForm>(attribute));
        case Attribute::Fence: return attribute >> 16 ? "" : text(unpack<FenceForm>(attribute));
        case Attribute::Barrier: return attribute >> 16 ? "" : text(unpack<BarrierForm>(attribute));
        case Attribute::Copy: return text(unpack<CopyForm>(attribute));
        case Attribute::Groups: return attribute > all_copies ? "" : groups_text(attribute);
        case Attribute::Matrix: return text(unpack<MatrixForm>(attribute));
        case Attribute::Matrices: return attribute >> 9 ? "" : text(unpack<MatricesForm>(attribute));
        case Attribute::Mbarrier: return attribute >> 16 ? "" : text(unpack<MbarrierForm>(attribute));
        case Attribute::Registers: return attribute >> 32 ? "" : text(unpack<RegistersForm>(attribute));
        case Attribute::Wgmma: return text(unpack<WgmmaForm>(attribute));
        case Attribute::Bulk: return attribute >> 25 ? "" : text(unpack<BulkForm>(attribute));
        default: return {};
    }
}

std::optional<Word> attribute_named(Op op, std::string_view text) {
    switch (info(op).attribute) {
        case Attribute::Special: return find_name(special_register_names, text);
        case Attribute::Shuffle: return find_name(shuffle_mode_names, text);
        case Attribute::Mode: return mode_named(op, text);
        case Attribute::Table: return number(text, ~std::uint32_t{0});
        case Attribute::Scale: return address_named(text);
        case Attribute::Fence: return fence_named(text);
        case Attribute::Barrier: return barrier_named(text);
        case Attribute::Copy: return copy_named(text);
        case Attribute::Groups: return groups_named(text);
        case Attribute::Matrix: return matrix_named(text);
        case Attribute::Matrices: return matrices_named(text);
        case Attribute::Mbarrier: return mbarrier_named(text);
        case Attribute::Registers: return registers_named(text);
        case Attribute::Wgmma: return wgmma_named(text);
        case Attribute::Bulk: return bulk_named(text);
        default: return {};
    }
}

AttributeChoice attribute_choice(Op op) {
    switch (info(op).attribute) {
        case Attribute::Special: return {"special register", list_names(special_register_names)};
        case Attribute::Shuffle: return {"shuffle mode", list_names(shuffle_mode_names)};
        case Attribute::Mode: {
            std::string modes(info(op).modes);
            std::ranges::replace(modes, '|', ' ');
            return {"mode", "modes are " + modes};
        }
        case Attribute::Table: return {"table", "it is a number, such as 202"};
        case Attribute::Scale: return {"scale", "it is a number of bytes, such as 4, and a constant, such as 4+16"};
        case Attribute::Fence:
            return {"fence", "an order, " + list_names(fence_order_names) + ", and of the first two a scope, " +
                                 list_names(scope_names)};
        case Attribute::Barrier: return {"barrier", "a number from 0 to 15, or " + list_names(barrier_kind_names)};
        case Attribute::Copy:
            return {"copy", "bytes, " + list_names(copy_cache_names) + ", and what is prefetched, such as 16.cg.128B"};
        case Attribute::Groups: return {"number of groups", "a number, or all"};
        case Attribute::Matrix:
            return {"matrix product",
                    "a shape and the elements of A, B and C, such as m16n8k16.bf16.bf16.f32; of "
                    "integers .sat may follow, of bits .xor or .and does, of m8n8k4.f16 .trans_a and .trans_b may"};
        case Attribute::Wgmma:
            return {"matrix product",
                    "a shape and the elements of A, B and D, such as m64n128k16.bf16.bf16.f32, whether it adds, " +
                        list_names(wgmma_sum_names) + ", and " + list_names(wgmma_flag_names)};
        case Attribute::Matrices: return {"number of matrices", "x1, x2 or x4, and .trans for transposes"};
        case Attribute::Mbarrier:
            return {"use of a barrier", list_names(mbarrier_names) +
                                            ", and of a test .cluster, of what another block can "
                                            "do .peer"};
        case Attribute::Registers: return {"number of registers", "grow or shrink and a number, such as grow.240"};
        case Attribute::Bulk:
            return {"copy", list_names(bulk_names) + ", the rank of a tensor, .multicast or a reduction, " +
                                list_names(bulk_reduction_names) + ", such as store.2d.add"};
        default: return {};
    }
}

std::string attribute_suffix(Op op, Word attribute) {
    if (info(op).attribute == Attribute::Groups) return attribute == all_copies ? ".wait_all" : ".wait_group";
    if (info(op).attribute == Attribute::Wgmma) return wgmma_suffix(unpack<WgmmaForm>(attribute));
    if (info(op).attribute == Attribute::Matrix) return matrix_suffix(unpack<MatrixForm>(attribute));
    if (info(op).attribute == Attribute::Bulk) return bulk_suffix(unpack<BulkForm>(attribute));
    if (info(op).attribute == Attribute::Mbarrier) return mbarrier_suffix(unpack<MbarrierForm>(attribute));
    if (info(op).attribute == Attribute::Registers)
        return unpack<RegistersForm>(attribute).kind == RegistersForm::Kind::Grow ? ".inc" : ".dec";
    if (info(op).attribute == Attribute::Fence && !unpack<FenceForm>(attribute).has_scope()) {
        constexpr std::string_view suffixes[] = {".proxy.async", ".proxy.async.shared::cta",
                                                 ".mbarrier_init.release.cluster"};
        return std::string(suffixes[std::size_t(unpack<FenceForm>(attribute).order) - std::size_t(FenceOrder::Async)]);
    }
    if (info(op).attribute == Attribute::Copy) {
        const auto form = unpack<CopyForm>(attribute);
        const std::string prefetch(copy_prefetch_names[std::size_t(form.prefetch)]);
        return '.' + std::string(copy_cache_names[std::size_t(form.cache)]) + ".shared.global" +
               (prefetch.empty() ? "" : ".L2::" + prefetch);
    }
    if (info(op).attribute != Attribute::Barrier) {
        const std::string text = attribute_text(op, attribute);
        return text == "plain" ? "" : '.' + text;
    }
    switch (unpack<BarrierForm>(attribute).kind) {
        case BarrierForm::Kind::Arrive: return ".arrive";
        case BarrierForm::Kind::And: return ".red.and.pred";
        case BarrierForm::Kind::Or: return ".red.or.pred";
        case BarrierForm::Kind::Count: return ".red.popc.u32";
        default: return ".sync";
    }
}

}  // namespace ikat::ir
