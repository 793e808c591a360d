// SPDX-License-Identifier: Apache-2.0
// By which kernel gemm_tensor_core() makes a product, and how k and the tiles are divided. docs/tiles.md has the rules.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/pipeline/compile.hpp"
#include "stdlib/gemm/tensor_call.hpp"

namespace ikat::stdlib {
namespace {

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

}  // namespace

void GemmCall::choose() {
    kernel_.a = options_.a, kernel_.b = options_.b, kernel_.activation = options_.activation;
    kernel_.has_bias = options_.bias.has_value();
    kernel_.has_residual = options_.residual.has_value();
    kernel_.raster = options_.raster;
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
    const bool is_ping_pong = options_.schedule == GemmSchedule::ping_pong;
    if (is_ping_pong && options_.path == GemmPath::mma_sync)
        fail("mma_sync: there are no warpgroups that take turns", "GemmSchedule::ping_pong is of GemmPath::wgmma");
    if ((is_ping_pong || options_.path == GemmPath::wgmma) && !problem.empty())
        fail("wgmma: " + problem, "GemmPath::mma_sync multiplies any matrices on any device from sm_80 on");
    if (options_.parts > 1 && options_.schedule != GemmSchedule::chosen && options_.schedule != GemmSchedule::split_k)
        fail(fmt::format("{} parts, and a schedule that does not divide k into parts", options_.parts),
             "parts are of GemmSchedule::split_k");
    if (is_ping_pong || options_.path == GemmPath::wgmma ||
        (options_.path == GemmPath::chosen && problem.empty() && n() >= 128 && (m() > 128 || (m() > 64 && is_wide))))
        return choose_clusters(is_wide);
    const TensorTile large = tensor_tile(TileSize::large);
    const bool can_be_large =
        large.shared_bytes() <= device.shared_bytes_optin && kernel_.access == ProductAccess{16, 16};
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

/// By wgmma.
void GemmCall::choose_clusters(bool is_wide) {
    using enum GemmSchedule;
    // A box is stored by 16 bytes, also where a row ends in the middle of them.
    const bool is_stored_alone =
        options_.beta == 0 && !options_.bias && !options_.residual && !options_.epilogue && access_of(C_) == 16;
    kernel_.step = is_stored_alone ? Step::Boxes : Step::Cluster;
    kernel_.takes_turns = options_.schedule == ping_pong;
    if (kernel_.tile == TileSize::chosen)
        kernel_.tile = is_wide || kernel_.takes_turns ? TileSize::large : TileSize::medium;
    kernel_.access = {};
    if (options_.schedule == persistent || kernel_.takes_turns) return;
    const std::uint64_t busy = std::max(queue_.device().properties().multiprocessors, 1u);
    choose_parts(cluster_tiles(kernel_.tile), std::max(busy / 2, std::uint64_t{1}));
    if (options_.schedule == chosen && parts_ == 1) kernel_.takes_turns = is_ping_pong_better();
}

// The clocks of a block on an H100, by the rates of its parts, for 128 x 256 elements of C:
//
//                              a slice of k                              C
//     both warpgroups          1024: 32 KiB of A and B from the L2       they multiply, and then both store for
//                              cache, and wgmma, which takes as long     clocks_of_store()
//     in turn, 64 x 256 each   2 * 768: 24 KiB from the L2 cache each;   one stores while the other multiplies
//                              wgmma alone takes 512
//
// So that C is stored beside products costs 512 clocks for each slice of k.
static constexpr std::uint64_t clocks_of_turns = 512;
static constexpr std::uint64_t l2_bytes = 32, shared_bytes = 128;  // in a clock, of a multiprocessor

/// For how many clocks a block stores 128 x 256 elements of C, at least, and does not multiply.
std::uint64_t GemmCall::clocks_of_store() const {
    const std::uint64_t elements = 128 * 256, bytes_of_c = ir::info(C_.type).bytes, bytes = elements * bytes_of_c;
    if (kernel_.step == Step::Boxes) {
        const StagesOfC of_c = stages_of_c(cluster_tile(TileSize::large, ir::info(A_.type).bytes), bytes_of_c);
        const std::uint64_t at_once = bytes * of_c.columns * of_c.stages / 256;  // the rest waits for copies of this
        return bytes / shared_bytes + (bytes - at_once) / l2_bytes;
    }
    // Counted in machine code, for an element; what an epilogue of your own does is not known.
    constexpr std::uint64_t of_store = 8, of_operand = 4, of_activation[activation_count] = {0, 2, 85, 74, 56};
    const std::uint64_t operands =
        std::uint64_t{options_.beta != 0} + options_.bias.has_value() + options_.residual.has_value();
    const std::uint64_t instructions = of_store + of_operand * operands + of_activation[int(options_.activation)];
    return instructions * elements / 128;
}

/// Whether k is so short that to store C is more than to multiply in turns costs, and there are tiles for both.
bool GemmCall::is_ping_pong_better() const {
    if (kernel_.tile != TileSize::large) return false;
    const std::uint64_t clusters = std::max(queue_.device().properties().multiprocessors / 2, 1u);
    const ClusterTile tile = cluster_tile(kernel_.tile, ir::info(A_.type).bytes, true);
    return cluster_tiles(tile) >= 2 * clusters && slices() * clocks_of_turns < clocks_of_store();
}

/// As many parts of k as are asked for, or as keep a device busy that makes `at_once` tiles at a time, but of at least
/// 16 slices: fewer are not worth a second kernel.
void GemmCall::choose_parts(std::uint64_t tiles, std::uint64_t at_once) {
    parts_ = options_.parts;
    const std::uint64_t max_parts = std::max<std::uint64_t>(slices() / 16, 1);
    if (parts_ == 0) parts_ = std::uint32_t(std::clamp<std::uint64_t>(at_once / tiles, 1, max_parts));
    parts_ = std::uint32_t(std::min<std::uint64_t>(parts_, slices()));
}

/// By mma.sync.
void GemmCall::choose_schedule() {
    using enum GemmSchedule;
    const runtime::DeviceProperties& device = queue_.device().properties();
    const std::uint64_t all = tiles(kernel_.tile), busy = std::max(device.multiprocessors, 1u);
    GemmSchedule schedule = options_.schedule;
    if (schedule == chosen || schedule == split_k) choose_parts(all, busy);
    if (schedule == chosen && options_.parts == 0 && is_stream_better(all, busy)) schedule = stream_k;
    if (schedule != persistent && schedule != stream_k) return;

    parts_ = 1;
    const TensorTile tile = tensor_tile(kernel_.tile);
    const std::uint64_t reserved = 1024, bytes = tile.shared_bytes() + reserved;
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
bool GemmCall::is_stream_better(std::uint64_t tiles, std::uint64_t busy) const {
    const std::uint64_t units = tiles * parts_, longest = (units - 1) / busy + 1;
    return longest * slices() / parts_ >= tiles * slices() / busy + 64;
}

std::string GemmCall::problem_of_wgmma() const {
    const std::string_view target = queue_.device().compile_options().target;
    if (target != "sm_90a") return fmt::format("the device is opened for {}, not sm_90a", target);
    if (!is_aligned(A_) || !is_aligned(B_)) return "rows of A or B are not aligned to 16 bytes";
    const bool is_wide = ir::info(A_.type).bytes == 2;
    if (!is_wide && (options_.a != MatrixOrder::Rows || options_.b != MatrixOrder::Columns))
        return fmt::format("of {} it multiplies only A by rows and B by columns", A_.type_name());
    if (options_.tile == TileSize::small || (options_.tile == TileSize::large && !is_wide))
        return "there is no tile of this size";
    if (options_.schedule == GemmSchedule::ping_pong && (!is_wide || options_.tile == TileSize::medium))
        return "warpgroups take turns at large tiles, of 16-bit elements";
    if (options_.schedule == GemmSchedule::block_per_tile || options_.schedule == GemmSchedule::stream_k)
        return "clusters of blocks take tile after tile: GemmSchedule::persistent, or split_k";
    return {};
}

}  // namespace ikat::stdlib
