// SPDX-License-Identifier: Apache-2.0
#include "stdlib/elementwise/elementwise.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "stdlib/spec/families.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t threads = 256;
using F = Leaf<float>;

/// y[i] = f(x[i], ...) for i < n, where f takes one f32 per array x. E is the widest element type.
template <class E>
void map(const auto& y, const u32& n, auto&& f, const auto&... x) {
    require_linear_grid();
    for_each_vec<E>(n, [&]<int N>(Width<N>, const auto& i) {
        const auto apply = [&](const auto&... lanes) { return each_lane(f, lanes...); };
        store_lanes(y, i, std::apply(apply, std::tuple{load_lanes<N>(x, i)...}));
    });
}

template <class K>
K finished(K&& made) {
    return std::move(made).require(aligned<16>(0), aligned<16>(1)).launch_bounds(threads);
}

/// One whose first two arrays have n elements.
template <class K>
K of_n(K&& made) {
    return finished(std::move(made)).require(at_least(0, "n"), at_least(1, "n"));
}

// ---- the kernels of the table

/// A row of the table of What; it has three kernels, for f32, f16 and bf16.
template <class What, class F>
struct Row {
    const char* name;
    const char *first, *second;  // the names of the other parameters
    F* function;
};
using UnaryRow = Row<Unary, F(const F& x)>;
using Unary1Row = Row<Unary1, F(const F& x, const F& p)>;
using Unary2Row = Row<Unary2, F(const F& x, const F& p, const F& q)>;
using BinaryRow = Row<Binary, F(const F& a, const F& b)>;

#define IKAT_UNARY(id, summary, device, host) {#id, "", "", [](const F& x) -> F { return value(device); }},
constexpr UnaryRow unary_rows[] = {
#include "stdlib/elementwise/elementwise.def"
};
#define IKAT_UNARY_1(id, p_name, summary, device, host) \
    {#id, #p_name, "", [](const F& x, const F& p) -> F { return value(device); }},
constexpr Unary1Row unary_1_rows[] = {
#include "stdlib/elementwise/elementwise.def"
};
#define IKAT_UNARY_2(id, p_name, q_name, summary, device, host) \
    {#id, #p_name, #q_name, [](const F& x, const F& p, const F& q) -> F { return value(device); }},
constexpr Unary2Row unary_2_rows[] = {
#include "stdlib/elementwise/elementwise.def"
};
#define IKAT_BINARY(id, a_name, b_name, summary, device, host) \
    {#id, #a_name, #b_name, [](const F& a, const F& b) -> F { return value(device); }},
constexpr BinaryRow binary_rows[] = {
#include "stdlib/elementwise/elementwise.def"
};

template <class T>
UnaryKernel<T> make(const UnaryRow& row, const char* name) {
    return of_n(
        kernel(name, params("x", "y", "n"), [f = row.function](In<T> x, Out<T> y, u32 n) { map<T>(y, n, f, x); }));
}
template <class T>
Unary1Kernel<T> make(const Unary1Row& row, const char* name) {
    return of_n(kernel(name, params("x", "y", row.first, "n"), [f = row.function](In<T> x, Out<T> y, f32 p, u32 n) {
        const F first = value(p);
        map<T>(
            y, n, [&](const F& v) { return f(v, first); }, x);
    }));
}
template <class T>
Unary2Kernel<T> make(const Unary2Row& row, const char* name) {
    return of_n(kernel(name, params("x", "y", row.first, row.second, "n"),
                       [f = row.function](In<T> x, Out<T> y, f32 p, f32 q, u32 n) {
                           const F first = value(p), second = value(q);
                           map<T>(
                               y, n, [&](const F& v) { return f(v, first, second); }, x);
                       }));
}
template <class T>
BinaryKernel<T> make(const BinaryRow& row, const char* name) {
    return of_n(kernel(name, params(row.first, row.second, "y", "n"),
                       [f = row.function](In<T> a, In<T> b, Out<T> y, u32 n) { map<T>(y, n, f, a, b); }))
        .require(aligned<16>(2), at_least(2, "n"));
}

/// The kernels of one table, in its order.
template <class T, class Rows>
const auto& kernels_of(const Rows& rows) {
    using K = decltype(make<T>(rows[0], ""));
    static const auto made = [&] {
        std::vector<K> out;
        for (const auto& row : rows) out.push_back(make<T>(row, name_of<T>(row.name)));
        return out;
    }();
    return made;
}

const auto& rows_of(Unary) { return unary_rows; }
const auto& rows_of(Unary1) { return unary_1_rows; }
const auto& rows_of(Unary2) { return unary_2_rows; }
const auto& rows_of(Binary) { return binary_rows; }

template <class T>
const auto& kernel_of(auto what) {
    const auto& kernels = kernels_of<T>(rows_of(what));
    SizeCheck{"elementwise_kernel"}.enumerator("what", std::size_t(what), kernels.size());
    return kernels[std::size_t(what)];
}

// ---- biases

constexpr const char* activation_names[activation_count] = {"bias_activation_none", "bias_activation_relu",
                                                            "bias_activation_gelu", "bias_activation_gelu_tanh",
                                                            "bias_activation_silu"};

/// Goes over the matrix as one array: by vectors if rows are whole vectors, else by elements.
template <class T>
BiasActivationKernel<T> make_bias_activation(Activation activation) {
    return finished(kernel(name_of<T>(activation_names[std::size_t(activation)]),
                           params("x", "bias", "y", "rows", "columns"),
                           [=](In<T> x, In<T> bias, Out<T> y, u32 rows, u32 columns) {
                               require_linear_grid();
                               with_width<T>(columns, [&]<int N>(Width<N>) {
                                   const auto length = value(columns / std::uint32_t(N));
                                   for (auto i : grid_stride(rows * length)) {
                                       const auto lanes = load_lanes<N>(x, i), more = load_lanes<N>(bias, i % length);
                                       const auto apply = [&](const F& v, const F& b) {
                                           return activated<float>(activation, value(v + b));
                                       };
                                       store_lanes(y, i, each_lane(apply, lanes, more));
                                   }
                               });
                           }))
        .require(aligned<16>(2), at_least("bias", "columns"))
        .require(at_least("x", "rows", "columns"), at_least("y", "rows", "columns"));
}

constexpr const char* cast_names[2][2] = {{"cast_f16_f32", "cast_bf16_f32"}, {"cast_f32_f16", "cast_f32_bf16"}};

}  // namespace

template <class T>
const UnaryKernel<T>& elementwise_kernel(Unary what) {
    return kernel_of<T>(what);
}
template <class T>
const Unary1Kernel<T>& elementwise_kernel(Unary1 what) {
    return kernel_of<T>(what);
}
template <class T>
const Unary2Kernel<T>& elementwise_kernel(Unary2 what) {
    return kernel_of<T>(what);
}
template <class T>
const BinaryKernel<T>& elementwise_kernel(Binary what) {
    return kernel_of<T>(what);
}
template <class T>
const ResidualAddKernel<T>& residual_add() {
    static const auto made =
        of_n(kernel(name_of<T>("residual_add"), params("x", "y", "n"), [](In<T> x, InOut<T> y, u32 n) {
            map<T>(
                y, n, [](const F& a, const F& b) { return a + b; }, y, x);
        }));
    return made;
}
template <class From, class To>
const CastKernel<From, To>& cast_kernel() {
    static const auto made = of_n(kernel(std::is_same_v<To, float> ? cast_names[0][std::is_same_v<From, bfloat16>]
                                                                   : cast_names[1][std::is_same_v<To, bfloat16>],
                                         params("x", "y", "n"), [](In<From> x, Out<To> y, u32 n) {
                                             map<std::conditional_t<(sizeof(From) > sizeof(To)), From, To>>(
                                                 y, n, [](const F& v) { return v; }, x);
                                         }));
    return made;
}
template <class T>
const BiasActivationKernel<T>& bias_activation_kernel(Activation activation) {
    static const auto made = [] {
        std::vector<BiasActivationKernel<T>> out;
        for (std::size_t i = 0; i < std::size(activation_names); ++i)
            out.push_back(make_bias_activation<T>(Activation(i)));
        return out;
    }();
    SizeCheck{"bias_activation_kernel"}.enumerator("activation", std::size_t(activation), made.size());
    return made[std::size_t(activation)];
}

Grid elementwise_grid(std::uint64_t n, std::size_t element_bytes, std::uint32_t threads) {
    const std::uint64_t lanes = 16 / element_bytes;
    return runtime::grid(std::max<std::uint64_t>((n + lanes - 1) / lanes, 1), threads);
}

// ---- the recipes

IKAT_INSTANTIATE(elementwise_kernel, Unary)
IKAT_INSTANTIATE(elementwise_kernel, Unary1)
IKAT_INSTANTIATE(elementwise_kernel, Unary2)
IKAT_INSTANTIATE(elementwise_kernel, Binary)
IKAT_INSTANTIATE(residual_add)
IKAT_INSTANTIATE(bias_activation_kernel, Activation)

namespace {

Grid grid_of_n(const Call& call) { return elementwise_grid(call["n"], call.widest(), call.threads(threads)); }
Grid grid_of_matrix(const Call& call) {
    return elementwise_grid(std::uint64_t(call["rows"]) * call["columns"], call.widest(), call.threads(threads));
}

constexpr std::string_view document =
    "All arrays have at least n elements. Computed in f32 and rounded once. 16 bytes at a time; the arrays begin at\n"
    "multiples of 16 bytes. Any n; a NaN gives a NaN.";

/// A row of the table, which computes `host` on the host.
constexpr Recipe row(std::string_view call, std::string_view summary, Instances instances, std::string_view shapes,
                     std::string_view traffic, void (*reference)(Example&)) {
    return {.call = call,
            .kernels = {{summary, instances, grid_of_n}},
            .document = document,
            .shapes = shapes,
            .reference = reference,
            .magnitude = 8,
            .traffic = traffic};
}
#define IKAT_ROW(Table, id, arguments, summary, shapes, traffic, host)                           \
    row("elementwise(queue, " #Table "::" #id ", " arguments ")", summary,                       \
        IKAT_FLOATS(elementwise_kernel<T>(Table::id)), shapes, traffic, [](Example& e) {         \
            reference::elementwise(e, []([[maybe_unused]] double x, [[maybe_unused]] double b,   \
                                         [[maybe_unused]] double p, [[maybe_unused]] double q) { \
                [[maybe_unused]] const double a = x;                                             \
                return double(host);                                                             \
            });                                                                                  \
        }),
#define IKAT_UNARY(id, text, device, host) IKAT_ROW(Unary, id, "x, y", text, "x: n, y: n", "2 E s", host)
constexpr Recipe unary_recipes[] = {
#include "stdlib/elementwise/elementwise.def"
};
#define IKAT_UNARY_1(id, p, text, device, host) IKAT_ROW(Unary1, id, "x, y, " #p, text, "x: n, y: n", "2 E s", host)
constexpr Recipe unary_1_recipes[] = {
#include "stdlib/elementwise/elementwise.def"
};
#define IKAT_UNARY_2(id, p, q, text, device, host) \
    IKAT_ROW(Unary2, id, "x, y, " #p ", " #q, text, "x: n, y: n", "2 E s", host)
constexpr Recipe unary_2_recipes[] = {
#include "stdlib/elementwise/elementwise.def"
};
#define IKAT_BINARY(id, a, b, text, device, host) \
    IKAT_ROW(Binary, id, #a ", " #b ", y", text, #a ": n, " #b ": n, y: n", "3 E s", host)
constexpr Recipe binary_recipes[] = {
#include "stdlib/elementwise/elementwise.def"
};

}  // namespace

std::span<const Recipe> recipes(Unary) { return unary_recipes; }
std::span<const Recipe> recipes(Unary1) { return unary_1_recipes; }
std::span<const Recipe> recipes(Unary2) { return unary_2_recipes; }
std::span<const Recipe> recipes(Binary) { return binary_recipes; }

constexpr Recipe residual_add_recipe{.call = "residual_add(queue, x, y)",
                                     .kernels = {{"y += x", IKAT_FLOATS(residual_add<T>()), grid_of_n}},
                                     .document = document,
                                     .shapes = "x: n, y: n",
                                     .reference = reference::residual_add,
                                     .traffic = "3 E s",
                                     .note = "y += x"};
#define IKAT_CAST(From, To) \
    { "y = x, in another type, rounded to nearest", IKAT_KERNEL(cast_kernel<From, To>()), grid_of_n }
constexpr Recipe cast_recipe{
    .call = "cast(queue, x, y)",
    .kernels = {IKAT_CAST(half, float), IKAT_CAST(float, half), IKAT_CAST(bfloat16, float), IKAT_CAST(float, bfloat16)},
    .document = document,
    .shapes = "x: n, y: n",
    .reference = reference::cast,
    .traffic = "6 s",
    .note = "f32 to f16 or bf16 and back"};
#define IKAT_BIAS(id)                                                                                      \
    {                                                                                                      \
        "y = " #id "(x + a bias for each column)", IKAT_FLOATS(bias_activation_kernel<T>(Activation::id)), \
            grid_of_matrix                                                                                 \
    }
constexpr Recipe bias_activation_recipe{
    .call = "bias_activation(queue, activation, x, bias, y, rows, columns)",
    .kernels = {IKAT_BIAS(none), IKAT_BIAS(relu), IKAT_BIAS(gelu), IKAT_BIAS(gelu_tanh), IKAT_BIAS(silu)},
    .document =
        "y[row, column] = f(x[row, column] + bias[column]). x and y are row-major, rows x columns, with fewer\n"
        "than 2^32 elements; bias has `columns`. Computed in f32 and rounded once. The arrays begin at\n"
        "multiples of 16 bytes.",
    .shapes = "x: rows columns, bias: columns, y: rows columns",
    .reference = reference::bias_activation,
    .magnitude = 4,
    .traffic = "2 E s",
    .note = "a matrix plus a bias for each column, then `none`, `relu`, `gelu`, `gelu_tanh` or `silu`"};

}  // namespace ikat::stdlib
