// SPDX-License-Identifier: Apache-2.0
// A call of gemm_tensor_core(): its checks (tensor_call.cpp), what is chosen (tensor_choice.cpp), its launches
// (tensor_core.cpp).
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/support/diagnostic.hpp"
#include "stdlib/epilogue/arguments.hpp"
#include "stdlib/gemm/tensor_core.hpp"
#include "stdlib/gemm/tensor_kernels.hpp"

namespace ikat::stdlib {

/// Its arguments fit each other. They must outlive it.
class GemmCall {
    using Step = TensorKernel::Step;

public:
    GemmCall(const Queue& queue, const TensorView& A, const TensorView& B, const MutableTensorView& C,
             const GemmOptions& options);

    std::uint64_t workspace() const { return sum_count() * 4; }
    void run() const;

private:
    static constexpr std::string_view function = "gemm_tensor_core";

    CallPlace place() const { return {function, where_}; }
    [[noreturn]] void fail(std::string_view message, std::string hint) const { place().fail(message, std::move(hint)); }
    TensorView matrices_of(std::string_view what, const TensorView& given) const;
    void check_enumerators() const;
    void check_types() const;
    void check_memory() const;
    void check_sizes() const;
    void check_epilogue();
    /// Which kernel, and how k and the tiles are divided.
    void choose();
    void choose_parts(std::uint64_t tiles, std::uint64_t at_once);
    void choose_schedule();
    void choose_clusters(bool is_wide);
    bool is_ping_pong_better() const;
    std::uint64_t clocks_of_store() const;
    bool is_stream_better(std::uint64_t tiles, std::uint64_t busy) const;
    /// Why wgmma cannot make this product; "" if it can.
    std::string problem_of_wgmma() const;

    std::uint64_t m() const { return C_.extents[1]; }
    std::uint64_t n() const { return C_.extents[2]; }
    std::uint64_t k() const { return A_.extents[options_.a == MatrixOrder::Rows ? 2 : 1]; }
    std::uint64_t matrices() const { return C_.extents[0]; }
    ir::Type element() const { return kernel_.type_of_c(); }  // of C
    /// Slices of k.
    std::uint64_t slices() const { return (k() * ir::info(A_.type).bytes + 127) / 128; }
    /// Of a row of sums, which are moved in whole vectors: columns up to a multiple of 8.
    std::uint64_t sum_pitch() const { return (n() + 7) / 8 * 8; }
    std::uint64_t sum_count() const {
        const TensorTile tile = tensor_tile(kernel_.tile);
        if (streamed_ > 0) return 2 * workers_ * tile.m * tile.n;
        return parts_ > 1 ? matrices() * parts_ * m() * sum_pitch() : 0;
    }
    std::uint64_t tiles(TileSize size) const {
        const TensorTile tile = tensor_tile(size);
        return matrices() * ((m() - 1) / tile.m + 1) * ((n() - 1) / tile.n + 1);
    }

    ir::Type sum_type() const { return element() == ir::Type::I32 ? ir::Type::I32 : ir::Type::F32; }
    /// Blocks that take rows of C.
    std::uint64_t rows_at_most() const { return std::min<std::uint64_t>(matrices() * m(), 0x7fffffff); }
    /// Of clusters, one below the other.
    std::uint64_t cluster_tiles(TileSize size) const {
        return cluster_tiles(cluster_tile(size, ir::info(A_.type).bytes));
    }
    std::uint64_t cluster_tiles(const ClusterTile& tile) const {
        return matrices() * ((m() - 1) / (tile.m * tile.blocks) + 1) * ((n() - 1) / tile.n + 1);
    }

    /// The arguments of a kernel, one after the other.
    class Arguments;
    void launch(Step step, std::uint64_t blocks, std::uint32_t threads, auto&& add) const;
    void add_epilogue(Arguments& to) const;
    void add_factor(Arguments& to, float factor) const;
    void run_clusters() const;
    void run_parts(auto&& launch_parts) const;
    void run_stream() const;

    const Queue& queue_;
    Location where_;
    const TensorView A_, B_, C_;  // matrices of rows of columns
    std::optional<TensorView> residual_{};
    std::vector<GivenArgument> arguments_;  // of the epilogue
    const GemmOptions& options_;
    TensorKernel kernel_{};
    std::uint32_t parts_ = 1;
    std::uint64_t workers_ = 0;   // blocks that take tile after tile
    std::uint64_t streamed_ = 0;  // of the tiles, those whose slices they share
};

}  // namespace ikat::stdlib
