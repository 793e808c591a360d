// SPDX-License-Identifier: Apache-2.0
#include "stdlib/backward/activations.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "stdlib/backward/slopes.hpp"
#include "stdlib/elementwise/map.hpp"
#include "stdlib/spec/families.hpp"
#include "stdlib/spec/functions.hpp"
#include "stdlib/spec/view_call.hpp"

namespace ikat::stdlib {
namespace {

using F = Leaf<float>;

/// A row of the table; it has three kernels, for f32, f16 and bf16. Those without a number do not use p.
struct Row {
    const char* name;
    const char *array, *number;  // the names of the other parameters
    F (*function)(const F& dy, const F& x, const F& p);
};
#define IKAT_BACKWARD(id, x_name, summary, device, host) \
    {#id, #x_name, "", [](const F& dy, const F& x, [[maybe_unused]] const F& p) -> F { return value(device); }},
constexpr Row rows_without_number[] = {
#include "stdlib/backward/activations.def"
};
#define IKAT_BACKWARD_1(id, x_name, p_name, summary, device, host) \
    {#id, #x_name, #p_name, [](const F& dy, const F& x, const F& p) -> F { return value(device); }},
constexpr Row rows_with_number[] = {
#include "stdlib/backward/activations.def"
};

template <class K>
K contract_of(K&& made) {
    return of_n(std::move(made)).require(aligned<16>(2), at_least(2, "n"));
}

/// What a row computes, which has no number or this.
auto body_of(const Row& row) {
    return [function = row.function](const F& dy, const F& x) { return function(dy, x, x); };
}
auto body_of(const Row& row, const F& p) {
    return [function = row.function, &p](const F& dy, const F& x) { return function(dy, x, p); };
}

template <class T>
auto make(Backward, const Row& row, const char* name) {
    return contract_of(kernel(name, params("dy", row.array, "dx", "n"),
                              [&row](In<T> dy, In<T> x, Out<T> dx, u32 n) { map<T>(dx, n, body_of(row), dy, x); }));
}
template <class T>
auto make(Backward1, const Row& row, const char* name) {
    return contract_of(kernel(name, params("dy", row.array, "dx", row.number, "n"),
                              [&row](In<T> dy, In<T> x, Out<T> dx, f32 p, u32 n) {
                                  const F number = value(p);
                                  map<T>(dx, n, body_of(row, number), dy, x);
                              }));
}

// ... and for rows at pitches.
template <class T>
auto make_pitched(Backward, const Row& row, const char* name) {
    return kernel(name, params("dy", row.array, "dx", "rows", "columns", "pitches"),
                  [&row](In<T> dy, In<T> x, Out<T> dx, u32 rows, u32 columns, Struct<RowPitches> pitches) {
                      map<T>(RowPlaces(rows, columns, pitches), dx, body_of(row), dy, x);
                  });
}
template <class T>
auto make_pitched(Backward1, const Row& row, const char* name) {
    return kernel(name, params("dy", row.array, "dx", row.number, "rows", "columns", "pitches"),
                  [&row](In<T> dy, In<T> x, Out<T> dx, f32 p, u32 rows, u32 columns, Struct<RowPitches> pitches) {
                      const F number = value(p);
                      map<T>(RowPlaces(rows, columns, pitches), dx, body_of(row, number), dy, x);
                  });
}

const auto& rows_of(Backward) { return rows_without_number; }
const auto& rows_of(Backward1) { return rows_with_number; }

/// The kernels of one table, in its order.
template <class T, class Table>
const auto& kernels_of() {
    static const auto made = [] {
        std::vector<decltype(make<T>(Table{}, rows_of(Table{})[0], ""))> out;
        for (const Row& row : rows_of(Table{})) out.push_back(make<T>(Table{}, row, name_of<T>(row.name)));
        return out;
    }();
    return made;
}
template <class T, class Table>
const auto& pitched_kernel_of(Table what) {
    static const auto made = [] {
        std::vector<decltype(make_pitched<T>(Table{}, rows_of(Table{})[0], ""))> out;
        for (const Row& row : rows_of(Table{}))
            out.push_back(make_pitched<T>(Table{}, row, name_of<T>(row.name + std::string("_pitched")))
                              .launch_bounds(elementwise_threads));
        return out;
    }();
    return made[std::size_t(what)];
}

template <class T, class Table>
const auto& kernel_of(Table what) {
    const auto& kernels = kernels_of<T, Table>();
    SizeCheck{"elementwise_kernel"}.enumerator("what", std::size_t(what), kernels.size());
    return kernels[std::size_t(what)];
}

}  // namespace

template <class T>
const BackwardKernel<T>& elementwise_kernel(Backward what) {
    return kernel_of<T>(what);
}
template <class T>
const Backward1Kernel<T>& elementwise_kernel(Backward1 what) {
    return kernel_of<T>(what);
}

void elementwise(const Queue& queue, Backward what, const TensorView& dy, const TensorView& x,
                 const MutableTensorView& dx) {
    run_rows({queue, recipe_of(queue, what), {dy, x, dx}}, {});
}
void elementwise(const Queue& queue, Backward1 what, const TensorView& dy, const TensorView& x,
                 const MutableTensorView& dx, float p) {
    run_rows({queue, recipe_of(queue, what), {dy, x, dx}}, {p});
}

// ---- the recipes

IKAT_INSTANTIATE(elementwise_kernel, Backward)
IKAT_INSTANTIATE(elementwise_kernel, Backward1)

namespace {

/// A row of the table, which computes `host` on the host.
constexpr Recipe row(std::string_view call, std::string_view summary, Instances instances, Instances pitched,
                     Operands operands, ArraySizes sizes, void (*reference)(Example&), FunctionSetting p = {}) {
    return {.call = call,
            .kernels = {{.summary = summary,
                         .instances = instances,
                         .grid =
                             [](const Call& its) {
                                 return elementwise_grid(its.count(), its.widest(), its.threads(elementwise_threads));
                             },
                         .pitched = pitched}},
            .operands = operands,
            .settings = {p},
            .document =
                "All arrays have at least n elements. Computed in f32 and rounded once. 16 bytes at a time; the arrays "
                "begin at\nmultiples of 16 bytes. Any n. The gradient of a NaN is NaN or that of the other branch.",
            .sizes = sizes,
            .reference = reference,
            .magnitude = 8,
            .traffic = "3 E s"};
}
#define IKAT_ROW(Table, id, x_name, arguments, text, host, ...)                                                        \
    row("elementwise(queue, " #Table "::" #id ", " arguments ")", text, IKAT_FLOATS(elementwise_kernel<T>(Table::id)), \
        IKAT_FLOATS(pitched_kernel_of<T>(Table::id)),                                                                  \
        (Operands{{"dy", "..."}, {#x_name, "..."}, {"dx", "...", Access::Out}}),                                       \
        (ArraySizes{{"dy", "n"}, {#x_name, "n"}, {"dx", "n"}}), [](Example& e) {                                       \
            reference::gradient(e,                                                                                     \
                                [](double dy, double x, [[maybe_unused]] double p, double) { return double(host); });  \
        } __VA_OPT__(, ) __VA_ARGS__),
#define IKAT_BACKWARD(id, x_name, text, device, host) IKAT_ROW(Backward, id, x_name, "dy, " #x_name ", dx", text, host)
constexpr Recipe recipes_without_number[] = {
#include "stdlib/backward/activations.def"
};
#define IKAT_BACKWARD_1(id, x_name, p, text, device, host) \
    IKAT_ROW(Backward1, id, x_name, "dy, " #x_name ", dx, " #p, text, host, {#p, "a number"})
constexpr Recipe recipes_with_number[] = {
#include "stdlib/backward/activations.def"
};

}  // namespace

std::span<const Recipe> recipes(Backward) { return recipes_without_number; }
std::span<const Recipe> recipes(Backward1) { return recipes_with_number; }

}  // namespace ikat::stdlib
