// SPDX-License-Identifier: Apache-2.0
// Which kernels are rejected because of their control flow, and which are not: variables that may be unassigned, and
// operations of a whole warp in divergent code. tests/golden/dsl_errors has the messages.
#include <ikat/dsl.hpp>

#include "codegen/support/diagnostic.hpp"
#include "tests/catch.hpp"

namespace ikat {
namespace {

bool is_refused(const auto& body) {
    const auto k = kernel("k", params("y", "n"), body);
    try {
        k.check();
    } catch (const Error&) { return true; }
    return false;
}

TEST_CASE("a variable is read where it may be unassigned") {
    const auto assigned_in_one_arm = [](InOut<std::uint32_t> y, u32 n) {
        u32 v;
        if_(n > 3, [&] { v = 1; });
        y[0] = v;
    };
    CHECK(is_refused(assigned_in_one_arm));
    const auto assigned_in_the_other = [](InOut<std::uint32_t> y, u32 n) {
        u32 v;
        if_(n > 3, [&] { y[1] = 1; }).else_([&] { v = 2; });
        y[0] = v;
    };
    CHECK(is_refused(assigned_in_the_other));
    const auto the_other_leaves = [](InOut<std::uint32_t> y, u32 n) {
        u32 v;
        if_(n > 3, [&] { v = 1; }).else_([&] { return_(); });
        y[0] = v;
    };
    CHECK_FALSE(is_refused(the_other_leaves));
    const auto assigned_in_both = [](InOut<std::uint32_t> y, u32 n) {
        u32 v;
        if_(n > 3, [&] { v = 1; }).else_([&] { v = 2; });
        y[0] = v;
    };
    CHECK_FALSE(is_refused(assigned_in_both));
    const auto assigned_in_a_loop = [](InOut<std::uint32_t> y, u32 n) {
        u32 v;
        for (auto i : range(n)) v = i;
        y[0] = v;
    };
    CHECK(is_refused(assigned_in_a_loop));
    const auto read_in_the_loop = [](InOut<std::uint32_t> y, u32 n) {
        u32 v;
        for (auto i : range(n)) {
            v = i;
            y[i] = v;
        }
    };
    CHECK_FALSE(is_refused(read_in_the_loop));
}

TEST_CASE("an atomic and a load in one expression have no order") {
    CHECK(is_refused([](InOut<std::uint32_t> y, u32 n) { y[0] = atomic_add(y[1], n) + y[1]; }));
    CHECK_FALSE(is_refused([](InOut<std::uint32_t> y, u32 n) {
        u32 before = atomic_add(y[1], n);
        y[0] = before + y[1];
    }));
}

/// A vote of all 32 lanes where `condition` of the thread's number holds.
bool vote_is_refused(const auto& condition) {
    return is_refused([&](InOut<std::uint32_t> y, u32 n) {
        u32 t = thread_id().x;
        if_(condition(t, n), [&] { y[t] = ballot(y[t] > 3); });
    });
}

TEST_CASE("whole warps vote where a condition holds for whole warps") {
    CHECK_FALSE(vote_is_refused([](u32& t, u32&) { return t < 64; }));
    CHECK_FALSE(vote_is_refused([](u32& t, u32&) { return t + 32 < 128; }));
    CHECK_FALSE(vote_is_refused([](u32&, u32& n) { return n < 3; }));
    CHECK(vote_is_refused([](u32& t, u32&) { return t < 16; }));
    CHECK(vote_is_refused([](u32& t, u32&) { return t + 1 < 32; }));
    CHECK(vote_is_refused([](u32& t, u32&) { return t + 16 < 32; }));
    CHECK(vote_is_refused([](u32& t, u32& n) { return t * n < 32; }));
    CHECK(vote_is_refused([](u32& t, u32&) { return fma(t, t, t) < 64; }));
    CHECK(vote_is_refused([](u32& t, u32& n) { return t < n; }));
}

const auto own_lane = device_fn("own_lane", [](u32 n) { return lane_id() + n; });
const auto through_own_lane = device_fn("through_own_lane", [](u32 n) { return own_lane(n) * 2; });
const auto next_number = device_fn("next_number", [](u32 n) { return n + 1; });

TEST_CASE("a function's result may differ between threads if it reads the thread index") {
    const auto after = [](const auto& function) {
        return [&function](InOut<std::uint32_t> y, u32 n) {
            y[n] = 1;
            if_(function(n) > 3, [&] { sync_block(); });
        };
    };
    CHECK(is_refused(after(own_lane)));
    CHECK(is_refused(after(through_own_lane)));
    CHECK_FALSE(is_refused(after(next_number)));
    const auto of_each = [](InOut<std::uint32_t>, u32) { if_(next_number(lane_id()) > 3, [] { sync_block(); }); };
    CHECK(is_refused(of_each));
}

}  // namespace
}  // namespace ikat
