// SPDX-License-Identifier: Apache-2.0
#include "stdlib/random/random.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "stdlib/math/math.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/functions.hpp"
#include "stdlib/spec/view_call.hpp"
#include "stdlib/tile/row_places.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t threads = 256;
using U = Leaf<std::uint32_t>;
using F = Leaf<float>;

/// The words of elements.
class Words {
public:
    Words(const u32& seed_low, const u32& seed_high, const u32& offset_low, const u32& offset_high)
        : key_{value(seed_low), value(seed_high)}, low_(value(offset_low)), high_(value(offset_high)) {}
    /// ... of the state's seed, and its offset added.
    Words(const In<std::uint32_t>& state, const u32& offset_low, const u32& offset_high)
        : key_{value(state[0u]), value(state[1u])},
          low_(value(state[2u] + offset_low)),
          high_(value(state[3u] + offset_high + select(low_ < offset_low, 1u, 0u))) {}

    /// Of N elements, a power of 2, from a multiple of N on.
    template <int N>
    std::vector<U> of(const U& element) const {
        std::vector<U> out;
        for (std::uint32_t i = 0; i < N; i += 4)
            for (const U& word : four(value(element / 4u + i / 4))) out.push_back(word);
        if constexpr (N >= 4) return out;
        const auto is_upper = value((element & 2u) != 0u), is_odd = value((element & 1u) != 0u);
        const std::vector<U> pair{value(select(is_upper, out[2], out[0])), value(select(is_upper, out[3], out[1]))};
        return N == 2 ? pair : std::vector<U>{value(select(is_odd, pair[1], pair[0]))};
    }
    /// Of the pair that an element is in.
    std::vector<U> pair(const U& element) const { return of<2>(value(element & ~1u)); }

private:
    std::array<U, 4> four(const U& number) const {
        const U low = value(low_ + number), zero = value(number & 0u);
        return philox({low, value(high_ + select(low < number, 1u, 0u)), zero, zero}, key_);
    }

    std::array<U, 2> key_;
    U low_, high_;
};

/// store(Width<N>, at, element): for all elements, in vectors of N.
template <class T>
void each_element(const Elements& elements, const u32& before, auto&& store) {
    require_linear_grid();
    elements.each<T>([&]<int N>(Width<N> width, const auto& at, const auto& number) {
        store(width, at, value(before + number * std::uint32_t(N)));
    });
}
template <int N>
auto lanes_of_numbers(auto&& number) {
    Regs<f32, N> out;
    for (std::uint32_t k = 0; k < N; ++k) out[k] = number(k);
    return value(out);
}

template <class T>
void drop(const Elements& elements, const u32& before, const Words& words, const In<T>& x, const Out<T>& y,
          const u32& threshold, const f32& scale) {
    each_element<T>(elements, before, [&]<int N>(Width<N>, const auto& at, const U& element) {
        const auto given = load_lanes<N>(x, at[RowPlaces::X]);
        const std::vector<U> of = words.of<N>(element);
        store_lanes(y, at[RowPlaces::Y], lanes_of_numbers<N>([&](std::uint32_t k) {
                        return select((of[k] >> 1u) < threshold, 0.0f, given[k] * scale);
                    }));
    });
}
template <class T>
void fill_with_uniform(const Elements& elements, const u32& before, const Words& words, const Out<T>& x, const f32& low,
                       const f32& range) {
    each_element<T>(elements, before, [&]<int N>(Width<N>, const auto& at, const U& element) {
        const std::vector<U> of = words.of<N>(element);
        store_lanes(x, at[RowPlaces::Y], lanes_of_numbers<N>([&](std::uint32_t k) {
                        return fma(cast<f32>(of[k] >> 8u) * 0x1p-24f, range, low);
                    }));
    });
}

/// sqrt(-2 log u) and the angle, of a pair of words.
struct Polar {
    F radius, angle;
};
Polar polar(const U& a, const U& b) {
    const F u = value(fma(cast<f32>(a), 0x1p-32f, 0x1p-33f));
    return {value(sqrt(log(u) * -2.0f)), value(cast<f32>(b >> 8u) * 0x1p-24f * float(2 * std::numbers::pi))};
}
template <class T>
void fill_with_normal(const Elements& elements, const u32& before, const Words& words, const Out<T>& x, const f32& mean,
                      const f32& deviation) {
    const auto moved = [&](const F& z) { return value(fma(deviation, z, mean)); };
    each_element<T>(elements, before, [&]<int N>(Width<N>, const auto& at, const U& element) {
        if constexpr (N == 1) {
            const std::vector<U> of = words.pair(element);
            const Polar p = polar(of[0], of[1]);
            const F sine = sin(p.angle), cosine = cos(p.angle);
            const F z = value(p.radius * select((element & 1u) != 0u, sine, cosine));
            store_lanes(x, at[RowPlaces::Y], one_lane(moved(z)));
        } else {
            const std::vector<U> of = words.of<N>(element);
            std::vector<F> z;
            for (std::uint32_t k = 0; k < N; k += 2) {
                const Polar p = polar(of[k], of[k + 1]);
                z.push_back(value(p.radius * cos(p.angle))), z.push_back(value(p.radius * sin(p.angle)));
            }
            store_lanes(x, at[RowPlaces::Y], lanes_of_numbers<N>([&](std::uint32_t k) { return moved(z[k]); }));
        }
    });
}

// ---- the kernels: for elements that follow each other, and for rows at pitches, which know how many come before

#define IKAT_RANDOM u32 seed_low, u32 seed_high, u32 offset_low, u32 offset_high
#define IKAT_RANDOM_NAMES "seed_low", "seed_high", "offset_low", "offset_high"
#define IKAT_RANDOM_WORDS Words(seed_low, seed_high, offset_low, offset_high)

template <class T>
const auto& dropout_kernel() {
    static const auto made =
        kernel(name_of<T>("dropout"), params("x", "y", IKAT_RANDOM_NAMES, "threshold", "scale", "n"),
               [](In<T> x, Out<T> y, IKAT_RANDOM, u32 threshold, f32 scale, u32 n) {
                   drop<T>(Elements(n), u32(0), IKAT_RANDOM_WORDS, x, y, threshold, scale);
               })
            .require(aligned<16>("x"), aligned<16>("y"), at_least("x", "n"), at_least("y", "n"))
            .launch_bounds(threads);
    return made;
}
template <class T>
void dropout_of_rows(const RowPlaces& places, const In<T>& x, const Out<T>& y, const u32& seed_low,
                     const u32& seed_high, const u32& offset_low, const u32& offset_high, const u32& threshold,
                     const f32& scale, const u32& before) {
    drop<T>(Elements(places), before, IKAT_RANDOM_WORDS, x, y, threshold, scale);
}
template <class T>
const auto& dropout_state_kernel() {
    static const auto made =
        kernel(
            name_of<T>("dropout_state"),
            params("x", "state", "y", "offset_low", "offset_high", "threshold", "scale", "n"),
            [](In<T> x, In<std::uint32_t> state, Out<T> y, u32 offset_low, u32 offset_high, u32 threshold, f32 scale,
               u32 n) { drop<T>(Elements(n), u32(0), Words(state, offset_low, offset_high), x, y, threshold, scale); })
            .require(aligned<16>("x"), aligned<16>("y"), at_least("x", "n"), at_least("y", "n"))
            .launch_bounds(threads);
    return made;
}
template <class T>
void dropout_state_of_rows(const RowPlaces& places, const In<T>& x, const In<std::uint32_t>& state, const Out<T>& y,
                           const u32& offset_low, const u32& offset_high, const u32& threshold, const f32& scale,
                           const u32& before) {
    drop<T>(Elements(places), before, Words(state, offset_low, offset_high), x, y, threshold, scale);
}

template <class T>
const auto& uniform_kernel() {
    static const auto made = kernel(name_of<T>("fill_uniform"), params("x", IKAT_RANDOM_NAMES, "low", "range", "n"),
                                    [](Out<T> x, IKAT_RANDOM, f32 low, f32 range, u32 n) {
                                        fill_with_uniform<T>(Elements(n), u32(0), IKAT_RANDOM_WORDS, x, low, range);
                                    })
                                 .require(aligned<16>("x"), at_least("x", "n"))
                                 .launch_bounds(threads);
    return made;
}
template <class T>
void uniform_of_rows(const RowPlaces& places, const Out<T>& x, const u32& seed_low, const u32& seed_high,
                     const u32& offset_low, const u32& offset_high, const f32& low, const f32& range,
                     const u32& before) {
    fill_with_uniform<T>(Elements(places), before, IKAT_RANDOM_WORDS, x, low, range);
}
template <class T>
const auto& normal_kernel() {
    static const auto made = kernel(name_of<T>("fill_normal"), params("x", IKAT_RANDOM_NAMES, "mean", "deviation", "n"),
                                    [](Out<T> x, IKAT_RANDOM, f32 mean, f32 deviation, u32 n) {
                                        fill_with_normal<T>(Elements(n), u32(0), IKAT_RANDOM_WORDS, x, mean, deviation);
                                    })
                                 .require(aligned<16>("x"), at_least("x", "n"))
                                 .launch_bounds(threads);
    return made;
}
template <class T>
void normal_of_rows(const RowPlaces& places, const Out<T>& x, const u32& seed_low, const u32& seed_high,
                    const u32& offset_low, const u32& offset_high, const f32& mean, const f32& deviation,
                    const u32& before) {
    fill_with_normal<T>(Elements(places), before, IKAT_RANDOM_WORDS, x, mean, deviation);
}

const auto& advance_kernel() {
    static const auto made =
        kernel("advance_random", params("state", "offsets"), [](InOut<std::uint32_t> state, u32 offsets) {
            require_linear_grid();
            if_(global_id().x == 0u, [&] {
                const U low = value(state[2u] + offsets);
                state[2u] = low;
                state[3u] = state[3u] + select(low < offsets, 1u, 0u);
            });
        }).launch_bounds(32);
    return made;
}

// ---- the functions

std::uint32_t low_word(std::uint64_t n) { return std::uint32_t(n); }
std::uint32_t high_word(std::uint64_t n) { return std::uint32_t(n >> 32); }

void check_elements(const ViewCall& call) {
    std::uint64_t n = 1;
    const TensorView& x = call.views()[0];
    for (std::uint32_t d = 0; d < x.rank; ++d) n *= x.extents[d];
    call.check().reached(call.recipe().operands.all()[0].name, n);
}
void check_state(const ViewCall& call, const TensorView& state) {
    if (state.rank != 1 || state.extents[0] < 4)
        call.fail("'state' has fewer than four words", "it is a Buffer, or a slice of one, of four std::uint32_t");
}

void run_dropout(const Queue& queue, const TensorView& x, const MutableTensorView& y, const DropoutOptions& options) {
    const RandomState& random = options.random;
    const ViewCall call = random.state ? ViewCall(queue, dropout_state_recipe, {x, *random.state, y})
                                       : ViewCall(queue, dropout_recipe, {x, y});
    const double p = double(options.probability);
    if (!(p >= 0 && p <= 1)) call.fail(fmt::format("a probability of {}", p), "it is from 0 to 1");
    check_elements(call);
    if (random.state) check_state(call, *random.state);
    std::vector<FunctionOperand> numbers;
    if (!random.state) numbers = {low_word(random.seed), high_word(random.seed)};
    const float scale = p == 1 ? 0.0f : float(1 / (1 - p));
    for (const FunctionOperand& each :
         {FunctionOperand(low_word(random.offset)), FunctionOperand(high_word(random.offset)),
          FunctionOperand(std::uint32_t(std::llround(p * 0x1p31))), FunctionOperand(scale)})
        numbers.push_back(each);
    run_rows(call, numbers);
}
void run_fill(const Queue& queue, const Recipe& recipe, const MutableTensorView& x, const RandomState& random, float p,
              float q) {
    const ViewCall call(queue, recipe, {x});
    if (random.state) call.fail("a state on the device", "fills take the seed and the offset as numbers");
    check_elements(call);
    run_rows(call,
             {low_word(random.seed), high_word(random.seed), low_word(random.offset), high_word(random.offset), p, q});
}

RandomState random_of(const FunctionSettings& settings) {
    return {.seed = settings.count("seed").value_or(0), .offset = settings.count("offset").value_or(0)};
}

}  // namespace

void dropout(const Queue& queue, const TensorView& x, const MutableTensorView& y, const DropoutOptions& options) {
    run_dropout(queue, x, y, options);
}
void dropout_backward(const Queue& queue, const TensorView& dy, const MutableTensorView& dx,
                      const DropoutOptions& options) {
    run_dropout(queue, dy, dx, options);
}
static void check_finite(const Queue& queue, std::string_view function, std::initializer_list<float> numbers) {
    for (const float number : numbers)
        if (!std::isfinite(number))
            throw Error(Diagnostic{.where = queue.where(),
                                   .message = fmt::format("{}: a number of the distribution is {}", function, number),
                                   .hint = "low, high and what is between them, mean and deviation are finite"});
}
void fill_uniform(const Queue& queue, const MutableTensorView& x, float low, float high, const RandomState& random) {
    check_finite(queue, "fill_uniform", {low, high, high - low});
    run_fill(queue, fill_uniform_recipe, x, random, low, high - low);
}
void fill_normal(const Queue& queue, const MutableTensorView& x, float mean, float deviation,
                 const RandomState& random) {
    check_finite(queue, "fill_normal", {mean, deviation});
    run_fill(queue, fill_normal_recipe, x, random, mean, deviation);
}
void advance_random(const Queue& queue, const MutableTensorView& state, std::uint32_t offsets) {
    const ViewCall call(queue, advance_random_recipe, {state});
    check_state(call, state);
    run_kernel(call, advance_random_recipe.kernels[0], advance_random_recipe.kernels[0].instances[0](),
               {{"offsets", offsets}});
}

// ---- the recipes

static Grid grid_of(const Call& call) {
    return runtime::grid(std::max<std::uint64_t>((call.count() + 3) / 4, 1), call.threads(threads));
}
#define IKAT_RANDOM_KERNEL(packed, rows, name, ...)                              \
    .instances = IKAT_FLOATS(packed<T>()), .grid = grid_of,                      \
    .pitched = IKAT_PITCHED(name, (rows<T>), threads, 0, __VA_ARGS__, "before"), \
    .parts = IKAT_PITCHED(name, (rows<T>), threads, 0, __VA_ARGS__, "before")

constexpr FunctionSetting seed_setting{"seed", "of the random numbers, 0 if it is not set"},
    offset_setting{"offset", "from which on they are taken, in fours; 0 if it is not set"},
    probability_setting{"probability", "of an element to become 0; 0.5 if it is not set"};
constexpr std::string_view words_document =
    "Element i has word i % 4 of Philox 4x32-10 of the counter offset + i / 4 and the key seed. Fewer than 2^32\n"
    "elements; arrays begin at multiples of 16 bytes. ";
constexpr std::string_view dropout_document =
    "Element i has word i % 4 of Philox 4x32-10 of the counter offset + i / 4 and the key seed. Where half of it is\n"
    "less than threshold, y is 0, else scale x, rounded in f32 and to its type. Fewer than 2^32 elements; arrays\n"
    "begin at multiples of 16 bytes. The same numbers give the gradient.";

constexpr Recipe dropout_recipe{
    .call = "dropout(queue, x, y, options)",
    .kernels = {{.summary = "zeros for elements by chance, the others divided by 1 - probability",
                 IKAT_RANDOM_KERNEL(dropout_kernel, dropout_of_rows, "dropout", "x", "y", IKAT_RANDOM_NAMES,
                                    "threshold", "scale")}},
    .operands = {{"x", "..."}, {"y", "...", Access::Out}},
    .settings = {probability_setting, seed_setting, offset_setting},
    .run =
        [](const Queue& queue, std::span<const MutableTensorView> arrays, const FunctionSettings& settings) {
            dropout(queue, arrays[0], arrays[1],
                    {.probability = settings.number("probability").value_or(0.5f), .random = random_of(settings)});
        },
    .document = dropout_document,
    .sizes = {{"x", "n"}, {"y", "n"}},
    .reference = reference::dropout,
    .traffic = "2 E s",
    .note = "also its gradient, `dropout_backward`, from the same random numbers"};
constexpr Recipe dropout_state_recipe{
    .call = "dropout(queue, x, y, {.random = {.state = state}})",
    .kernels = {{.summary = "the same, with the seed and an offset that are on the device",
                 IKAT_RANDOM_KERNEL(dropout_state_kernel, dropout_state_of_rows, "dropout_state", "x", "state", "y",
                                    "offset_low", "offset_high", "threshold", "scale")}},
    .operands = {{"x", "..."}, {"state", "words", Access::In, ir::Type::U32}, {"y", "...", Access::Out}},
    .settings = {probability_setting, offset_setting},
    .run =
        [](const Queue& queue, std::span<const MutableTensorView> arrays, const FunctionSettings& settings) {
            dropout(queue, arrays[0], arrays[2],
                    {.probability = settings.number("probability").value_or(0.5f),
                     .random = {.offset = settings.count("offset").value_or(0), .state = arrays[1]}});
        },
    .document = dropout_document,
    .sizes = {{"x", "n"}, {"state", "4"}, {"y", "n"}},
    .reference = reference::dropout,
    .traffic = "2 E s",
    .note = "state is four words, the seed and an offset, low words first; `advance_random` changes it"};
constexpr Recipe fill_uniform_recipe{
    .call = "fill_uniform(queue, x, low, high, random)",
    .kernels = {{.summary = "random numbers between two",
                 IKAT_RANDOM_KERNEL(uniform_kernel, uniform_of_rows, "fill_uniform", "x", IKAT_RANDOM_NAMES, "low",
                                    "range")}},
    .operands = {{"x", "...", Access::InOut}},
    .settings = {{"low", "0 if it is not set"}, {"high", "1 if it is not set"}, seed_setting, offset_setting},
    .run =
        [](const Queue& queue, std::span<const MutableTensorView> arrays, const FunctionSettings& settings) {
            fill_uniform(queue, arrays[0], settings.number("low").value_or(0), settings.number("high").value_or(1),
                         random_of(settings));
        },
    .document = words_document,
    .sizes = {{"x", "n"}},
    .reference = reference::fill_uniform,
    .traffic = "E s",
    .note = "what x held is not read"};
constexpr Recipe fill_normal_recipe{
    .call = "fill_normal(queue, x, mean, deviation, random)",
    .kernels = {{.summary = "random numbers of the normal distribution",
                 IKAT_RANDOM_KERNEL(normal_kernel, normal_of_rows, "fill_normal", "x", IKAT_RANDOM_NAMES, "mean",
                                    "deviation")}},
    .operands = {{"x", "...", Access::InOut}},
    .settings = {{"mean", "0 if it is not set"}, {"deviation", "1 if it is not set"}, seed_setting, offset_setting},
    .run =
        [](const Queue& queue, std::span<const MutableTensorView> arrays, const FunctionSettings& settings) {
            fill_normal(queue, arrays[0], settings.number("mean").value_or(0), settings.number("deviation").value_or(1),
                        random_of(settings));
        },
    .document = words_document,
    .sizes = {{"x", "n"}},
    .reference = reference::fill_normal,
    .traffic = "E s",
    .note = "what x held is not read"};
constexpr Recipe advance_random_recipe{
    .call = "advance_random(queue, state, offsets)",
    .kernels = {{.summary = "adds to the offset of a state of random numbers",
                 .instances = IKAT_KERNEL(advance_kernel()),
                 .grid =
                     [](const Call&) {
                         return Grid{{1}, {32}};
                     }}},
    .operands = {{"state", "words", Access::InOut, ir::Type::U32}},
    .settings = {{"offsets", "how many, 1 if it is not set"}},
    .run = [](const Queue& queue, std::span<const MutableTensorView> arrays,
              const FunctionSettings& s) { advance_random(queue, arrays[0], s.count("offsets").value_or(1)); },
    .document = "state is four words: the seed and the offset, low words first. The offset has 64 bits.",
    .sizes = {{"state", "4"}},
    .reference = reference::advance_random,
    .bound_by = "a thread",
    .note = "on the device"};

}  // namespace ikat::stdlib
