// SPDX-License-Identifier: Apache-2.0
#include "stdlib/gemm/tensor_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codegen/pipeline/compile.hpp"
#include "runtime/launch/roles.hpp"
#include "stdlib/gemm/tensor_kernels.hpp"
#include "stdlib/spec/kernel_arguments.hpp"

namespace ikat::stdlib {
namespace {

using Step = TensorKernel::Step;
constexpr std::string_view function = "gemm_tensor_core";

/// A call whose arguments fit each other.
class Gemm {
public:
    Gemm(const Queue& queue, const TensorView& A, const TensorView& B, const MutableTensorView& C,
         const GemmOptions& options);

    std::uint64_t workspace() const { return sum_count() * 4; }
    void run() const;

private:
    [[noreturn]] void fail(std::string message, std::string hint) const {
        throw Error(Diagnostic{.where = where_, .message = fmt::format("{}: {}", function, message), .hint = hint});
    }
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
    bool is_stream_better(std::uint64_t tiles, std::uint64_t busy) const;
    /// Why wgmma cannot make this product; "" if it can.
    std::string problem_of_wgmma() const;

    std::uint64_t m() const { return C_.extents[1]; }
    std::uint64_t n() const { return C_.extents[2]; }
    std::uint64_t k() const { return A_.extents[options_.a == MatrixOrder::Rows ? 2 : 1]; }
    std::uint64_t matrices() const { return C_.extents[0]; }
    ir::Type element() const { return A_.type == ir::Type::I8 ? ir::Type::I32 : A_.type; }  // of C
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
        const ClusterTile tile = cluster_tile(size, ir::info(A_.type).bytes);
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
    const GemmOptions& options_;
    TensorKernel kernel_{};
    std::uint32_t parts_ = 1;
    std::uint64_t workers_ = 0;   // blocks that take tile after tile
    std::uint64_t streamed_ = 0;  // of the tiles, those whose slices they share
};

/// With maps of matrices.
class Gemm::Arguments : public KernelArguments {
public:
    using KernelArguments::KernelArguments;
    void add(const TensorView& matrices) { add_view(matrices, 3); }
    void add_map(const TensorView& matrix) {
        const std::array pitches{matrix.extents[0] > 1 ? matrix.strides[0] : matrix.extents[1] * matrix.strides[1],
                                 matrix.strides[1]};
        KernelArguments::add_map(matrix, matrix.shape<3>(), pitches);
    }
};

Gemm::Gemm(const Queue& queue, const TensorView& A, const TensorView& B, const MutableTensorView& C,
           const GemmOptions& options)
    : queue_(queue),
      where_(queue.where()),
      A_(matrices_of("A", A)),
      B_(matrices_of("B", B)),
      C_(matrices_of("C", C)),
      options_(options) {
    if (options.residual) residual_ = matrices_of("the residual", *options.residual);

    check_enumerators();
    check_types();
    check_sizes();
    if (options.epilogue) check_epilogue();
    check_memory();
    choose();
}

TensorView Gemm::matrices_of(std::string_view what, const TensorView& given) const {
    if (given.rank < 2 || given.rank > 3)
        fail(fmt::format("{} has {} dimension{}", what, given.rank, given.rank == 1 ? "" : "s"),
             "it is a view (rows, columns), or (matrices, rows, columns)");
    const TensorView out = given.of_rank(3);
    if (out.extents[2] > 1 && out.strides[2] != 1)
        fail(fmt::format("the elements of a row of {} are {} apart", what, out.strides[2]),
             "they follow each other; a matrix that is stored by columns is given as it is stored, with "
             "MatrixOrder::Columns");
    return out;
}

void Gemm::check_enumerators() const {
    const SizeCheck check{function, where_};
    check.enumerator("a", std::size_t(options_.a), 2), check.enumerator("b", std::size_t(options_.b), 2);
    check.enumerator("activation", std::size_t(options_.activation), activation_count);
    check.enumerator("path", std::size_t(options_.path), 3);
    check.enumerator("tile", std::size_t(options_.tile), 4);
    check.enumerator("schedule", std::size_t(options_.schedule), 5);
}

std::string_view name_of(ir::Type type) { return ir::info(type).name; }

void Gemm::check_types() const {
    using enum ir::Type;
    const auto check_life = [&](const runtime::BufferPart& part) {
        if (!part.is_there()) fail(runtime::freed, runtime::freed_hint);
    };
    for (const TensorView* matrix : {&A_, &B_, &C_}) check_life(matrix->part);
    if (options_.residual) check_life(options_.residual->part);
    if (options_.bias && options_.bias->rank != 1)
        fail(fmt::format("the bias has {} dimensions", options_.bias->rank), "it is a Buffer, or a slice of one");
    if (options_.bias) check_life(options_.bias->part);
    if (A_.type != F16 && A_.type != BF16 && A_.type != F32 && A_.type != I8)
        fail(fmt::format("A has elements of {}", A_.type_name()),
             "tensor cores multiply f16, bf16, f32 (as tf32) and i8");
    if (B_.type != A_.type)
        fail(fmt::format("A has elements of {}, B of {}", A_.type_name(), B_.type_name()), "they have the same type");
    const auto same_as_c = [&](std::string_view what, ir::Type type) {
        if (type != element())
            fail(fmt::format("{} has elements of {}", what, name_of(type)),
                 fmt::format("of A and B in {} it has {}", name_of(A_.type), name_of(element())));
    };
    same_as_c("C", C_.type);
    if (options_.bias) same_as_c("the bias", options_.bias->type);
    if (options_.residual) same_as_c("the residual", options_.residual->type);
    if (element() != I32) return;
    if (options_.activation != Activation::none && options_.activation != Activation::relu)
        fail("an activation of integers", "the result is i32: none or relu");
    for (const float factor : {options_.alpha, options_.beta})
        if (factor != std::floor(factor) || std::abs(factor) > 0x1p31f)
            fail(fmt::format("a factor of {} for integers", factor), "alpha and beta are integers where C is i32");
}

void Gemm::check_memory() const {
    std::vector<OperandRole> all{{"A", A_.part}, {"B", B_.part}, {"C", C_.part, Role::Written}};
    if (options_.bias) all.push_back({"bias", options_.bias->part});
    if (options_.residual) all.push_back({"residual", options_.residual->part});
    std::vector<std::string> names;  // which roles refer to
    const std::size_t arguments = options_.epilogue ? options_.epilogue->arguments.size() : 0;
    for (std::size_t i = 0; i < arguments; ++i) names.push_back(fmt::format("argument {} of the epilogue", i + 1));
    for (std::size_t i = 0; i < arguments; ++i)
        if (const auto& array = options_.epilogue->arguments[i].array) all.push_back({names[i], array->part});
    all.push_back({"workspace", options_.workspace.part(), Role::Written});
    check_roles(function, where_, all);
}

void Gemm::check_sizes() const {
    const auto check = [&](std::string_view what, const TensorView& x, std::uint64_t rows, std::uint64_t columns) {
        const auto shape = [](std::uint64_t planes, std::uint64_t r, std::uint64_t c) {
            return planes == 1 ? fmt::format("{} x {}", r, c) : fmt::format("{} times {} x {}", planes, r, c);
        };
        if (x.shape<3>() != std::array{matrices(), rows, columns})
            fail(fmt::format("{} is {}, not {}", what, shape(x.extents[0], x.extents[1], x.extents[2]),
                             shape(matrices(), rows, columns)),
                 fmt::format(
                     "C is {}, and k is {}: A is m x k, B is k x n, C is m x n; stored by columns, A is k x m and "
                     "B is n x k",
                     shape(matrices(), m(), n()), k()));
    };
    const bool a = options_.a == MatrixOrder::Rows, b = options_.b == MatrixOrder::Rows;
    check("A", A_, a ? m() : k(), a ? k() : m());
    check("B", B_, b ? k() : n(), b ? n() : k());
    if (residual_) check("the residual", *residual_, m(), n());
    if (!options_.bias) return;
    const std::uint64_t elements = options_.bias->part.bytes / ir::info(C_.type).bytes;
    if (elements < n())
        fail(fmt::format("the bias has {} elements, C has {} columns", elements, n()), "it has one for each column");
}

void Gemm::check_epilogue() {
    if (options_.activation != Activation::none || options_.bias || options_.residual)
        fail("an epilogue, and an activation, a bias or a residual", "the epilogue's function does all of it");
    kernel_.epilogue = EpilogueCode(*options_.epilogue);
    for (std::size_t i = 0; i < options_.epilogue->arguments.size(); ++i) {
        const auto& array = options_.epilogue->arguments[i].array;
        if (!array) continue;
        const EpilogueParameter& parameter = kernel_.epilogue.parameters()[i];
        const std::string what = fmt::format("argument {} of the epilogue", i + 1);
        if (parameter.is_by_place) {
            const TensorView given = matrices_of(what, *array);
            const bool fits = given.extents[1] == m() && given.extents[2] == n() &&
                              (given.extents[0] == matrices() || given.extents[0] == 1);
            if (!fits)
                fail(fmt::format("{} is {} x {} x {}, and C is {} x {} x {}", what, given.extents[0], given.extents[1],
                                 given.extents[2], matrices(), m(), n()),
                     "what is read at each element has the shape of C, or of one of its matrices");
            continue;
        }
        const std::uint64_t wanted = parameter.is_by_row ? m() : n();
        if (array->rank != 1 || array->extents[0] < wanted)
            fail(fmt::format("{} has {} dimension{} and {} elements, and C has {} {}", what, array->rank,
                             array->rank == 1 ? "" : "s", array->extents[array->rank - 1], wanted,
                             parameter.is_by_row ? "rows" : "columns"),
                 "it is a Buffer, or a slice of one, with an element for each");
    }
}

/// By how many bytes rows of this can be accessed: 16, 8, 4, or 0.
std::uint32_t access_of(const TensorView& x) {
    const std::uint64_t size = ir::info(x.type).bytes;
    std::uint64_t all = x.part.address() | x.strides[1] * size | x.extents[2] * size;
    if (x.extents[0] > 1) all |= x.strides[0] * size;
    for (const std::uint32_t bytes : {16u, 8u, 4u})
        if (all % bytes == 0) return bytes;
    return 0;
}
/// Whether rows begin at multiples of 16 bytes.
bool is_aligned(const TensorView& x) {
    TensorView rows = x;
    rows.extents[2] = 0;
    return access_of(rows) == 16;
}

void Gemm::choose() {
    kernel_.type = A_.type, kernel_.a = options_.a, kernel_.b = options_.b, kernel_.activation = options_.activation;
    kernel_.has_bias = options_.bias.has_value();
    kernel_.has_residual = options_.residual.has_value();
    if (m() == 0 || n() == 0 || matrices() == 0) return;
    kernel_.c_is_aligned = is_aligned(C_) && (!residual_ || is_aligned(*residual_)) &&
                           (!options_.bias || options_.bias->part.address() % 16 == 0);
    if (k() == 0) return;
    kernel_.access = {access_of(A_), access_of(B_)};

    const runtime::DeviceProperties& device = queue_.device().properties();
    const std::uint64_t busy = std::max(device.multiprocessors, 1u);
    kernel_.tile = options_.tile;
    const std::string problem = problem_of_wgmma();
    // Large tiles where these keep most of a device busy.
    const bool is_wide = ir::info(A_.type).bytes == 2 && cluster_tiles(TileSize::large) >= busy * 3 / 8;
    if (options_.path == GemmPath::wgmma && !problem.empty())
        fail("wgmma: " + problem, "GemmPath::mma_sync multiplies any matrices on any device from sm_80 on");
    if (options_.parts > 1 && options_.schedule != GemmSchedule::chosen && options_.schedule != GemmSchedule::split)
        fail(fmt::format("{} parts, and a schedule that does not divide k into parts", options_.parts),
             "parts are of GemmSchedule::split");
    const bool is_by_wgmma =
        options_.path == GemmPath::wgmma ||
        (options_.path == GemmPath::chosen && problem.empty() && n() >= 128 && (m() > 128 || (m() > 64 && is_wide)));
    if (is_by_wgmma) {
        // A box is stored by 16 bytes, also where a row ends in the middle of them.
        const bool is_stored_alone =
            options_.beta == 0 && !options_.bias && !options_.residual && !options_.epilogue && access_of(C_) == 16;
        kernel_.step = is_stored_alone ? Step::Boxes : Step::Cluster;
        if (kernel_.tile == TileSize::chosen) kernel_.tile = is_wide ? TileSize::large : TileSize::medium;
        kernel_.access = {};
        if (options_.schedule != GemmSchedule::persistent)
            choose_parts(cluster_tiles(kernel_.tile), std::max(busy / 2, std::uint64_t{1}));
        return;
    }
    const TensorTile large = tensor_tile(TileSize::large);
    const bool can_be_large = large.stages * 128 * (large.m + large.n) <= device.shared_bytes_optin &&
                              kernel_.access == ProductAccess{16, 16};
    const bool is_small = m() <= 64 || n() <= 64 || tiles(TileSize::medium) < busy * 3 / 4;
    if (kernel_.tile == TileSize::chosen)
        kernel_.tile = is_small                            ? TileSize::small
                       : tiles(TileSize::large) < 2 * busy ? TileSize::medium
                                                           : TileSize::large;
    if (kernel_.tile == TileSize::large && !can_be_large) kernel_.tile = TileSize::medium;
    choose_schedule();
    if (tiles(kernel_.tile) * parts_ > 0x7fffffff)
        fail(fmt::format("C is made of {} tiles", tiles(kernel_.tile) * parts_),
             "a grid has at most 2147483647 blocks");
}

/// As many parts of k as are asked for, or as keep a device busy that makes `at_once` tiles at a time, but of at least
/// 16 slices: fewer are not worth a second kernel.
void Gemm::choose_parts(std::uint64_t tiles, std::uint64_t at_once) {
    parts_ = options_.parts;
    const std::uint64_t most = std::max<std::uint64_t>(slices() / 16, 1);
    if (parts_ == 0) parts_ = std::uint32_t(std::clamp<std::uint64_t>(at_once / tiles, 1, most));
    parts_ = std::uint32_t(std::min<std::uint64_t>(parts_, slices()));
}

/// By mma.sync.
void Gemm::choose_schedule() {
    using enum GemmSchedule;
    const runtime::DeviceProperties& device = queue_.device().properties();
    const std::uint64_t all = tiles(kernel_.tile), busy = std::max(device.multiprocessors, 1u);
    GemmSchedule schedule = options_.schedule;
    if (schedule == chosen || schedule == split) choose_parts(all, busy);
    if (schedule == chosen && options_.parts == 0 && is_stream_better(all, busy)) schedule = stream_k;
    if (schedule != persistent && schedule != stream_k) return;

    parts_ = 1;
    const TensorTile tile = tensor_tile(kernel_.tile);
    const std::uint64_t reserved = 1024, bytes = tile.stages * 128 * (tile.m + tile.n) + reserved;
    const std::uint64_t by_memory = (device.shared_bytes_optin + reserved) / bytes, by_registers = 384 / tile.threads();
    workers_ = busy * std::max(std::min(by_memory, by_registers), std::uint64_t{1});
    if (schedule == stream_k) {
        const std::uint64_t rest = all % workers_;
        streamed_ = rest == 0 ? 0 : std::min(all, workers_ + rest);  // one tile each, or two, to have slices enough
        if (streamed_ * slices() > 0xffffffff) streamed_ = 0;        // they are counted in 32 bits
        workers_ = std::min(workers_, all * slices());
    } else {
        workers_ = std::min(workers_, all);
    }
    kernel_.step = streamed_ > 0 ? Step::Stream : Step::Persistent;
}

/// Whether the busiest multiprocessors would work for 64 slices longer than if all had equally many.
bool Gemm::is_stream_better(std::uint64_t tiles, std::uint64_t busy) const {
    const std::uint64_t units = tiles * parts_, longest = (units - 1) / busy + 1;
    return longest * slices() / parts_ >= tiles * slices() / busy + 64;
}

std::string Gemm::problem_of_wgmma() const {
    const std::string_view target = queue_.device().compile_options().target;
    if (target != "sm_90a") return fmt::format("the device is opened for {}, not sm_90a", target);
    if (!is_aligned(A_) || !is_aligned(B_)) return "rows of A or B are not aligned to 16 bytes";
    const bool is_wide = ir::info(A_.type).bytes == 2;
    if (!is_wide && (options_.a != MatrixOrder::Rows || options_.b != MatrixOrder::Columns))
        return fmt::format("of {} it multiplies only A by rows and B by columns", name_of(A_.type));
    if (options_.tile == TileSize::small || (options_.tile == TileSize::large && !is_wide))
        return "there is no tile of this size";
    if (options_.schedule == GemmSchedule::block_per_tile || options_.schedule == GemmSchedule::stream_k)
        return "clusters of blocks take tile after tile: GemmSchedule::persistent, or split";
    return {};
}

void Gemm::launch(Step step, std::uint64_t blocks, std::uint32_t threads, auto&& add) const {
    TensorKernel which = kernel_;
    which.step = step;
    Arguments arguments(which.handle(), where_);
    add(arguments);
    arguments.launch(queue_, blocks, threads);
}

void Gemm::add_epilogue(Arguments& to) const {
    add_factor(to, options_.alpha);
    add_factor(to, options_.beta);
    if (options_.bias) to.add_array(*options_.bias);
    if (residual_) to.add(*residual_);
    for (std::size_t i = 0; i < kernel_.epilogue.parameters().size(); ++i) {
        const GivenArgument& argument = options_.epilogue->arguments[i];
        if (!argument.array)
            to.add_number(argument.type, argument.bits);
        else if (kernel_.epilogue.parameters()[i].is_by_place)
            to.add(*argument.array);
        else
            to.add_array(*argument.array);
    }
}

void Gemm::add_factor(Arguments& to, float factor) const {
    if (element() == ir::Type::I32)
        to.add_numbers(std::int32_t(factor));
    else
        to.add_numbers(factor);
}

void Gemm::run_clusters() const {
    const ClusterTile tile = cluster_tile(kernel_.tile, ir::info(A_.type).bytes);
    const std::uint64_t most = std::max(queue_.device().properties().multiprocessors / tile.blocks, 1u);
    const std::uint64_t blocks = std::min(cluster_tiles(kernel_.tile) * parts_, most) * tile.blocks;
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
void Gemm::run_parts(auto&& launch_parts) const {
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

void Gemm::run_stream() const {
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

void Gemm::run() const {
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

}  // namespace

void gemm_tensor_core(const Queue& queue, const TensorView& A, const TensorView& B, const MutableTensorView& C,
                      const GemmOptions& options) {
    Gemm(queue, A, B, C, options).run();
}

std::uint64_t gemm_workspace(const Queue& queue, const TensorView& A, const TensorView& B, const MutableTensorView& C,
                             const GemmOptions& options) {
    return Gemm(queue, A, B, C, options).workspace();
}

}  // namespace ikat::stdlib
