// SPDX-License-Identifier: Apache-2.0
#include "stdlib/gemm/tensor_core.hpp"

#include <array>

#include "stdlib/gemm/tensor_call.hpp"
#include "stdlib/spec/kernel_arguments.hpp"

namespace ikat::stdlib {

/// With maps of matrices.
class GemmCall::Arguments : public KernelArguments {
public:
    using KernelArguments::KernelArguments;
    void add(const TensorView& matrices) { add_view(matrices, 3); }
    void add_map(const TensorView& matrix) {
        const std::array pitches{matrix.extents[0] > 1 ? matrix.strides[0] : matrix.extents[1] * matrix.strides[1],
                                 matrix.strides[1]};
        KernelArguments::add_map(matrix, matrix.shape<3>(), pitches);
    }
};

void GemmCall::launch(Step step, std::uint64_t blocks, std::uint32_t threads, auto&& add) const {
    TensorKernel which = kernel_;
    which.step = step;
    if (step == Step::Finish || step == Step::Scale) which.raster = Raster::grouped;  // they have no tiles
    Arguments arguments(which.handle(), where_);
    add(arguments);
    arguments.launch(queue_, blocks, threads);
}

void GemmCall::add_epilogue(Arguments& to) const {
    add_factor(to, options_.alpha);
    add_factor(to, options_.beta);
    stdlib::add_epilogue(to, kernel_.code(), arguments_);
}

void GemmCall::add_factor(Arguments& to, float factor) const {
    if (element() == ir::Type::I32)
        to.add_numbers(std::int32_t(factor));
    else
        to.add_numbers(factor);
}

void GemmCall::run_clusters() const {
    const ClusterTile tile = cluster_tile(kernel_.tile, ir::info(A_.type).bytes, kernel_.takes_turns);
    const std::uint64_t max_clusters = std::max(queue_.device().properties().multiprocessors / tile.blocks, 1u);
    const std::uint64_t blocks = std::min(cluster_tiles(tile) * parts_, max_clusters) * tile.blocks;
    if (parts_ > 1)
        return run_parts([&](auto&& add_sums) {
            launch(Step::ClusterPart, blocks, tile.threads, [&](Arguments& to) {
                to.add_map(A_), to.add_map(B_);
                add_sums(to);
                for (const std::uint64_t number : {k(), matrices(), std::uint64_t(parts_)})
                    to.add_numbers(std::uint32_t(number));
            });
        });
    launch(kernel_.step, blocks, tile.threads, [&](Arguments& to) {
        to.add_map(A_), to.add_map(B_);
        if (kernel_.step == Step::Cluster) {
            to.add(C_);
            to.add_numbers(std::uint32_t(k()));
            return add_epilogue(to);
        }
        to.add_map(C_);
        for (const std::uint64_t number : {m(), n(), k(), matrices()}) to.add_numbers(std::uint32_t(number));
        add_factor(to, options_.alpha);
    });
}

/// launch(add_sums) makes the sums of the parts of k, of which these are C.
void GemmCall::run_parts(auto&& launch_parts) const {
    Workspace workspace(queue_, function, options_.workspace, this->workspace());
    const auto sums = workspace.take<float>(sum_count());
    const auto add_sums = [&](Arguments& to) {
        const std::array<std::uint64_t, 3> extents{matrices() * parts_, m(), sum_pitch()};
        to.add(TensorView(sum_type(), sums.part(), extents));
    };
    launch_parts(add_sums);
    launch(Step::Finish, rows_at_most(), 256, [&](Arguments& to) {
        add_sums(to);
        to.add(C_);
        to.add_numbers(parts_);
        add_epilogue(to);
    });
}

void GemmCall::run_stream() const {
    const TensorTile tile = tensor_tile(kernel_.tile);
    Workspace workspace(queue_, function, options_.workspace, this->workspace());
    const auto sums = workspace.take<float>(sum_count());
    const auto add_sums = [&](Arguments& to) {
        const std::array<std::uint64_t, 3> extents{2 * workers_, tile.m, tile.n};
        to.add(TensorView(sum_type(), sums.part(), extents));
    };
    launch(Step::Stream, workers_, tile.threads(), [&](Arguments& to) {
        to.add(A_), to.add(B_), to.add(C_);
        add_sums(to);
        to.add_numbers(std::uint32_t(streamed_));
        add_epilogue(to);
    });
    launch(Step::Join, streamed_, 256, [&](Arguments& to) {
        add_sums(to);
        to.add(C_);
        for (const std::uint64_t number : {slices(), streamed_, workers_}) to.add_numbers(std::uint32_t(number));
        add_epilogue(to);
    });
}

void GemmCall::run() const {
    if (m() == 0 || n() == 0 || matrices() == 0) return;
    if (k() == 0)
        return launch(Step::Scale, rows_at_most(), 256, [&](Arguments& to) {
            to.add(C_);
            add_epilogue(to);
        });
    if (kernel_.step == Step::Cluster || kernel_.step == Step::Boxes) return run_clusters();
    if (kernel_.step == Step::Stream) return run_stream();
    const std::uint32_t threads = tensor_tile(kernel_.tile).threads();
    if (parts_ == 1)
        return launch(kernel_.step, workers_ ? workers_ : tiles(kernel_.tile), threads, [&](Arguments& to) {
            to.add(A_), to.add(B_), to.add(C_);
            add_epilogue(to);
        });
    run_parts([&](auto&& add_sums) {
        launch(Step::Part, tiles(kernel_.tile) * parts_, threads, [&](Arguments& to) {
            to.add(A_), to.add(B_);
            add_sums(to);
            to.add_numbers(parts_);
        });
    });
}

void gemm_tensor_core(const Queue& queue, const TensorView& A, const TensorView& B, const MutableTensorView& C,
                      const GemmOptions& options) {
    GemmCall(queue, A, B, C, options).run();
}

std::uint64_t gemm_workspace(const Queue& queue, const TensorView& A, const TensorView& B, const MutableTensorView& C,
                             const GemmOptions& options) {
    return GemmCall(queue, A, B, C, options).workspace();
}

}  // namespace ikat::stdlib
