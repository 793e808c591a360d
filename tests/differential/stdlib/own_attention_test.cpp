// SPDX-License-Identifier: Apache-2.0
// scores() and sees() in flash_attention(), by both kinds of products: what they give, which tiles of keys are read,
// and mistakes.
#include <ikat/ikat.hpp>

#include "stdlib/attention/attention_kernels.hpp"
#include "tests/differential/stdlib/own_arrays.hpp"
#include "tests/message.hpp"

namespace {

using namespace ikat;
using namespace ikat::stdlib;
using Catch::Matchers::Contains;
using tests::HostRules;
using tests::OwnProblem;
using tests::OwnRules;
using tests::OwnShape;

/// On devices of several orders of threads, one in turn for each problem and path.
template <class T>
void check_flash(const OwnShape& shape, const OwnRules& rules, const AttentionOptions& options = {}) {
    const OwnProblem<T> problem(shape);
    const auto expected = problem.rows(rules.host);
    static std::size_t number = 0;
    constexpr std::size_t seeds = 4;
    const auto check = [&](const Device& device, AttentionPath path) {
        AttentionOptions by = options;
        by.path = path;
        const auto buffers = rules.give(device, by.scores, by.sees);
        problem.compare(problem.flash(device, by), expected);
    };
    for (std::size_t seed = 0; seed < seeds; ++seed) {
        if (!tests::is_for_seed(number, seed, seeds)) continue;
        const std::string schedule = std::to_string(seed);
        check(test::open_device({.schedule = schedule}), AttentionPath::mma_sync);
        if (sizeof(T) == 2) check(test::open_device({.target = "sm_90a", .schedule = schedule}), AttentionPath::wgmma);
    }
    ++number;
}

const OwnShape shapes[] = {
    {{{1, 1}}}, {{{5, 0}}}, {{{65, 130}, {65, 130}}, 4, 2}, {{{200, 70}}, 2, 1}, {{{130, 300}}, 1, 1}};

}  // namespace

TEMPLATE_TEST_CASE("own scores: ALiBi within a window, with sinks", "", half, bfloat16, float) {
    for (const OwnShape& shape : shapes) check_flash<TestType>(shape, tests::alibi_and_window(20));
    check_flash<TestType>({{{70, 200}}, 1, 1, 128}, tests::alibi_and_window(100), {.queries_of_block = 64});
    if (sizeof(TestType) == 2)
        check_flash<TestType>({{{150, 200}}, 1, 1, 128}, tests::alibi_and_window(100), {.queries_of_block = 128});
    if (sizeof(TestType) == 2) check_flash<TestType>({{{66, 150}}, 1, 1, 256}, tests::alibi_and_window(9));
}

TEST_CASE("own scores: prefixes, each sequence its own, also by offsets") {
    for (const bool by_offsets : {false, true}) {
        OwnShape shape{{{65, 130}, {65, 130}, {65, 130}}, 2, 1, 64, by_offsets};
        if (by_offsets) shape.sequences = {{70, 150}, {0, 9}, {30, 20}};
        check_flash<half>(shape, tests::prefixes());
        check_flash<bfloat16>(shape, tests::prefixes());
    }
    check_flash<float>({{{70, 150}, {9, 30}}, 1, 1, 64, true}, tests::prefixes());
}

TEMPLATE_TEST_CASE("own scores: arrays by key, by query, and by head and key, also by offsets", "", half, bfloat16,
                   float) {
    for (OwnShape shape :
         {OwnShape{{{1, 1}}}, OwnShape{{{5, 0}}}, OwnShape{{{65, 130}, {65, 130}}, 4, 2}, OwnShape{{{200, 70}}, 2, 1},
          OwnShape{{{130, 300}}, 1, 1, 128}, OwnShape{{{70, 150}, {0, 9}, {30, 20}, {5, 0}}, 2, 1, 64, true}})
        check_flash<TestType>(shape, tests::biases_and_segments(shape));
}

TEST_CASE("own scores: with a cap, a window and a bias of the library") {
    OwnRules rules = tests::alibi_and_window(40);
    const HostRules own = rules.host;
    rules.host.scores = [=](double score, auto s, auto h, auto query, auto key) {
        return own.scores(8 * std::tanh(score / 8), s, h, query, key);
    };
    rules.host.sees = [=](auto s, auto h, auto query, auto key) {
        return own.sees(s, h, query, key) && key >= query - 60;
    };
    check_flash<half>({{{100, 200}}, 2, 1}, rules, {.causal = true, .window_left = 60, .soft_cap = 8});
    rules.host.scores = [=](double score, auto s, auto h, auto query, auto key) {
        return own.scores(100 * std::tanh(score / 100), s, h, query, key);
    };
    check_flash<bfloat16>({{{100, 200}}, 2, 1}, rules, {.window_left = 60, .soft_cap = 100});
    check_flash<float>({{{40, 90}}, 2, 1}, rules, {.window_left = 60, .soft_cap = 100});
}

TEST_CASE("own scores: in every order of the warps, without a race") {
    const OwnShape shape{{{130, 300}}, 2, 1};
    const OwnRules rules = GENERATE_COPY(tests::alibi_and_window(50), tests::biases_and_segments(shape));
    const OwnProblem<half> problem(shape);
    const auto expected = problem.rows(rules.host);
    for (const AttentionPath path : {AttentionPath::mma_sync, AttentionPath::wgmma}) {
        const Device device = test::open_device({.target = "sm_90a", .threads = 1, .check = "races", .schedules = 4});
        AttentionOptions options{.path = path};
        const auto buffers = rules.give(device, options.scores, options.sees);
        problem.compare(problem.flash(device, options), expected);
    }
}

TEST_CASE("own scores: tiles of which no query sees a key are not read") {
    const OwnRules rules = tests::alibi_and_window(100);
    // The queries are at keys 960 to 1023: they see keys 861 and on, and the first four.
    OwnProblem<half> problem({{{64, 1024}}});
    const auto expected = problem.rows(rules.host);
    for (std::uint32_t j = 128; j < 768; ++j)
        for (std::uint32_t e = 0; e < 64; ++e)
            problem.k[problem.key_at(0, 0, j) + e] = problem.v[problem.key_at(0, 0, j) + e] = half(NAN);
    for (const AttentionPath path : {AttentionPath::mma_sync, AttentionPath::wgmma}) {
        std::vector<emulator::LaunchTraffic> traffic;
        const auto device = Device::open({.device = "emulator", .target = "sm_90a", .traffic = &traffic});
        AttentionOptions options{.path = path};
        const auto buffers = rules.give(device, options.scores, options.sees);
        problem.compare(problem.flash(device, options), expected);
        std::uint64_t rows = 0;
        for (const auto& buffer : traffic.at(0).buffers)
            if (buffer.name == "K" || buffer.name == "V") rows += buffer.read.moved / 128;
        // Tiles of 64 keys: 0, 13, 14 and 15; of 128: 0, 6 and 7.
        CHECK(rows == 2u * (path == AttentionPath::wgmma ? 3 * 128 : 4 * 64));
    }
}

TEST_CASE("own scores: what an array tells is not known of a tile, and the rest of sees() is") {
    OwnProblem<half> problem({{{64, 1024}}});
    const std::vector<std::int32_t> all(1024, 1);
    OwnRules some;
    some.host.sees = [](auto, auto, std::int64_t query, std::int64_t key) { return key > query - 100; };
    const auto expected = problem.rows(some.host);
    for (std::uint32_t j = 0; j < 768; ++j)
        for (std::uint32_t e = 0; e < 64; ++e)
            problem.k[problem.key_at(0, 0, j) + e] = problem.v[problem.key_at(0, 0, j) + e] = half(NAN);
    for (const AttentionPath path : {AttentionPath::mma_sync, AttentionPath::wgmma}) {
        const Device device = test::open_device({.target = "sm_90a"});
        const auto buffer = device.upload(all, "all");
        const auto sight = sees(
            "known", [](auto at, auto x) { return (at.key > at.query - 100) & (x[at.key] * 2 - 1 > 0); }, buffer);
        problem.compare(problem.flash(device, {.sees = sight, .path = path}), expected);
    }
}

TEST_CASE("own scores: what sees() tells of a tile decides whether it is read, and whether it is masked") {
    const OwnProblem<half> problem({{{70, 140}}});
    const Device device = test::open_device({.target = "sm_90a"});
    const auto told = [&](AttentionPath path, bool surely, bool possibly) {
        AttentionOptions options{.path = path};
        options.sees = sees("some", [](auto at) { return at.key < 100; });
        options.sees->of_tile = [=](const ScoreTile&, const ScoreSource&) {
            return Truth{value(pred(surely)), value(pred(possibly))};
        };
        return problem.flash(device, options);
    };
    HostRules some;
    some.sees = [](auto, auto, auto, std::int64_t key) { return key < 100; };
    for (const AttentionPath path : {AttentionPath::mma_sync, AttentionPath::wgmma}) {
        problem.compare(told(path, false, true), problem.rows(some));
        problem.compare(told(path, true, true), problem.rows({}));
        const auto none = told(path, false, false);
        CHECK(std::all_of(none.begin(), none.end(), [](half x) { return float(x) == 0; }));
    }
}

TEST_CASE("own scores: what a kernel is made by") {
    const auto fail = [](const std::string& message, std::string_view) { FAIL(message); };
    const auto own = [&](const OwnScores& scores) { return OwnAttention(scores, {}, fail); };
    const auto by = [](float factor) { return scores("by", [factor](auto score, auto) { return score * factor; }); };
    const auto with = [](float factor) {
        return scores(
            "by", [](auto score, auto, auto factor) { return score * factor; }, factor);
    };
    CHECK(own(by(2)) == own(by(2)));
    CHECK(own(by(2)) != own(by(3)));      // a constant
    CHECK(own(with(2)) == own(with(3)));  // a parameter
    const auto within = [](int window) {
        return sees("window", [window](auto at) { return at.key > at.query - window; });
    };
    CHECK(OwnAttention(with(2), within(3), fail) == OwnAttention(with(2), within(3), fail));
    CHECK(OwnAttention(with(2), within(3), fail) != OwnAttention(with(2), within(4), fail));
    CHECK(OwnAttention(with(2), within(3), fail) != OwnAttention(with(2), {}, fail));
    AttentionKernel one{.has_after = true, .own = OwnAttention(with(2), within(3), fail)}, other = one;
    CHECK(one.name() == "flash_attention_f16_d64_after_by_window");
    other.own = OwnAttention(with(5), within(3), fail);
    CHECK(&one.handle() == &other.handle());
    other.own = OwnAttention(with(5), within(4), fail);
    CHECK(&one.handle() != &other.handle());
}

TEST_CASE("own scores: mistakes") {
    const Device device = test::open_device({.target = "sm_80"});
    const auto Q = device.upload(std::vector<half>(4 * 64 * 64)), K = device.upload(std::vector<half>(4 * 64 * 64));
    auto O = device.buffer<half>(4 * 64 * 64);
    const auto few = device.buffer<float>(3);
    const auto wide = device.buffer<double>(4);
    const auto said = [&](const AttentionOptions& options) {
        return tests::message_of([&] {
            flash_attention(device, Q.view(4, 64, 64), K.view(4, 64, 64), K.view(4, 64, 64), O.view(4, 64, 64),
                            options);
        });
    };
    const auto sloped = [](const auto& x) {
        return scores(
            "sloped", [](auto score, auto at, auto x) { return score * x[at.head]; }, x);
    };
    CHECK_THAT(said({.scores = sloped(few)}),
               Contains("own_attention_test.cpp:") &&
                   Contains("argument 1 of scores 'sloped' has 3 elements, and there are 4 heads"));
    CHECK_THAT(said({.scores = sloped(wide)}), Contains("argument 1 of scores 'sloped' has elements of f64"));
    CHECK_THAT(said({.scores = sloped(few.view(1, 3))}), Contains("argument 1 of scores 'sloped' has 2 dimensions"));
    CHECK_THAT(said({.sees = sees(
                         "unread", [](auto at, auto) { return at.key < 3; }, few)}),
               Contains("argument 1 of sees 'unread' is an array that the function does not read"));
    CHECK_THAT(
        said({.scores = scores(
                  "twice", [](auto score, auto at, auto x) { return score + x[at.head] * x[at.sequence]; }, few)}),
        Contains("argument 1 of scores 'twice' is read by head and by sequence"));
    const auto keyed = [](const auto& x) {
        return scores(
            "keyed", [](auto score, auto at, auto x) { return score + x[at.key]; }, x);
    };
    const auto by_two = [](const auto& x) {
        return sees(
            "by_two", [](auto at, auto x) { return x[at.query, at.key] > 0; }, x);
    };
    const auto square = device.upload(std::vector<float>(64 * 64, 1));
    CHECK_THAT(said({.scores = keyed(square.slice(0, 63))}),
               Contains("argument 1 of scores 'keyed' has 63 elements, and there are 64 keys"));
    CHECK_THAT(said({.sees = by_two(square.view(63, 64))}),
               Contains("argument 1 of sees 'by_two' has 63 x 64 elements, and there are 64 queries"));
    CHECK_THAT(said({.sees = by_two(square.view(64, 63))}),
               Contains("argument 1 of sees 'by_two' has 64 x 63 elements, and there are 64 keys"));
    CHECK_THAT(said({.sees = by_two(square)}), Contains("argument 1 of sees 'by_two' has 1 dimension\n"));
    CHECK_THAT(said({.sees = by_two(runtime::TensorView(square.view(64, 64)).permuted({1, 0}))}),
               Contains("the elements of argument 1 of sees 'by_two' are 64 apart"));
    CHECK(said({.sees = by_two(square.view(64, 64))}) == "");
    CHECK_THAT(said({.scores = scores(
                         "both", [](auto score, auto at, auto x) { return score + x[at.key] * x[at.head, at.key]; },
                         square.slice(0, 64))}),
               Contains("argument 1 of scores 'both' is read by head x key and by key"));
    CHECK_THAT(said({.scores = scores(
                         "of_o", [](auto score, auto at, auto x) { return score + x[at.head]; }, O)}),
               Contains("argument 1 of scores 'of_o'"));
    CHECK_THAT(said({.scores = scores("unassigned",
                                      [](auto score, auto) {
                                          f32 never;
                                          return score + never;
                                      })}),
               Contains("own_attention_test.cpp:") && Contains("may be unassigned"));
    CHECK_THAT(said({.sees = sees("my sight", [](auto at) { return at.key < 3; })}), Contains("my sight"));
}
