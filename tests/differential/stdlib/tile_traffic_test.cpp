// SPDX-License-Identifier: Apache-2.0
// Products and attention on tensor cores move no more of global memory than their tiles need, in whole sectors: what a
// block works on is read once, results are written once.
#include <fmt/format.h>

#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "stdlib/attention/attention.hpp"
#include "stdlib/attention/incremental/incremental.hpp"
#include "stdlib/gemm/tensor_core.hpp"
#include "stdlib/gemm/tensor_kernels.hpp"
#include "tests/catch.hpp"

#include <ikat/ikat.hpp>

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using enum MatrixOrder;

/// The traffic of the buffers by their names.
std::map<std::string, emulator::BufferTraffic> by_name(const std::vector<emulator::LaunchTraffic>& traffic,
                                                       std::size_t launches = 1) {
    REQUIRE(traffic.size() == launches);
    std::map<std::string, emulator::BufferTraffic> out;
    for (const emulator::BufferTraffic& buffer : traffic[0].buffers) out[buffer.name] = buffer;
    return out;
}

void check_read(const emulator::BufferTraffic& buffer, std::uint64_t bytes, double efficiency = 1) {
    INFO(buffer.name);
    CHECK(buffer.read.moved == bytes);
    CHECK(buffer.read.efficiency() == efficiency);
    CHECK(buffer.written.moved == 0);
}
void check_written(const emulator::BufferTraffic& buffer, std::uint64_t bytes) {
    INFO(buffer.name);
    CHECK(buffer.written.moved == bytes);
    CHECK(buffer.written.efficiency() == 1);
    CHECK(buffer.read.moved == 0);
}

/// A product of whole tiles, two rows and three columns of them. A is read for each column, B for each row, or for each
/// `rows_at_once` rows.
template <class T>
void check_product(const GemmOptions& options, std::uint32_t tile_m, std::uint32_t tile_n, std::uint32_t rows_at_once,
                   const char* target) {
    using Out = std::conditional_t<std::is_same_v<T, std::int8_t>, std::int32_t, T>;
    const std::uint32_t m = 2 * tile_m, n = 3 * tile_n, k = 512 / sizeof(T);
    std::vector<emulator::LaunchTraffic> traffic;
    const auto device = runtime::Device::open({.device = "emulator", .target = target, .traffic = &traffic});
    const auto A = device.upload(std::vector<T>(m * k), "A"), B = device.upload(std::vector<T>(n * k), "B");
    auto C = device.buffer<Out>(m * n, "C");
    gemm_tensor_core(device, options.a == Rows ? A.view(m, k) : A.view(k, m),
                     options.b == Rows ? B.view(k, n) : B.view(n, k), C.view(m, n), options);
    const auto of = by_name(traffic);
    INFO(sizeof(T) << " bytes, tile " << tile_m << " x " << tile_n << ", orders " << int(options.a) << int(options.b));
    // Bytes that are transposed on the way are read eight at once, four times from the same sector.
    const auto efficiency = [](bool is_along_k) { return sizeof(T) == 1 && !is_along_k ? 0.25 : 1; };
    check_read(of.at("A"), std::uint64_t{3} * m * k * sizeof(T), efficiency(options.a == Rows));
    check_read(of.at("B"), std::uint64_t{2} / rows_at_once * n * k * sizeof(T), efficiency(options.b == Columns));
    check_written(of.at("C"), std::uint64_t{m} * n * sizeof(Out));
}

template <class T>
void check_products() {
    for (const MatrixOrder a : {Rows, Columns})
        for (const MatrixOrder b : {Rows, Columns}) {
            for (const TileSize size : {TileSize::small, TileSize::medium, TileSize::large}) {
                const TensorTile tile = tensor_tile(size);
                check_product<T>({.a = a, .b = b, .path = GemmPath::mma_sync, .tile = size, .parts = 1}, tile.m, tile.n,
                                 1, "sm_80");
            }
            if (sizeof(T) != 2 && (a == Columns || b == Rows)) continue;
            for (const TileSize size : {TileSize::medium, TileSize::large}) {
                if (sizeof(T) != 2 && size == TileSize::large) continue;
                const ClusterTile tile = cluster_tile(size, sizeof(T));
                check_product<T>({.a = a, .b = b, .path = GemmPath::wgmma, .tile = size}, tile.m, tile.n, 2, "sm_90a");
            }
        }
}

void check_shared(const emulator::LaunchTraffic& traffic) {
    CHECK(!traffic.shared.empty());
    for (const emulator::SharedTraffic& line : traffic.shared) {
        INFO(line.where.file << ":" << line.where.line << " " << line.instruction);
        CHECK(line.wavefronts == line.possible);
    }
}

constexpr std::uint32_t heads = 4, kv_heads = 2, queries = 192;

/// Keys and values are read by each block of queries, as far as these see them.
template <class T>
void check_attention(std::uint32_t head_dim, bool causal, std::uint32_t of_block = 64) {
    INFO("head_dim " << head_dim << (causal ? ", causal" : "") << ", blocks of " << of_block);
    std::vector<emulator::LaunchTraffic> traffic;
    const auto device = runtime::Device::open({.device = "emulator", .target = "sm_80", .traffic = &traffic});
    const auto rows = [&](std::uint32_t count) { return std::vector<T>(count * queries * head_dim); };
    const auto Q = device.upload(rows(heads), "Q"), K = device.upload(rows(kv_heads), "K"),
               V = device.upload(rows(kv_heads), "V");
    auto O = device.buffer<T>(heads * queries * head_dim, "O");
    flash_attention(device, Q.view(heads, queries, head_dim), K.view(kv_heads, queries, head_dim),
                    V.view(kv_heads, queries, head_dim), O.view(heads, queries, head_dim),
                    {.causal = causal, .queries_of_block = of_block});
    const std::uint64_t row = head_dim * sizeof(T);
    std::uint64_t seen = 0;
    for (std::uint32_t first = 0; first < queries; first += of_block)
        seen += heads * (causal ? std::min(first + of_block, queries) : queries);
    const auto of = by_name(traffic);
    // Of the queries that the last block has not, it reads others.
    check_read(of.at("Q"), heads * ((queries + of_block - 1) / of_block * of_block) * row);
    check_read(of.at("K"), seen * row);
    check_read(of.at("V"), seen * row);
    check_written(of.at("O"), heads * queries * row);
    check_shared(traffic[0]);
}

/// The launches of attention of heads that share keys, by `parts` blocks for each of two heads of keys. Rows have gaps.
template <class T>
std::vector<emulator::LaunchTraffic> of_incremental_attention(std::uint32_t head_dim, std::uint32_t group,
                                                              std::uint32_t parts, std::uint32_t gap,
                                                              std::uint32_t keys) {
    std::vector<emulator::LaunchTraffic> traffic;
    const auto device = runtime::Device::open({.device = "emulator", .target = "sm_80", .traffic = &traffic});
    const std::uint32_t pitch = head_dim + gap, q_heads = 2 * group;
    const auto Q = device.upload(std::vector<T>(q_heads * pitch), "Q"),
               K = device.upload(std::vector<T>(2 * keys * pitch), "K"),
               V = device.upload(std::vector<T>(2 * keys * pitch), "V");
    auto O = device.buffer<T>(q_heads * pitch, "O");
    const auto of_keys = [&](const auto& x) { return x.view(2, keys, head_dim).pitched(keys * pitch, pitch); };
    const auto of_queries = [&](auto& x) { return x.view(q_heads, 1, head_dim).pitched(pitch, pitch); };
    IncrementalOptions options{};
    options.parts = parts;
    incremental_attention(device, of_queries(Q), of_keys(K), of_keys(V), of_queries(O), options);
    return traffic;
}
std::uint64_t shared_wavefronts(const emulator::LaunchTraffic& traffic) {
    std::uint64_t out = 0;
    for (const emulator::SharedTraffic& line : traffic.shared) out += line.wavefronts;
    return out;
}

template <class T>
void check_incremental_attention(std::uint32_t head_dim, std::uint32_t group, std::uint32_t parts, std::uint32_t gap) {
    INFO("head_dim " << head_dim << ", group " << group << ", parts " << parts << ", gap " << gap);
    constexpr std::uint32_t keys = 336;
    const auto traffic = of_incremental_attention<T>(head_dim, group, parts, gap, keys);
    const std::uint32_t q_heads = 2 * group;
    const auto of = by_name(traffic, parts > 1 ? 2 : 1);
    const std::uint64_t row = head_dim * sizeof(T);
    if (gap == 0) {
        check_read(of.at("Q"), parts * q_heads * row);
        check_read(of.at("K"), 2 * keys * row);
        check_read(of.at("V"), 2 * keys * row);
        if (parts == 1) check_written(of.at("O"), q_heads * row);
    } else {
        CHECK(of.at("K").read.requested == 2 * keys * row);
        CHECK(of.at("V").read.requested == 2 * keys * row);
    }
    const std::uint32_t together = std::gcd(gap * std::uint32_t(sizeof(T)), 16u);  // bytes, or single elements
    const std::uint64_t bytes_of_warp = 32 * (together < 4 ? sizeof(T) : together);
    CHECK(of.at("K").read.accesses == 2 * keys * row / bytes_of_warp);
    check_shared(traffic[0]);
    if (parts > 1 || gap > 0) return;
    // What is copied to shared memory is read from there about twice, of more than eight rows of f32 four times.
    CHECK(double(shared_wavefronts(traffic[0])) * 128 <=
          (group > 8 && sizeof(T) == 4 ? 5.5 : 3.5) * double(4 * keys * row));
}

}  // namespace

TEST_CASE("tile traffic: products on tensor cores read each tile's rows and columns once") {
    check_products<half>();
    check_products<bfloat16>();
    check_products<float>();
    check_products<std::int8_t>();
}

TEST_CASE("tile traffic: attention reads keys once for each block of queries") {
    for (const bool causal : {false, true}) {
        for (const std::uint32_t head_dim : {64u, 80u, 96u, 128u, 256u}) check_attention<half>(head_dim, causal);
        check_attention<bfloat16>(128, causal);
        for (const std::uint32_t head_dim : {64u, 128u}) check_attention<half>(head_dim, causal, 128);
    }
}

TEMPLATE_TEST_CASE("tile traffic: attention to a cache reads keys and values once", "", half, bfloat16, float) {
    for (const std::uint32_t head_dim : {64u, 80u, 96u, 128u, 256u}) {
        for (const std::uint32_t group : {1u, 4u, 8u, 16u})
            check_incremental_attention<TestType>(head_dim, group, group == 4 ? 3 : 1, 0);
        for (const std::uint32_t gap : {1u, 2u, 4u}) check_incremental_attention<TestType>(head_dim, 2, 1, gap);
    }
}

TEST_CASE("the table of attention to a cache in docs/performance.md", "[.][table]") {
    constexpr std::uint32_t keys = 1024;
    const auto print = [](const char* type, std::uint32_t d, std::uint32_t group, const auto& traffic, double bytes) {
        fmt::print("| {} | {} | {} | {:.1f} | {:.1f} |\n", type, d, group,
                   double(shared_wavefronts(traffic[0])) * 128 / bytes,
                   double(traffic[0].warp_instructions) * 128 / bytes);
    };
    for (const std::uint32_t d : {64u, 128u, 256u})
        for (const std::uint32_t group : {1u, 4u, 8u, 16u}) {
            print("f32", d, group, of_incremental_attention<float>(d, group, 1, 0, keys), 16.0 * keys * d);
            print("bf16", d, group, of_incremental_attention<bfloat16>(d, group, 1, 0, keys), 8.0 * keys * d);
        }
}
