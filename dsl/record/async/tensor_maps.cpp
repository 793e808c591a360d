// SPDX-License-Identifier: Apache-2.0
// Copies of boxes of tensors, whose maps are parameters.
#include "dsl/record/async/tensor_maps.hpp"

#include <algorithm>
#include <string>

#include "dsl/record/recorder.hpp"

namespace ikat::trace {

using ir::BulkForm;

namespace {

TensorMapInfo& map_of(Recorder& recorder, const TensorBox& box) {
    return *std::ranges::find(recorder.kernel.maps, box.map.index, &TensorMapInfo::parameter);
}

std::vector<Diagnostic::Note> declaration(const Recorder& recorder, std::uint32_t symbol) {
    const Location& where = recorder.kernel.symbols[symbol].where;
    if (!where.known()) return {};
    return {{where, "the array is declared here"}};
}

/// A box that goes beyond the end of its array, as far as it is known where it begins.
void check_end(Recorder& recorder, const std::string& what, const TensorMapInfo& map, std::uint32_t index,
               ast::Node address) {
    const ir::Symbol& symbol = recorder.kernel.symbols[index];
    const std::uint64_t size = symbol.count * ir::info(symbol.element).bytes;
    const std::uint64_t begin = recorder.byte_in_array(address).value_or(0);
    if (symbol.dynamic || begin + map.box_bytes() <= size) return;
    const std::string place = begin ? " at byte " + std::to_string(begin) : std::string();
    recorder.complain(what + " of a box of " + std::to_string(map.box_bytes()) + " bytes" + place +
                          ", and the array has " + std::to_string(size),
                      "the shared array holds whole boxes", recorder.here(), declaration(recorder, index));
}

/// Rows of a box lie one after the other, without padding. Without a swizzle, an array's rows may be cut into several
/// of the box, or the other way round; with one, the pattern is that of the box's rows.
bool is_row_of(std::uint64_t box, std::uint64_t array, bool is_swizzled) {
    return is_swizzled ? box == array : box % array == 0 || array % box == 0;
}

void check_rows(Recorder& recorder, const std::string& what, const TensorMapInfo& map, const Slot& place) {
    const KnownRows& rows = place.rows;
    const auto complain = [&](const std::string& message, const char* hint) {
        recorder.complain(what + message, hint, recorder.here(), declaration(recorder, place.array.index));
    };
    const std::uint64_t row = std::uint64_t{map.box[map.rank - 1]} * ir::info(map.element).bytes;
    if (rows.bytes && map.rank > 1 && !is_row_of(row, rows.bytes, map.swizzle != 0))
        complain(" of a box whose rows have " + std::to_string(row) + " bytes, and those of the array have " +
                     std::to_string(rows.bytes),
                 "rows of a box follow each other without padding: give the array rows of as many bytes, or, if bytes "
                 "are meant, name the place by s.flat()[i]");
    else if (rows.swizzle != ~0u && rows.swizzle != map.swizzle)
        complain(
            " of a box that is " + swizzle_text(map.swizzle) + ", and a tile that is " + swizzle_text(rows.swizzle),
            "the TensorMap and the tile have the same swizzle: TensorMap<T, Box<...>, Tile::swizzle>");
}

/// Aligns the array as the pattern of the box wants it, and complains about a place where the box cannot be.
void check_place(Recorder& recorder, const std::string& what, const TensorMapInfo& map, const Slot& place,
                 ast::Node address) {
    ir::Symbol& symbol = recorder.kernel.symbols[place.array.index];
    symbol.alignment = std::max(symbol.alignment, map.alignment());
    if (recorder.is_misaligned(address, map.alignment()))
        recorder.complain(
            what + " of a box at an element that is not aligned to " + std::to_string(map.alignment()) + " bytes",
            map.swizzle ? "a swizzled box begins where its pattern does" : "boxes begin at such multiples",
            recorder.here());
    check_end(recorder, what, map, place.array.index, address);
    check_rows(recorder, what, map, place);
}

/// Whether the place is in shared memory and all is of this kernel; complains if not.
bool check_operands(Recorder& recorder, const std::string& what, const TensorBox& box, const Slot& place) {
    if (!recorder.owns(box.map.capture) || !recorder.owns(place.array.capture)) return false;
    if (recorder.is_shared(place)) return true;
    recorder.complain(what + " whose place in shared memory is not there",
                      "it is in a Shared<T, N> or dynamic_shared<T>() array", recorder.here());
    return false;
}

/// The map's address, and the coordinates as PTX has them, the innermost first.
std::vector<Recorded> place_in(const TensorBox& box, const Where& where) {
    std::vector<Recorded> out{raw_address(box.map, where)};
    for (std::uint32_t d = box.rank; d-- > 0;) out.push_back(box.at[d]);
    return out;
}

void copy(Recorder& recorder, BulkForm form, ast::Nodes operands) {
    ast::NodeInfo node = recorder.node_of({.op = ir::Op::BulkCopy, .attribute = ir::pack(form)});
    node.arguments = std::move(operands);
    recorder.statement(std::move(node));
}

RecordedValues list(const std::vector<Recorded>& values) { return {values.data(), std::uint32_t(values.size())}; }

}  // namespace

void tensor_load(const Slot& to, const TensorBox& from, const Slot& barrier, const Recorded* mask, const Where& where) {
    Recorder& recorder = Recorder::active();
    std::vector<Recorded> values = place_in(from, where);
    if (mask) values.push_back(*mask);
    recorder.at(where);
    if (!recorder.owns(barrier.array.capture) || !check_operands(recorder, "tma_load()", from, to)) return;
    const ast::Nodes nodes = recorder.commit_places({&to, &barrier}, list(values));
    const TensorMapInfo& map = map_of(recorder, from);
    check_place(recorder, "tma_load()", map, to, nodes[0]);
    recorder.swizzled.push_back({.is_filled = true,
                                 .symbol = to.array.index,
                                 .address = nodes[0],
                                 .swizzle = map.swizzle,
                                 .what = "tma_load()",
                                 .where = recorder.here()});
    ast::Nodes operands{nodes[0]};
    for (std::uint32_t i = 0; i <= from.rank; ++i) operands.push_back(nodes[2 + i]);
    operands.push_back(nodes[1]);
    if (mask) operands.push_back(nodes[nodes.size() - 1]);
    copy(recorder, {.kind = BulkForm::Kind::Load, .rank = std::uint8_t(from.rank), .multicast = mask != nullptr},
         std::move(operands));
}

void tensor_store(const TensorBox& to, const Slot& from, BulkForm::Reduction reduction, const Where& where) {
    Recorder& recorder = Recorder::active();
    const std::vector<Recorded> values = place_in(to, where);
    recorder.at(where);
    const std::string what = reduction == BulkForm::Reduction::None ? "tma_store()" : "a reduction";
    if (!check_operands(recorder, what, to, from)) return;
    const ast::Nodes nodes = recorder.commit_places({&from}, list(values));
    check_place(recorder, what, map_of(recorder, to), from, nodes[0]);
    map_of(recorder, to).is_written = true;
    ast::Nodes operands;
    for (std::uint32_t i = 0; i <= to.rank; ++i) operands.push_back(nodes[1 + i]);
    operands.push_back(nodes[0]);
    copy(recorder, {.kind = BulkForm::Kind::Store, .rank = std::uint8_t(to.rank), .reduction = reduction},
         std::move(operands));
}

void tensor_prefetch(const TensorBox& from, const Where& where) {
    Recorder& recorder = Recorder::active();
    const std::vector<Recorded> values = place_in(from, where);
    recorder.at(where);
    if (!recorder.owns(from.map.capture)) return;
    copy(recorder, {.kind = BulkForm::Kind::Prefetch, .rank = std::uint8_t(from.rank)},
         recorder.commit_places({}, list(values)));
}

void prefetch_map(const Array& map, const Where& where) {
    Recorder& recorder = Recorder::active();
    const std::vector<Recorded> values{raw_address(map, where)};
    recorder.at(where);
    if (!recorder.owns(map.capture)) return;
    ast::NodeInfo node = recorder.node_of({.op = ir::Op::PrefetchMap, .operand_type = ir::Type::U64});
    node.arguments = recorder.commit_places({}, list(values));
    recorder.statement(std::move(node));
}

}  // namespace ikat::trace
