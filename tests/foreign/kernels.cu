// SPDX-License-Identifier: Apache-2.0
// CUDA C++ of many kinds for nvcc: what comes out is foreign PTX for the parser and the emulator.
#include <cuda_fp16.h>

#include <cassert>
#include <cstdio>

__device__ float table[4] = {1, 2, 3, 4};
__device__ float* inside = table + 2;
__constant__ double weights[3] = {1.5, -2, 1e300};
__device__ int matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
struct Node {
    int value;
    const Node* next;
};
__device__ Node last = {20, nullptr};
__device__ Node nodes[2] = {{1, &last}, {2, nullptr}};
__constant__ const char* words[2] = {"first", "second\n\"quoted\""};

template <class T>
__device__ void scaled(T a, const T* x, T* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = a * x[i] + y[i];
}
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) { scaled(a, x, y, n); }
extern "C" __global__ void daxpy(double a, const double* x, double* y, int n) { scaled(a, x, y, n); }
extern "C" __global__ void haxpy(__half a, const __half* x, __half* y, int n) { scaled(a, x, y, n); }

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
extern "C" __global__ void recursion(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x); }

extern "C" __global__ void printing(int n) {
    if (threadIdx.x != 0) return;
    printf("%d %s %f %c %lld|%5.2e|%-5u|%x\n", n, words[n & 1], 1.5 * n, 'x', (long long)n << 40, 3.25, 7u, 255);
    assert(n != 5);
}

extern "C" __global__ void switching(int* p) {
    int& x = p[threadIdx.x];
    switch (x) {
        case 0: x = 11; break;
        case 1: x *= 7; break;
        case 2: x = 5; break;
        case 3: x -= 3; break;
        case 4: x = ~x; break;
        case 5: x = 55; break;
        case 6: x = x << 3; break;
        case 7: x = x * x * x; break;
        default: x = -1;
    }
}

struct Big {
    int a[20];
    double d;
};
__device__ __noinline__ Big twist(Big b, int i) {
    b.a[i % 20] += 3;
    b.d *= i;
    return b;
}
extern "C" __global__ void structs(Big b, Big* out) { out[threadIdx.x] = twist(b, threadIdx.x); }

extern "C" __global__ void atomics(int* i, unsigned* u, unsigned long long* l, float* f, double* d) {
    atomicAdd(i, 1);
    atomicSub(i + 1, 2);
    atomicMin(i + 2, (int)threadIdx.x - 5);
    atomicMax(u, threadIdx.x);
    atomicInc(u + 1, 9);
    atomicDec(u + 2, 9);
    atomicAnd(u + 3, ~(1u << threadIdx.x));
    atomicOr(u + 4, 1u << threadIdx.x);
    atomicXor(u + 5, threadIdx.x);
    atomicExch(f, 2.5f);
    atomicCAS(l, 1ull, 77ull);
    atomicAdd(l + 1, 1ull << 33);
    atomicAdd(f + 1, .5f);
    atomicAdd(d, .25);
    atomicAdd_block(i + 3, 2);
    atomicAdd_system(i + 3, 1);
}

extern "C" __global__ void math(float* f, double* d, int n) {
    f[0] = sinf(f[0]) + cosf(f[1]) + expf(f[3]) + logf(f[4]) + powf(f[5], f[6]) + sqrtf(f[7]) + rsqrtf(f[8]);
    f[1] = tanhf(f[10]) + erff(f[9]) + fmodf(f[11], f[12]) + atan2f(f[13], f[14]) + cbrtf(f[1]);
    d[0] = sin(d[0]) + cos(d[1]) + exp(d[2]) + log(d[3]) + sqrt(d[4]) + pow(d[5], d[6]) + fma(d[1], d[2], weights[n]);
    f[2] = __fdividef(f[0], f[1]) + __expf(f[2]) + __fmaf_rz(f[1], f[2], f[3]) + __fadd_ru(f[1], f[2]);
    f[3] = (float)(long long)d[1] + (float)(unsigned char)f[1] + rintf(f[2]) + ceilf(f[3]) + __int2float_rz(n);
    f[4] = (int)d[4] + __double2float_ru(d[3]) + (short)f[9] + __saturatef(f[1]) + __fsqrt_rd(f[1]);
    if (n & 1) d[2] = tgamma(d[8]) + erf(d[7]) + sin(1e18 * d[1]);
}

extern "C" __global__ void bits(unsigned* u, unsigned long long* l) {
    unsigned i = threadIdx.x, a = u[i] * 2654435761u + i, b = u[i] ^ 0x9e3779b9u;
    u[i] = __popc(a) + __clz(b) + __brev(a) + __ffs(b) + __byte_perm(a, b, 0x5140) + __funnelshift_l(a, b, i) +
           __umulhi(a, b) + __usad(a, b, i) + (a / (b | 1)) % 1000 + (int)a % ((int)b | 1) + __vabsdiffu4(a, b);
    unsigned long long x = l[i] * 6364136223846793005ull + i, y = x >> 17;
    l[i] = __popcll(x) + __clzll(y) + __brevll(x) + __umul64hi(x, y) + x / (y | 1) + x % (y | 1) + (x << i) +
           ((long long)x >> i);
}

extern "C" __global__ void warps(int* p) {
    int v = p[threadIdx.x];
    v += __shfl_xor_sync(~0u, v, 1) + __shfl_up_sync(~0u, v, 2) + __shfl_down_sync(~0u, v, 3, 16);
    v += __ballot_sync(~0u, v & 1) + __any_sync(~0u, v) + __all_sync(~0u, v) + __popc(__match_any_sync(~0u, v & 3));
    __syncwarp();
    v += __syncthreads_count(v & 1) + __syncthreads_and(v) + __syncthreads_or(v);
    __nanosleep(10);
    __threadfence();
    __threadfence_block();
    p[threadIdx.x] = v;
}

typedef float (*Function)(float);
__device__ float plus_one(float x) { return x + 1; }
__device__ float twice(float x) { return x * 2; }
__device__ Function functions[2] = {plus_one, twice};
struct Shape {
    __device__ virtual float area() const = 0;
};
struct Square : Shape {
    float s;
    __device__ Square(float x) : s(x) {}
    __device__ float area() const override { return s * s; }
};
struct Disc : Shape {
    float r;
    __device__ Disc(float x) : r(x) {}
    __device__ float area() const override { return 3 * r * r; }
};
extern "C" __global__ void indirect(float* p) {
    int i = threadIdx.x;
    Square square(p[i]);
    Disc disc(p[i]);
    const Shape* shape = p[i] > 4 ? (const Shape*)&square : &disc;
    p[i] = functions[i & 1](p[i]) + shape->area();
}

extern "C" __global__ void __launch_bounds__(128, 4) shared(const float* __restrict__ x, float* y, int n) {
    __shared__ float tile[4][33];
    extern __shared__ double dynamic[];
    __shared__ int done;
    if (threadIdx.x == 0) done = 0;
    __syncthreads();
    tile[threadIdx.x / 32][threadIdx.x % 32] = __ldg(x + threadIdx.x);
    dynamic[threadIdx.x] = x[1];
    atomicAdd(&done, 1);
    __syncthreads();
    float4 v = reinterpret_cast<const float4*>(x)[threadIdx.x % 32];
    y[threadIdx.x] = tile[threadIdx.x % 4][threadIdx.x / 4] + dynamic[n] + done + v.z;
}

// docs/from-cuda.md shows this one.
extern "C" __global__ void __launch_bounds__(256) block_sums(const float* x, float* sums, unsigned n) {
    __shared__ float part[256];
    unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    part[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (t < step) part[t] += part[t + step];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}

extern "C" __global__ void pointers(int* out) {
    int sum = inside[1] + matrix[threadIdx.x & 1][2];
    for (const Node* node = nodes; node; node = node->next) sum += node->value;
    out[threadIdx.x] = sum + words[1][7];
}

extern "C" __global__ void stack(int n, int* out) {
    int* p = (int*)__builtin_alloca(n * 4);
    for (int i = 0; i < n; ++i) p[i] = i;
    int sum = 0;
    for (int i = n; i--;) sum += p[(i * 7) % n];
    out[threadIdx.x] = sum;
}

extern "C" __global__ void lines(float* a, float* b) {
    float v = a[threadIdx.x];
    asm volatile(
        "{ .reg .pred p; setp.gt.f32 p, %0, 0f00000000; @p st.global.f32 [%1], %0; @!p st.global.f32 [%1+4], %0; }" ::"f"(v),
        "l"(b + 2 * threadIdx.x));
    if (v == 77) asm volatile("brkpt;");
    if (v == 78) __trap();
}
