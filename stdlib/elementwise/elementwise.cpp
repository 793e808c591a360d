// SPDX-License-Identifier: Apache-2.0
#include "stdlib/elementwise/elementwise.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include "stdlib/families.hpp"
#include "stdlib/math/math.hpp"
#include "stdlib/size.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t threads = 256;
using F = Leaf<float>;

/// y[i] = f(x[i], ...) for i < n, where f takes as many f32 as there are arrays x. No array has wider elements than E.
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

// ---- the kernels of the table, by its names

/// A row of the table that What names; f32, f16 and bf16 are three kernels.
template <class What, class F>
struct Row {
    const char* names[3];
    const char *first, *second;  // the names of what stands beside x, y and n
    F* function;
};
using UnaryRow = Row<Unary, F(const F& x)>;
using Unary1Row = Row<Unary1, F(const F& x, const F& p)>;
using Unary2Row = Row<Unary2, F(const F& x, const F& p, const F& q)>;
using BinaryRow = Row<Binary, F(const F& a, const F& b)>;

#define IKAT_UNARY(id, summary, device, host) \
    {{#id, #id "_f16", #id "_bf16"}, "", "", [](const F& x) -> F { return value(device); }},
constexpr UnaryRow unary_rows[] = {
#include "stdlib/elementwise/elementwise.def"
};
#define IKAT_UNARY_1(id, p_name, summary, device, host) \
    {{#id, #id "_f16", #id "_bf16"}, #p_name, "", [](const F& x, const F& p) -> F { return value(device); }},
constexpr Unary1Row unary_1_rows[] = {
#include "stdlib/elementwise/elementwise.def"
};
#define IKAT_UNARY_2(id, p_name, q_name, summary, device, host)                                      \
    {{#id, #id "_f16", #id "_bf16"}, #p_name, #q_name, [](const F& x, const F& p, const F& q) -> F { \
         return value(device);                                                                       \
     }},
constexpr Unary2Row unary_2_rows[] = {
#include "stdlib/elementwise/elementwise.def"
};
#define IKAT_BINARY(id, a_name, b_name, summary, device, host) \
    {{#id, #id "_f16", #id "_bf16"}, #a_name, #b_name, [](const F& a, const F& b) -> F { return value(device); }},
constexpr BinaryRow binary_rows[] = {
#include "stdlib/elementwise/elementwise.def"
};

template <class T>
UnaryKernel<T> make(const UnaryRow& row, const char* name) {
    return finished(
        kernel(name, params("x", "y", "n"), [f = row.function](In<T> x, Out<T> y, u32 n) { map<T>(y, n, f, x); }));
}
template <class T>
Unary1Kernel<T> make(const Unary1Row& row, const char* name) {
    return finished(kernel(name, params("x", "y", row.first, "n"), [f = row.function](In<T> x, Out<T> y, f32 p, u32 n) {
        const F first = value(p);
        map<T>(
            y, n, [&](const F& v) { return f(v, first); }, x);
    }));
}
template <class T>
Unary2Kernel<T> make(const Unary2Row& row, const char* name) {
    return finished(kernel(name, params("x", "y", row.first, row.second, "n"),
                           [f = row.function](In<T> x, Out<T> y, f32 p, f32 q, u32 n) {
                               const F first = value(p), second = value(q);
                               map<T>(
                                   y, n, [&](const F& v) { return f(v, first, second); }, x);
                           }));
}
template <class T>
BinaryKernel<T> make(const BinaryRow& row, const char* name) {
    return finished(kernel(name, params(row.first, row.second, "y", "n"),
                           [f = row.function](In<T> a, In<T> b, Out<T> y, u32 n) { map<T>(y, n, f, a, b); }))
        .require(aligned<16>(2));
}

/// The kernels of one table, in its order.
template <class T, class Rows>
const auto& kernels_of(const Rows& rows) {
    using K = decltype(make<T>(rows[0], ""));
    static const auto made = [&] {
        std::vector<K> out;
        for (const auto& row : rows) out.push_back(make<T>(row, row.names[type_number<T>]));
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
    return kernels_of<T>(rows_of(what))[std::size_t(what)];
}

template <class T>
inline constexpr std::size_t bytes_of_element = 0;  // of a number
template <class T>
inline constexpr std::size_t bytes_of_element<runtime::Buffer<T>> = sizeof(T);

/// Launches unless there is nothing to do.
template <class... A>
void run(const runtime::Queue& queue, const auto& made, std::uint64_t n, A&&... arguments) {
    const std::uint32_t count = u32_size(made.name(), "y", n);
    constexpr std::size_t widest = std::max({bytes_of_element<std::remove_cvref_t<A>>...});
    if (n != 0) queue.launch(made, elementwise_grid(n, widest), arguments..., count);
}

// ---- biases

F activate(Activation activation, const F& x) {
    switch (activation) {
        case Activation::none: return x;
        case Activation::relu: return value(select(x < 0.0f, 0.0f, x));
        case Activation::gelu: return gelu(x);
        case Activation::gelu_tanh: return gelu_tanh(x);
        case Activation::silu: return silu(x);
    }
    return x;
}

constexpr const char* activation_names[][3] = {
    {"bias_activation_none", "bias_activation_none_f16", "bias_activation_none_bf16"},
    {"bias_activation_relu", "bias_activation_relu_f16", "bias_activation_relu_bf16"},
    {"bias_activation_gelu", "bias_activation_gelu_f16", "bias_activation_gelu_bf16"},
    {"bias_activation_gelu_tanh", "bias_activation_gelu_tanh_f16", "bias_activation_gelu_tanh_bf16"},
    {"bias_activation_silu", "bias_activation_silu_f16", "bias_activation_silu_bf16"},
};

/// Vectors of a row where rows are whole vectors, else elements; the matrix as one array.
template <class T>
BiasActivationKernel<T> make_bias_activation(Activation activation) {
    return finished(kernel(activation_names[std::size_t(activation)][type_number<T>],
                           params("x", "bias", "y", "rows", "columns"),
                           [=](In<T> x, In<T> bias, Out<T> y, u32 rows, u32 columns) {
                               require_linear_grid();
                               with_width<T>(columns, [&]<int N>(Width<N>) {
                                   const auto length = value(columns / std::uint32_t(N));
                                   for (auto i : grid_stride(rows * length)) {
                                       const auto lanes = load_lanes<N>(x, i), more = load_lanes<N>(bias, i % length);
                                       const auto activated = [&](const F& v, const F& b) {
                                           return activate(activation, value(v + b));
                                       };
                                       store_lanes(y, i, each_lane(activated, lanes, more));
                                   }
                               });
                           }))
        .require(aligned<16>(2));
}

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
    static const auto made = finished(kernel(name_of<T>("residual_add", "residual_add_f16", "residual_add_bf16"),
                                             params("x", "y", "n"), [](In<T> x, InOut<T> y, u32 n) {
                                                 map<T>(
                                                     y, n, [](const F& a, const F& b) { return a + b; }, y, x);
                                             }));
    return made;
}
template <class From, class To>
const CastKernel<From, To>& cast_kernel() {
    static const auto made =
        finished(kernel(std::is_same_v<To, float> ? name_of<From>("", "cast_f16_f32", "cast_bf16_f32")
                                                  : name_of<To>("", "cast_f32_f16", "cast_f32_bf16"),
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
    return made[std::size_t(activation)];
}

runtime::Grid elementwise_grid(std::uint64_t n, std::size_t element_bytes, std::uint32_t threads) {
    const std::uint64_t lanes = 16 / element_bytes;
    return runtime::grid(std::max<std::uint64_t>((n + lanes - 1) / lanes, 1), threads);
}

// ---- on buffers

template <class T>
void elementwise(const runtime::Queue& queue, Unary what, const runtime::Buffer<T>& x, runtime::Buffer<T>& y) {
    const auto& made = elementwise_kernel<T>(what);
    require_equal_sizes(made.name(), "x", x.size(), "y", y.size());
    run(queue, made, y.size(), x, y);
}
template <class T>
void elementwise(const runtime::Queue& queue, Unary1 what, const runtime::Buffer<T>& x, runtime::Buffer<T>& y,
                 float p) {
    const auto& made = elementwise_kernel<T>(what);
    require_equal_sizes(made.name(), "x", x.size(), "y", y.size());
    run(queue, made, y.size(), x, y, p);
}
template <class T>
void elementwise(const runtime::Queue& queue, Unary2 what, const runtime::Buffer<T>& x, runtime::Buffer<T>& y, float p,
                 float q) {
    const auto& made = elementwise_kernel<T>(what);
    require_equal_sizes(made.name(), "x", x.size(), "y", y.size());
    run(queue, made, y.size(), x, y, p, q);
}
template <class T>
void elementwise(const runtime::Queue& queue, Binary what, const runtime::Buffer<T>& a, const runtime::Buffer<T>& b,
                 runtime::Buffer<T>& y) {
    const auto& made = elementwise_kernel<T>(what);
    const BinaryRow& row = binary_rows[std::size_t(what)];
    require_equal_sizes(made.name(), row.first, a.size(), "y", y.size());
    require_equal_sizes(made.name(), row.second, b.size(), "y", y.size());
    run(queue, made, y.size(), a, b, y);
}
template <class T>
void residual_add(const runtime::Queue& queue, const runtime::Buffer<T>& x, runtime::Buffer<T>& y) {
    require_equal_sizes("residual_add", "x", x.size(), "y", y.size());
    run(queue, residual_add<T>(), y.size(), x, y);
}
template <class From, class To>
void cast(const runtime::Queue& queue, const runtime::Buffer<From>& x, runtime::Buffer<To>& y) {
    require_equal_sizes("cast", "x", x.size(), "y", y.size());
    run(queue, cast_kernel<From, To>(), y.size(), x, y);
}
template <class T>
void bias_activation(const runtime::Queue& queue, Activation activation, const runtime::Buffer<T>& x,
                     const runtime::Buffer<T>& bias, runtime::Buffer<T>& y, std::uint32_t rows, std::uint32_t columns) {
    const std::uint32_t n = u32_size("bias_activation", "y", std::uint64_t(rows) * columns);
    require_size("bias_activation", "x", x.size(), n);
    require_size("bias_activation", "bias", bias.size(), columns);
    require_size("bias_activation", "y", y.size(), n);
    if (n != 0)
        queue.launch(bias_activation_kernel<T>(activation), elementwise_grid(n, sizeof(T)), x, bias, y, rows, columns);
}

#define IKAT_INSTANTIATE(T)                                                                                          \
    template const ResidualAddKernel<T>& residual_add();                                                             \
    template const BiasActivationKernel<T>& bias_activation_kernel(Activation);                                      \
    template const UnaryKernel<T>& elementwise_kernel(Unary);                                                        \
    template const Unary1Kernel<T>& elementwise_kernel(Unary1);                                                      \
    template const Unary2Kernel<T>& elementwise_kernel(Unary2);                                                      \
    template const BinaryKernel<T>& elementwise_kernel(Binary);                                                      \
    template void elementwise(const runtime::Queue&, Unary, const runtime::Buffer<T>&, runtime::Buffer<T>&);         \
    template void elementwise(const runtime::Queue&, Unary1, const runtime::Buffer<T>&, runtime::Buffer<T>&, float); \
    template void elementwise(const runtime::Queue&, Unary2, const runtime::Buffer<T>&, runtime::Buffer<T>&, float,  \
                              float);                                                                                \
    template void elementwise(const runtime::Queue&, Binary, const runtime::Buffer<T>&, const runtime::Buffer<T>&,   \
                              runtime::Buffer<T>&);                                                                  \
    template void residual_add(const runtime::Queue&, const runtime::Buffer<T>&, runtime::Buffer<T>&);               \
    template void bias_activation(const runtime::Queue&, Activation, const runtime::Buffer<T>&,                      \
                                  const runtime::Buffer<T>&, runtime::Buffer<T>&, std::uint32_t, std::uint32_t);
IKAT_INSTANTIATE(float)
IKAT_INSTANTIATE(half)
IKAT_INSTANTIATE(bfloat16)
#undef IKAT_INSTANTIATE
#define IKAT_INSTANTIATE(From, To)                      \
    template const CastKernel<From, To>& cast_kernel(); \
    template void cast(const runtime::Queue&, const runtime::Buffer<From>&, runtime::Buffer<To>&);
IKAT_INSTANTIATE(float, half)
IKAT_INSTANTIATE(half, float)
IKAT_INSTANTIATE(float, bfloat16)
IKAT_INSTANTIATE(bfloat16, float)
#undef IKAT_INSTANTIATE

// ---- the registry

namespace {

constexpr std::string_view elementwise_document =
    "All arrays have at least n elements. Computed in f32 and rounded once. 16 bytes at a time; the arrays begin at\n"
    "multiples of 16 bytes. Any n; a NaN gives a NaN.";
constexpr std::string_view bias_document =
    "y[row, column] = f(x[row, column] + bias[column]). x and y are row-major, rows x columns, with fewer than 2^32\n"
    "elements; bias has `columns`. Computed in f32 and rounded once. The arrays begin at multiples of 16 bytes.";

/// The bytes of an element of the kernel's widest array.
std::size_t widest(Arguments arguments) {
    std::size_t bytes = 1;
    for (const runtime::Argument& argument : arguments)
        if (argument.is_buffer()) bytes = std::max<std::size_t>(bytes, info(argument.type).bytes);
    return bytes;
}
std::uint32_t threads_of(std::uint32_t block) { return block ? block : threads; }
runtime::Grid grid_of_last(Arguments a, std::uint32_t block) {
    return elementwise_grid(number(a, a.size() - 1), widest(a), threads_of(block));
}
runtime::Grid grid_of_matrix(Arguments a, std::uint32_t block) {
    return elementwise_grid(std::uint64_t(rows_of_matrix(a, 3, 4)) * number(a, 4), widest(a), threads_of(block));
}

#define IKAT_ROW(Table, id, text) \
    IKAT_ENTRIES(#id, text, elementwise_document, elementwise_kernel, (Table::id), grid_of_last(a, block)),
#define IKAT_UNARY(id, text, ...) IKAT_ROW(Unary, id, text)
#define IKAT_UNARY_1(id, p, text, ...) IKAT_ROW(Unary1, id, text)
#define IKAT_UNARY_2(id, p, q, text, ...) IKAT_ROW(Unary2, id, text)
#define IKAT_BINARY(id, a, b, text, ...) IKAT_ROW(Binary, id, text)
#define IKAT_BIAS(id)                                                                              \
    IKAT_ENTRIES("bias_activation_" #id, "y = " #id "(x + a bias for each column)", bias_document, \
                 bias_activation_kernel, (Activation::id), grid_of_matrix(a, block))
#define IKAT_CAST(id, From, To)                                                                                   \
    IKAT_ENTRY(id, "y = x, in another type, rounded to nearest", elementwise_document, (cast_kernel<From, To>()), \
               grid_of_last(a, block))
constexpr Entry entries[] = {
#include "stdlib/elementwise/elementwise.def"
    IKAT_BIAS(none),
    IKAT_BIAS(relu),
    IKAT_BIAS(gelu),
    IKAT_BIAS(gelu_tanh),
    IKAT_BIAS(silu),
    IKAT_ENTRIES("residual_add", "y += x", elementwise_document, residual_add, (), grid_of_last(a, block)),
    IKAT_CAST("cast_f16_f32", half, float),
    IKAT_CAST("cast_f32_f16", float, half),
    IKAT_CAST("cast_bf16_f32", bfloat16, float),
    IKAT_CAST("cast_f32_bf16", float, bfloat16),
};

}  // namespace

std::span<const Entry> elementwise_entries() { return entries; }

}  // namespace ikat::stdlib
