// SPDX-License-Identifier: Apache-2.0
// Random numbers by Philox 4x32-10: dropout and its gradient, which keeps nothing of the forward pass, and arrays of
// uniform and of normal numbers.
//
//     dropout(device, x, y, {.probability = 0.1f, .random = {.seed = 42, .offset = step * blocks}});
//     dropout_backward(device, dy, dx, {.probability = 0.1f, .random = {.seed = 42, .offset = step * blocks}});
//     fill_normal(device, weights, 0, 0.02f, {.seed = 1});
//
// Element i of an array, counted in the order of its indices, gaps left out, gets word i % 4 of philox() of the counter
// offset + i / 4, a number of 64 bits, whose upper words are 0, and of the key seed, low words first. So the numbers do
// not depend on the device, on pitches or on the type; an array takes ceil(elements / 4) offsets. Arrays have fewer
// than 2^32 elements.
#pragma once
#include <optional>

#include "stdlib/random/philox.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// Which random numbers.
struct RandomState {
    std::uint64_t seed = 0, offset = 0;
    /// On the device, in place of `seed`: four std::uint32_t, the seed and an offset that is added to `offset`, low
    /// words first; for dropout(). A graph that changes it by advance_random() drops other elements in each launch.
    std::optional<TensorView> state{};
};

/// What dropout() drops.
struct DropoutOptions {
    /// Of an element to become 0, from 0 to 1, rounded to a multiple of 2^-31.
    float probability = 0.5f;
    RandomState random{};
};

/// y = x / (1 - probability), or 0 where the element's word, shifted right by one, is less than probability * 2^31: of
/// f32, f16 or bf16, any shape, with any pitches. One product in f32, which is rounded once more to a shorter type. An
/// infinity or a NaN that is dropped is 0. Throws Error for a probability that is none, and for shapes and types that
/// do not fit.
void dropout(const Queue& queue, const TensorView& x, const MutableTensorView& y, const DropoutOptions& options);
/// The gradient of dropout() with the same options: dx = dy / (1 - probability), or 0 where x was dropped.
void dropout_backward(const Queue& queue, const TensorView& dy, const MutableTensorView& dx,
                      const DropoutOptions& options);

/// x = low + u (high - low), where u is the upper 24 bits of the word as a fraction below 1: by one fma in f32, rounded
/// to x's type, f32, f16 or bf16. By rounding it may be `high`. Throws Error for a `state`.
void fill_uniform(const Queue& queue, const MutableTensorView& x, float low, float high,
                  const RandomState& random = {});
/// x = mean + deviation z, where two neighbours z are sqrt(-2 log u) times the cosine and the sine of v (Box and
/// Muller): u = 2^-32 a + 2^-33 and v = 2 pi 2^-24 (b >> 8), in f32, of their words a and b. z is within 2.5 2^-23 |z|
/// of that, at most 6.77, and x is rounded in f32 and to its type, f32, f16 or bf16. Throws Error for a `state`.
void fill_normal(const Queue& queue, const MutableTensorView& x, float mean = 0, float deviation = 1,
                 const RandomState& random = {});

/// Adds to the offset of a RandomState::state: on the device, by one thread.
void advance_random(const Queue& queue, const MutableTensorView& state, std::uint32_t offsets);

/// For the catalogue.
extern const Recipe dropout_recipe, dropout_state_recipe, fill_uniform_recipe, fill_normal_recipe,
    advance_random_recipe;

}  // namespace ikat::stdlib
