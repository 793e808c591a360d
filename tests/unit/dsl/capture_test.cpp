// SPDX-License-Identifier: Apache-2.0
// When a kernel is captured, how often, in which thread, and what happens on errors.
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <ikat/dsl.hpp>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "codegen/ast/ast.hpp"
#include "tests/catch.hpp"

namespace ikat {
namespace {

// A wrong kernel at namespace scope: defining it must not end the program before main().
const auto wrong = kernel("wrong", params("y"), [](Out<float> y) {
    y[0] = 1e300;
    break_();
});

std::vector<Diagnostic> diagnostics_of(const auto& kernel) {
    try {
        kernel.check();
    } catch (const Error& error) { return error.diagnostics(); }
    return {};
}

TEST_CASE("a kernel is captured once, at its first use") {
    int captures = 0;
    const auto k = kernel("k", params("x"), [&captures](InOut<float> x) {
        ++captures;
        x[0] = 1;
    });
    CHECK(captures == 0);
    k.check();
    CHECK(captures == 1);
    const auto copy = k;
    CHECK(&copy.ast() == &k.ast());
    CHECK(captures == 1);
    CHECK(std::string(k.name()) == "k");
}

TEST_CASE("threads that use a kernel for the first time at once share one capture") {
    std::atomic<int> captures = 0;
    const auto k = kernel("k", params("x", "n"), [&captures](InOut<float> x, u32 n) {
        ++captures;
        for (auto i : range(n)) x[i] = 1;
    });
    std::vector<const ast::KernelTree*> seen(8);
    std::vector<std::thread> threads;
    for (auto& kernel : seen) threads.emplace_back([&] { kernel = &k.ast(); });
    for (std::thread& thread : threads) thread.join();
    CHECK(captures == 1);
    for (const ast::KernelTree* kernel : seen) CHECK(kernel == seen[0]);
}

TEST_CASE("captures in several threads do not disturb each other") {
    const auto body = [](InOut<float> x, u32 n) {
        for (int k = 0; k < 50; ++k) x[n + k] = x[n] * 2;
    };
    const auto alone = kernel("k", params("x", "n"), body);
    const std::string expected = ast::print(alone.ast());
    std::vector<std::string> texts(4);
    std::vector<std::thread> threads;
    for (std::string& text : texts)
        threads.emplace_back([&text, &body] { text = ast::print(kernel("k", params("x", "n"), body).ast()); });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& text : texts) CHECK(text == expected);
}

TEST_CASE("all mistakes are reported together, and each time") {
    for (int use = 0; use < 2; ++use) {
        const std::vector<Diagnostic> found = diagnostics_of(wrong);
        REQUIRE(found.size() == 2);
        CHECK(found[0].message == "the number 1e+300 does not fit f32");
        CHECK(found[1].message == "break_() outside of a loop");
    }
}

TEST_CASE("a user's exception passes through") {
    const auto k = kernel("k", params("x"), [](InOut<float> x) {
        if_(x[0] > 1, [&] { throw std::runtime_error("mine"); });
        x[0] = 1;
    });
    CHECK_THROWS_WITH(k.check(), "mine");
    CHECK_THROWS_WITH(k.check(), "mine");
    CHECK_NOTHROW(kernel("next", [](InOut<float> x) { x[0] = 1; }).check());
}

TEST_CASE("memory that runs out is one error with the line of the kernel") {
    const auto k = kernel("k", params("x"), [](InOut<float> x) {
        x[0] = 1;
        throw std::bad_alloc();
    });
    const std::vector<Diagnostic> found = diagnostics_of(k);
    REQUIRE(found.size() == 1);
    CHECK(found[0].message == "the host's memory is exhausted while the kernel is captured");
    CHECK(found[0].where.known());
}

TEST_CASE("a loop that is left by an exception reports nothing itself") {
    const auto k = kernel("k", params("n"), [](u32 n) {
        for ([[maybe_unused]] auto i : range(n)) throw std::runtime_error("mine");
    });
    CHECK_THROWS_WITH(k.check(), "mine");
}

TEST_CASE("device values outside of a kernel are an error") {
    const std::string text = "a device value outside of a kernel";
    CHECK_THROWS_WITH(f32(1), Catch::Contains(text));
    CHECK_THROWS_WITH(thread_id().x, Catch::Contains(text));
    CHECK_THROWS_WITH(sync_block(), Catch::Contains(text));
    CHECK_THROWS_WITH(break_(), Catch::Contains(text));
}

TEST_CASE("values that outlive their capture are an error, not a crash") {
    std::optional<f32> variable;
    std::optional<Leaf<float>> leaf;
    std::optional<InOut<float>> pointer;
    std::optional<Shared<float, 4>> array;
    const auto keeps = kernel("keeps", params("x"), [&](InOut<float> x) {
        variable.emplace(x[0]);
        leaf.emplace(value(x[0] * 2));
        pointer.emplace(x);
        array.emplace();
        x[1] = *variable;
    });
    keeps.check();
    const auto found = [](auto body) { return diagnostics_of(kernel("uses", params("y"), body)).size(); };
    CHECK(found([&](InOut<float> y) { y[0] = *variable; }) == 1);
    CHECK(found([&](InOut<float>) { *variable = 1; }) == 1);
    CHECK(found([&](InOut<float> y) { y[0] = *leaf + 1; }) == 1);
    CHECK(found([&](InOut<float>) { (*pointer)[0] = 1; }) >= 1);
    CHECK(found([&](InOut<float> y) { y[0] = pointer->load_if(y[0] > 1, 0, 2); }) >= 1);
    CHECK(found([&](InOut<float> y) { y[0] = (*array)[1]; }) >= 1);
    CHECK(found([&](InOut<float>) { atomic_add((*pointer)[0], 1); }) >= 1);
    CHECK_THROWS_AS(variable->recorded(), Error);
}

TEST_CASE("a kernel that uses itself is an error, not a deadlock") {
    std::optional<Kernel<InOut<float>>> self;
    self.emplace(kernel("self", params("x"), [&self](InOut<float> x) {
        self->check();
        x[0] = 1;
    }));
    CHECK_THROWS_WITH(self->check(), Catch::Contains("the kernel `self` is used while it is being captured"));
}

TEST_CASE("captures nest") {
    const auto inner = kernel("inner", params("x"), [](InOut<float> x) { x[0] = 1; });
    const auto outer = kernel("outer", params("x"), [&](InOut<float> x) {
        x[0] = 2;
        if_(x[1] > 0, [&] {
            inner.check();
            x[1] = 3;
        });
    });
    CHECK(ast::print(outer.ast()).find("3.0") != std::string::npos);
    CHECK(ast::print(inner.ast()).find("1.0") != std::string::npos);
}

auto mutates() {
    return kernel("k", params("x"), [k = 0](InOut<float> x) mutable { if_(x[0] > 1, [&] { x[k++] = 1; }); });
}
/// With the default setting, before any test changes it.
const std::size_t found_by_default = diagnostics_of(mutates()).size();

TEST_CASE("changing host state is checked for in every build, unless that is disabled") {
    if (!std::getenv("IKAT_CHECK_CAPTURE")) CHECK(found_by_default == 1);
    check_capture(true);
    CHECK(diagnostics_of(mutates()).size() == 1);
    check_capture(false);
    CHECK(diagnostics_of(mutates()).empty());
    check_capture(true);
}

TEST_CASE("a body runs twice, with its side effects") {
    static int runs;
    runs = 0;
    const auto k = kernel("k", params("x"), [](InOut<float> x) {
        if_(x[0] > 1, [&] {
            ++runs;
            x[0] = 1;
        });
    });
    CHECK_NOTHROW(k.check());
    CHECK(runs == 2);
}

// Two functions that call each other, each waiting for the other's capture to have begun.
std::barrier both_begun(2);
extern const DeviceFunction<std::uint32_t, u32> pong;
const DeviceFunction<std::uint32_t, u32> ping = device_fn("ping", params("n"), [](u32 n) -> u32 {
    both_begun.arrive_and_wait();
    return pong(n) + 1;
});
const DeviceFunction<std::uint32_t, u32> pong = device_fn("pong", params("n"), [](u32 n) -> u32 {
    both_begun.arrive_and_wait();
    return ping(n) + 2;
});

TEST_CASE("functions that call each other, first used by two threads at once, are an error, not a deadlock") {
    const auto uses = [](const auto& function) {
        return [&function](InOut<std::uint32_t> x) { x[0] = function(x[1]); };
    };
    const auto first = kernel("first", params("x"), uses(ping)), second = kernel("second", params("x"), uses(pong));
    std::vector<Diagnostic> found_first, found_second;
    std::thread thread([&] { found_first = diagnostics_of(first); });
    found_second = diagnostics_of(second);
    thread.join();
    for (const auto& found : {found_first, found_second}) {
        REQUIRE(found.size() >= 1);
        CHECK(found[0].message.find("is called by a function that it calls") != std::string::npos);
    }
}

TEST_CASE("recording regions twice changes nothing") {
    const auto body = [](InOut<float> x, u32 n) {
        auto outside = x[n] * 2;
        if_(n > 3, [&] {
            Shared<float, 8> s;
            s[0] = outside;
            print("{}\n", n);
        }).else_if([&] { return n > 2; }, [&] { x[1] = outside; });
        for (auto i : range(n)) {
            f32 t = x[i];
            while_([&] { return t > 1; }, [&] { t = t / 2; });
            x[i] = t + outside;
        }
        auto a = dynamic_shared<float>(n);
        x[2] = outside + a[0];
    };
    check_capture(true);
    const std::string twice = ast::print(kernel("k", params("x", "n"), body).ast());
    check_capture(false);
    const std::string once = ast::print(kernel("k", params("x", "n"), body).ast());
    check_capture(true);
    CHECK(twice == once);
}

}  // namespace
}  // namespace ikat
