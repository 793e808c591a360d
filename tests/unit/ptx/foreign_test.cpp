// SPDX-License-Identifier: Apache-2.0
// Round trips of PTX from elsewhere: parse, print, parse, print again gives the same text, and ptxas makes the same
// machine code of the printed text as of the original, so no modifier, operand or directive was lost.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "codegen/ptx/check.hpp"
#include "codegen/ptx/module.hpp"
#include "tests/catch.hpp"
#include "tests/ptxas.hpp"
#include "tests/unit/ptx/foreign.hpp"

using namespace ikat;

namespace {

/// Reprints the text, having checked that this ends in the first round.
std::string reprint(const std::string& text) {
    const std::string printed = ptx::print(ptx::parse(text, "original"));
    REQUIRE(ptx::print(ptx::parse(printed, "printed")) == printed);
    return printed;
}

void check_machine_code(const std::string& original, const std::string& target) {
    const std::string printed = reprint(original);
    for (const Diagnostic& each : ptx::check(ptx::parse(printed, "printed"), {.unknown_opcodes = Severity::Error}))
        FAIL_CHECK(to_string(each));
    if (tests::skip_without_ptxas()) return;
    const auto before = tests::machine_code(original, target);
    REQUIRE_FALSE(before.empty());
    CHECK(before == tests::machine_code(printed, target));
}

constexpr const char* cuda = R"(
#include <cstdio>
__device__ float table[4] = {1, 2, 3, 4};
__constant__ double weights[3];
struct Pair { int a; double b; char c[16]; };
__device__ __noinline__ Pair step(Pair s, float x) { s.b += x * weights[s.a]; s.c[3] ^= s.a; return s; }
extern "C" __global__ void many(const float* __restrict__ a, float* b, int n, Pair s) {
    __shared__ float tile[256];
    extern __shared__ int dynamic[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) tile[threadIdx.x] = a[i] * table[i & 3];
    __syncthreads();
    float v = tile[255 - threadIdx.x];
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
    s = step(s, v);
    unsigned m = __ballot_sync(0xffffffff, v > 1);
    atomicAdd(b, v);
    atomicAdd(&dynamic[i & 7], m);
    b[i] = v / sqrtf(s.b) + sinf(v) + s.c[i & 15] + exp2f(v) + __popc(m) + powf(v, 3.f);
    switch (i & 15) {
        case 0: b[0] = 1; break;
        case 1: b[3] = 2; break;
        case 2: b[7] = v + 2; break;
        case 3: b[9] = v; break;
        case 4: b[17] = v * 2; break;
        case 5: b[1] = 3 * v; break;
        case 6: asm volatile("{ .reg .pred p; setp.gt.f32 p, %0, 0f00000000; @p st.global.f32 [%1], %0; @!p st.global.f32 [%1+4], %0; }" ::"f"(v), "l"(b));
    }
}
typedef float (*Function)(float);
__device__ float plus(float x) { return x + 1; }
__device__ float times(float x) { return x * 2; }
__device__ Function functions[2] = {plus, times};
__global__ void indirect(float* p, int i) { p[0] = functions[i](p[1]); printf("called %d\n", i); }
)";

constexpr const char* plain = R"(
__attribute__((address_space(3))) int shared[64];
int table[5] = {1, 2, 3, 4, 5};
int* inside = table + 2;
struct Pair { int a; double b; char c[9]; };
extern Pair elsewhere(Pair, int);
extern "C" __attribute__((noinline)) Pair step(Pair x, int i) { x.b += i; x.c[2] = 3; return i ? elsewhere(x, i) : x; }
extern "C" __attribute__((nvptx_kernel)) void many(float* a, float* b, int n) {
    int i = __nvvm_read_ptx_sreg_tid_x();
    if (i < n) {
        shared[i] = i;
        __syncthreads();
        a[i] += shared[63 - i] * table[i & 3];
        Pair s{};
        s.a = i;
        a[1] = step(s, i).b;
        for (int j = 0; j < n; ++j) b[j] = __builtin_fabsf(a[j]) / 3;
        __atomic_fetch_add(inside, 1, __ATOMIC_SEQ_CST);
    }
    if (n == 77) __builtin_trap();
}
)";

}  // namespace

TEST_CASE("PTX by nvcc") {
    for (const char* options : {"-arch=sm_90", "-arch=sm_80 -lineinfo", "-arch=sm_75 -G"}) {
        INFO(options);
        const auto text = tests::nvcc_ptx(cuda, options);
        if (!text) {
            std::puts("skipped: no nvcc");
            return;
        }
        check_machine_code(*text, "sm_90");
    }
}

TEST_CASE("PTX by clang") {
    for (const char* options : {"-O0 -march=sm_75", "-O2 -march=sm_80", "-O2 -g -march=sm_80"}) {
        INFO(options);
        const auto text = tests::clang_ptx(plain, options);
        if (!text) {
            std::puts("skipped: no clang++-19");
            return;
        }
        // Debug sections refer to labels of the text; ptxas makes the code of both alike all the same.
        check_machine_code(*text, "sm_80");
    }
}

TEST_CASE("every PTX file of the repository") {
    int files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(IKAT_SOURCE_DIR)) {
        const std::string path = entry.path().string();
        if (entry.path().extension() != ".ptx" || path.find("/build/") != path.npos ||
            path.find("/errors/") != path.npos || entry.path().stem() == "bad")
            continue;
        INFO(path);
        std::ostringstream text;
        text << std::ifstream(path).rdbuf();
        std::string input = text.str();
        if (const std::size_t mark = input.find("// ---- expect ----"); mark != input.npos) input.resize(mark);
        reprint(input);
        ++files;
    }
    CHECK(files > 0);
}
