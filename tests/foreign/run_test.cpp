// SPDX-License-Identifier: Apache-2.0
// Kernels compiled by nvcc and clang, run on the emulator and compared with host results. With debug information (-G)
// nvcc inlines nothing and keeps everything in memory; with -O it calls little and unrolls.
#include <cmath>
#include <cstdio>
#include <functional>

#include "tests/foreign/compilers.hpp"
#include "tests/foreign/values.hpp"
#include "tests/unit/emulator/machine.hpp"

using namespace ikat;
using tests::made;

namespace {

using Body = std::function<void(const std::string& ptx)>;

void by_nvcc(const Body& body) {
    for (const char* options : {"-arch=sm_80", "-arch=sm_75 -G"}) {
        static std::map<std::string, std::optional<std::string>> made;
        if (!made.contains(options)) made[options] = tests::nvcc_ptx(tests::foreign_source("kernels.cu"), options);
        INFO("nvcc " << options);
        if (!made[options]) {
            std::puts("skipped: no nvcc");
            return;
        }
        body(*made[options]);
    }
}

void by_clang(const Body& body) {
    for (const char* options : {"-O0 -march=sm_75", "-O2 -march=sm_80"}) {
        static std::map<std::string, std::optional<std::string>> made;
        if (!made.contains(options)) made[options] = tests::clang_ptx(tests::foreign_source("kernels.cpp"), options);
        INFO("clang++ " << options);
        if (!made[options]) {
            std::puts("skipped: no clang++-19");
            return;
        }
        body(*made[options]);
    }
}

int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

struct Pair {
    int a;
    double b;
    char c[9];
};
struct Big {
    int a[20];
    double d;
};

/// As in kernels.cu and kernels.cpp; only the first has a case 7.
int switched(int x, bool has_seven) {
    switch (x) {
        case 0: return 11;
        case 1: return x * 7;
        case 2: return 5;
        case 3: return x - 3;
        case 4: return ~x;
        case 5: return 55;
        case 6: return x << 3;
        case 7: return has_seven ? x * x * x : -1;
        default: return -1;
    }
}

}  // namespace

TEST_CASE("saxpy, with its early return") {
    by_nvcc([](const std::string& ptx) {
        tests::Machine machine;
        const auto x = machine.buffer("x", made<float>(100, [](int i) { return float(i) / 4; }));
        const auto y = machine.buffer("y", made<float>(100, [](int i) { return float(i); }));
        machine.run(ptx, {.entry = "saxpy", .grid = {4, 1, 1}, .block = {32, 1, 1}}, 3.f, x, y, 97);
        const auto result = machine.get<float>(y, 100);
        for (int i = 0; i < 100; ++i) CHECK(result[i] == (i < 97 ? std::fma(3.f, float(i) / 4, float(i)) : float(i)));
    });
}

TEST_CASE("recursion, to a different depth in each lane") {
    const auto check = [](const std::string& ptx) {
        tests::Machine machine;
        const auto out = machine.empty<int>("out", 14);
        machine.run(ptx, {.entry = "recursion", .block = {14, 1, 1}}, out);
        CHECK(machine.get<int>(out, 14) == made<int>(14, fibonacci));
    };
    by_nvcc(check);
    by_clang(check);
}

TEST_CASE("printf and assert") {
    by_nvcc([](const std::string& ptx) {
        tests::Machine machine;
        machine.run(ptx, {.entry = "printing", .block = {32, 1, 1}}, 3);
        CHECK(machine.printed == "3 second\n\"quoted\" 4.500000 x 3298534883328|3.25e+00|7    |ff\n");
        machine.printed.clear();
        CHECK_THAT(machine.failure(ptx, {.entry = "printing", .block = {32, 1, 1}}, 5),
                   tests::contains("an assertion failed"));
        CHECK_THAT(machine.printed, tests::contains("Assertion `n != 5` failed."));
    });
}

TEST_CASE("switch by a table") {
    const auto check = [](const std::string& ptx, bool has_seven) {
        tests::Machine machine;
        const auto p = machine.buffer("p", made<int>(32, [](int i) { return i % 10; }));
        machine.run(ptx, {.entry = "switching", .block = {32, 1, 1}}, p);
        CHECK(machine.get<int>(p, 32) == made<int>(32, [&](int i) { return switched(i % 10, has_seven); }));
    };
    by_nvcc([&](const std::string& ptx) { check(ptx, true); });
    by_clang([&](const std::string& ptx) { check(ptx, false); });
}

TEST_CASE("structures by value") {
    by_nvcc([](const std::string& ptx) {
        tests::Machine machine;
        Big big{};
        for (int i = 0; i < 20; ++i) big.a[i] = 100 + i;
        big.d = 1.5;
        const auto out = machine.empty<Big>("out", 32);
        machine.run(ptx, {.entry = "structs", .block = {32, 1, 1}}, big, out);
        const auto result = machine.get<Big>(out, 32);
        for (int i = 0; i < 32; ++i) {
            CHECK(result[i].d == 1.5 * i);
            for (int k = 0; k < 20; ++k) CHECK(result[i].a[k] == 100 + k + (k == i % 20 ? 3 : 0));
        }
    });
    by_clang([](const std::string& ptx) {
        tests::Machine machine;
        const auto p = machine.buffer("p", std::vector<Pair>(8, Pair{7, 0.5, {1, 1, 1, 1, 1, 1, 1, 1, 1}}));
        machine.run(ptx, {.entry = "pairs", .block = {8, 1, 1}}, p);
        const auto result = machine.get<Pair>(p, 8);
        for (int i = 0; i < 8; ++i) {
            CHECK(result[i].a == 7 - i);
            CHECK(result[i].b == 0.5 + i);
            for (int k = 0; k < 9; ++k) CHECK(result[i].c[k] == (k == i ? 3 : 1));
        }
    });
}

TEST_CASE("functions by address, virtual ones too") {
    by_nvcc([](const std::string& ptx) {
        tests::Machine machine;
        const auto p = machine.buffer("p", made<float>(32, [](int i) { return float(i); }));
        machine.run(ptx, {.entry = "indirect", .block = {32, 1, 1}}, p);
        const auto result = machine.get<float>(p, 32);
        for (int i = 0; i < 32; ++i) {
            const float x = float(i), area = x > 4 ? x * x : 3 * x * x;
            CHECK(result[i] == (i % 2 ? x * 2 : x + 1) + area);
        }
    });
    by_clang([](const std::string& ptx) {
        tests::Machine machine;
        const auto p = machine.buffer("p", made<float>(32, [](int i) { return float(i); }));
        machine.run(ptx, {.entry = "indirect", .block = {32, 1, 1}}, p);
        const auto expected = made<float>(32, [](int i) { return i % 2 ? float(2 * i) : float(i + 1); });
        CHECK(machine.get<float>(p, 32) == expected);
    });
}

TEST_CASE("pointers in initial values") {
    by_nvcc([](const std::string& ptx) {
        tests::Machine machine;
        const auto out = machine.empty<int>("out", 2);
        machine.run(ptx, {.entry = "pointers", .block = {2, 1, 1}}, out);
        // inside[1] is 4, the nodes 1 and 20, the character after the newline '"'
        CHECK(machine.get<int>(out, 2) == std::vector<int>{4 + 3 + 21 + '"', 4 + 6 + 21 + '"'});
    });
}

TEST_CASE("shared memory, static and dynamic") {
    by_nvcc([](const std::string& ptx) {
        tests::Machine machine;
        const auto x = machine.buffer("x", made<float>(128, [](int i) { return float(i * i % 71); }));
        const auto y = machine.empty<float>("y", 128);
        machine.run(ptx, {.entry = "shared", .block = {128, 1, 1}, .dynamic_shared_bytes = 1024}, x, y, 5);
        const auto at = [](int i) { return float(i * i % 71); };
        const auto result = machine.get<float>(y, 128);
        for (int i = 0; i < 128; ++i)
            CHECK(result[i] == float(at(i % 4 * 32 + i / 4) + at(1) + 128 + at(i % 32 * 4 + 2)));
    });
}

TEST_CASE("the CUDA kernel in docs/from-cuda.md") {
    by_nvcc([](const std::string& ptx) {
        tests::Machine machine;
        const auto x = machine.buffer("x", made<float>(600, [](int i) { return float(i); }));
        const auto sums = machine.empty<float>("sums", 3);
        machine.run(ptx, {.entry = "block_sums", .grid = {3, 1, 1}, .block = {256, 1, 1}}, x, sums, 600u);
        CHECK(machine.get<float>(sums, 3) == std::vector<float>{32640, 98176, 48884});
    });
}

TEST_CASE("atomics") {
    by_nvcc([](const std::string& ptx) {
        tests::Machine machine;
        const auto i = machine.buffer("i", std::vector<int>{0, 0, 0, 0});
        const auto u = machine.buffer("u", std::vector<unsigned>{0, 0, 4, ~0u, 0, 0});
        const auto l = machine.buffer("l", std::vector<std::uint64_t>{1, 0});
        const auto f = machine.buffer("f", std::vector<float>{0, 0});
        const auto d = machine.buffer("d", std::vector<double>{0});
        machine.run(ptx, {.entry = "atomics", .block = {32, 1, 1}}, i, u, l, f, d);
        CHECK(machine.get<int>(i, 4) == std::vector<int>{32, -64, -5, 96});
        CHECK(machine.get<unsigned>(u, 6) == std::vector<unsigned>{31, 32 % 10, 2, 0, ~0u, 0});
        CHECK(machine.get<std::uint64_t>(l, 2) == std::vector<std::uint64_t>{77, std::uint64_t{32} << 33});
        CHECK(machine.get<float>(f, 2) == std::vector<float>{2.5, 16});
        CHECK(machine.get<double>(d, 1) == std::vector<double>{8});
    });
}

TEST_CASE("elementary functions of doubles and floats, with the slow paths of their reductions") {
    by_nvcc([](const std::string& ptx) {
        tests::Machine machine;
        std::vector<float> f(16);
        std::vector<double> d(9);
        for (int i = 0; i < 16; ++i) f[i] = .3f + .11f * float(i);
        for (int i = 0; i < 9; ++i) d[i] = .4 + .21 * i;
        const auto f_at = machine.buffer("f", f);
        const auto d_at = machine.buffer("d", d);
        machine.run(ptx, {.entry = "math"}, f_at, d_at, 1);
        const auto floats = machine.get<float>(f_at, 16);
        const auto doubles = machine.get<double>(d_at, 9);
        CHECK(floats[0] == Approx(std::sin(f[0]) + std::cos(f[1]) + std::exp(f[3]) + std::log(f[4]) +
                                  std::pow(f[5], f[6]) + std::sqrt(f[7]) + 1 / std::sqrt(f[8]))
                               .epsilon(1e-6));
        CHECK(floats[1] == Approx(std::tanh(f[10]) + std::erf(f[9]) + std::fmod(f[11], f[12]) +
                                  std::atan2(f[13], f[14]) + std::cbrt(f[1]))
                               .epsilon(1e-6));
        CHECK(doubles[0] == Approx(std::sin(d[0]) + std::cos(d[1]) + std::exp(d[2]) + std::log(d[3]) + std::sqrt(d[4]) +
                                   std::pow(d[5], d[6]) + std::fma(d[1], d[2], -2.0))
                                .epsilon(1e-14));
        CHECK(doubles[2] == Approx(std::tgamma(d[8]) + std::erf(d[7]) + std::sin(1e18 * d[1])).epsilon(1e-13));
    });
}

TEST_CASE("integers of 32 and 64 bits") {
    by_nvcc([](const std::string& ptx) {
        tests::Machine machine;
        const auto u = machine.buffer("u", made<unsigned>(32, [](int i) { return unsigned(i * 77777); }));
        const auto l = machine.buffer("l", made<std::uint64_t>(32, [](int i) { return std::uint64_t(i) << 40; }));
        machine.run(ptx, {.entry = "bits", .block = {32, 1, 1}}, u, l);
        const auto words = machine.get<unsigned>(u, 32);
        const auto longs = machine.get<std::uint64_t>(l, 32);
        const auto reversed = [](auto x) {
            decltype(x) r = 0;
            for (unsigned k = 0; k < sizeof x * 8; ++k) r = decltype(x)(r << 1 | (x >> k & 1));
            return r;
        };
        for (unsigned i = 0; i < 32; ++i) {
            const unsigned v = i * 77777, a = v * 2654435761u + i, b = v ^ 0x9e3779b9u;
            const std::uint64_t both = std::uint64_t(b) << 32 | a;
            unsigned permuted = 0, difference = 0;
            for (unsigned k = 0; k < 4; ++k) {
                permuted |= unsigned(both >> (8 * (0x5140 >> (4 * k) & 7)) & 255) << (8 * k);
                const int x = int(a >> (8 * k) & 255), y = int(b >> (8 * k) & 255);
                difference |= unsigned(std::abs(x - y)) << (8 * k);
            }
            const unsigned expected = unsigned(__builtin_popcount(a)) + unsigned(b ? __builtin_clz(b) : 32) +
                                      reversed(a) + unsigned(__builtin_ffs(int(b))) + permuted +
                                      unsigned(both << (i & 31) >> 32) + unsigned(std::uint64_t(a) * b >> 32) +
                                      ((a > b ? a - b : b - a) + i) + (a / (b | 1)) % 1000 +
                                      unsigned(int(a) % (int(b) | 1)) + difference;
            CHECK(words[i] == expected);
            const std::uint64_t x = (std::uint64_t(i) << 40) * 6364136223846793005ull + i, y = x >> 17;
            CHECK(longs[i] == std::uint64_t(__builtin_popcountll(x)) + std::uint64_t(y ? __builtin_clzll(y) : 64) +
                                  reversed(x) + std::uint64_t((unsigned __int128)x * y >> 64) + x / (y | 1) +
                                  x % (y | 1) + (x << i) + std::uint64_t(std::int64_t(x) >> i));
        }
    });
    by_clang([](const std::string& ptx) {
        tests::Machine machine;
        const auto value = [](int i) { return (long long)i * 0x123456789abcdefll - (1ll << 60); };
        const auto p = machine.buffer("p", made<long long>(32, value));
        const auto d = machine.buffer("d", made<double>(32, [](int i) { return i * 1.75 - 20; }));
        const auto f = machine.buffer("f", made<float>(32, [](int i) { return float(i) * 1.25f - 20; }));
        const auto s = machine.buffer("s", made<short>(32, [](int i) { return short(i * 999 - 12345); }));
        const auto b = machine.buffer("b", made<unsigned char>(32, [](int i) { return (unsigned char)(i * 8); }));
        machine.run(ptx, {.entry = "numbers", .block = {32, 1, 1}}, p, d, f, s, b);
        const auto longs = machine.get<long long>(p, 32);
        const auto doubles = machine.get<double>(d, 32);
        const auto shorts = machine.get<short>(s, 32);
        const auto bytes = machine.get<unsigned char>(b, 32);
        for (int i = 0; i < 32; ++i) {
            const long long v = value(i);
            CHECK(longs[i] == v / 7 + v % 5 + (v >> i) * 3 + __builtin_popcountll(std::uint64_t(v)) +
                                  __builtin_clzll(std::uint64_t(v) | 1));
            const double x = i * 1.75 - 20;
            CHECK(doubles[i] == std::fma(x, 2.0, 1.5) / 3.0 + double(longs[i]) + std::floor(x));
            const short h = short(i * 999 - 12345);
            CHECK(shorts[i] == short(h * 3 + h / 3));
            const auto c = (unsigned char)(i * 8);
            CHECK(bytes[i] == (unsigned char)(c * 5 + (c >> 1)));
        }
    });
}

TEST_CASE("warps: shuffles, votes, counting barriers") {
    by_nvcc([](const std::string& ptx) {
        tests::Machine machine;
        const auto p = machine.buffer("p", made<int>(32, [](int i) { return i * 5 % 23; }));
        machine.run(ptx, {.entry = "warps", .block = {32, 1, 1}}, p);
        std::vector<int> v = made<int>(32, [](int i) { return i * 5 % 23; }), next = v;
        for (int i = 0; i < 32; ++i) next[i] += v[i ^ 1] + v[i >= 2 ? i - 2 : i] + v[(i & 15) + 3 < 16 ? i + 3 : i];
        v = next;
        unsigned odd = 0;
        int any = 0, all = 1, same[4] = {};
        const auto vote = [&] {
            odd = 0, any = 0, all = 1;
            for (int i = 0; i < 32; ++i) odd |= unsigned(v[i] & 1) << i, any |= v[i] != 0, all &= v[i] != 0;
        };
        vote();
        // all four are computed from the same old value
        for (int i = 0; i < 32; ++i) ++same[v[i] & 3];
        for (int i = 0; i < 32; ++i) next[i] = int(unsigned(v[i]) + odd + unsigned(any + all + same[v[i] & 3]));
        v = next;
        vote();
        for (int i = 0; i < 32; ++i) next[i] = v[i] + __builtin_popcount(odd) + all + any;
        CHECK(machine.get<int>(p, 32) == next);
    });
}

TEST_CASE("shuffles, votes and matches by clang") {
    by_clang([](const std::string& ptx) {
        tests::Machine machine;
        const auto p = machine.buffer("p", made<int>(32, [](int i) { return i * 7 % 32; }));
        machine.run(ptx, {.entry = "exchange", .block = {32, 1, 1}}, p);
        const auto at = [](int i) { return i * 7 % 32; };
        const auto expected = made<int>(32, [&](int i) {
            return int(unsigned(at(i > 0 ? i - 1 : 0) + 100 * at(i ^ 16) + 16) + (0x11111111u << (i & 3)));
        });
        CHECK(machine.get<int>(p, 32) == expected);
    });
}

TEST_CASE("printf by clang") {
    by_clang([](const std::string& ptx) {
        tests::Machine machine;
        machine.run(ptx, {.entry = "printing"}, 5);
        CHECK(machine.printed == "5 and 2.50, one\n");
    });
}

TEST_CASE("structures and arrays of a kernel by clang") {
    by_clang([](const std::string& ptx) {
        tests::Machine machine;
        const Pair pair{3, 40, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
        const auto p = machine.empty<int>("p", 32);
        machine.run(ptx, {.entry = "arrays", .block = {32, 1, 1}}, pair, p);
        CHECK(machine.get<int>(p, 32) == made<int>(32, [&](int i) {
                  int count = pair.a + (i & 15);
                  for (int j = 0; j < 40; ++j) count += (i * j & 15) == (i & 15) ? j : 0;
                  return count + 40 + pair.c[i % 9];
              }));
    });
}

TEST_CASE("small floats by clang") {
    by_clang([](const std::string& ptx) {
        tests::Machine machine;
        const auto half = [](int i) { return std::uint16_t(i < 8 ? 0x3c00 : 0x4000); };   // 1 or 2
        const auto brain = [](int i) { return std::uint16_t(i < 8 ? 0x3f80 : 0x4040); };  // 1 or 3
        const auto h = machine.buffer("h", made<std::uint16_t>(16, half));
        const auto b = machine.buffer("b", made<std::uint16_t>(16, brain));
        const auto f = machine.buffer("f", made<float>(16, [](int i) { return float(i % 2) / 2; }));
        machine.run(ptx, {.entry = "halves", .block = {16, 1, 1}}, h, b, f);
        const auto halves = machine.get<std::uint16_t>(h, 16), brains = machine.get<std::uint16_t>(b, 16);
        const auto floats = machine.get<float>(f, 16);
        for (int i = 0; i < 16; ++i) {
            const bool first = i < 8, odd = i % 2;
            CHECK(halves[i] == (first ? odd ? 0x3e00 : 0x3c00 : odd ? 0x4480 : 0x4400));  // 1.5 1 4.5 4
            CHECK(brains[i] == (first ? odd ? 0x3fc0 : 0x3f80 : odd ? 0x4060 : 0x4040));  // 1.5 1 3.5 3
            CHECK(floats[i] == (first ? 0 : 1) + (first ? 1 : 0));
        }
    });
}

TEST_CASE("atomics by clang") {
    by_clang([](const std::string& ptx) {
        tests::Machine machine;
        const auto p = machine.buffer("p", std::vector<unsigned>{5, 0, 0});
        const auto q = machine.buffer("q", std::vector<std::uint64_t>{0, 1});
        const auto f = machine.buffer("f", std::vector<float>{1});
        machine.run(ptx, {.entry = "ordered", .block = {32, 1, 1}}, p, q, f);
        CHECK(machine.get<unsigned>(p, 3) == std::vector<unsigned>{69, ~0u, 32 % 10});
        CHECK(machine.get<std::uint64_t>(q, 2) == std::vector<std::uint64_t>{std::uint64_t{31} << 33, 7});
        CHECK(machine.get<float>(f, 1) == std::vector<float>{17});
    });
}

TEST_CASE("stack memory whose size is known only at run time") {
    by_nvcc([](const std::string& ptx) {
        tests::Machine machine;
        const auto out = machine.empty<int>("out", 32);
        machine.run(ptx, {.entry = "stack", .block = {32, 1, 1}}, 10, out);
        CHECK(machine.get<int>(out, 32) == std::vector<int>(32, 45));
    });
}
