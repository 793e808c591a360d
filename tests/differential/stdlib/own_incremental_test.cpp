// SPDX-License-Identifier: Apache-2.0
// scores() and sees() in incremental_attention().
#include <ikat/ikat.hpp>

#include "tests/differential/stdlib/own_arrays.hpp"
#include "tests/message.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using tests::HostRules;
using tests::OwnProblem;
using tests::OwnRules;
using tests::OwnShape;

template <class T>
void check_incremental(const OwnShape& shape, const OwnRules& rules, const IncrementalOptions& options = {}) {
    const OwnProblem<T> problem(shape);
    const auto expected = problem.rows(rules.host);
    static std::size_t number = 0;
    constexpr std::size_t seeds = 4;
    for (std::size_t seed = 0; seed < seeds; ++seed) {
        if (!tests::is_for_seed(number, seed, seeds)) continue;
        const Device device = test::open_device({.schedule = std::to_string(seed)});
        IncrementalOptions by = options;
        const auto buffers = rules.give(device, by.scores, by.sees);
        problem.compare(problem.incremental(device, by), expected);
    }
    ++number;
}

}  // namespace

TEMPLATE_TEST_CASE("own scores: ALiBi within a window, with sinks, of few queries", "", half, bfloat16, float) {
    const OwnRules rules = tests::alibi_and_window(20);
    check_incremental<TestType>({{{1, 200}, {1, 0}, {1, 19}}, 4, 1}, rules);
    check_incremental<TestType>({{{3, 333}, {3, 1}}, 4, 2, 128}, rules, {.parts = 2});
    check_incremental<TestType>({{{1, 70}}, 1, 1, 256}, rules);
    check_incremental<TestType>({{{20, 100}}, 4, 1}, rules, {.causal = true});
}

TEMPLATE_TEST_CASE("own scores: prefixes, with a window and a cap of the library, of few queries", "", half, float) {
    OwnRules rules = tests::prefixes();
    check_incremental<TestType>({{{4, 150}, {4, 90}, {4, 7}}, 2, 1}, rules);
    const HostRules own = rules.host;
    rules.host.scores = [](double score, auto...) { return 2 * std::tanh(score / 2); };
    rules.host.sees = [=](auto s, auto h, auto query, auto key) {
        return own.sees(s, h, query, key) && key >= query - 60;
    };
    check_incremental<TestType>({{{4, 150}, {4, 90}, {4, 7}}, 2, 1}, rules, {.window_left = 60, .soft_cap = 2});
    OwnRules alibi = tests::alibi_and_window(40);
    const HostRules of_alibi = alibi.host;
    alibi.host.scores = [=](double score, auto s, auto h, auto query, auto key) {
        return of_alibi.scores(100 * std::tanh(score / 100), s, h, query, key);
    };
    check_incremental<TestType>({{{2, 150}}, 4, 2}, alibi, {.soft_cap = 100});
}

TEMPLATE_TEST_CASE("own scores: arrays by key, by query, and by head and key, of few queries", "", half, bfloat16,
                   float) {
    const auto check = [](const OwnShape& shape, const IncrementalOptions& options = {}) {
        check_incremental<TestType>(shape, tests::biases_and_segments(shape), options);
    };
    check({{{1, 200}, {1, 0}, {1, 19}}, 4, 1, 64, false, 9});
    check({{{3, 333}, {3, 2}}, 4, 2, 128}, {.parts = 2});
    check({{{20, 100}}, 4, 1});
}

TEMPLATE_TEST_CASE("own scores: chunks of which no query sees a key are not read", "", half, float) {
    const OwnRules rules = tests::alibi_and_window(30);
    OwnProblem<TestType> problem({{{2, 1000}}, 4, 1});
    const auto expected = problem.rows(rules.host);
    // Keys 969 and on, and the first four.
    for (std::uint32_t j = 16; j < 960; ++j)
        for (std::uint32_t e = 0; e < 64; ++e)
            problem.k[problem.key_at(0, 0, j) + e] = problem.v[problem.key_at(0, 0, j) + e] = TestType(NAN);
    std::vector<emulator::LaunchTraffic> traffic;
    const auto device = Device::open({.device = "emulator", .traffic = &traffic});
    IncrementalOptions options{.parts = 1};
    const auto buffers = rules.give(device, options.scores, options.sees);
    problem.compare(problem.incremental(device, options), expected);
    std::uint64_t rows = 0;
    for (const auto& buffer : traffic.at(0).buffers)
        if (buffer.name == "K" || buffer.name == "V") rows += buffer.read.moved / (64 * sizeof(TestType));
    CHECK(rows == 2 * (16 + 40));
}

TEST_CASE("own scores: of few queries, in every order of the warps, without a race") {
    const OwnShape shape{{{2, 300}}, 4, 2};
    const OwnRules rules = GENERATE_COPY(tests::alibi_and_window(30), tests::biases_and_segments(shape));
    const OwnProblem<half> problem(shape);
    const Device device = test::open_device({.threads = 1, .check = "races", .schedules = 4});
    IncrementalOptions options{.parts = 2};
    const auto buffers = rules.give(device, options.scores, options.sees);
    problem.compare(problem.incremental(device, options), problem.rows(rules.host));
}
