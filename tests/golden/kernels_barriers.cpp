// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Kernels for tests/golden/lower and dsl_errors: barriers in shared memory, and copies that arrive there.
#include <ikat/async.hpp>

#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

// A ring of two stages, filled by one thread.
const auto ring = kernel("ring", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
    Shared<float, 2, 128> s;
    Shared<Barrier, 2> full, empty;
    u32 t = thread_id().x;
    if_(t == 0, [&] {
        for (int i = 0; i < 2; ++i) full[i].init(1), empty[i].init(128);
        fence_barrier_init();
    });
    sync_block();
    if_(t == 0, [&] {
        for (auto k : range(n)) {
            empty[k % 2].wait(k / 2 % 2 ^ 1);
            full[k % 2].arrive_expect(512);
            bulk_load(s[k % 2, 0], x[k * 128], 512, full[k % 2]);
        }
    });
    f32 sum = 0;
    for (auto k : range(n)) {
        full[k % 2].wait(k / 2 % 2);
        sum += s[k % 2, t];
        empty[k % 2].arrive();
    }
    y[t] = sum;
});

const auto uses_of_a_barrier = kernel("uses_of_a_barrier", params("x", "y", "n"), [](In<float> x, InOut<float> y, u32 n) {
    Shared<Barrier, 2, 2> b;
    Shared<float, 64> s;
    u32 t = thread_id().x;
    b[1, n].init(n + 1);
    copy_async<4>(s[t], x[t]);
    b[1, n].arrive_copies();
    b[1, n].expect(256u);
    b[1, n].arrive_drop();
    if_(b[1, n].try_wait(0), [&] { s[t] = 1; });
    b[1, n].invalidate();
    fence_async();
    fence_async_shared();
    bulk_store(y[64], s[0], n * 16);
    bulk_add(y[0], s[0], 256);
    bulk_prefetch(x[0], 64);
    bulk_commit();
    bulk_wait_read<1>();
    bulk_wait<0>();
});

const auto bulk_copies_of_the_wrong = kernel("bulk_copies_of_the_wrong", params("x", "y"), [](InOut<float> x, InOut<float> y) {
    Shared<float, 64> s;
    Shared<Barrier, 1> b;
    bulk_load(y[0], x[0], 64, b[0]);
    bulk_load(s[0], s[16], 64, b[0]);
    bulk_load(s[0], x[0], 40, b[0]);
    bulk_load(s[1], x[0], 64, b[0]);
    bulk_store(s[0], s[0], 64);
    bulk_store(y[2], s[0], 64);
    bulk_prefetch(s[0], 64);
});

const auto read_before_the_phase = kernel("read_before_the_phase", params("x", "y"), [](In<float> x, Out<float> y) {
    Shared<float, 64> s, r;
    Shared<Barrier, 1> b;
    u32 t = thread_id().x;
    bulk_load(s[0], x[0], 256, b[0]);
    y[t] = s[t];
    bulk_load(r[0], x[0], 256, b[0]);
    b[0].wait(0);
    y[t] = r[t];
});

const auto boxes = kernel("boxes", params("a", "b", "c", "n"), [](TensorMap<half, Box<8, 64>, 128> a, TensorMap<float, Box<1, 2, 8>> b, TensorMap<float, Box<32>> c, u32 n) {
    Shared<half, 8, 64> s;
    Shared<float, 2, 8> r;
    auto more = dynamic_shared<float>(32);
    Shared<Barrier, 1> full;
    i32 back = -1;
    prefetch(a);
    full[0].arrive_expect(a.bytes + b.bytes);
    tma_load(s[0, 0], a[n, back], full[0]);
    tma_load(r[0, 0], b[n + 1, 0, -8], full[0], 3);
    tma_store(b[0, n, 0], r[0, 0]);
    tma_add(c[n], more[0]);
    tma_prefetch(c[32]);
    bulk_commit();
});

const auto boxes_of_the_wrong = kernel("boxes_of_the_wrong", params("a", "b", "y"), [](TensorMap<half, Box<8, 64>, 128> a, TensorMap<float, Box<8, 8>> b, Out<float> y) {
    Shared<half, 16, 64> s;
    Shared<float, 32> r;
    Shared<float, 128> q;
    Shared<half, 2, 8, 32> narrow;
    Shared<float, 8, 9> padded;
    Shared<float, 4, 16> halved;
    Shared<half, 15, 64> short_;
    Shared<Barrier, 1> full;
    tma_load(s.flat()[64], a[0, 0], full[0]);
    tma_load(narrow[0, 0, 0], a[0, 0], full[0]);
    tma_load(narrow.flat()[0], a[0, 0], full[0]);
    tma_load(padded[0, 0], b[0, 0], full[0]);
    tma_load(halved[0, 0], b[0, 0], full[0]);
    tma_load(short_[8, 0], a[0, 0], full[0]);
    tma_load(r[0], b[0, 0], full[0]);
    tma_store(b[0, 0], q[4]);
    tma_store(b[0, 0], y[0]);
});

const KernelRegistration barrier_kernels[] = {
    {"boxes", boxes},
    {"boxes_of_the_wrong", boxes_of_the_wrong},
    {"ring", ring},
    {"uses_of_a_barrier", uses_of_a_barrier},
    {"bulk_copies_of_the_wrong", bulk_copies_of_the_wrong},
    {"read_before_the_phase", read_before_the_phase},
};

}  // namespace
}  // namespace ikat::tests
