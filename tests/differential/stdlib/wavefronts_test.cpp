// SPDX-License-Identifier: Apache-2.0
// Products on tensor cores access shared memory without bank conflicts: the emulator counts as many wavefronts as there
// have to be for what ldmatrix reads and cp.async writes, for all types, orders of matrices and tiles.
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "runtime/emulator/tools/traffic/shared.hpp"
#include "stdlib/gemm/gemm.hpp"
#include "stdlib/gemm/tensor_core.hpp"
#include "stdlib/gemm/tensor_kernels.hpp"
#include "stdlib/tile/conflicts.hpp"
#include "tests/catch.hpp"

#include <ikat/ikat.hpp>
#include <ikat/tile.hpp>

namespace {

using namespace ikat;
using namespace ikat::stdlib;

/// The shared memory traffic of a product, by instruction.
template <class T>
std::map<std::string, emulator::SharedTraffic> traffic_of(std::uint32_t m, std::uint32_t n, std::uint32_t k,
                                                          const GemmOptions& options) {
    std::vector<emulator::LaunchTraffic> traffic;
    const auto device = runtime::Device::open({.device = "emulator", .traffic = &traffic});
    const auto A = device.upload(std::vector<T>(m * k), "A"), B = device.upload(std::vector<T>(n * k), "B");
    using Out = std::conditional_t<std::is_same_v<T, std::int8_t>, std::int32_t, T>;
    auto C = device.buffer<Out>(m * n, "C");
    const bool a = options.a == MatrixOrder::Rows, b = options.b == MatrixOrder::Rows;
    gemm_tensor_core(device, a ? A.view(m, k) : A.view(k, m), b ? B.view(k, n) : B.view(n, k), C.view(m, n), options);
    REQUIRE(traffic.size() == 1);
    std::map<std::string, emulator::SharedTraffic> out;
    for (const emulator::SharedTraffic& line : traffic[0].shared) {
        CHECK(std::string_view(line.where.file).contains("stdlib/tile/"));
        INFO(line.where.file << ":" << line.where.line << " " << line.instruction);
        CHECK(line.wavefronts >= line.possible);
        out[line.instruction].add(line);
    }
    return out;
}

template <class T>
void check_loop(bool transposes) {
    using enum MatrixOrder;
    for (const TileSize tile : {TileSize::small, TileSize::medium, TileSize::large})
        for (const MatrixOrder a : {Rows, Columns})
            for (const MatrixOrder b : {Rows, Columns}) {
                const bool is_along_k = a == Rows && b == Columns;
                if (!is_along_k && !transposes) continue;  // by elements
                const TensorTile of = tensor_tile(tile);
                const std::uint32_t slices = 512 / of.k_bytes, steps = of.k_bytes / 32, k = 512 / sizeof(T);
                INFO(sizeof(T) << " bytes, tile " << int(tile) << ", orders " << int(a) << int(b));
                const auto traffic = traffic_of<T>(
                    of.m, of.n, k, {.a = a, .b = b, .path = GemmPath::mma_sync, .tile = tile, .parts = 1});
                // Each warp reads its rows of A and columns of B, each step of 32 bytes, in wavefronts of 128; and the
                // first step of the slice after the last.
                const std::uint64_t warps = of.threads() / 32;
                const std::uint64_t read = warps * (of.warp_m + of.warp_n) / 4 * (slices * steps + 1);
                CHECK(traffic.at("ldmatrix").wavefronts == read);
                CHECK(traffic.at("ldmatrix").possible == read);
                // Slices are written once, those after the last as zeros.
                const std::uint64_t written = (of.m + of.n) * (slices + of.stages - 1) * of.k_bytes / 128;
                CHECK(traffic.at("cp.async").wavefronts == written);
                CHECK(traffic.at("cp.async").possible == written);
                CHECK(traffic.at("st").efficiency() == 1);
                CHECK(traffic.at("ld").efficiency() == 1);
            }
}

}  // namespace

TEST_CASE("wavefronts: products on tensor cores take as few as there can be") {
    check_loop<half>(true);
    check_loop<bfloat16>(true);
    check_loop<float>(false);
    check_loop<std::int8_t>(false);
}

TEST_CASE("wavefronts: products in f32 in large tiles take as few as there can be") {
    for (const std::uint32_t n : {256u, 255u}) {
        const std::uint32_t m = 128, k = 48;
        std::vector<emulator::LaunchTraffic> traffic;
        const auto device = runtime::Device::open({.device = "emulator", .traffic = &traffic});
        const auto A = device.upload(std::vector<float>(m * k), "A"), B = device.upload(std::vector<float>(n * k), "B");
        auto C = device.buffer<float>(m * n, "C");
        gemm(device, A.view(m, k), B.view(k, n), C.view(m, n), GemmBlock::large);
        REQUIRE(traffic.size() == 1);
        REQUIRE(!traffic[0].shared.empty());
        for (const emulator::SharedTraffic& line : traffic[0].shared) {
            INFO(line.where.file << ":" << line.where.line << " " << line.instruction);
            CHECK(line.wavefronts == line.possible);
        }
    }
}

TEST_CASE("wavefronts: a tile without a swizzle takes eight times as many") {
    using M = Mma<16, 8, 16, half, float>;
    const auto read = kernel("read", [](Out<half> y) {
        SharedTile<half, 1, 16, 64, 0> a;
        a.conflicts_allowed();
        for (auto e : range(thread_id().x, 16 * 64, 32)) a[0][e / 64, e % 64] = cast<f16>(0.0f);
        sync_block();
        const LeftOperand<M, decltype(a), Major::K> left(a, 0);
        y[thread_id().x] = left.fragment(a[0], 0, 0)[0][0];
    });
    std::vector<emulator::LaunchTraffic> traffic;
    const auto device = runtime::Device::open({.device = "emulator", .traffic = &traffic});
    auto y = device.buffer<half>(32, "y");
    device.launch(read, Grid{{1}, {32}}, y);
    std::map<std::string, emulator::SharedTraffic> by_instruction;
    for (const emulator::SharedTraffic& line : traffic.at(0).shared) by_instruction[line.instruction].add(line);
    CHECK(by_instruction.at("ldmatrix").possible == 4);
    CHECK(by_instruction.at("ldmatrix").wavefronts == 32);
}

TEST_CASE("wavefronts that tiles are checked with are those that the emulator counts") {
    std::mt19937 random(1);
    for (int round = 0; round < 2000; ++round) {
        const std::uint32_t bytes = 1u << random() % 5, step = 1u << random() % 8;
        std::vector<std::uint64_t> addresses;
        for (unsigned lane = 0; lane < 32; ++lane)
            addresses.push_back((random() % 4 ? lane * step : random() % 4096) / bytes * bytes);
        const auto counted = emulator::wavefronts_of(addresses, ~0u, bytes, emulator::Direction::Read);
        REQUIRE(counted.taken == stdlib::wavefronts(addresses, bytes));
        REQUIRE(counted.possible == std::max(1u, bytes / 4));
        REQUIRE(counted.possible <= counted.taken);
        // Lanes that take no part are as if they were not there; all atomics are apart.
        const std::uint32_t mask = std::uint32_t(random());
        REQUIRE(emulator::wavefronts_of(addresses, mask, bytes, emulator::Direction::Read).taken <= counted.taken);
        REQUIRE(emulator::wavefronts_of(addresses, ~0u, bytes, emulator::Direction::Atomic).taken >= counted.taken);
    }
    CHECK(emulator::wavefronts_of(std::vector<std::uint64_t>(32), 0, 4, emulator::Direction::Read) ==
          emulator::Wavefronts{});
}
