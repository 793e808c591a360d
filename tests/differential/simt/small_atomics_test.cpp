// SPDX-License-Identifier: Apache-2.0
// Atomics of 16 bits and of packed pairs, and vector reductions: as instructions where a target has them, elsewhere as
// compare-and-swap loops. The numbers are small integers, so that every order of addition gives the same sum.
#include <array>

#include "tests/differential/simt/run.hpp"

namespace ikat::test {
namespace {

constexpr std::uint32_t threads = 64;

/// An integer as an E; the upper lane of a packed type holds one more.
template <class E>
auto number(const u32& n) {
    if constexpr (is_pair<E>)
        return pack<E>(cast<f32>(n), cast<f32>(n + 1));
    else
        return cast<E>(n);
}
template <class E>
E host_number(int n) {
    if constexpr (is_pair<E>)
        return {typename E::lane_type(float(n)), typename E::lane_type(float(n + 1))};
    else if constexpr (std::is_integral_v<E>)
        return E(n);
    else
        return E(float(n));
}
template <class E>
std::array<double, 2> lanes_of(E value) {
    if constexpr (is_pair<E>)
        return {double(float(value.x)), double(float(value.y))};
    else
        return {double(float(value)), double(float(value)) + 1};
}

/// On the emulator, runs for each target; on a GPU, only for its own.
template <class F>
void on_targets(F&& run) {
    if (simt_device().properties().kind != runtime::DeviceKind::Emulator) return run(simt_device());
    for (const char* target : {"sm_75", "sm_80", "sm_90"}) {
        INFO(target);
        runtime::Device device = open_device({.target = target});
        run(device);
    }
}

template <class E>
const auto operators = kernel("operators", params("x"), [](InOut<E> x) {
    u32 i = thread_id().x;
    Shared<E, 2> s;
    if_(i < 2, [&] { s[i] = number<E>(u32(1)); });
    sync_block();
    const Var v = number<E>(i % 3);
    atomic_add(x[0], v);
    atomic_min(x[1], number<E>(i + 3));
    atomic_max(x[2], number<E>(i + 3), Order::AcquireRelease, Scope::Gpu);
    auto old = atomic_exchange(x[3], v);
    atomic_add(x[4], old);  // each number is passed on once
    atomic_cas(x[5], number<E>(u32(7)), number<E>(u32(9)));
    atomic_add(s[0], v);
    atomic_max(s[1], number<E>(i));
    sync_block();
    if_(i < 2, [&] { x[6 + i] = s[i]; });
});

template <class E>
void check_operators() {
    on_targets([](runtime::Device& device) {
        std::vector<E> x{host_number<E>(1), host_number<E>(200), host_number<E>(0), host_number<E>(0),
                         host_number<E>(0), host_number<E>(7),   host_number<E>(0), host_number<E>(0)};
        auto buffer = device.upload(x, "x");
        device.launch(operators<E>, runtime::Grid{{1}, {threads}}, buffer);
        const std::vector<E> got = buffer.download();
        const int sum = 63;  // of i % 3
        const int upper = is_pair<E> ? int(threads) + 1 : 1;
        CHECK(lanes_of(got[0]) == std::array<double, 2>{1.0 + sum, 1.0 + sum + upper});
        CHECK(lanes_of(got[1]) == std::array<double, 2>{3, 4});
        CHECK(lanes_of(got[2]) == std::array<double, 2>{66, 67});
        CHECK(lanes_of(got[3])[0] + lanes_of(got[4])[0] == sum);
        CHECK(lanes_of(got[5]) == std::array<double, 2>{9, 10});
        CHECK(lanes_of(got[6]) == std::array<double, 2>{1.0 + sum, 1.0 + sum + upper});
        CHECK(lanes_of(got[7]) == std::array<double, 2>{63, 64});
    });
}

TEST_CASE("atomics of small floats, of pairs, of 16-bit integers") {
    check_operators<half>();
    check_operators<bfloat16>();
    check_operators<half2>();
    check_operators<bfloat16x2>();
    check_operators<std::int16_t>();
    check_operators<std::uint16_t>();
}

const auto bits = kernel("bits", params("x"), [](InOut<std::uint16_t> x) {
    u32 i = thread_id().x;
    const Var one = value(cast<u16>(u32(1)) << (i % 16));
    atomic_and(x[0], ~one);
    atomic_or(x[1], one);
    atomic_xor(x[2], one);
    u16 seen = atomic_cas(x[3], 5, 6);
    if_(seen == 5, [&] { atomic_store(x[4], cast<u16>(i + 100), Order::Release); });
    volatile_store(x[5], volatile_load(x[6]) + 1);
});

TEST_CASE("bits of 16-bit integers") {
    on_targets([](runtime::Device& device) {
        auto x = device.upload(std::vector<std::uint16_t>{0xffff, 0, 0x1234, 5, 0, 0, 41}, "x");
        device.launch(bits, runtime::Grid{{1}, {16}}, x);
        const auto got = x.download();
        CHECK(got[0] == 0);
        CHECK(got[1] == 0xffff);
        CHECK(got[2] == (0x1234 ^ 0xffff));
        CHECK(got[3] == 6);
        CHECK(got[4] >= 100);
        CHECK(got[4] < 116);
        CHECK(got[5] == 42);
    });
}

template <class E, int N>
const auto vectors = kernel("vectors", params("x"), [](InOut<E> x) {
    u32 i = thread_id().x;
    const auto of = [&](const u32& n) {
        return [&]<std::size_t... k>(std::index_sequence<k...>) {
            return Vec<E, N>(number<E>(n + std::uint32_t(k))...);
        }
        (std::make_index_sequence<N>{});
    };
    Shared<E, N> s;
    if_(i == 0, [&] { s.flat().template vec<N>(0) = of(u32(0)); });
    sync_block();
    reduce_add(x.template vec<N>(0), of(i % 3));
    reduce_min(x.template vec<N>(1), of(i + 2), Order::Release, Scope::Sys);
    reduce_max(x.template vec<N>(2), of(i + 2));
    reduce_add(s.flat().template vec<N>(0), of(i % 3));
    sync_block();
    if_(i == 0, [&] { x.template vec<N>(3) = s.flat().template vec<N>(0); });
});

template <class E, int N>
void check_vectors() {
    on_targets([](runtime::Device& device) {
        std::vector<E> x(4 * N, host_number<E>(0));
        for (int k = 0; k < N; ++k) x[std::size_t(N + k)] = host_number<E>(100);
        auto buffer = device.upload(x, "x");
        device.launch(vectors<E, N>, runtime::Grid{{1}, {16}}, buffer);
        const std::vector<E> got = buffer.download();
        for (int k = 0; k < N; ++k) {
            const double sum = 15 + 16 * k;  // of i % 3, and k more in each element
            const double upper = is_pair<E> ? 16 : 0;
            INFO("element " << k << " of " << N);
            CHECK(lanes_of(got[std::size_t(k)])[0] == sum);
            CHECK(lanes_of(got[std::size_t(k)])[1] == sum + 1 + upper);
            CHECK(lanes_of(got[std::size_t(N + k)])[0] == 2 + k);
            CHECK(lanes_of(got[std::size_t(2 * N + k)])[0] == 17 + k);
            CHECK(lanes_of(got[std::size_t(3 * N + k)])[0] == sum + k);
        }
    });
}

TEST_CASE("reductions of vectors") {
    check_vectors<float, 2>();
    check_vectors<float, 4>();
    check_vectors<half, 2>();
    check_vectors<half, 8>();
    check_vectors<bfloat16, 4>();
    check_vectors<half2, 4>();
    check_vectors<bfloat16x2, 2>();
}

TEST_CASE("ptxas accepts small atomics") {
    check_assembled(operators<half>, 75);
    check_assembled(operators<bfloat16>, 75);
    check_assembled(operators<half2>, 75);
    check_assembled(operators<bfloat16x2>, 75);
    check_assembled(operators<std::int16_t>, 75);
    check_assembled(bits, 75);
    check_assembled(vectors<float, 4>, 75);
    check_assembled(vectors<half, 8>, 75);
    check_assembled(vectors<bfloat16, 4>, 75);
    check_assembled(vectors<half2, 4>, 75);
}

}  // namespace
}  // namespace ikat::test
