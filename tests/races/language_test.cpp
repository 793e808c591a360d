// SPDX-License-Identifier: Apache-2.0
// Races in kernels of the language, each beside a right twin: of them, docs/errors.md tells.
#include <ikat/async.hpp>
#include <ikat/catch.hpp>
#include <ikat/ikat.hpp>

#include "tests/catch.hpp"

using namespace ikat;

namespace {

/// The kernel takes two buffers of 256 words, which begin with zeros.
using Twin = Kernel<InOut<std::uint32_t>, InOut<std::uint32_t>>;

struct TwinKernels {
    const char* name;
    std::function<void(bool is_right, InOut<std::uint32_t> x, InOut<std::uint32_t> y)> body;
    const char* says;
    std::uint32_t blocks = 1;
    std::string_view target = "sm_80";
};

void check(const TwinKernels& twins) {
    INFO(twins.name);
    for (const bool is_right : {true, false}) {
        const auto twin = kernel("twin", params("x", "y"),
                                 [&](InOut<std::uint32_t> x, InOut<std::uint32_t> y) { twins.body(is_right, x, y); });
        const auto found = testing::findings_in(
            [&](const Device& device) {
                Buffer<std::uint32_t> x = device.upload(std::vector<std::uint32_t>(256)),
                                      y = device.upload(std::vector<std::uint32_t>(256));
                device.launch(twin, grid(64 * twins.blocks, 64), x, y);
            },
            {.check = "strict,races", .target = twins.target});
        if (is_right)
            CHECK(found.text == "");
        else
            CHECK_THAT(found.text, tests::contains(twins.says));
    }
}

}  // namespace

TEST_CASE("races in kernels of the language") {
    using Words = InOut<std::uint32_t>;
    const std::vector<TwinKernels> all = {
        {"a thread reads what another warp has stored",
         [](bool is_right, const Words& x, const Words&) {
             Shared<std::uint32_t, 64> tile;
             u32 i = thread_id().x;
             tile[i] = i;
             if (is_right) sync_block();
             x[i] = tile[63 - i];
         },
         "hint: threads of a block are ordered by sync_block() between language_test.cpp:"},
        {"lanes exchange words",
         [](bool is_right, const Words& x, const Words&) {
             Shared<std::uint32_t, 64> tile;
             u32 i = thread_id().x;
             tile[i] = i;
             if (is_right) sync_warp();
             x[i] = tile[i ^ 1];
         },
         "hint: lanes of a warp are ordered by sync_warp() between language_test.cpp:"},
        {"a tile is filled again while others may still read it",
         [](bool is_right, const Words& x, const Words&) {
             Shared<std::uint32_t, 64> tile;
             u32 i = thread_id().x;
             for (auto round : range(3)) {
                 tile[i] = round;
                 sync_block();
                 x[i] = x[i] + tile[63 - i];
                 if (is_right) sync_block();
             }
         },
         "does not order them, since a thread may be an iteration of a loop ahead: add a barrier at the end of the "
         "loop's body"},
        {"threads of a block, and of two, update an element",
         [](bool is_right, const Words& x, const Words&) {
             if (is_right)
                 atomic_add(x[0], 1);
             else
                 x[0] += 1;
         },
         "hint: both belong to one line: if threads update a value together, use an atomic, such as atomic_add()", 2},
        {"two blocks store into one element",
         [](bool is_right, const Words& x, const Words&) {
             u32 i = thread_id().x;
             if (is_right) i = global_id().x;
             x[i] = block_id().x;
         },
         "hint: blocks are ordered by launches", 2},
        {"a block reads after a flag that it has not acquired",
         [](bool is_right, const Words& x, const Words& y) {
             if_(thread_id().x == 0, [&] {
                 if_(block_id().x == 0, [&] {
                     x[0] = 7;
                     atomic_store(y[0], 1, Order::Release);
                 }).else_([&] {
                     u32 flag = 0;
                     while_([&] { return flag == 0; },
                            [&] { flag = atomic_load(y[0], is_right ? Order::Acquire : Order::Relaxed); });
                     x[1] = x[0];
                 });
             });
         },
         "a race: a store and a load of 4 bytes at offset 0 of buffer", 2},
        {"a fence in the scope of the block, between blocks",
         [](bool is_right, const Words& x, const Words& y) {
             if_(thread_id().x == 0, [&] {
                 if_(block_id().x == 0, [&] {
                     x[0] = 7;
                     fence(is_right ? Scope::Gpu : Scope::Cta);
                     atomic_store(y[0], 1);
                 }).else_([&] {
                     u32 flag = 0;
                     while_([&] { return flag == 0; }, [&] { flag = atomic_load(y[0], Order::Acquire); });
                     x[1] = x[0];
                 });
             });
         },
         "hint: the two are ordered in a scope that does not reach both threads", 2},
        {"an atomic beside a load",
         [](bool is_right, const Words& x, const Words& y) {
             atomic_add(x[0], 1);
             if (is_right) sync_block();
             y[thread_id().x] = x[0];
         },
         "a race: an atomic and a load of 4 bytes"},
        {"the target of a bulk store is read when its source has been read",
         [](bool is_right, const Words& x, const Words& y) {
             Shared<std::uint32_t, 64> tile;
             u32 i = thread_id().x;
             tile[i] = i;
             fence_async_shared();
             sync_block();
             if_(i == 0, [&] {
                 bulk_store(x[0], tile[0], 256);
                 bulk_commit();
                 if (is_right)
                     bulk_wait<0>();
                 else
                     bulk_wait_read<0>();
             });
             sync_block();
             y[i] = x[i];
         },
         "a race: a write by an operation in flight", 1, "sm_90"},
        {"the last block sums what all have stored",
         [](bool is_right, const Words& x, const Words& y) {
             Shared<std::uint32_t, 1> last;
             u32 i = thread_id().x;
             x[global_id().x] = i;
             sync_block();
             if_(i == 0, [&] {
                 if (is_right) fence(Scope::Gpu);
                 last[0] = atomic_add(y[0], 1);
                 fence(Scope::Gpu);
             });
             sync_block();
             if_(last[0] == 2, [&] { y[64 + i] = x[i] + x[64 + i] + x[128 + i]; });
         },
         "a race: a store and a load of 4 bytes", 3},
        {"a sum over a block in steps",
         [](bool is_right, const Words& x, const Words&) {
             Shared<std::uint32_t, 64> sums;
             u32 i = thread_id().x;
             sums[i] = i;
             sync_block();
             for (int step = 32; step > 0; step /= 2) {
                 if_(i < u32(step), [&] { sums[i] = sums[i] + sums[i + step]; });
                 if (is_right || step > 8) sync_block();
             }
             if_(i == 0, [&] { x[0] = sums[0]; });
         },
         "are not ordered"},
        {"a histogram by loads and stores",
         [](bool is_right, const Words& x, const Words&) {
             Shared<std::uint32_t, 8> counts;
             u32 i = thread_id().x;
             if_(i < 8, [&] { counts[i] = 0; });
             sync_block();
             if (is_right)
                 atomic_add(counts[i % 8], 1);
             else
                 counts[i % 8] = counts[i % 8] + 1;
             sync_block();
             if_(i < 8, [&] { x[i] = counts[i]; });
         },
         "a race: a"},
    };
    for (const TwinKernels& each : all) check(each);
}
