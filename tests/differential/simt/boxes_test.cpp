// SPDX-License-Identifier: Apache-2.0
// Boxes of tensors (TMA), under several orders of the threads and of what is copied.
#include "tests/differential/simt/run.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <ikat/async.hpp>
#include <ikat/cluster.hpp>

namespace ikat::test {
namespace {

std::vector<float> ascending(std::size_t count) {
    std::vector<float> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = float(i);
    return out;
}

/// Each block transposed_boxes a box of 32 x 32; what lies outside is left out.
const auto transposed_boxes =
    kernel("transposed_boxes", params("a", "b"), [](TensorMap<float, Box<32, 32>> a, TensorMap<float, Box<32, 32>> b) {
        require_threads(32);
        Shared<float, 32, 32> s, r;
        Shared<Barrier, 1> full;
        u32 t = thread_id().x, row = block_id().y * 32, column = block_id().x * 32;
        if_(t == 0, [&] {
            full[0].init(1);
            fence_barrier_init();
            full[0].arrive_expect(a.bytes);
            tma_load(s[0, 0], a[row, column], full[0]);
        });
        sync_block();
        full[0].wait(0);
        for (int i = 0; i < 32; ++i) r[t, i] = s[i, t];
        fence_async_shared();
        sync_block();
        if_(t == 0, [&] {
            tma_store(b[column, row], r[0, 0]);
            bulk_commit();
            bulk_wait_read<0>();
        });
    });

/// The box that starts at (row, column), as it lies in shared memory.
template <int swizzle, Fill fill>
const auto filled_boxes = kernel("filled_boxes", params("a", "y", "row", "column"),
                                 [](TensorMap<float, Box<8, 16>, swizzle, fill> a, Out<float> y, i32 row, i32 column) {
                                     require_threads(32);
                                     Shared<float, 128> s;
                                     Shared<Barrier, 1> full;
                                     if_(thread_id().x == 0, [&] {
                                         full[0].init(1);
                                         fence_barrier_init();
                                         full[0].arrive_expect(a.bytes);
                                         tma_load(s[0], a[row, column], full[0]);
                                     });
                                     sync_block();
                                     full[0].wait(0);
                                     for (auto i : range(thread_id().x, 128u, 32u)) y[i] = s[i];
                                 });

/// The rows that a box has in shared memory, and the same doubled in another tensor.
template <class B>
const auto strided_boxes = kernel("strided_boxes", params("a", "b", "y", "plane", "row"),
                                  [](TensorMap<float, B> a, TensorMap<float, B> b, Out<float> y, i32 plane, i32 row) {
                                      require_threads(32);
                                      constexpr int count = int(TensorMap<float, B>::bytes / sizeof(float));
                                      Shared<float, count> s, r;
                                      Shared<Barrier, 1> full;
                                      u32 t = thread_id().x;
                                      if_(t == 0, [&] {
                                          prefetch(a);
                                          full[0].init(1);
                                          fence_barrier_init();
                                          full[0].arrive_expect(a.bytes);
                                          tma_load(s[0], a[plane, row, 4], full[0]);
                                      });
                                      sync_block();
                                      full[0].wait(0);
                                      for (auto i : range(t, u32(count), 32u)) {
                                          y[i] = s[i];
                                          r[i] = 2 * s[i];
                                      }
                                      fence_async_shared();
                                      sync_block();
                                      if_(t == 0, [&] {
                                          tma_store(b[plane, row, 4], r[0]);
                                          bulk_commit();
                                          bulk_wait<0>();
                                      });
                                  });

/// All blocks add a box of ones to the same place.
const auto added_boxes = kernel("added_boxes", params("a"), [](TensorMap<std::uint32_t, Box<4, 8>> a) {
    require_threads(32);
    Shared<std::uint32_t, 32> s;
    s[thread_id().x] = 1;
    fence_async_shared();
    sync_block();
    if_(thread_id().x == 0, [&] {
        tma_add(a[3, 4], s[0]);
        bulk_commit();
        bulk_wait<0>();
    });
});

/// One block of two copies a box to both.
const auto shared_boxes =
    kernel("shared_boxes", params("a", "y"), [](TensorMap<float, Box<4, 8>> a, Out<float> y) {
        require_threads(32);
        Shared<float, 32> s;
        Shared<Barrier, 1> full;
        if_(thread_id().x == 0, [&] {
            full[0].init(1);
            fence_barrier_init();
            full[0].arrive_expect(a.bytes);
        });
        cluster_sync();
        if_((thread_id().x == 0) & (cluster_rank() == 0), [&] { tma_load(s[0], a[2, 0], full[0], 3); });
        full[0].wait(0);
        y[block_id().x * 32 + thread_id().x] = s[thread_id().x];
        cluster_sync();
    }).cluster(2);

/// A box of twos, stored where the rows of the tensor end.
const auto stored_boxes = kernel("stored_boxes", params("a"), [](TensorMap<float, Box<2, 16>> a) {
    require_threads(32);
    Shared<float, 32> s;
    s[thread_id().x] = 2;
    fence_async_shared();
    sync_block();
    if_(thread_id().x == 0, [&] {
        tma_store(a[1, 8], s[0]);
        bulk_commit();
        bulk_wait<0>();
    });
});

}  // namespace

TEST_CASE("boxes are copied to shared memory and back, also at the edges") {
    constexpr std::uint32_t m = 68, n = 44;
    const std::vector<float> a = ascending(m * n);
    std::vector<float> wanted(n * 72, -1);
    for (std::uint32_t i = 0; i < m; ++i)
        for (std::uint32_t j = 0; j < n; ++j) wanted[j * 72 + i] = a[i * n + j];
    const auto run = [&](runtime::Device& device) {
        const auto x = device.upload(a, "a");
        auto y = device.upload(std::vector<float>(n * 72, -1), "b");
        device.launch(transposed_boxes, runtime::Grid{{2, 3}, {32}}, x.view(m, n), y.view(n, m).pitched(72));
        CHECK(y.download() == wanted);
    };
    under_seeds("sm_90", run, "registers");
    check_assembled(transposed_boxes, 90);
}

TEST_CASE("boxes are swizzled, and filled outside of the tensor") {
    constexpr std::uint32_t m = 20, n = 24;
    const std::vector<float> a = ascending(m * n);
    runtime::Device device = open_device({.target = "sm_90", .schedule = "3", .check = "registers"});
    const auto x = device.upload(a, "a");
    const auto check = [&](const auto& made, int swizzle, bool nan) {
        for (const auto& [row, column] : {std::pair(0, 0), {5, 4}, {-3, 12}, {17, -8}, {30, 0}}) {
            auto y = device.upload(std::vector<float>(128, -1), "y");
            device.launch(made, runtime::Grid{{1}, {32}}, x.view(m, n), y, row, column);
            const std::vector<float> got = y.download();
            int wrong = 0;
            for (int r = 0; r < 8; ++r)
                for (int c = 0; c < 16; ++c) {
                    const int i = row + r, j = column + c, piece = swizzle == 64 ? c / 4 ^ r / 2 % 4 : c / 4;
                    const float at = got[std::size_t(r * 16 + piece * 4 + c % 4)];
                    const bool inside = i >= 0 && i < int(m) && j >= 0 && j < int(n);
                    wrong += inside ? at != a[std::size_t(i * int(n) + j)] : nan ? !std::isnan(at) : at != 0;
                }
            CHECK(wrong == 0);
        }
    };
    check(filled_boxes<0, Fill::Zeros>, 0, false);
    check(filled_boxes<64, Fill::Zeros>, 64, false);
    check(filled_boxes<0, Fill::NaN>, 0, true);
    check(filled_boxes<64, Fill::NaN>, 64, true);
}

TEST_CASE("boxes are stored to the end of 16 bytes, also where the rows of the tensor end before") {
    if (std::getenv("IKAT_CUDA_DRIVER")) return;  // the stand-in for the driver does not take the checks of a device
    constexpr std::uint32_t pitch = 24;
    for (const std::uint32_t columns : {13u, 15u, 16u, 17u, 22u}) {
        runtime::Device device = open_device({.target = "sm_90", .check = "box-tails=off"});
        auto a = device.upload(std::vector<float>(4 * pitch, 1), "a");
        device.launch(stored_boxes, runtime::Grid{{1}, {32}}, a.view(4, columns).pitched(pitch));
        std::vector<float> wanted(4 * pitch, 1);
        for (const std::uint32_t row : {1u, 2u})
            for (std::uint32_t column = 8; column < std::min(24u, (columns + 3) / 4 * 4); ++column)
                wanted[row * pitch + column] = 2;
        CHECK(a.download() == wanted);
    }
}

TEST_CASE("boxes of each second or third row") {
    constexpr int planes = 9, rows = 20, columns = 24;
    const std::vector<float> a = ascending(planes * rows * columns);
    const auto check = [&]<class B>(runtime::Device& device, B, int of_planes, int of_rows, int plane, int row) {
        const std::size_t count = std::size_t(of_planes * of_rows * 16);
        const auto x = device.upload(a, "a");
        auto b = device.upload(std::vector<float>(a.size(), -1), "b"),
             y = device.upload(std::vector<float>(count, -1), "y");
        device.launch(strided_boxes<B>, runtime::Grid{{1}, {32}}, x.view(planes, rows, columns),
                      b.view(planes, rows, columns), y, plane, row);
        std::vector<float> wanted(count, 0), stored(a.size(), -1);
        for (int i = 0; i < int(count); ++i) {
            const int p = plane + i / 16 / of_rows * int(B::strides[0]),
                      r = row + i / 16 % of_rows * int(B::strides[1]);
            if (p < 0 || p >= planes || r < 0 || r >= rows) continue;
            const std::size_t at = std::size_t((p * rows + r) * columns + 4 + i % 16);
            wanted[std::size_t(i)] = a[at];
            stored[at] = 2 * a[at];
        }
        CHECK(y.download() == wanted);
        CHECK(b.download() == stored);
    };
    const auto run = [&](runtime::Device& device) {
        check(device, Box<1, 9, 16>::Every<1, 2, 1>{}, 1, 5, 3, 4);
        check(device, Box<3, 8, 16>::Every<2, 3, 1>{}, 2, 3, 1, 2);
        check(device, Box<7, 8, 16>::Every<3, 8, 1>{}, 3, 1, 5, 19);
        check(device, Box<2, 8, 16>::Every<1, 4, 1>{}, 2, 2, 8, 16);
    };
    under_seeds("sm_90", run, "registers");
    check_assembled(strided_boxes<Box<3, 8, 16>::Every<2, 3, 1>>, 90);
}

TEST_CASE("boxes are added, and copied to all blocks of a cluster") {
    const auto run = [&](runtime::Device& device) {
        auto sums = device.upload(std::vector<std::uint32_t>(12 * 16, 7), "sums");
        device.launch(added_boxes, runtime::Grid{{5}, {32}}, sums.view(12, 16));
        std::vector<std::uint32_t> wanted(12 * 16, 7);
        for (int i = 0; i < 32; ++i) wanted[std::size_t((3 + i / 8) * 16 + 4 + i % 8)] += 5;
        CHECK(sums.download() == wanted);

        const auto x = device.upload(ascending(8 * 8), "a");
        auto y = device.upload(std::vector<float>(128, -1), "y");
        device.launch(shared_boxes, runtime::Grid{{4}, {32}}, x.view(8, 8), y);
        std::vector<float> shared(128);
        for (std::size_t i = 0; i < 128; ++i) shared[i] = float(16 + i % 32);
        CHECK(y.download() == shared);
    };
    under_seeds("sm_90", run, "registers");
    check_assembled(added_boxes, 90);
    check_assembled(shared_boxes, 90);
}

}  // namespace ikat::test
