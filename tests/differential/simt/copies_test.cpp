// SPDX-License-Identifier: Apache-2.0
// Copies in flight: what they have copied when they have been waited for, for a target that has them not and does it by
// loads and stores, with zeros where less is read.
#include "tests/differential/simt/run.hpp"

#include <ikat/async.hpp>

namespace ikat::test {
namespace {

using u32s = std::vector<std::uint32_t>;

u32s numbered(std::uint32_t count) {
    u32s out(count);
    for (std::uint32_t i = 0; i < count; ++i) out[i] = 0x01020304 * (i + 1);
    return out;
}

constexpr std::uint32_t threads = 32;

/// Each thread copies 4, 8 and 16 bytes, and reads what its neighbour has copied.
const auto widths = kernel("widths", params("x", "n"), [](InOut<std::uint32_t> x, u32 n) {
    Shared<std::uint32_t, threads * 4> a, b, c, d;
    u32 t = thread_id().x, other = threads - 1 - t;
    copy_async<4>(a[t], x[t]);
    copy_async<8>(b.flat().vec<2>(t), x.vec<2>(t));
    copy_commit();
    copy_async<16>(c[t * 4], x.slice(4).vec<4>(t));
    copy_async_if<16>(t < n, d.flat().vec<4>(t), x.vec<4>(t));
    copy_commit();
    copy_wait<1>();
    sync_block();
    u32 first = a[other], second = b[other * 2 + 1];
    copy_wait<0>();
    sync_block();
    u32 third = c[other * 4 + 2], fourth = d[other * 4 + 3];
    sync_block();
    x[256 + t] = first;
    x[288 + t] = second;
    x[320 + t] = third;
    x[352 + t] = fourth;
});

TEST_CASE("copies bring what was there, and zeros where a condition is false") {
    u32s before = numbered(384);
    const std::uint32_t n = 20;
    const u32s after = run_compiled(widths, {.target = "sm_75"}, threads, before, std::span(&n, 1));
    for (std::uint32_t t = 0; t < threads; ++t) {
        const std::uint32_t other = threads - 1 - t;
        INFO("thread " << t);
        CHECK(after[256 + t] == before[other]);
        CHECK(after[288 + t] == before[other * 2 + 1]);
        CHECK(after[320 + t] == before[4 + other * 4 + 2]);
        CHECK(after[352 + t] == (other < n ? before[other * 4 + 3] : 0));
    }
    check_assembled(widths, 75);
}

/// The bytes of copies whose number of bytes is known in different ways: each from the buffer's start to 64 bytes
/// after it.
u32s copied(const char* size, std::uint32_t bytes, std::uint32_t n) {
    const std::string text = R"(kernel @copied(%y: inout u32* align 16, %n: u32) {
  shared $s: u32[64] align 16
^0:
  %y = param.u64 %y
  %given = param.u32 %n
  %s = symbol.u32 $s
  %two = const.u32 2
  %four = const.u32 4
  %ones = const.u32 0xffffffff
  store.u32.v4 shared [%s], %ones, %ones, %ones, %ones
)" + std::string(size) + "  copy_async " +
                             std::to_string(bytes) +
                             R"(.ca, [%s], [%y], %n
  copy_commit
  copy_wait 0
  %a, %b, %c, %d = load.u32.v4 shared [%s]
  store.u32.v4 global [%y+64], %a, %b, %c, %d
  return
})";
    const Compiled compiled = compile(ir::parse_function(text), {.target = "sm_75"});
    const auto y = simt_device().upload(numbered(20), "y");
    const struct {
        std::uint64_t address;
        std::uint32_t n;
    } parameters{y.address(), n};
    simt_device().launch(simt_device().load(compiled.ptx, "ir"), compiled.info.name, {.blocks = {1}, .threads = {1}},
                         std::as_bytes(std::span(&parameters, 1)).first(12));
    const u32s all = y.download();
    return {all.begin() + 16, all.end()};
}

TEST_CASE("of a copy of fewer bytes than it writes the rest is zeros") {
    const auto expected = [](std::uint32_t bytes, std::uint32_t n) {
        u32s words(4, 0xffffffff);
        const u32s from = numbered(4);
        for (std::uint32_t byte = 0; byte < bytes; ++byte) {
            const std::uint32_t word = byte / 4, shift = byte % 4 * 8;
            words[word] &= ~(255u << shift);
            if (byte < n) words[word] |= from[word] & 255u << shift;
        }
        return words;
    };
    for (const std::uint32_t bytes : {4u, 8u, 16u}) {
        for (std::uint32_t n = 0; n <= bytes; ++n) {
            INFO(n << " of " << bytes << " bytes");
            CHECK(copied("  %n = add.u32 %given, %two\n", bytes, n - 2) == expected(bytes, n));
            const std::string constant = "  %n = const.u32 " + std::to_string(n) + "\n";
            CHECK(copied(constant.c_str(), bytes, 0) == expected(bytes, n));
            if (n % 2 == 0) CHECK(copied("  %n = mul.u32 %given, %two\n", bytes, n / 2) == expected(bytes, n));
            if (n % 4 == 0) CHECK(copied("  %n = mul.u32 %given, %four\n", bytes, n / 4) == expected(bytes, n));
        }
    }
}

}  // namespace
}  // namespace ikat::test
