// SPDX-License-Identifier: Apache-2.0
#include "stdlib/attention/call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <span>
#include <string>

namespace ikat::stdlib {

std::string extents_text(const std::array<std::uint64_t, 4>& extents) {
    return fmt::format("{} x {} x {} x {}", extents[0], extents[1], extents[2], extents[3]);
}

CacheEncoding encoding_of(const TensorView& x) {
    if (x.format == runtime::Quantised::Q8_0) return CacheEncoding::q8_0;
    return x.type == ir::Type::E4M3 ? CacheEncoding::e4m3 : CacheEncoding::none;
}

TensorView as_bytes(const TensorView& x) {
    const std::uint64_t elements = x.format ? 32 : 1, bytes = x.format ? 34 : ir::info(x.type).bytes;
    TensorView out = x;
    out.format = {};
    out.type = ir::Type::U8;
    for (std::size_t d = 0; d + 1 < x.rank; ++d) out.strides[d] = x.strides[d] / elements * bytes;
    out.extents[x.rank - 1] = x.extents[x.rank - 1] / elements * bytes;
    return out;
}
TensorView bytes_if(bool are_bytes, const TensorView& x) { return are_bytes ? as_bytes(x) : x; }

std::string_view suffix_of(CacheEncoding encoding) {
    constexpr std::string_view names[] = {"", "_q8_0", "_e4m3"};
    return names[std::size_t(encoding)];
}

std::uint32_t access_of(const TensorView& given) {
    const TensorView x = as_bytes(given);
    std::uint64_t all = x.part.address();
    if (encoding_of(given) != CacheEncoding::none) all |= x.extents[3];
    for (std::size_t d = 0; d < 3; ++d)
        if (x.extents[d] > 1) all |= x.strides[d];
    for (const std::uint32_t bytes : {16u, 8u, 4u})
        if (all % bytes == 0) return bytes;
    return 0;
}

AttentionCall::AttentionCall(std::string_view function, const Queue& queue, const TensorView& Q, const TensorView& K,
                             const TensorView& V, const TensorView& O, const std::optional<TensorView>& log_sum)
    : queue_(queue),
      where_(queue.where()),
      function_(function),
      Q_(heads_of_rows("Q", Q)),
      K_(heads_of_rows("K", K)),
      V_(heads_of_rows("V", V)),
      O_(heads_of_rows("O", O)) {
    if (log_sum) log_sum_ = heads_of_rows("log_sum", *log_sum, 1);
}

TensorView AttentionCall::heads_of_rows(std::string_view what, const TensorView& given, std::uint32_t min_rank) const {
    if (given.rank < min_rank || given.rank > 4)
        fail(fmt::format("{} has {} dimension{}", what, given.rank, given.rank == 1 ? "" : "s"),
             "it is a view of rows, heads of rows, or sequences of heads of rows");
    const TensorView out = given.of_rank(4);
    if (out.extents[3] > 1 && out.strides[3] != 1)
        fail(fmt::format("the elements of a row of {} are {} apart", what, out.strides[3]), "they follow each other");
    return out;
}

void AttentionCall::fail(std::string_view message, std::string_view hint) const {
    throw Error(
        Diagnostic{.where = where_, .message = fmt::format("{}: {}", function_, message), .hint = std::string(hint)});
}

void AttentionCall::check_life(const runtime::BufferPart& part) const {
    if (!part.is_there()) fail(runtime::freed, runtime::freed_hint);
}

void AttentionCall::check_type(std::string_view what, ir::Type type, ir::Type right) const {
    if (type != right)
        fail(fmt::format("{} has elements of {}", what, ir::info(type).name),
             fmt::format("it has {}", ir::info(right).name));
}

void AttentionCall::check_same_type(std::string_view what, const TensorView& x) const {
    if (x.type != Q_.type)
        fail(fmt::format("Q has elements of {}, {} of {}", Q_.type_name(), what, x.type_name()),
             what == "O" ? "they have the same type"
                         : "they have the same type, or K and V have e4m3, or blocks of q8_0");
}

void AttentionCall::check_shape(std::string_view what, const TensorView& x, const std::array<std::uint64_t, 4>& right,
                                std::string_view hint) const {
    if (x.shape<4>() != right)
        fail(fmt::format("{} is {}, not {}", what, extents_text(x.shape<4>()), extents_text(right)), hint);
}

void AttentionCall::check_types() const {
    for (const TensorView* x : {&Q_, &K_, &V_, &O_}) check_life(x->part);
    if (log_sum_) check_life(log_sum_->part);
    if (Q_.type != ir::Type::F16 && Q_.type != ir::Type::BF16 && Q_.type != ir::Type::F32)
        fail(fmt::format("Q has elements of {}", Q_.type_name()), "it has f16, bf16 or f32");
    check_same_type("O", O_);
    if (encoding_of(K_) == CacheEncoding::none && encoding_of(V_) == CacheEncoding::none)
        check_same_type("K", K_), check_same_type("V", V_);
    else
        check_encoded();
    if (log_sum_) check_type("log_sum", log_sum_->type, ir::Type::F32);
}

void AttentionCall::check_encoded() const {
    if (encoding_of(K_) != encoding_of(V_))
        fail(fmt::format("K has elements of {}, V of {}", K_.type_name(), V_.type_name()), "they have the same type");
    for (const auto& [what, x] : {std::pair("K", &K_), std::pair("V", &V_)})
        if (x->format && x->part.bytes != 0 && x->part.address() % 2 != 0)
            fail(fmt::format("{} begins at byte {} of its buffer", what, x->part.offset), "blocks begin at even bytes");
}

void AttentionCall::check_memory(Role of_results, std::vector<OperandRole> others) const {
    std::vector<OperandRole> all{{"Q", Q_.part}, {"K", K_.part}, {"V", V_.part}, {"O", O_.part, of_results}};
    if (log_sum_) all.push_back({"log_sum", log_sum_->part, of_results});
    if (sinks_) all.push_back({"sinks", sinks_->part});
    for (const OwnArgument& own : own_arguments_)
        if (own.argument.array) all.push_back({own.what, own.argument.array->part});
    all.insert(all.end(), others.begin(), others.end());
    check_roles(function_, where_, all);
}

void AttentionCall::check_sizes(std::uint64_t planes) const {
    constexpr std::uint64_t dims[] = {64, 80, 96, 128, 256};
    if (std::ranges::find(dims, head_dim()) == std::end(dims))
        fail(fmt::format("rows of Q have {} elements", head_dim()), "there are kernels for 64, 80, 96, 128 and 256");
    check_shape("K", K_, {planes, kv_heads(), K_.extents[2], head_dim()}, "sequences and head_dim are those of Q");
    check_shape("V", V_, K_.shape<4>(), "V has the shape of K");
    check_shape("O", O_, Q_.shape<4>(), "O has the shape of Q");
    if (heads() > 0 && (kv_heads() == 0 || heads() % kv_heads() != 0))
        fail(fmt::format("Q has {} heads, K and V have {}", heads(), kv_heads()), "Q has as many, or a multiple");
    if (log_sum_)
        check_shape("log_sum", *log_sum_, {1, sequences(), heads(), queries()},
                    "log_sum is a view (heads, queries) or (sequences, heads, queries)");
}

void AttentionCall::take_pages(const std::optional<TensorView>& pages) {
    if (pages) pages_ = heads_of_rows("pages", *pages);
}
void AttentionCall::check_page_types() const {
    if (!pages_) return;
    check_life(pages_->part);
    check_type("pages", pages_->type, ir::Type::U32);
}
void AttentionCall::check_pages(std::uint64_t sequences) const {
    if (!pages_) return;
    const auto table = pages_->shape<4>();
    if (table[0] * table[1] != 1 || table[2] != sequences)
        fail(fmt::format("pages is {}, and there are {} sequences", extents_text(table), sequences),
             "it is a view of two dimensions, with a row for each sequence");
    if (const std::uint64_t of_page = K_.extents[2]; of_page < 16 || !std::has_single_bit(of_page))
        fail(fmt::format("pages of {} rows", of_page), "a page has a power of two of rows, 16 or more");
}

void AttentionCall::take_sinks(const std::optional<TensorView>& sinks) {
    if (!sinks) return;
    check_life(sinks->part);
    check_type("sinks", sinks->type, ir::Type::F32);
    if (sinks->rank != 1)
        fail(fmt::format("sinks has {} dimensions", sinks->rank), "it is a Buffer, or a slice of one");
    if (sinks->extents[0] < heads())
        fail(fmt::format("sinks has {} elements, and there are {} heads", sinks->extents[0], heads()),
             "it has an element for each");
    sinks_ = sinks;
}

void AttentionCall::take_own(const std::optional<OwnScores>& scores, const std::optional<OwnSight>& sight,
                             std::uint64_t sequences, std::uint64_t keys, const std::optional<OwnScores>& slope) {
    own_ = OwnAttention(
        scores, sight, [this](const std::string& message, std::string_view hint) { fail(message, hint); }, slope);
    const AxisCounts counts{sequences, heads(), queries(), keys};
    if (scores) take_own(own_.scores(), scores->arguments, counts);
    if (sight) take_own(own_.sight(), sight->arguments, counts);
    if (slope) take_own(own_.slope(), slope->arguments, counts);
}
void AttentionCall::take_own(const OwnAttention::Code& code, const std::vector<ScoreArgument>& arguments,
                             const AxisCounts& counts) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string what = fmt::format("argument {} of {} '{}'", i + 1, code.kind, code.name);
        const ScoreParameter& is = code.parameters[i];
        own_arguments_.push_back({what, arguments[i], std::uint32_t(is.by.size())});
        if (arguments[i].array) check_own(what, is, *arguments[i].array, counts);
    }
}
void AttentionCall::check_own(const std::string& what, const ScoreParameter& is, const TensorView& array,
                              const AxisCounts& counts) const {
    constexpr std::string_view names[] = {"sequences", "heads", "queries", "keys"};
    check_life(array.part);
    if (array.rank != is.by.size())
        fail(fmt::format("{} has {} dimension{}", what, array.rank, array.rank == 1 ? "" : "s"),
             is.by.size() == 1 ? "it is a Buffer, or a slice of one"
                               : "it is read by two indices: a view of two dimensions");
    const std::span<const std::uint64_t> extents(array.extents.data(), array.rank);
    for (std::size_t d = 0; d < array.rank; ++d)
        if (const std::size_t axis = std::size_t(is.by[d]); array.extents[d] < counts[axis])
            fail(fmt::format("{} has {} elements, and there are {} {}", what, fmt::join(extents, " x "), counts[axis],
                             names[axis]),
                 "it has an element for each");
    if (array.extents[array.rank - 1] > 1 && array.strides[array.rank - 1] != 1)
        fail(fmt::format("the elements of {} are {} apart", what, array.strides[array.rank - 1]),
             "they follow each other");
    if (array.rank == 2) check_pitches(what, array.of_rank(4));
}
void AttentionCall::add_own(KernelArguments& to) const {
    for (const OwnArgument& own : own_arguments_)
        if (!own.argument.array)
            to.add_number(own.argument.type, own.argument.bits);
        else if (own.rank == 1)
            to.add_array(*own.argument.array);
        else
            to.add_view(*own.argument.array, own.rank);
}

void AttentionCall::check_pitches(std::string_view what, const TensorView& given, std::string_view but) const {
    const TensorView x = bytes_if(encoding_of(given) != CacheEncoding::none, given);
    for (std::size_t d = 0; d < 3; ++d)
        if (x.extents[d] > 1 && x.strides[d] >> 32)
            fail(fmt::format("a pitch of {} elements in {}", x.strides[d], what),
                 fmt::format("sequences, heads and rows are fewer than 2^32 elements apart{}", but));
}

void AttentionCall::check_numbers(const std::optional<float>& scale, float soft_cap) const {
    if (scale && !(*scale > 0 && std::isfinite(*scale)))
        fail(fmt::format("a scale of {}", *scale), "it is a positive number");
    if (!(soft_cap >= 0))
        fail(fmt::format("a soft cap of {}", soft_cap), "it is a positive number, or 0 or infinity for none");
}

/// Where the factor of products has no number in f32, scores are made in steps, as of a wide cap: if there is none, of
/// one that is none for any score.
ScoreNumbers AttentionCall::score_numbers(const std::optional<float>& given, float soft_cap, bool has_bias) const {
    constexpr float max_cap = 0x1p127f;   // times log2(e) it is finite
    constexpr float min_cap = 0x1p-100f;  // below it all exponentials are 1
    constexpr float max_narrow_cap = 64;
    const double scale = given ? double(*given) : 1 / std::sqrt(double(head_dim()));
    ScoreNumbers out{.has_cap = soft_cap > 0 && std::isfinite(soft_cap)};
    out.cap = out.has_cap ? std::clamp(soft_cap, min_cap, max_cap) : 0;
    const double factor = out.has_cap ? scale / double(out.cap) * 2 * std::numbers::log2e
                          : has_bias  ? scale
                                      : scale * std::numbers::log2e;
    out.factor = float(factor);
    out.has_wide_cap = out.cap > max_narrow_cap || !std::isfinite(out.factor);
    if (!out.has_wide_cap) return out;
    if (!out.has_cap) out.cap = max_cap;
    out.has_cap = true;
    out.factor = float(scale);
    return out;
}

}  // namespace ikat::stdlib
