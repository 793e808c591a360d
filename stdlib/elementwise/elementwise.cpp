// SPDX-License-Identifier: Apache-2.0
#include "stdlib/elementwise/elementwise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "stdlib/elementwise/map.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/functions.hpp"
#include "stdlib/spec/view_call.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t threads = elementwise_threads;
using F = Leaf<float>;

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

// ... and for rows at pitches.
template <class T>
auto make_pitched(const UnaryRow& row, const char* name) {
    return kernel(name, params("x", "y", "rows", "columns", "pitches"),
                  [f = row.function](In<T> x, Out<T> y, u32 rows, u32 columns, Struct<RowPitches> pitches) {
                      map<T>(RowPlaces(rows, columns, pitches), y, f, x);
                  });
}
template <class T>
auto make_pitched(const Unary1Row& row, const char* name) {
    return kernel(name, params("x", "y", row.first, "rows", "columns", "pitches"),
                  [f = row.function](In<T> x, Out<T> y, f32 p, u32 rows, u32 columns, Struct<RowPitches> pitches) {
                      const F first = value(p);
                      map<T>(
                          RowPlaces(rows, columns, pitches), y, [&](const F& v) { return f(v, first); }, x);
                  });
}
template <class T>
auto make_pitched(const Unary2Row& row, const char* name) {
    return kernel(
        name, params("x", "y", row.first, row.second, "rows", "columns", "pitches"),
        [f = row.function](In<T> x, Out<T> y, f32 p, f32 q, u32 rows, u32 columns, Struct<RowPitches> pitches) {
            const F first = value(p), second = value(q);
            map<T>(
                RowPlaces(rows, columns, pitches), y, [&](const F& v) { return f(v, first, second); }, x);
        });
}
template <class T>
auto make_pitched(const BinaryRow& row, const char* name) {
    return kernel(name, params(row.first, row.second, "y", "rows", "columns", "pitches"),
                  [f = row.function](In<T> a, In<T> b, Out<T> y, u32 rows, u32 columns, Struct<RowPitches> pitches) {
                      map<T>(RowPlaces(rows, columns, pitches), y, f, a, b);
                  });
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
template <class T, class Rows>
const auto& pitched_kernels_of(const Rows& rows) {
    using K = decltype(make_pitched<T>(rows[0], ""));
    static const auto made = [&] {
        std::vector<K> out;
        for (const auto& row : rows)
            out.push_back(make_pitched<T>(row, name_of<T>(std::string(row.name) + "_pitched")).launch_bounds(threads));
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

template <class T>
const auto& pitched_kernel_of(auto what) {
    return pitched_kernels_of<T>(rows_of(what))[std::size_t(what)];
}

// ---- others, for rows at pitches

template <class T>
void residual_add_of(const RowPlaces& places, const In<T>& x, const InOut<T>& y) {
    require_linear_grid();
    for_each_of_rows<T>(places, [&]<int N>(Width<N>, const auto& at, const auto&, const auto&) {
        const auto& i = at[RowPlaces::Y];
        const auto old = load_lanes<N>(y, i), more = load_lanes<N>(x, at[RowPlaces::X]);
        store_lanes(y, i, old + more);
    });
}
template <class From, class To>
void cast_of(const RowPlaces& places, const In<From>& x, const Out<To>& y) {
    map<float>(
        places, y, [](const F& v) { return v; }, x);
}

constexpr const char* cast_names[2][2] = {{"cast_f16_f32", "cast_bf16_f32"}, {"cast_f32_f16", "cast_f32_bf16"}};
template <class From, class To>
constexpr const char* cast_name() {
    return std::is_same_v<To, float> ? cast_names[0][std::is_same_v<From, bfloat16>]
                                     : cast_names[1][std::is_same_v<To, bfloat16>];
}
template <class From, class To>
const auto& pitched_cast() {
    const std::string name = cast_name<From, To>() + std::string("_pitched");
    return pitched_kernel<cast_of<From, To>>(name.c_str(), threads, 0, "x", "y");
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
    static const auto made =
        of_n(kernel(name_of<T>("residual_add"), params("x", "y", "n"), [](In<T> x, InOut<T> y, u32 n) {
            map<T>(
                y, n, [](const F& a, const F& b) { return a + b; }, y, x);
        }));
    return made;
}
template <class From, class To>
const CastKernel<From, To>& cast_kernel() {
    static const auto made =
        of_n(kernel(cast_name<From, To>(), params("x", "y", "n"), [](In<From> x, Out<To> y, u32 n) {
            map<std::conditional_t<(sizeof(From) > sizeof(To)), From, To>>(
                y, n, [](const F& v) { return v; }, x);
        }));
    return made;
}
Grid elementwise_grid(std::uint64_t n, std::size_t element_bytes, std::uint32_t threads) {
    const std::uint64_t lanes = 16 / element_bytes;
    return runtime::grid(std::max<std::uint64_t>((n + lanes - 1) / lanes, 1), threads);
}

void elementwise(const Queue& queue, Unary what, const TensorView& x, const MutableTensorView& y) {
    run_rows({queue, recipe_of(queue, what), {x, y}}, {});
}
void elementwise(const Queue& queue, Unary1 what, const TensorView& x, const MutableTensorView& y, float p) {
    run_rows({queue, recipe_of(queue, what), {x, y}}, {p});
}
void elementwise(const Queue& queue, Unary2 what, const TensorView& x, const MutableTensorView& y, float p, float q) {
    run_rows({queue, recipe_of(queue, what), {x, y}}, {p, q});
}
void elementwise(const Queue& queue, Binary what, const TensorView& a, const TensorView& b,
                 const MutableTensorView& y) {
    run_rows({queue, recipe_of(queue, what), {a, b, y}}, {});
}
void residual_add(const Queue& queue, const TensorView& x, const MutableTensorView& y) {
    run_rows({queue, residual_add_recipe, {x, y}}, {});
}
void cast(const Queue& queue, const TensorView& x, const MutableTensorView& y) {
    const ViewCall call(queue, cast_recipe, {x, y});
    const auto is_short = [](const TensorView& view) {
        return view.type == ir::Type::F16 || view.type == ir::Type::BF16;
    };
    const bool to_single = is_short(x) && y.type == ir::Type::F32;
    if (!to_single && !(x.type == ir::Type::F32 && is_short(y)))
        call.fail(fmt::format("'x' has elements of {}, and 'y' of {}", x.type_name(), y.type_name()),
                  "one of them is f32, and the other f16 or bf16");
    const bool brain = x.type == ir::Type::BF16 || y.type == ir::Type::BF16;
    run_rows(call, {}, 2 * brain + !to_single);
}

// ---- the recipes

IKAT_INSTANTIATE(elementwise_kernel, Unary)
IKAT_INSTANTIATE(elementwise_kernel, Unary1)
IKAT_INSTANTIATE(elementwise_kernel, Unary2)
IKAT_INSTANTIATE(elementwise_kernel, Binary)
IKAT_INSTANTIATE(residual_add)

namespace {

Grid grid_of_elements(const Call& call) { return elementwise_grid(call.count(), call.widest(), call.threads(threads)); }

constexpr std::string_view document =
    "All arrays have at least n elements. Computed in f32 and rounded once. 16 bytes at a time; the arrays begin at\n"
    "multiples of 16 bytes. Any n; a NaN gives a NaN.";

/// A row of the table, which computes `host` on the host.
constexpr Recipe row(std::string_view call, std::string_view summary, Instances instances, Instances pitched,
                     Operands operands, ArraySizes sizes, std::string_view traffic, void (*reference)(Example&),
                     FunctionSetting p = {}, FunctionSetting q = {}) {
    return {.call = call,
            .kernels = {{.summary = summary, .instances = instances, .grid = grid_of_elements, .pitched = pitched}},
            .operands = operands,
            .settings = {p, q},
            .document = document,
            .sizes = sizes,
            .reference = reference,
            .magnitude = 8,
            .traffic = traffic};
}
constexpr Operands unary_operands{{"x", "..."}, {"y", "...", Access::Out}};
constexpr ArraySizes unary_sizes{{"x", "n"}, {"y", "n"}};
#define IKAT_ROW(Table, id, arguments, summary, operands, sizes, traffic, host, ...)                                  \
    row("elementwise(queue, " #Table "::" #id ", " arguments ")", summary,                                            \
        IKAT_FLOATS(elementwise_kernel<T>(Table::id)), IKAT_FLOATS(pitched_kernel_of<T>(Table::id)), operands, sizes, \
        traffic, [](Example& e) {                                                                                     \
            reference::elementwise(e, []([[maybe_unused]] double x, [[maybe_unused]] double b,                        \
                                         [[maybe_unused]] double p, [[maybe_unused]] double q) {                      \
                [[maybe_unused]] const double a = x;                                                                  \
                return double(host);                                                                                  \
            });                                                                                                       \
        } __VA_OPT__(, ) __VA_ARGS__),
#define IKAT_UNARY(id, text, device, host) IKAT_ROW(Unary, id, "x, y", text, unary_operands, unary_sizes, "2 E s", host)
constexpr Recipe unary_recipes[] = {
#include "stdlib/elementwise/elementwise.def"
};
#define IKAT_UNARY_1(id, p, text, device, host) \
    IKAT_ROW(Unary1, id, "x, y, " #p, text, unary_operands, unary_sizes, "2 E s", host, {#p, "a number"})
constexpr Recipe unary_1_recipes[] = {
#include "stdlib/elementwise/elementwise.def"
};
#define IKAT_UNARY_2(id, p, q, text, device, host)                                                                \
    IKAT_ROW(Unary2, id, "x, y, " #p ", " #q, text, unary_operands, unary_sizes, "2 E s", host, {#p, "a number"}, \
             {#q, "a number"})
constexpr Recipe unary_2_recipes[] = {
#include "stdlib/elementwise/elementwise.def"
};
#define IKAT_BINARY(id, a, b, text, device, host)                                                                 \
    IKAT_ROW(Binary, id, #a ", " #b ", y", text, (Operands{{#a, "..."}, {#b, "..."}, {"y", "...", Access::Out}}), \
             (ArraySizes{{#a, "n"}, {#b, "n"}, {"y", "n"}}), "3 E s", host)
constexpr Recipe binary_recipes[] = {
#include "stdlib/elementwise/elementwise.def"
};

}  // namespace

std::span<const Recipe> recipes(Unary) { return unary_recipes; }
std::span<const Recipe> recipes(Unary1) { return unary_1_recipes; }
std::span<const Recipe> recipes(Unary2) { return unary_2_recipes; }
std::span<const Recipe> recipes(Binary) { return binary_recipes; }

constexpr Recipe residual_add_recipe{
    .call = "residual_add(queue, x, y)",
    .kernels = {{.summary = "y += x",
                 .instances = IKAT_FLOATS(residual_add<T>()),
                 .grid = grid_of_elements,
                 .pitched = IKAT_PITCHED("residual_add", (residual_add_of<T>), threads, 0, "x", "y")}},
    .operands = {{"x", "..."}, {"y", "...", Access::InOut}},
    .document = document,
    .sizes = {{"x", "n"}, {"y", "n"}},
    .reference = reference::residual_add,
    .traffic = "3 E s",
    .note = "y += x"};
#define IKAT_CAST(From, To)                                                                                         \
    {                                                                                                               \
        .summary = "y = x, in another type, rounded to nearest", .instances = IKAT_KERNEL(cast_kernel<From, To>()), \
        .grid = grid_of_elements, .pitched = IKAT_KERNEL(pitched_cast<From, To>())                                  \
    }
constexpr Recipe cast_recipe{
    .call = "cast(queue, x, y)",
    .kernels = {IKAT_CAST(half, float), IKAT_CAST(float, half), IKAT_CAST(bfloat16, float), IKAT_CAST(float, bfloat16)},
    .operands = {{"x", "...", Access::In, ir::Type::Void, true}, {"y", "...", Access::Out, ir::Type::Void, true}},
    .run = [](const Queue& queue, std::span<const MutableTensorView> arrays,
              const FunctionSettings&) { cast(queue, arrays[0], arrays[1]); },
    .document = document,
    .sizes = {{"x", "n"}, {"y", "n"}},
    .reference = reference::cast,
    .traffic = "6 s",
    .note = "f32 to f16 or bf16 and back"};
}  // namespace ikat::stdlib
