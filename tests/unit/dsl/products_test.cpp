// SPDX-License-Identifier: Apache-2.0
// Products of a warpgroup in flight: what is said of a kernel, and of the nearest one that is right.
#include <string>

#include "codegen/ast/ast.hpp"
#include "tests/catch.hpp"

#include <ikat/mma.hpp>

namespace ikat {
namespace {

using W = Wgmma<64, 8, 16, half, float>;

struct Parts {
    W::C& sums;
    W::A& held;
    SharedMatrix<false> a, b;
    In<half2>& x;
    u32& n;
    Out<float>& y;
    void adds() const { wgmma(sums, a, b); }
    void adds_of_registers() const { wgmma(sums, held, b); }
    void uses() const { y[0] = sums[0]; }
};

/// The first finding in a kernel whose fragments are assigned and fenced; empty if there is none.
std::string finding(auto body) {
    const auto made = kernel("products", params("x", "y", "n"), [=](In<half2> x, Out<float> y, u32 n) {
        Shared<half, 64, 16> a;
        Shared<half, 8, 16> b;
        W::C sums(0.0f);
        W::A held;
        for (int r = 0; r < 4; ++r) held[r] = x[r];
        wgmma_fence();
        body(Parts{sums, held, k_major<32>(a[0, 0]), k_major<32>(b[0, 0]), x, n, y});
    });
    try {
        made.check();
        return "";
    } catch (const Error& error) { return error.diagnostics().at(0).message; }
}

const std::string read = "an accumulator is read while a product with it may be in flight",
                  assigned = "a fragment is assigned while a product with it may be in flight",
                  unfenced = "wgmma() without a fence between it and other uses of its registers",
                  left = "a product may still be in flight when its fragments are gone";

}  // namespace

TEST_CASE("products in flight: waits cover groups") {
    const auto waits = [](auto wait) {
        return [=](const Parts& p) {
            p.adds();
            wgmma_commit();
            wait();
            p.uses();
            wgmma_wait<0>();
        };
    };
    CHECK(finding(waits([] {})) == read);
    CHECK(finding(waits([] { wgmma_wait<1>(); })) == read);
    CHECK(finding(waits([] { wgmma_wait<0>(); })).empty());
    CHECK(finding(waits([] { wgmma_commit(), wgmma_wait<1>(); })).empty());
    CHECK(finding(waits([] { wgmma_commit(), wgmma_wait<2>(); })) == read);
    CHECK(finding([](const Parts& p) { p.adds(), wgmma_wait<0>(), p.uses(), wgmma_commit(), wgmma_wait<0>(); }) ==
          read);
}

TEST_CASE("products in flight: on some way is enough") {
    const auto waits_in = [](auto around) {
        return [=](const Parts& p) {
            p.adds();
            wgmma_commit();
            around(p, [] { wgmma_wait<0>(); });
            p.uses();
            wgmma_wait<0>();
        };
    };
    CHECK(finding(waits_in([](const Parts& p, auto wait) { if_(p.n > 1, wait); })) == read);
    CHECK(finding(waits_in([](const Parts& p, auto wait) { if_(p.n > 1, wait).else_(wait); })).empty());
    CHECK(finding(waits_in([](const Parts& p, auto wait) {
              for ([[maybe_unused]] auto i : range(p.n)) wait();
          })) == read);
    CHECK(finding(waits_in([](const Parts& p, auto wait) {
              while_([&] { return wait(), p.n > 1; }, [&] { p.n -= 1; });
          })).empty());
}

TEST_CASE("products in flight: around a loop") {
    const auto loop = [](auto before, auto inside, auto after) {
        return [=](const Parts& p) {
            for ([[maybe_unused]] auto i : range(p.n)) {
                before(p);
                p.adds();
                wgmma_commit();
                inside(p);
            }
            after();
            p.uses();
            wgmma_wait<0>();
        };
    };
    const auto nothing = [](auto&&...) {};
    const auto one = [](auto&&...) { wgmma_wait<1>(); };
    const auto all = [](auto&&...) { wgmma_wait<0>(); };
    const auto halves = [](const Parts& p) { p.sums = p.sums * 0.5f; };
    CHECK(finding(loop(nothing, one, all)).empty());
    CHECK(finding(loop(nothing, one, nothing)) == read);
    CHECK(finding(loop(nothing, all, nothing)).empty());
    CHECK(finding(loop(halves, one, all)) != "");
    CHECK(finding(loop(halves, all, nothing)) == unfenced);
    CHECK(finding(loop([=](const Parts& p) { halves(p), wgmma_fence(); }, all, nothing)).empty());
    CHECK(finding(loop(
                      nothing, [](const Parts& p) { wgmma_wait<0>(), if_(p.n > 7, [] { break_(); }); }, nothing))
              .empty());
    CHECK(finding(loop(
              nothing, [](const Parts& p) { if_(p.n > 7, [] { break_(); }), wgmma_wait<0>(); }, nothing)) == read);
    CHECK(finding(loop(
              nothing, [](const Parts& p) { if_(p.n > 7, [] { continue_(); }), wgmma_wait<0>(); }, nothing)) == read);
}

TEST_CASE("arrays of products are declared in a loop") {
    const auto made = kernel("products", params("y", "n"), [](Out<float> y, u32 n) {
        for (auto i : range(n)) {
            Shared<half, 64, 16> a;
            Shared<half, 8, 16> b;
            a[thread_id().x % 64u, 0u] = half(1.0f), b[thread_id().x % 8u, 0u] = half(1.0f);
            sync_block();
            W::C sums(0.0f);
            wgmma_fence();
            wgmma(sums, k_major<32>(a[0, 0]), k_major<32>(b[0, 0]));
            wgmma_commit();
            wgmma_wait<0>();
            y[i] = sums[0];
        }
    });
    CHECK_NOTHROW(made.check());
}

TEST_CASE("products in flight: A in registers") {
    const auto twice = [](auto between) {
        return [=](const Parts& p) {
            p.adds_of_registers();
            wgmma_commit();
            between(p);
            p.adds_of_registers();
            wgmma_commit();
            wgmma_wait<0>();
        };
    };
    const auto changes = [](const Parts& p) { p.held[1] = p.x[9]; };
    CHECK(finding(twice([](const Parts&) {})).empty());
    CHECK(finding(twice(changes)) == assigned);
    CHECK(finding(twice([=](const Parts& p) { wgmma_wait<0>(), changes(p); })) == unfenced);
    CHECK(finding(twice([=](const Parts& p) { wgmma_wait<0>(), changes(p), wgmma_fence(); })).empty());
}

TEST_CASE("products in flight: at the end of what their fragments belong to") {
    CHECK(finding([](const Parts& p) { p.adds(), wgmma_commit(); }) == left);
    CHECK(finding([](const Parts& p) { p.adds(), wgmma_commit(), return_if(p.n > 1), wgmma_wait<0>(); }) == left);
    const auto inner = [](auto last) {
        return [=](const Parts& p) {
            if_(p.n > 1, [&] {
                W::C sums;
                wgmma_fence();
                wgmma(sums, p.a, p.b, false);
                wgmma_commit();
                last();
            });
            wgmma_wait<0>();
        };
    };
    CHECK(finding(inner([] {})) == left);
    CHECK(finding(inner([] { wgmma_wait<0>(); })).empty());
}

}  // namespace ikat
