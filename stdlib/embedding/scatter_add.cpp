// SPDX-License-Identifier: Apache-2.0
// scatter_add_rows(): sums of rows in one order, without atomics.
//
//     sort    a key for each id, id and token as one number: sorted in tiles of 1024, a block each
//     rank    where each key is among all: its place in its tile, and how many keys of the other tiles are less
//     add     a block for each key, which ends unless its id begins there: it adds the rows of that id to the table
//
// Few rows are added one by one. Of many, each of eight warps adds every eighth, and then what the warps have is added:
// so an id that all tokens have, such as padding, is not one long chain.
#include <fmt/format.h>

#include <compare>
#include <string>

#include "stdlib/embedding/embedding.hpp"
#include "stdlib/spec/kernel_arguments.hpp"
#include "stdlib/spec/kernels.hpp"
#include "stdlib/spec/named_functions.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {
namespace {

constexpr std::uint32_t tile = 1024, sorters = tile / 2, threads = 256, warps = threads / 32;
/// From so many rows on, warps share them.
constexpr std::uint32_t many = 32;
constexpr std::uint64_t no_key = ~std::uint64_t{0};

using Key = Leaf<std::uint64_t>;
using U = Leaf<std::uint32_t>;

U id_of(const auto& key) { return value(cast<u32>(key >> 32u)); }

/// Source: Batcher's bitonic sort.
const auto& sort_kernel() {
    static const auto made = kernel("sort_ids", params("ids", "keys", "tokens", "rows"),
                                    [](In<std::uint32_t> ids, Out<std::uint64_t> keys, u32 tokens, u32 rows) {
                                        require_linear_grid();
                                        require_threads(sorters);
                                        const auto s = Shared<std::uint64_t, tile>().flat();
                                        const U thread = value(thread_id().x), first = value(block_id().x * tile);
                                        for (std::uint32_t part = 0; part < 2; ++part) {
                                            const U i = value(thread + part * sorters), token = value(first + i);
                                            const auto is_there = value(token < tokens);
                                            const U id = value(min(ids.load_if(is_there, token, 0u), rows));
                                            s[i] = select(is_there, cast<u64>(id) << 32u | cast<u64>(token), no_key);
                                        }
                                        sync_block();
                                        for (auto stage : range(1u, 11u))
                                            for (auto step : range(0u, stage)) {
                                                const U distance = value(1u << (stage - step - 1u));
                                                const U low = value(thread * 2u - (thread & (distance - 1u))),
                                                        high = value(low + distance);
                                                const Key a = value(s[low]), b = value(s[high]);
                                                const auto goes_up = value((low & (1u << stage)) == 0u);
                                                if_(!((a > b) ^ goes_up), [&] { s[low] = b, s[high] = a; });
                                                sync_block();
                                            }
                                        for (std::uint32_t part = 0; part < 2; ++part) {
                                            const U i = value(thread + part * sorters);
                                            keys.store_if(first + i < tokens, first + i, value(s[i]));
                                        }
                                    })
                                 .launch_bounds(sorters);
    return made;
}

const auto& rank_kernel() {
    static const auto made = kernel("rank_ids", params("keys", "sorted", "tokens"),
                                    [](In<std::uint64_t> keys, Out<std::uint64_t> sorted, u32 tokens) {
                                        require_linear_grid();
                                        const U i = value(global_id().x), own = value(i / tile);
                                        return_if(i >= tokens);
                                        const Key key = value(keys[i]);
                                        u32 rank = i % tile;
                                        for (auto other : range(0u, (tokens + (tile - 1)) / tile)) {
                                            const U first = value(other * tile);
                                            u32 less = 0;
                                            for (std::uint32_t step = tile; step > 0; step /= 2) {
                                                const U at = value(first + less + step);
                                                const auto is_there = value((less + step <= tile) & (at <= tokens));
                                                less += select(keys.load_if(is_there, at - 1u, no_key) < key, step, 0u);
                                            }
                                            rank += select(other == own, 0u, less);
                                        }
                                        sorted[rank] = key;
                                    })
                                 .launch_bounds(threads);
    return made;
}

/// The rows of an id: those of the keys from `first` on that have it.
template <class T, int N>
class RowsOfId {
public:
    RowsOfId(const In<std::uint64_t>& sorted, const In<T>& x, const U& first, const U& id, const U& tokens,
             const U& pitch)
        : sorted_(sorted), x_(x), first_(first), id_(id), tokens_(tokens), pitch_(pitch) {}

    /// Whether key `at` has the id.
    auto has(const U& at) const {
        return value((at < tokens_) & (id_of(value(sorted_.load_if(at < tokens_, at, no_key))) == id_));
    }
    /// A vector of the row of key `at`; zeros where is_there is false.
    Lanes<N> lanes(const U& at, const U& column, const auto& is_there) const {
        const U token = value(cast<u32>(sorted_[at]));
        return load_lanes_if<N>(is_there, x_.slice(value(mul_wide(token, pitch_))), column, 0.0f);
    }
    /// put(column, sum) for the sum of each vector of the rows, one by one.
    void add_few(const U& length, auto&& put) const {
        for (auto c : range(value(thread_id().x), length, threads)) {
            const U column = value(c);
            Regs<f32, N> total(0);
            u32 at = first_;
            while_([&] { return has(value(at)); },
                   [&] {
                       total += lanes(value(at), column, value(column < length));
                       at += 1u;
                   });
            put(column, total);
        }
    }
    /// ... by all warps, which share the rows.
    void add_many(const U& length, auto&& put) const {
        Shared<float, warps, 32 * N> of_warp;
        const U end = this->end(), lane = value(lane_id()), warp = value(warp_id());
        for (auto begin : range(0u, length, 32u)) {
            const U column = value(begin + lane);
            Regs<f32, N> total(0);
            for (auto at : range(first_ + warp, end, warps).unroll(4))
                total += lanes(value(at), column, value(column < length));
            for (std::uint32_t k = 0; k < N; ++k) of_warp[warp, lane + 32 * k] = total[k];
            sync_block();
            if_((warp == 0u) & (column < length), [&] {
                Regs<f32, N> all(0);
                for (std::uint32_t w = 0; w < warps; ++w)
                    for (std::uint32_t k = 0; k < N; ++k) all[k] += of_warp[w, lane + 32 * k];
                put(column, all);
            });
            sync_block();
        }
    }

private:
    /// The first key after them.
    U end() const {
        u32 low = first_, high = tokens_;
        while_([&] { return low < high; },
               [&] {
                   const U middle = value(low + (high - low) / 2u);
                   const auto is_before = has(middle);
                   low = select(is_before, middle + 1u, low);
                   high = select(is_before, high, middle);
               });
        return value(low);
    }

    const In<std::uint64_t>& sorted_;
    const In<T>& x_;
    U first_, id_, tokens_, pitch_;
};

/// The kernels of add: sorted, x, y, tokens, rows, columns, x_pitch, y_pitch.
struct AddKernel {
    ir::Type type;
    bool is_wide;  // by vectors of four elements

    std::string name() const { return fmt::format("scatter_add_rows_{}{}", ir::info(type).name, is_wide ? "_4" : ""); }
    KernelHandle make() const {
        switch (type) {
            case ir::Type::F16: return is_wide ? made<half, 4>() : made<half, 1>();
            case ir::Type::BF16: return is_wide ? made<bfloat16, 4>() : made<bfloat16, 1>();
            default: return is_wide ? made<float, 4>() : made<float, 1>();
        }
    }
    auto operator<=>(const AddKernel&) const = default;

private:
    template <class T, int N>
    KernelHandle made() const {
        return kernel(name().c_str(), params("sorted", "x", "y", "tokens", "rows", "columns", "x_pitch", "y_pitch"),
                      [](In<std::uint64_t> sorted, In<T> x, InOut<float> y, u32 tokens, u32 rows, u32 columns,
                         u32 x_pitch, u32 y_pitch) {
                          require_linear_grid();
                          require_threads(threads);
                          const U first = value(block_id().x), id = id_of(value(sorted[first]));
                          const auto before = value(sorted.load_if(first > 0u, first - 1u, no_key));
                          return_if((id >= rows) | (id_of(before) == id));
                          const RowsOfId<T, N> of(sorted, x, first, id, value(tokens), value(x_pitch));
                          const auto row = y.slice(value(mul_wide(id, y_pitch)));
                          const U length = value(columns / std::uint32_t(N));
                          const auto put = [&](const U& column, const auto& sum) {
                              const auto old = load_lanes<N>(row, column);
                              Regs<f32, N> lanes;
                              for (std::uint32_t k = 0; k < N; ++k) lanes[k] = old[k] + sum[k];
                              if constexpr (N == 1)
                                  row[column] = lanes[0];
                              else
                                  row.template vec<4>(column) = Vec<float, 4>(lanes[0], lanes[1], lanes[2], lanes[3]);
                          };
                          if_(of.has(value(first + (many - 1))), [&] { of.add_many(length, put); }).else_([&] {
                              of.add_few(length, put);
                          });
                      })
            .launch_bounds(threads)
            .handle();
    }
};

const auto& clear_kernel() {
    static const auto made =
        kernel("clear_rows", params("y", "columns", "pitch"), [](Out<float> y, u32 columns, u32 pitch) {
            require_linear_grid();
            const auto row = y.slice(value(mul_wide(block_id().x, pitch)));
            for (auto c : range(value(thread_id().x), columns, threads)) row[c] = 0.0f;
        }).launch_bounds(threads);
    return made;
}

/// A call whose arrays fit each other.
class ScatterCall {
public:
    ScatterCall(std::string_view function, const Queue& queue, const TensorView& ids, const TensorView& x,
                const TensorView& y, std::string_view name_of_x, std::string_view name_of_y,
                const WorkspaceSlice& workspace)
        : function_(function), queue_(queue), ids_(ids), x_(x), y_(y), given_(workspace) {
        check("ids", ids, 1, ids.type == ir::Type::U32, "u32");
        check(name_of_x, x, 2, x.type == ir::Type::F32 || x.type == ir::Type::F16 || x.type == ir::Type::BF16,
              "f32, f16 or bf16");
        check(name_of_y, y, 2, y.type == ir::Type::F32, "f32");
        if (x.extents[0] != ids.extents[0])
            fail(fmt::format("'ids' has {} elements, '{}' {} rows", ids.extents[0], name_of_x, x.extents[0]),
                 "there is a row for each id");
        if (x.extents[1] != y.extents[1])
            fail(fmt::format("'{}' has {} columns, '{}' {}", name_of_x, x.extents[1], name_of_y, y.extents[1]),
                 "they have the same");
        for (const auto& [name, extent] : {std::pair("ids", ids.extents[0]),
                                           {"columns", x.extents[1]},
                                           {"pitch", x.strides[0]},
                                           {"pitch", y.strides[0]},
                                           {"rows", y.extents[0]}})
            if (extent > 0x7fffffff) fail(fmt::format("{}: {}", name, extent), "such numbers are below 2^31");
        const OperandRole roles[] = {{"ids", ids.part},
                                     {name_of_x, x.part},
                                     {name_of_y, y.part, Role::Written},
                                     {"workspace", workspace.part(), Role::Written}};
        check_roles(function, queue.where(), roles);
    }

    void clear() const {
        if (number(y_.extents[0]) == 0 || columns() == 0) return;
        KernelArguments arguments(clear_kernel().handle(), queue_.where());
        arguments.add_array(y_);
        arguments.add_numbers(columns(), number(y_.strides[0]));
        arguments.launch(queue_, y_.extents[0], threads);
    }
    void add() const {
        if (tokens() == 0 || columns() == 0 || y_.extents[0] == 0) return;
        Workspace workspace(queue_, function_, given_, scatter_add_rows_workspace(tokens()));
        const auto keys = workspace.take<std::uint64_t>(tokens());
        const bool is_one_tile = tokens() <= tile;
        const auto sorted = is_one_tile ? keys : workspace.take<std::uint64_t>(tokens());
        KernelArguments sort(sort_kernel().handle(), queue_.where());
        sort.add_array(ids_), sort.add_array(keys);
        sort.add_numbers(tokens(), number(y_.extents[0]));
        sort.launch(queue_, (tokens() + tile - 1) / tile, sorters);
        if (!is_one_tile) {
            KernelArguments rank(rank_kernel().handle(), queue_.where());
            rank.add_array(keys), rank.add_array(sorted);
            rank.add_numbers(tokens());
            rank.launch(queue_, (tokens() + threads - 1) / threads, threads);
        }
        const AddKernel is{x_.type, is_by_fours(x_) && is_by_fours(y_)};
        KernelArguments add(Kernels<AddKernel>::of(is), queue_.where());
        add.add_array(sorted), add.add_array(x_), add.add_array(y_);
        add.add_numbers(tokens(), number(y_.extents[0]), columns(), number(x_.strides[0]), number(y_.strides[0]));
        add.launch(queue_, tokens(), threads);
    }

private:
    [[noreturn]] void fail(std::string message, std::string hint) const {
        throw Error(Diagnostic{
            .where = queue_.where(), .message = fmt::format("{}: {}", function_, message), .hint = std::move(hint)});
    }
    void check(std::string_view name, const TensorView& x, std::uint32_t rank, bool has_type,
               std::string_view types) const {
        if (!x.part.is_there()) fail(std::string(runtime::freed), std::string(runtime::freed_hint));
        if (x.format || !has_type)
            fail(fmt::format("'{}' has elements of {}", name, x.type_name()), fmt::format("they are {}", types));
        if (x.rank != rank)
            fail(fmt::format("'{}' has {} dimension{}", name, x.rank, x.rank == 1 ? "" : "s"),
                 "ids have one, the others are rows x columns");
        if (x.extents[rank - 1] > 1 && x.strides[rank - 1] != 1)
            fail(fmt::format("the elements of '{}' are {} apart", name, x.strides[rank - 1]), "they follow each other");
    }
    static std::uint32_t number(std::uint64_t n) { return std::uint32_t(n); }
    static bool is_by_fours(const TensorView& x) {
        return (x.part.address() / info(x.type).bytes | x.strides[0] | x.extents[1]) % 4 == 0;
    }
    std::uint32_t tokens() const { return number(ids_.extents[0]); }
    std::uint32_t columns() const { return number(x_.extents[1]); }

    std::string_view function_;
    const Queue& queue_;
    const TensorView &ids_, &x_, &y_;
    const WorkspaceSlice& given_;
};

}  // namespace

void scatter_add_rows(const Queue& queue, const TensorView& ids, const TensorView& x, const MutableTensorView& y,
                      const WorkspaceSlice& workspace) {
    ScatterCall("scatter_add_rows", queue, ids, x, y, "x", "y", workspace).add();
}
std::uint64_t scatter_add_rows_workspace(std::uint64_t tokens) {
    return Workspace::rounded(tokens * sizeof(std::uint64_t)) * (tokens > tile ? 2 : 1);
}
void embedding_backward(const Queue& queue, const TensorView& ids, const TensorView& dy,
                        const MutableTensorView& dtable, const EmbeddingBackwardOptions& options) {
    const ScatterCall call("embedding_backward", queue, ids, dy, dtable, "dy", "dtable", options.workspace);
    if (!options.accumulate) call.clear();
    call.add();
}

// ---- by names

namespace {

constexpr NamedFunction::Size sizes[] = {{"tokens", 8192}, {"rows", 50000}, {"columns", 768}};
constexpr NamedFunction::Setting settings[] = {
    {"accumulate", "1: the gradient is added to the array's, which is replaced if it is not set"}};
constexpr std::string_view document =
    "Rows of f32, f16 or bf16, sums of f32, in an order that depends on the ids alone. Ids that are not below the\n"
    "number of rows are skipped.";
constexpr auto scatter_family = family_of("scatter_add_rows", "y[ids[t]] += x[t]", document, {}, sizes);
constexpr auto backward_family =
    family_of("embedding_backward", "dtable[ids[t]] += dy[t], the gradient of a table", document, settings, sizes);

}  // namespace

std::vector<NamedFunction> embedding_functions() {
    const auto ids = input("ids", "tokens", ir::Type::U32);
    NamedFunction add{.name = "scatter_add_rows", .family = &scatter_family};
    add.formula = "y[ids[t]] += x[t]";
    add.call = "scatter_add_rows(queue, ids, x, y, workspace)";
    add.arrays = {ids, input("x", "tokens columns"), output("y", "rows columns", ir::Type::F32)};
    add.arrays[2].access = Access::InOut;
    add.run = [](const Queue& queue, NamedArrays arrays, const FunctionSettings&) {
        scatter_add_rows(queue, arrays[0], arrays[1], arrays[2]);
    };
    NamedFunction backward{.name = "embedding_backward", .family = &backward_family};
    backward.formula = "dtable[ids[t]] = the sum of dy[t]";
    backward.call = "embedding_backward(queue, ids, dy, dtable, {.accumulate})";
    backward.arrays = {ids, input("dy", "tokens columns"), output("dtable", "rows columns", ir::Type::F32)};
    backward.arrays[2].access = Access::InOut;
    backward.run = [](const Queue& queue, NamedArrays arrays, const FunctionSettings& given) {
        embedding_backward(queue, arrays[0], arrays[1], arrays[2],
                           {.accumulate = given.number("accumulate").value_or(0) != 0});
    };
    return {add, backward};
}

}  // namespace ikat::stdlib
