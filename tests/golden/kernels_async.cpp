// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Kernels for tests/golden/ast, lower and dsl_errors: copies in flight.
#include <ikat/async.hpp>

#include "tests/golden/kernels.hpp"

namespace ikat::tests {
namespace {

const auto copies = kernel("copies", params("x", "A", "y", "n"), [](InOut<float> x, In<half, 2> A, Out<float> y, u32 n) {
    Shared<float, 4, 64> s;
    u32 i = thread_id().x;
    auto halves = dynamic_shared<half>(512);
    copy_async<16>(s.flat().vec<4>(i), x.vec<4>(i));
    copy_async<4>(s[1, i], x.slice(n)[i]);
    copy_async_if<8>(i < n, halves.slice(64).vec<4>(i), A.vec<4>(n, i));
    copy_commit();
    copy_wait<1>();
    copy_wait();
    sync_block();
    y[i] = s[0, i] + cast<f32>(halves[i]);
});

// Two stages: what is read was waited for while the next is copied.
const auto staged = kernel("staged", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
    Shared<float, 2, 32> s;
    u32 t = thread_id().x;
    f32 sum = 0;
    copy_async<4>(s[0, t], x[t]);
    copy_commit();
    for (auto k : range(n)) {
        copy_wait<0>();
        sync_block();
        copy_async_if<4>(k + 1 < n, s[(k + 1) % 2, t], x[(k + 1) * 32 + t]);
        copy_commit();
        sum += s[k % 2, 31 - t];
    }
    y[t] = sum;
});

const auto copied_to_the_wrong = kernel("copied_to_the_wrong", params("x", "y"), [](In<float> x, InOut<float> y) {
    Shared<float, 64> s;
    Local<float, 64> mine;
    u32 t = thread_id().x;
    copy_async<4>(mine[t], x[t]);
    copy_async<4>(y[t], x[t]);
    copy_async<4>(s[t], s[t + 1]);
    copy_async<16>(s[4], x[1]);
    copy_async<8>(s[1], x[2]);
    copy_async<8>(s[t], x[t]);  // depends on t
    copy_wait();
});

const auto read_in_flight = kernel("read_in_flight", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
    Shared<float, 64> s, r;
    u32 t = thread_id().x;
    for (auto k : range(n)) {
        if_(t < n, [&] { copy_async<4>(s[t], x[t]); }).else_([&] { copy_async<4>(s[t], x[t + 1]); });
        copy_commit();
        sync_block();
        y[k] = s[63 - t];
        y[k] = s[t];
        copy_wait<0>();
    }
    copy_async<4>(r[t], x[t]);
    copy_commit();
    y[t] = r[t];  // after a wait on the way through the loop
});

const auto never_committed = kernel("never_committed", params("x", "y"), [](In<float> x, Out<float> y) {
    Shared<float, 64> s;
    u32 t = thread_id().x;
    copy_async<4>(s[t], x[t]);
    copy_wait<0>();
    y[t] = s[t];
});

// None of these reads is surely of what is in flight.
const auto perhaps_in_flight = kernel("perhaps_in_flight", params("x", "y", "n"), [](In<float> x, Out<float> y, u32 n) {
    Shared<float, 64> s, stored, waited, skipped, text;
    u32 t = thread_id().x;
    if_(t < 32, [&] { copy_async<4>(s[t], x[t]); });
    y[0] = s[t];
    copy_async<4>(stored[t], x[t]);
    stored[t + 32] = 1;
    y[1] = stored[t + 32];
    while_([&] { return x[n] > 0; }, [&] { copy_async<4>(skipped[t], x[t]); });
    y[2] = skipped[t];
    copy_async<4>(text[t], x[t]);
    inline_ptx("cp.async.wait_all;");
    y[3] = text[t];
    copy_wait<0>();  // the text may have committed
});

const KernelRegistration async_kernels[] = {
    {"copies", copies},
    {"staged", staged},
    {"copied_to_the_wrong", copied_to_the_wrong},
    {"read_in_flight", read_in_flight},
    {"never_committed", never_committed},
    {"perhaps_in_flight", perhaps_in_flight},
};

}  // namespace
}  // namespace ikat::tests
