// SPDX-License-Identifier: Apache-2.0
// Helpers for writing recipes.
#pragma once
#include <string>

#include "dsl/kernel/kernel.hpp"
#include "stdlib/spec/example.hpp"
#include "stdlib/spec/expected.hpp"
#include "stdlib/spec/recipe.hpp"

namespace ikat::stdlib {

/// The name of a kernel for elements of type T: "relu", "relu_f16", "relu_bf16". Some have a suffix for f32, too.
class KernelName {
public:
    KernelName(std::string_view name, std::string_view suffix) : text_(std::string(name) + std::string(suffix)) {}
    operator const char*() const { return text_.c_str(); }

private:
    std::string text_;
};
template <Real T>
KernelName name_of(std::string_view name, std::string_view of_single = "") {
    const std::string_view suffixes[] = {of_single, "_f16", "_bf16"};
    return {name, suffixes[type_number<T>]};
}

namespace detail {

template <class Make, class T>
const KernelHandle& handle_of() {
    return Make{}.template operator()<T>().handle();
}

}  // namespace detail

/// The kernels that make<T>() gives.
template <class... T>
constexpr Instances instances(auto make) {
    Instances out{};
    ((out[type_number<T>] = &detail::handle_of<decltype(make), T>), ...);
    return out;
}

/// The kernels that an expression with T gives: for the types listed; for f32, f16 and bf16; of a kernel without T.
#define IKAT_TYPES(made, ...) instances<__VA_ARGS__>([]<class T>() -> const auto& { return made; })
#define IKAT_FLOATS(...) IKAT_TYPES((__VA_ARGS__), float, half, bfloat16)
#define IKAT_KERNEL(...) IKAT_TYPES((__VA_ARGS__), float)
/// Instantiates the template of a kernel: IKAT_INSTANTIATE(relu), or with the type of its parameter,
/// IKAT_INSTANTIATE(of, Unary).
#define IKAT_INSTANTIATE_FOR(T, made, ...) template decltype(made<T>(__VA_OPT__(__VA_ARGS__{}))) made<T>(__VA_ARGS__);
#define IKAT_INSTANTIATE(...)                \
    IKAT_INSTANTIATE_FOR(float, __VA_ARGS__) \
    IKAT_INSTANTIATE_FOR(half, __VA_ARGS__)  \
    IKAT_INSTANTIATE_FOR(bfloat16, __VA_ARGS__)

/// The kernels for rows at pitches of f32, f16 and bf16: of a body, see pitched_kernel() in tile/row_places.hpp, in
/// parentheses, the threads of a block, blocks to a multiprocessor or 0, and the names of the body's parameters.
#define IKAT_PITCHED(name, body, threads, blocks, ...) \
    IKAT_FLOATS(pitched_kernel<body>(name_of<T>(name "_pitched"), threads, blocks, __VA_ARGS__))

template <class Group>
Grid row_grid(std::uint64_t rows);  // tile/rows.hpp
/// The grid of a kernel that calls with_row<Group> and has a parameter `rows`.
template <class Group>
Grid rows_to(const Call& call) {
    return row_grid<Group>(call["rows"]);
}

}  // namespace ikat::stdlib
