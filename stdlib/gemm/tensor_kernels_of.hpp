// SPDX-License-Identifier: Apache-2.0
// The kernels of products on tensor cores, of elements T of A and B and Out of C: for each pair of types a file
// includes this, so that no compiler has all of them in memory at once.
#pragma once
#include <algorithm>
#include <array>
#include <functional>

#include "dsl/threads/grids.hpp"
#include "stdlib/gemm/tensor_kernels.hpp"
#include "stdlib/tile/block_schedule.hpp"
#include "stdlib/tile/vectors.hpp"

namespace ikat::stdlib {
namespace {

using Step = TensorKernel::Step;

/// From sums to elements of C: what the epilogue makes of alpha * sum + beta * C. Where beta is 0, C is not read.
template <class Out, class Sum>
struct Finish {
    Leaf<Sum> alpha, beta;
    const BoundEpilogue& epilogue;

    /// Elements (i, j), (i, j + 1) ... of matrix p of C from as many of sums(), which is called where they are there; j
    /// is a multiple of their number. If there are row sums, by all lanes of a warp, see BoundEpilogue::store().
    void store_if(const auto& is_there, const InOut<Out, 3>& c, bool is_aligned, const Word& plane, const Word& row,
                  const Word& column, auto&& sums) const {
        constexpr std::size_t count = decltype(sums())::lane_shape::lanes;
        const RowSumsOfGroup rows = epilogue.row_sums();
        if_(is_there, [&] { store<count>(c, is_aligned, plane, row, column, sums(), rows); });
        if (epilogue.code().has_row_sums())
            epilogue.store(rows, {word(plane), word(row), word(column), value(c.extent(2))}, count, is_there);
    }

private:
    /// If rows are aligned to 16 bytes, all elements at once, but not at the edge.
    template <std::size_t count>
    void store(const InOut<Out, 3>& c, bool is_aligned, const Word& plane, const Word& row, const Word& column,
               const LaneValues<Sum, LaneShape<count>>& sums, const RowSumsOfGroup& rows) const {
        const EpilogueGroup at{word(plane), word(row), word(column), value(c.extent(2))};
        const auto wide = value(at.column / std::uint32_t(count));
        Regs<Var<Sum>, count> v(alpha * sums);
        const auto add_c = [&] {
            at_once_or<count>(
                at, is_aligned,
                [&] { v += beta * cast<Var<Sum>>(c.template vec<int(count)>(at.matrix, at.row, wide)); },
                [&](std::uint32_t e, const auto& j, const auto& is_there) {
                    v[e] += beta * cast<Var<Sum>>(c.load_if(is_there, at.matrix, at.row, j, Out{}));
                });
        };
        if_(beta != Sum{}, add_c);
        const auto put = [&](const auto& results) {
            at_once_or<count>(
                at, is_aligned, [&] { c.template vec<int(count)>(at.matrix, at.row, wide) = cast<Var<Out>>(results); },
                [&](std::uint32_t e, const auto& j, const auto& is_there) {
                    c.store_if(is_there, at.matrix, at.row, j, cast<Var<Out>>(results[e]));
                });
        };
        const auto rest = [&] {
            if (epilogue.code().result() == ir::type_of<Sum>) {
                epilogue.apply<Sum, Sum>(at, {v.begin(), count}, {v.begin(), count}, rows);
                put(v);
            } else if constexpr (!std::is_same_v<Sum, float>) {
                Regs<f32, count> results;
                epilogue.apply<Sum, float>(at, {v.begin(), count}, {results.begin(), count}, rows);
                put(results);
            }
        };
        if (epilogue.code().is_total())
            rest();
        else
            if_(at.column < at.columns, rest);
    }

    /// All elements of a group at once, or of_one(number, column, is_there) for each.
    template <std::size_t count>
    static void at_once_or(const EpilogueGroup& at, bool is_aligned, auto&& at_once, auto&& of_one) {
        const auto one_by_one = [&] {
            for (std::uint32_t e = 0; e < count; ++e)
                of_one(e, value(at.column + e), value(at.column + e < at.columns));
        };
        if (is_aligned)
            if_(at.column + std::uint32_t(count - 1) < at.columns, at_once).else_(one_by_one);
        else
            one_by_one();
    }
};

template <class T, class Out>
using FinishOf = Finish<Out, typename ProductOf<T>::C::element_type>;

/// A kernel with parameters P, and then those of the epilogue. It is compiled once for these, whatever its body.
template <class T, class Out, class... P>
KernelHandle with_epilogue(
    const TensorKernel& is, const std::array<const char*, sizeof...(P)>& names,
    const std::type_identity_t<std::function<void(const P&..., const FinishOf<T, Out>&)>>& body) {
    using Sum = typename ProductOf<T>::C::element_type;
    const ClusterTile cluster = cluster_tile(is.tile, sizeof(T), is.takes_turns);
    const bool is_by_blocks = is.step == Step::Whole || is.step == Step::Persistent || is.step == Step::Stream;
    const bool makes_tiles = is_by_blocks || is.step == Step::Cluster;  // then registers matter more than blocks
    const std::uint32_t threads = is_by_blocks               ? tensor_tile(is.tile).threads()
                                  : is.step == Step::Cluster ? cluster.threads
                                                             : 256;
    const std::uint32_t blocks = is.step == Step::Cluster ? cluster.blocks : 1;
    ParameterNames<sizeof...(P) + 3> all{};
    DeclaredName* const next = std::ranges::copy(names, all.names).out;
    const EpilogueCode code = is.code();
    const MoreParameters more = code.more();
    const DeclaredName last[] = {"alpha", "beta", more};
    std::ranges::copy(last, next);
    return kernel(is.name().c_str(), all,
                  [=](P... given, Var<Sum> alpha, Var<Sum> beta, More rest) {
                      const BoundEpilogue epilogue(code, rest);
                      body(given..., FinishOf<T, Out>{value(alpha), value(beta), epilogue});
                  })
        .launch_bounds(threads, makes_tiles)
        .cluster(blocks)
        .handle();
}

/// The epilogue of a product: elements of C.
template <class Out, class Sum>
void store(const TensorKernel& is, const TileProduct auto& product, const auto& plane, const InOut<Out, 3>& C,
           const Finish<Out, Sum>& epilogue) {
    product.template each<16 / sizeof(Out)>([&](const auto& i, const auto& j, const auto& v) {
        epilogue.store_if(value(i < C.extent(1)), C, is.c_is_aligned, plane, i, j, [&] { return v; });
    });
}
/// The sums of a product of a part of k to a plane of them, which is as large as C, and aligned to whole vectors.
template <class Sum>
void store_sums(const TileProduct auto& product, const auto& plane, const Out<Sum, 3>& to, const auto& m,
                const auto& n) {
    product.template each<4>([&](const auto& i, const auto& j, const auto& v) {
        if_((i < m) & (j < n), [&] { to.template vec<4>(plane, i, j / 4u) = v; });
    });
}

/// The kernels of a tile by mma.sync.
template <class T, class Out, TensorTile tile, MatrixOrder a, MatrixOrder b>
struct ProductKernels {
    using Product = BlockProduct<T, tile, a, b>;
    using Sum = typename Product::Accumulator;
    using Sums = ikat::Out<Sum, 3>;

    static KernelHandle make(const TensorKernel& is) {
        if (is.step == Step::Part) return of_parts(is);
        return is.step == Step::Stream ? of_shares(is) : of_tiles(is);
    }

private:
    static TileGrid grid_of(const TensorKernel& is, const auto& m, const auto& n) {
        return {tiles_of(m, tile.m), tiles_of(n, tile.n), is.raster};
    }
    /// Parts of k are in slices of 128 bytes for every tile.
    static std::optional<PartOfK> in_slices_of_tile(const std::optional<PartOfK>& part) {
        if (!part) return {};
        return PartOfK{value(part->first * (128 / tile.k_bytes)), value(part->count * (128 / tile.k_bytes))};
    }
    static auto slices_of(const In<T, 3>& A) {
        return tiles_of(value(A.extent(a == MatrixOrder::Rows ? 2 : 1)), 128 / sizeof(T));
    }
    /// f(work, product) for what a schedule has for the block.
    static void each_product(const TileSchedule auto& schedule, const In<T, 3>& A, const In<T, 3>& B,
                             const ProductAccess& access, auto&& f) {
        schedule.each([&](const auto& work) {
            const Product product(A.plane(work.at.plane), B.plane(work.at.plane), work.at.row * tile.m,
                                  work.at.column * tile.n, access, in_slices_of_tile(work.part));
            f(work, product);
        });
    }

    static KernelHandle of_tiles(const TensorKernel& is) {
        return with_epilogue<T, Out, In<T, 3>, In<T, 3>, InOut<Out, 3>>(
            is, {"A", "B", "C"},
            [=](const In<T, 3>& A, const In<T, 3>& B, const InOut<Out, 3>& C, const auto& epilogue) {
                const TileGrid grid = grid_of(is, C.extent(1), C.extent(2));
                const auto finish = [&](const TileWork& work, const Product& product) {
                    store(is, product, work.at.plane, C, epilogue);
                };
                if (is.step == Step::Whole)
                    each_product(BlockPerTile(grid), A, B, is.access, finish);
                else
                    each_product(PersistentBlocks(grid, C.extent(0)), A, B, is.access, finish);
            });
    }

    static KernelHandle of_parts(const TensorKernel& is) {
        return kernel(is.name().c_str(), params("A", "B", "sums", "parts"),
                      [=](In<T, 3> A, In<T, 3> B, Sums sums, u32 parts) {
                          const auto m = sums.extent(1), n = sums.extent(2);
                          const TileGrid grid = grid_of(is, m, n);
                          each_product(SplitBlocks(grid, slices_of(A), parts), A, B, is.access,
                                       [&](const auto& work, const auto& product) {
                                           launch_next();
                                           store_sums<Sum>(product, work.sums, sums, m, n);
                                       });
                      })
            .launch_bounds(tile.threads(), 1)
            .handle();
    }

    static KernelHandle of_shares(const TensorKernel& is) {
        return with_epilogue<T, Out, In<T, 3>, In<T, 3>, InOut<Out, 3>, Sums, u32>(
            is, {"A", "B", "C", "sums", "streamed"},
            [=](const In<T, 3>& A, const In<T, 3>& B, const InOut<Out, 3>& C, const Sums& sums, const u32& streamed,
                const auto& epilogue) {
                const auto m = value(C.extent(1)), n = value(C.extent(2));
                const TileGrid grid = grid_of(is, m, n);
                const auto tiles = grid.tiles(C.extent(0)), slices = slices_of(A);
                StreamBlocks(grid, tiles, streamed, slices).each([&](const auto& work) {
                    const auto plane = work.at.plane;
                    const auto row = value(work.at.row * tile.m), column = value(work.at.column * tile.n);
                    const Product product(A.plane(plane), B.plane(plane), row, column, is.access,
                                          in_slices_of_tile(work.part));
                    launch_next();
                    if_(work.is_whole, [&] { store(is, product, plane, C, epilogue); }).else_([&] {
                        product.template each<4>([&](const auto& i, const auto& j, const auto& v) {
                            if_((i < m) & (j < n),
                                [&] { sums.template vec<4>(work.sums, i - row, (j - column) / 4u) = v; });
                        });
                    });
                });
            });
    }
};

/// `count` numbers of a row, which is aligned to 16 bytes, from column j on.
template <std::uint32_t count, class Sum>
auto row_lanes(const In<Sum, 3>& from, const auto& plane, const auto& i, const auto& j) {
    LaneValues<Sum, LaneShape<count>> out;
    for (std::uint32_t k = 0; k < count; k += 4) {
        const auto four = from.template vec<4>(plane, i, (j + k) / 4u);
        for (std::uint32_t e = 0; e < 4; ++e) out.set(k + e, four.lane(e).recorded());
    }
    return out;
}

/// f(i, is_there) for the numbers below `count`, by the threads of a block. `by_warps`: all lanes of a warp call it
/// together, so that some may have numbers that are not there.
void each_number_of_block(const auto& count, bool by_warps, auto&& f) {
    if (by_warps)
        for (auto first : range(warp_id() * 32u, count, block_dim().x)) {
            const auto i = value(first + lane_id());
            f(i, value(i < count));
        }
    else
        for (auto i : range(thread_id().x, count, block_dim().x)) f(value(i), Leaf<bool>(value(pred(true))));
}

/// Blocks take rows of all matrices of C, threads groups of columns.
void each_group(const auto& c, std::uint32_t count, bool by_warps, auto&& f) {
    require_linear_blocks();
    require_linear_grid();
    const auto m = c.extent(1), n = c.extent(2);
    for (auto row : range(block_id().x, c.extent(0) * m, grid_dim().x))
        each_number_of_block(tiles_of(n, count), by_warps, [&](const auto& group, const auto& is_there) {
            f(value(row / m), value(row % m), value(group * count), is_there);
        });
}

/// From sums that an earlier kernel has made, for which they wait, or where there are none.
template <class T, class Out>
KernelHandle second_kernel(const TensorKernel& is) {
    using Sum = typename ProductOf<T>::C::element_type;
    constexpr std::uint32_t count = 16 / sizeof(Out);
    const bool by_warps = is.code().has_row_sums();
    if (is.step == Step::Scale)
        return with_epilogue<T, Out, InOut<Out, 3>>(is, {"C"}, [=](const InOut<Out, 3>& C, const auto& epilogue) {
            each_group(C, count, by_warps, [&](const auto& plane, const auto& i, const auto& j, const auto& is_there) {
                epilogue.store_if(is_there, C, is.c_is_aligned, plane, i, j,
                                  [&] { return Regs<Var<Sum>, count>(Sum{}).lanes(); });
            });
        });
    if (is.step == Step::Join)
        return with_epilogue<T, Out, In<Sum, 3>, InOut<Out, 3>, u32, u32, u32>(
            is, {"sums", "C", "slices", "streamed", "workers"},
            [=](const In<Sum, 3>& sums, const InOut<Out, 3>& C, const u32& slices, const u32& streamed,
                const u32& workers, const auto& epilogue) {
                grid_wait();
                require_linear_blocks();
                const TensorTile tile = tensor_tile(is.tile);
                const auto m = value(C.extent(1)), n = value(C.extent(2));
                const auto number = value(block_id().x);
                const TilePlace at = TileGrid{tiles_of(m, tile.m), tiles_of(n, tile.n), is.raster}.at(number);
                const auto row = value(at.row * tile.m), column = value(at.column * tile.n);
                const SharesOfTile shares = StreamK(streamed, slices, workers).shares_of(number);
                const std::uint32_t groups = tile.n / count;
                const auto rows = value(select(shares.count > 1u, min(m - row, tile.m), 0u));
                each_number_of_block(rows * groups, by_warps, [&](const auto& group, const auto& is_there) {
                    const auto i = value(group / groups), j = value(group % groups * count);
                    const auto to_row = value(row + i), to_column = value(column + j);
                    epilogue.store_if(value(is_there & (to_column < n)), C, is.c_is_aligned, at.plane, to_row,
                                      to_column, [&] {
                                          Regs<Var<Sum>, count> sum(Sum{});
                                          for (auto share : range(shares.count))
                                              sum += row_lanes<count>(sums, shares.number(value(share)), i, j);
                                          return sum.lanes();
                                      });
                });
            });
    return with_epilogue<T, Out, In<Sum, 3>, InOut<Out, 3>, u32>(
        is, {"sums", "C", "parts"},
        [=](const In<Sum, 3>& sums, const InOut<Out, 3>& C, const u32& parts, const auto& epilogue) {
            grid_wait();
            each_group(C, count, by_warps, [&](const auto& plane, const auto& i, const auto& j, const auto& is_there) {
                epilogue.store_if(is_there, C, is.c_is_aligned, plane, i, j, [&] {
                    Regs<Var<Sum>, count> sum(Sum{});
                    for (auto part : range(parts)) sum += row_lanes<count>(sums, value(plane * parts + part), i, j);
                    return sum.lanes();
                });
            });
        });
}

/// The kernels of a tile by wgmma.
template <class T, class Out, ClusterTile tile, MatrixOrder a, MatrixOrder b>
struct ClusterKernels {
    template <ClusterTile of>
    using ProductBy = ClusterProduct<T, of, a, b>;
    using Sum = typename ProductBy<tile>::Accumulators::Accumulator;
    using MapA = typename ProductBy<tile>::MapA;
    using MapB = typename ProductBy<tile>::MapB;
    /// Of the sums of the warpgroups, which are exchanged.
    static constexpr std::uint32_t scratch_size = 8 * warpgroup_scratch;
    /// Where sums are exchanged.
    using Product = ProductBy<beside(tile, scratch_size * sizeof(Sum))>;

    static KernelHandle make(const TensorKernel& is) {
        if (is.step == Step::Boxes) return of_boxes(is);
        if constexpr (!tile.takes_turns)
            if (is.step == Step::ClusterPart) return of_parts(is);
        return of_tiles(is);
    }

private:
    /// The sums of a warpgroup, which are exchanged by way of a part of `scratch`.
    static auto scratch_of_warp(const auto& scratch) {
        return scratch.flat().slice((warp_id() - 4u) * warpgroup_scratch);
    }

    static KernelHandle of_tiles(const TensorKernel& is) {
        return with_epilogue<T, Out, MapA, MapB, InOut<Out, 3>, u32>(
            is, {"A", "B", "C", "k"},
            [=](const auto& A, const auto& B, const InOut<Out, 3>& C, const u32& k, const auto& epilogue) {
                const Shared<Sum, scratch_size> scratch;
                Product::run(
                    A, B, C.extent(1), C.extent(2), k, C.extent(0),
                    [&](const auto& at, const auto& sums) {
                        store(is, WarpgroupProduct(at, sums, scratch_of_warp(scratch)), at.plane, C, epilogue);
                    },
                    {}, is.raster);
            });
    }

    static KernelHandle of_boxes(const TensorKernel& is) {
        constexpr StagesOfC of_c = stages_of_c(tile, sizeof(Out));
        using Columns = SharedTile<Out, 2 * of_c.stages, 64, of_c.columns>;  // of C: rows of each warpgroup
        using MapC = TensorMap<Out, Box<1, 64, 128 / sizeof(Out)>, 128>;
        return kernel(is.name().c_str(), params("A", "B", "C", "m", "n", "k", "planes", "alpha"),
                      [code = is.code(), raster = is.raster](MapA A, MapB B, MapC C, u32 m, u32 n, u32 k, u32 planes,
                                                             Var<Sum> alpha) {
                          const Columns columns;
                          More none(nullptr);
                          const BoundEpilogue epilogue(code, none);
                          ProductBy<tile>::run(
                              A, B, m, n, k, planes,
                              [&](const auto& at, const auto& sums) {
                                  store_by_boxes(sums, at, columns, C,
                                                 [&](const auto& v) { return epilogue.of(value(alpha * v)); });
                              },
                              {}, raster);
                          if_(warpgroup_id() != 0u, [&] { wait_for_boxes(); });
                      })
            .launch_bounds(tile.threads, 1)
            .cluster(tile.blocks)
            .handle();
    }

    static KernelHandle of_parts(const TensorKernel& is) {
        return kernel(is.name().c_str(), params("A", "B", "sums", "k", "planes", "parts"),
                      [=](MapA A, MapB B, ikat::Out<Sum, 3> to, u32 k, u32 planes, u32 parts) {
                          const Shared<Sum, scratch_size> scratch;
                          const auto m = value(to.extent(1)), n = value(to.extent(2));
                          Product::run(
                              A, B, m, n, k, planes,
                              [&](const WarpgroupPlace& at, const auto& sums) {
                                  launch_next();
                                  const auto plane = value(at.plane * parts + at.part);
                                  store_sums<Sum>(WarpgroupProduct(at, sums, scratch_of_warp(scratch)), plane, to, m,
                                                  n);
                              },
                              value(parts), is.raster);
                      })
            .launch_bounds(tile.threads, 1)
            .cluster(tile.blocks)
            .handle();
    }
};

template <class T, class Out, TileSize size, MatrixOrder a, MatrixOrder b>
KernelHandle of_orders(const TensorKernel& is) {
    constexpr bool has_clusters =
        size != TileSize::small &&
        (sizeof(T) == 2 || (a == MatrixOrder::Rows && b == MatrixOrder::Columns && size == TileSize::medium));
    if constexpr (size == TileSize::large && sizeof(T) == 2)
        if (is.takes_turns) return ClusterKernels<T, Out, cluster_tile(size, sizeof(T), true), a, b>::make(is);
    if constexpr (has_clusters)
        if (is.step == Step::Cluster || is.step == Step::Boxes || is.step == Step::ClusterPart)
            return ClusterKernels<T, Out, cluster_tile(size, sizeof(T)), a, b>::make(is);
    return ProductKernels<T, Out, tensor_tile(size), a, b>::make(is);
}
template <class T, class Out, TileSize size>
KernelHandle of_tile(const TensorKernel& is) {
    using enum MatrixOrder;
    if (is.a == Rows && is.b == Rows) return of_orders<T, Out, size, Rows, Rows>(is);
    if (is.a == Rows) return of_orders<T, Out, size, Rows, Columns>(is);
    if (is.b == Rows) return of_orders<T, Out, size, Columns, Rows>(is);
    return of_orders<T, Out, size, Columns, Columns>(is);
}
template <class T, class Out>
KernelHandle of_types(const TensorKernel& is) {
    if (is.step == Step::Finish || is.step == Step::Join || is.step == Step::Scale) return second_kernel<T, Out>(is);
    if (is.tile == TileSize::small) return of_tile<T, Out, TileSize::small>(is);
    if (is.tile == TileSize::large) return of_tile<T, Out, TileSize::large>(is);
    return of_tile<T, Out, TileSize::medium>(is);
}

}  // namespace
}  // namespace ikat::stdlib
