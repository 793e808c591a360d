// SPDX-License-Identifier: Apache-2.0
// A thread makes four neighbouring elements of the cache. Of Q8_0 eight lanes make a block.
#include "stdlib/layout/cache_rows.hpp"

#include <fmt/format.h>

#include "dsl/kernel/kernel.hpp"
#include "dsl/kernel/optional.hpp"
#include "dsl/memory/structs.hpp"
#include "stdlib/layout/rope_angles.hpp"
#include "stdlib/quantised/e4m3.hpp"
#include "stdlib/quantised/made_block.hpp"
#include "stdlib/spec/kernels.hpp"

namespace ikat::stdlib {
namespace {

using U = Leaf<std::uint32_t>;
using F = Leaf<float>;
using blocks::FourNumbers;

/// The numbers of a launch; see CacheKernel.
struct CacheNumbers {
    BOOST_HANA_DEFINE_STRUCT(CacheNumbers, (std::uint32_t, heads), (std::uint32_t, head_dim), (std::uint32_t, x_token),
                             (std::uint32_t, x_head), (std::uint32_t, cache_row), (std::uint32_t, cache_head),
                             (std::uint32_t, cache_rows), (std::uint32_t, rotary), (float, base));
};

/// Which four elements of a head a thread makes.
struct Place {
    U head, column;
    Leaf<bool> is_there;  // the head
};

/// Four numbers of a function of 0 ... 3.
FourNumbers four_of(auto&& number) { return {number(0u), number(1u), number(2u), number(3u)}; }

/// The sine and the cosine of each pair's angle at the position of the block, in shared memory.
class TurnsOfPairs {
public:
    TurnsOfPairs(const u32& position, const u32& rotary, const f32& base) : rotary_(value(rotary)) {
        const auto at = value(cast<f64>(position)), rate = rope_rate(base, rotary);
        const auto pair = value(thread_id().x);
        if_(pair < rotary_ / 2u, [&] {
            const F angle = rope_angle(at, rate, pair);
            turns_[0, pair] = sin(angle);
            turns_[1, pair] = cos(angle);
        });
        sync_block();
    }
    const U& rotary() const { return rotary_; }
    F sine(const U& pair) const { return value(turns_[0, pair]); }
    F cosine(const U& pair) const { return value(turns_[1, pair]); }

private:
    U rotary_;
    Shared<float, 2, CacheKernel::max_rotary / 2> turns_;
};

/// x of a token.
template <class X>
class TokenRow {
public:
    TokenRow(const CacheKernel& is, const In<X>& x, const U& head_dim, const U& head_pitch)
        : is_(is), x_(x), head_dim_(head_dim), head_pitch_(head_pitch) {}

    /// Four elements from a column on; 0 after the end.
    FourNumbers four(const Place& at) const {
        const auto head = x_.slice(value(mul_wide(at.head, head_pitch_)));
        if (is_.x_is_aligned) {
            const auto lanes = value(cast<f32>(head.template load_if<4>(at.is_there, at.column / 4u, X(0.0f))));
            return {lanes[0], lanes[1], lanes[2], lanes[3]};
        }
        return four_of([&](std::uint32_t e) -> F {
            return value(
                cast<f32>(head.load_if(at.is_there & (at.column + e < head_dim_), value(at.column + e), X(0.0f))));
        });
    }
    /// ... turned, and rounded to x's type, as rope() leaves them.
    FourNumbers four_turned(const Place& at, const TurnsOfPairs& turns) const {
        const FourNumbers own = four(at);
        const U half = value(turns.rotary() / 2u);
        const bool are_neighbours = is_.form == Rope::Interleaved;
        const FourNumbers other = are_neighbours ? FourNumbers{own[1], own[0], own[3], own[2]} : others(at, half);
        return four_of([&](std::uint32_t e) -> F {
            const U column = value(at.column + e);
            const auto is_turned = value(column < half * 2u);
            const auto is_second = value(are_neighbours ? value((column & 1u) != 0u) : value(column >= half));
            const U pair = value(are_neighbours ? value(column / 2u) : value(select(is_second, column - half, column)));
            const U safe = value(select(is_turned, pair, 0u));
            const F sine = turns.sine(safe), cosine = turns.cosine(safe);
            const F first = value(select(is_second, other[e], own[e])),
                    second = value(select(is_second, own[e], other[e]));
            const F turned = value(select(is_second, second_turned(first, second, sine, cosine),
                                          first_turned(first, second, sine, cosine)));
            return value(select(is_turned, cast<f32>(cast<X>(turned)), own[e]));
        });
    }

private:
    /// The other elements of the pairs, half the turned ones further or before.
    FourNumbers others(const Place& at, const U& half) const {
        const U far = value(select(at.column < half, at.column + half, at.column - half));
        if (is_.x_is_aligned) return four({at.head, far, value(at.is_there & (at.column < half * 2u))});
        const auto head = x_.slice(value(mul_wide(at.head, head_pitch_)));
        return four_of([&](std::uint32_t e) -> F {
            const U column = value(at.column + e), other = value(select(column < half, column + half, column - half));
            return value(cast<f32>(head.load_if(at.is_there & (column < half * 2u), other, X(0.0f))));
        });
    }

    const CacheKernel& is_;
    Pointer<X, Direction::Read> x_;
    U head_dim_, head_pitch_;
};

/// Four numbers to elements of the type `E`, or of e4m3 to bytes.
template <class E>
void store_four(const CacheKernel& is, const auto& head, const U& head_dim, const Place& at, const FourNumbers& four) {
    const auto element = [&](std::uint32_t e) {
        if constexpr (std::is_same_v<E, std::uint8_t>)
            return value(cast<u8>(e4m3_bits(four[e])));
        else
            return value(cast<E>(four[e]));
    };
    if (!is.cache_is_aligned) {
        for (std::uint32_t e = 0; e < 4; ++e)
            head.store_if(at.is_there & (at.column + e < head_dim), value(at.column + e), element(e));
    } else if constexpr (std::is_same_v<E, std::uint8_t>) {
        const U word = blocks::word_of([&](std::uint32_t e) { return e4m3_bits(four[e]); });
        head.template as<std::uint32_t>().store_if(at.is_there, at.column / 4u, word);
    } else {
        if_(at.is_there,
            [&] { head.template vec<4>(at.column / 4u) = Vec<E, 4>(element(0), element(1), element(2), element(3)); });
    }
}
/// ... to a block of Q8_0, by whole warps.
void store_block(const auto& head, const Place& at, const FourNumbers& four) {
    const blocks::Made made = blocks::made_q8_0(four);
    const auto halves = head.template as<std::uint16_t>();
    const U block = value(at.column / 32u * 17u), lane = value(at.column / 4u % 8u);
    halves.store_if(at.is_there & (lane == 0u), block, cast<u16>(made.head));
    for (std::uint32_t k = 0; k < 2; ++k)
        halves.store_if(at.is_there, block + lane * 2u + (k + 1), cast<u16>(made.word >> (16 * k)));
}

template <class X, class E>
void record(const CacheKernel& is, const In<X>& x, const In<std::uint32_t>& slots, const Out<E>& cache,
            const Struct<CacheNumbers>& with, const Optional<In<std::uint32_t>>& positions) {
    require_linear_grid();
    require_threads(CacheKernel::threads);
    const U token = value(block_id().x), slot = value(slots[token]);
    return_if(slot >= with[&CacheNumbers::cache_rows]);
    const U head_dim = value(with[&CacheNumbers::head_dim]), of_head = value((head_dim + 3u) / 4u);
    std::optional<TurnsOfPairs> turns;
    if (is.form) turns.emplace((*positions)[token], with[&CacheNumbers::rotary], with[&CacheNumbers::base]);
    const TokenRow<X> row(is, x.slice(value(mul_wide(token, with[&CacheNumbers::x_token]))), head_dim,
                          value(with[&CacheNumbers::x_head]));
    const auto to = cache.slice(value(mul_wide(slot, with[&CacheNumbers::cache_row])));
    const U all = value(with[&CacheNumbers::heads] * of_head);
    for (auto begin : range(0u, all, CacheKernel::threads)) {
        const U number = value(begin + thread_id().x), head = value(number / of_head);
        const Place at{head, value((number - head * of_head) * 4u), value(number < all)};
        const FourNumbers four = turns ? row.four_turned(at, *turns) : row.four(at);
        const auto to_head = to.slice(value(mul_wide(head, with[&CacheNumbers::cache_head])));
        if (is.cache == ir::Type::Void)
            store_block(to_head, at, four);
        else
            store_four<E>(is, to_head, head_dim, at, four);
    }
}

template <class X, class E>
KernelHandle made(const CacheKernel& is) {
    return kernel(is.name().c_str(), params("x", "slots", "cache", "with", only_if(is.form.has_value(), "positions")),
                  [is](In<X> x, In<std::uint32_t> slots, Out<E> cache, Struct<CacheNumbers> with,
                       Optional<In<std::uint32_t>> positions) { record<X, E>(is, x, slots, cache, with, positions); })
        .launch_bounds(CacheKernel::threads)
        .handle();
}
template <class X>
KernelHandle of_type(const CacheKernel& is) {
    return is.cache == is.x ? made<X, X>(is) : made<X, std::uint8_t>(is);
}

std::string_view name_of_cache(const CacheKernel& is) {
    return is.cache == ir::Type::Void ? runtime::find_info(runtime::Quantised::Q8_0)->name : ir::info(is.cache).name;
}

}  // namespace

std::string CacheKernel::name() const {
    const std::string_view scatter = !form                        ? "kv_scatter"
                                     : *form == Rope::Interleaved ? "rope_interleaved_scatter"
                                                                  : "rope_neox_scatter";
    return fmt::format("{}_{}_to_{}", scatter, ir::info(x).name, name_of_cache(*this));
}

KernelHandle CacheKernel::make() const {
    switch (x) {
        case ir::Type::F16: return of_type<half>(*this);
        case ir::Type::BF16: return of_type<bfloat16>(*this);
        default: return of_type<float>(*this);
    }
}

const KernelHandle& CacheKernel::handle() const { return Kernels<CacheKernel>::of(*this); }

}  // namespace ikat::stdlib
