// SPDX-License-Identifier: Apache-2.0
// attention_backward(): all sizes of heads, on shapes around the edges of tiles, with heads that begin and continue
// anywhere, and with each option.
#include "tests/differential/stdlib/attention_backward_problem.hpp"

#include <cstdint>
#include <vector>

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using runtime::Device;

namespace backward_of_attention {

using tests::attention_backward::Problem, tests::attention_backward::Extra, tests::attention_backward::Shape;

const Shape shapes[] = {
    {.queries = 1, .keys = 1},
    {.queries = 3, .keys = 0},
    {.queries = 0, .keys = 3},
    {.queries = 64, .keys = 64},
    {.queries = 33, .keys = 65, .heads = 2, .kv_heads = 2},
    {.queries = 129, .keys = 31, .gap = 8},
    {.queries = 1, .keys = 140, .heads = 4, .kv_heads = 1},
    {.queries = 70, .keys = 20, .heads = 2, .kv_heads = 2},
    {.queries = 20, .keys = 130, .batch = 2, .heads_in_rows = true},
    {.queries = 40, .keys = 67, .heads = 4, .kv_heads = 1, .heads_in_rows = true},
    {.queries = 65, .keys = 64, .gap = 4, .first = 4},
    {.queries = 50, .keys = 66, .gap = 2, .first = 2},
    {.queries = 9, .keys = 70, .first = 1},
    {.queries = 40, .keys = 33, .heads = 2, .kv_heads = 1, .batch = 3, .gap = 5, .heads_in_rows = true},
};

/// A device for each order of threads.
std::vector<Device> devices_of_seeds() {
    std::vector<Device> out;
    for (int seed = 0; seed < 4; ++seed) out.push_back(test::open_device({.schedule = std::to_string(seed)}));
    return out;
}

template <class T>
void check(const Problem<T>& problem) {
    static const std::vector<Device> devices = devices_of_seeds();
    static std::size_t number = 0;
    for (std::size_t seed = 0; seed < devices.size(); ++seed)
        if (tests::is_for_seed(number, seed, devices.size())) problem.check(problem.run(devices[seed]));
    ++number;
}

tests::Sample sample_of_shapes(5), sample_of_extra(3);

template <class T>
void check_shapes(std::uint32_t d) {
    for (const bool causal : {false, true})
        for (const Shape& shape : shapes)
            if (sample_of_shapes.next()) check(Problem<T>(shape, d, {.options = {.causal = causal}}));
}

template <class T>
void check_extra(const Extra& extra, std::uint32_t d = 64) {
    for (const Shape& shape :
         {Shape{.queries = 1, .keys = 1}, Shape{.queries = 5, .keys = 0},
          Shape{.queries = 35, .keys = 130, .heads = 2, .kv_heads = 1, .batch = 2}, Shape{.queries = 100, .keys = 37},
          Shape{.queries = 70, .keys = 75, .gap = 1, .heads_in_rows = true}}) {
        if (!sample_of_extra.next()) continue;
        Extra of_shape = extra;
        if (of_shape.bias_batch > 1) of_shape.bias_batch = shape.batch;
        if (of_shape.bias_heads > 1) of_shape.bias_heads = shape.heads;
        check(Problem<T>(shape, d, of_shape));
    }
}

}  // namespace backward_of_attention

}  // namespace

using namespace backward_of_attention;

TEMPLATE_TEST_CASE("attention_backward: heads of 64", "", half, bfloat16) { check_shapes<TestType>(64); }
TEMPLATE_TEST_CASE("attention_backward: heads of 80", "", half, bfloat16) { check_shapes<TestType>(80); }
TEMPLATE_TEST_CASE("attention_backward: heads of 96", "", half, bfloat16) { check_shapes<TestType>(96); }
TEMPLATE_TEST_CASE("attention_backward: heads of 128", "", half, bfloat16) { check_shapes<TestType>(128); }
TEMPLATE_TEST_CASE("attention_backward: heads of 256", "", half, bfloat16) { check_shapes<TestType>(256); }

TEMPLATE_TEST_CASE("attention_backward: windows", "", half, bfloat16) {
    check_extra<TestType>({.options = {.window_left = 10}});
    check_extra<TestType>({.options = {.causal = true, .window_left = 0}});
    check_extra<TestType>({.options = {.window_left = 40, .window_right = 3}}, 128);
    check_extra<TestType>({.options = {.window_right = 50}});
    check_extra<TestType>({.options = {.window_left = ~0u, .window_right = ~0u}});
}

TEST_CASE("attention_backward: windows with whole tiles between others") {
    const Shape few{.queries = 40, .keys = 330}, many{.queries = 330, .keys = 300};
    const Extra window{.options = {.causal = true, .window_left = 230}};
    check(Problem<bfloat16>(few, 64, window));
    check(Problem<half>(many, 64, window));
    check(Problem<half>(few, 256, {.options = {.causal = true, .window_left = 230, .soft_cap = 30}}));
    check(Problem<bfloat16>(many, 64, {.options = {.window_left = 200, .window_right = 20}}));
}

TEMPLATE_TEST_CASE("attention_backward: scales, caps and sinks", "", half, bfloat16) {
    check_extra<TestType>({.options = {.scale = 1.5f}});
    check_extra<TestType>({.options = {.soft_cap = 2}});
    check_extra<TestType>({.options = {.causal = true, .scale = 3.0f, .soft_cap = 30}}, 128);
    check_extra<TestType>({.options = {.scale = 4.0f, .soft_cap = 65}});
    check_extra<TestType>({.options = {.causal = true}, .sinks = true});
}

TEMPLATE_TEST_CASE("attention_backward: biases and their gradients", "", half, bfloat16) {
    check_extra<TestType>({.bias_batch = 2, .bias_heads = 2});
    check_extra<TestType>({.options = {.causal = true}, .bias_batch = 1, .bias_heads = 1, .hides = true});
    check_extra<TestType>({.options = {.causal = true, .soft_cap = 4}, .bias_batch = 2, .bias_heads = 1, .hides = true},
                          128);
    check_extra<TestType>({.options = {.window_left = 9}, .bias_batch = 1, .bias_heads = 2}, 256);
}
