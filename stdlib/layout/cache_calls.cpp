// SPDX-License-Identifier: Apache-2.0
// rope_scatter(), and kv_scatter() to a cache of Q8_0 or e4m3: their checks, their launch, and their names.
#include <fmt/format.h>

#include "stdlib/layout/cache_rows.hpp"
#include "stdlib/quantised/call.hpp"
#include "stdlib/spec/kernel_arguments.hpp"
#include "stdlib/spec/named_functions.hpp"

namespace ikat::stdlib {
namespace {

using runtime::Quantised;

/// A call, with x as tokens x heads x head_dim and the cache as rows x heads x head_dim.
class CacheCall : QuantisedCall {
public:
    CacheCall(std::string_view function, const Queue& queue, const TensorView& x, const TensorView& slots,
              const TensorView& cache)
        : QuantisedCall(function, queue), queue_(queue), x_(x), slots_(slots), cache_(cache) {
        check_real("x", x_);
        check_type("slots", slots_, ir::Type::U32);
        if (!is_of_blocks() && cache_.type != x_.type && cache_.type != ir::Type::E4M3)
            fail(fmt::format("'cache' has elements of {}, x of {}", cache_.type_name(), x_.type_name()),
                 "a cache has elements of x's type, e4m3, or blocks of q8_0");
        if (is_of_blocks()) check_blocks();
        check_row("x", x_), check_row("cache", cache_);
        if (x_.extents[1] != cache_.extents[1] || x_.extents[2] != cache_.extents[2])
            fail(fmt::format("x is {}, 'cache' is {}", extents_text(x_), extents_text(cache_)),
                 "all dimensions but the first are the same");
        if (slots_.rank != 1 || slots_.extents[0] < tokens())
            fail(fmt::format("'slots' is {}, and there are {} tokens", extents_text(slots_), tokens()),
                 "it is a Buffer, or a slice of one, with an element for each token");
    }

    /// Turned by the angles of these positions.
    void turn(Rope form, const TensorView& positions, std::uint32_t rotary, float base) {
        check().enumerator("form", std::size_t(form), 2);
        check_type("positions", positions, ir::Type::U32);
        if (positions.rank != 1 || positions.extents[0] < tokens())
            fail(fmt::format("'positions' is {}, and there are {} tokens", extents_text(positions), tokens()),
                 "it is a Buffer, or a slice of one, with an element for each token");
        if (rotary > head_dim())
            fail("'rotary' is larger than 'head_dim'", "rotate at most as many elements as a head has");
        if (rotary % 2 != 0 || head_dim() % 2 != 0)
            fail(fmt::format("a rotary of {} elements of {}", rotary, head_dim()), "both are even: pairs are rotated");
        if (rotary > CacheKernel::max_rotary)
            fail(fmt::format("a rotary of {}", rotary), "up to 512 elements of a head are rotated; rope() takes more");
        form_ = form, positions_ = positions, rotary_ = rotary, base_ = base;
    }

    void run() const {
        std::vector<OperandRole> roles{
            {"x", x_.part, Role::Read}, {"slots", slots_.part, Role::Read}, {"cache", cache_.part, Role::Written}};
        if (positions_) roles.push_back({"positions", positions_->part, Role::Read});
        const Location where = queue_.where();
        stdlib::check_roles(function(), where, roles);
        if (tokens() == 0 || x_.extents[1] == 0 || head_dim() == 0) return;
        const CacheKernel is = kernel();
        KernelArguments arguments(is.handle(), where);
        arguments.add_array(x_), arguments.add_array(slots_);
        arguments.add_array(encodes() ? ir::Type::U8 : cache_.type, cache_.part);
        const auto number = [&](std::string_view what, std::uint64_t n) { return check().reached(what, n); };
        arguments.add_numbers(number("x", x_.extents[1]), number("x", head_dim()), number("x", x_.strides[0]),
                              number("x", x_.strides[1]), number("cache", bytes_or_elements(cache_.strides[0])),
                              number("cache", bytes_or_elements(cache_.strides[1])), number("cache", cache_.extents[0]),
                              rotary_, base_);
        if (positions_) arguments.add_array(*positions_);
        arguments.launch(queue_, number("x", tokens()), CacheKernel::threads);
    }

private:
    bool is_of_blocks() const { return cache_.format.has_value(); }
    bool encodes() const { return CacheKernel::encodes(cache_); }
    std::uint64_t tokens() const { return x_.extents[0]; }
    std::uint64_t head_dim() const { return x_.extents[2]; }
    std::uint64_t bytes_or_elements(std::uint64_t weights) const {
        return is_of_blocks() ? weights / weights_of(Quantised::Q8_0) * bytes_of(Quantised::Q8_0) : weights;
    }
    void check_blocks() const {
        if (*cache_.format != Quantised::Q8_0)
            fail(fmt::format("'cache' has blocks of {}", cache_.type_name()), "a quantised cache has blocks of q8_0");
        if (cache_.part.bytes != 0 && cache_.part.address() % 2 != 0)
            fail(fmt::format("'cache' begins at byte {} of its buffer", cache_.part.offset),
                 "blocks begin at even bytes");
        for (std::size_t d = 0; d < 2; ++d)
            if (cache_.extents[d] > 1 && cache_.strides[d] % weights_of(Quantised::Q8_0) != 0)
                fail(fmt::format("heads or rows of 'cache' are {} weights apart", cache_.strides[d]),
                     "they are whole blocks of 32 weights apart");
        if (head_dim() % weights_of(Quantised::Q8_0) != 0)
            fail(fmt::format("heads of {} elements", head_dim()), "those of a q8_0 cache are whole blocks of 32");
    }
    static bool is_by_fours(const TensorView& view) {
        const std::uint64_t bytes = info(view.type).bytes;
        return (view.part.address() / bytes | view.strides[0] | view.strides[1] | view.extents[2]) % 4 == 0;
    }
    CacheKernel kernel() const {
        CacheKernel out{.x = x_.type, .cache = is_of_blocks() ? ir::Type::Void : cache_.type, .form = form_};
        out.x_is_aligned = is_by_fours(x_) && (form_ != Rope::Neox || rotary_ % 8 == 0);
        out.cache_is_aligned = is_of_blocks() || is_by_fours(cache_);
        return out;
    }

    const Queue& queue_;
    TensorView x_, slots_, cache_;
    std::optional<Rope> form_{};
    std::optional<TensorView> positions_{};
    std::uint32_t rotary_ = 0;
    float base_ = 1;
};

/// Three dimensions: all between the first and the last as one, or, if there are none, one of one index.
TensorView with_heads(const TensorView& view) {
    TensorView out = view;
    out.rank = 3;
    if (view.rank != 2) return out;
    out.extents[2] = view.extents[1], out.strides[2] = view.strides[1];
    out.extents[1] = 1, out.strides[1] = view.extents[1];
    return out;
}
void check_rank(std::string_view function, const Queue& queue, std::string_view name, const TensorView& view,
                std::uint32_t least) {
    if (view.rank >= least && view.rank <= 3) return;
    throw Error(Diagnostic{
        .where = queue.where(),
        .message = fmt::format("{}: '{}' has {} dimension{}", function, name, view.rank, view.rank == 1 ? "" : "s"),
        .hint = least == 3 ? "it is rows of heads: a view of three dimensions"
                           : "it is rows, or rows of heads: a view of two or three dimensions"});
}

}  // namespace

void scatter_encoded(const Queue& queue, const TensorView& x, const TensorView& slots, const MutableTensorView& cache) {
    check_rank("kv_scatter", queue, "x", x, 2), check_rank("kv_scatter", queue, "cache", cache, 2);
    CacheCall("kv_scatter", queue, with_heads(x), slots, with_heads(cache)).run();
}

void rope_scatter(const Queue& queue, Rope form, const TensorView& x, const TensorView& positions,
                  const TensorView& slots, const MutableTensorView& cache, std::uint32_t rotary, float base) {
    check_rank("rope_scatter", queue, "x", x, 3), check_rank("rope_scatter", queue, "cache", cache, 3);
    CacheCall call("rope_scatter", queue, x, slots, cache);
    call.turn(form, positions, rotary, base);
    call.run();
}

// ---- by names

namespace {

constexpr NamedFunction::Size sizes[] = {{"tokens", 64}, {"heads", 8}, {"head_dim", 128}, {"cache_rows", 4096}};
constexpr NamedFunction::Setting settings[] = {
    {"form", "interleaved, neighbouring elements, or neox, halves; interleaved if it is not set"},
    {"rotary", "how many elements of a head are turned; all of them if it is not set"},
    {"base", "of the angles; 10000 if it is not set"},
};
constexpr auto rope_family = family_of(
    "rope_scatter_(f32|f16|bf16|e4m3|q8_0)", "cache[slots[t]] = x[t], turned by the angles of positions[t]",
    "What rope and then kv_scatter write: x is tokens x heads x head_dim of f32, f16 or bf16, the cache\n"
    "cache_rows x heads x head_dim, of x's type, e4m3, where numbers beyond 448 become 448, or q8_0, with the\n"
    "bytes of GGML's reference. Tokens whose slot is not below cache_rows are skipped.",
    settings, sizes);
constexpr auto scatter_family = family_of(
    "kv_scatter_(e4m3|q8_0)", "cache[slots[t]] = x[t], encoded",
    "x is tokens x heads x head_dim of f32, f16 or bf16. The cache is cache_rows x heads x head_dim of e4m3,\n"
    "where numbers beyond 448 become 448, or q8_0, with the bytes of GGML's reference. Tokens whose slot is\n"
    "not below cache_rows are skipped.",
    {}, sizes);

NamedFunction function_of(const NamedFunction::Family& family, const CacheElements& are) {
    const bool turns = &family == &rope_family;
    NamedFunction out{.name = fmt::format("{}_{}", family.prefix, are.name()), .family = &family};
    out.formula = fmt::format("cache[slots[t]] = x[t]{}, in {}", turns ? ", turned" : "", are.name());
    out.call = turns ? "rope_scatter(queue, form, x, positions, slots, cache, rotary, base)"
                     : "kv_scatter(queue, x, slots, cache)";
    out.arrays.push_back(input("x", "tokens heads head_dim", are.decoded()));
    if (turns) out.arrays.push_back(input("positions", "tokens", ir::Type::U32));
    out.arrays.push_back(input("slots", "tokens", ir::Type::U32));
    out.arrays.push_back(are.array("cache", "cache_rows heads head_dim", Access::InOut));
    out.run = [turns](const Queue& queue, NamedArrays arrays, const FunctionSettings& given) {
        if (!turns) return kv_scatter(queue, arrays[0], arrays[1], arrays[2]);
        constexpr std::string_view forms[] = {"interleaved", "neox"};
        rope_scatter(queue, Rope(given.one_of("form", forms)), arrays[0], arrays[1], arrays[2], arrays[3],
                     given.count("rotary").value_or(std::uint32_t(arrays[0].extents[2])),
                     given.number("base").value_or(10000));
    };
    return out;
}

}  // namespace

std::vector<NamedFunction> cache_functions() {
    using enum ir::Type;  // Void: Q8_0
    std::vector<NamedFunction> out;
    for (const ir::Type type : {F32, F16, BF16, E4M3, Void}) out.push_back(function_of(rope_family, {type}));
    for (const ir::Type type : {E4M3, Void}) out.push_back(function_of(scatter_family, {type}));
    return out;
}

}  // namespace ikat::stdlib
