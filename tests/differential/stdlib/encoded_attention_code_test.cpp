// SPDX-License-Identifier: Apache-2.0
// Caches of Q8_0 and e4m3: their kernels are assembled without spills, and move the bytes of the encoded cache once.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "codegen/pipeline/compile.hpp"
#include "stdlib/attention/attention_kernels.hpp"
#include "stdlib/attention/incremental/incremental.hpp"
#include "stdlib/attention/incremental/kernels.hpp"
#include "stdlib/layout/cache_rows.hpp"
#include "tests/catch.hpp"
#include "tests/ptxas.hpp"

#include <ikat/ikat.hpp>

namespace {

using namespace ikat;
using namespace ikat::stdlib;

void check_assembled(const auto& kernel, const char* target) {
    const auto report = tests::assemble(compile(kernel.handle().ast(), {.target = target}).ptx, target);
    INFO(kernel.name() << " for " << target << "\n" << report.log);
    CHECK(report.clean());
}

/// One query of each of `group` heads, two heads of keys; rows of `row` bytes.
std::vector<emulator::LaunchTraffic> of_cache(CacheEncoding encoding, std::uint32_t d, std::uint32_t group,
                                              std::uint32_t keys) {
    std::vector<emulator::LaunchTraffic> traffic;
    const auto device = runtime::Device::open({.device = "emulator", .target = "sm_80", .traffic = &traffic});
    const std::vector<std::uint8_t> rows(2 * keys * encoded_bytes(encoding, d));
    const auto Q = device.upload(std::vector<half>(2 * group * d), "Q");
    const auto K = device.upload(rows, "K"), V = device.upload(rows, "V");
    auto O = device.buffer<half>(2 * group * d, "O");
    const auto view = [&](const auto& x) {
        const std::uint64_t extents[] = {2, keys, d};
        return encoding == CacheEncoding::q8_0 ? TensorView(runtime::Quantised::Q8_0, x.memory().whole(), extents)
                                               : TensorView(ir::Type::E4M3, x.memory().whole(), extents);
    };
    IncrementalOptions options{};
    options.parts = 1;
    incremental_attention(device, Q.view(2 * group, 1, d), view(K), view(V), O.view(2 * group, 1, d), options);
    return traffic;
}

}  // namespace

TEST_CASE("attention to encoded caches: kernels are assembled without spills") {
    if (tests::skip_without_ptxas()) return;
    for (const CacheEncoding encoding : {CacheEncoding::q8_0, CacheEncoding::e4m3})
        for (const ir::Type type : {ir::Type::F16, ir::Type::BF16, ir::Type::F32})
            for (const std::uint32_t d : {64u, 96u, 128u, 256u}) {
                // Each encoding with some of the types; both with all where registers are fewest.
                const bool is_tight = d == 256 || (d == 96 && type == ir::Type::F32);
                if ((type == ir::Type::F16) != (encoding == CacheEncoding::e4m3) && !is_tight) continue;
                const char* const target = type == ir::Type::BF16 ? "sm_90a" : "sm_80";
                const std::uint32_t access = encoding == CacheEncoding::e4m3 ? 16 : d == 96 ? 0 : d == 64 ? 4 : 8;
                DecodeKernel decode{.type = type, .encoding = encoding, .head_dim = d, .has_lengths = true};
                decode.has_pages = true;
                decode.k_access = decode.v_access = access;
                check_assembled(decode, target);
                decode.step = DecodeKernel::Step::Part, decode.is_causal = decode.has_before = decode.has_cap = true;
                decode.k_access = 0;
                check_assembled(decode, target);
                AttentionKernel flash{.type = type, .encoding = encoding, .head_dim = d, .queries = 64};
                flash.has_after = true;
                flash.k_access = flash.v_access = access;
                check_assembled(flash, target);
                flash.has_offsets = flash.has_before = flash.has_cap = flash.has_log_sum = true;
                flash.v_access = 0;
                if (d < 128 && type != ir::Type::F32) flash.queries = 128;
                check_assembled(flash, target);
            }
}

TEST_CASE("rows of a cache: kernels are assembled without spills") {
    if (tests::skip_without_ptxas()) return;
    for (const ir::Type cache : {ir::Type::F16, ir::Type::E4M3, ir::Type::Void})
        for (const Rope form : {Rope::Interleaved, Rope::Neox})
            for (const bool is_aligned : {true, false}) {
                CacheKernel is{.x = ir::Type::F16, .cache = cache, .form = form};
                is.x_is_aligned = is.cache_is_aligned = is_aligned;
                check_assembled(is, is_aligned ? "sm_80" : "sm_90a");
            }
}

TEST_CASE("attention to encoded caches reads their bytes once") {
    constexpr std::uint32_t keys = 336;
    for (const CacheEncoding encoding : {CacheEncoding::q8_0, CacheEncoding::e4m3})
        for (const std::uint32_t d : {64u, 128u, 256u})
            for (const std::uint32_t group : {1u, 8u}) {
                INFO("encoding " << int(encoding) << ", d " << d << ", group " << group);
                const auto traffic = of_cache(encoding, d, group, keys);
                REQUIRE(traffic.size() == 1);
                const std::uint64_t bytes = 2 * keys * encoded_bytes(encoding, d);
                for (const emulator::BufferTraffic& buffer : traffic[0].buffers)
                    if (buffer.name == "K" || buffer.name == "V") {
                        CHECK(buffer.read.requested == bytes);
                        CHECK(buffer.read.moved == bytes);
                    }
                // Blocks of 34 bytes straddle words: what 32 lanes read of them is in 33 or 34.
                for (const emulator::SharedTraffic& line : traffic[0].shared) {
                    INFO(line.where.file << ":" << line.where.line << " " << line.instruction);
                    CHECK(line.wavefronts <= (encoding == CacheEncoding::q8_0 ? 2 : 1) * line.possible);
                }
            }
}
