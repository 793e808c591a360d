// SPDX-License-Identifier: Apache-2.0
// Products of matrices by a warpgroup, by inline PTX, with fragments and descriptors as the formulas of the PTX ISA have
// them ("Register Fragments and Shared Memory Matrix Layouts", "Matrix Descriptor Format"). Tiles are written by ordinary
// stores, in rows of 128 bytes whose 16-byte parts change places.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace {

__device__ unsigned warp_in_group() { return threadIdx.x / 32 % 4; }
__device__ unsigned lane() { return threadIdx.x % 32; }

/// Element i of 64 x 64 sums of a thread.
__device__ unsigned row_of(int i) { return 16 * warp_in_group() + lane() / 4 + 8 * (i / 2 % 2); }
__device__ unsigned column_of(int i) { return 8 * (i / 4) + 2 * (lane() % 4) + i % 2; }

__device__ unsigned long long encode(unsigned x) { return (x & 0x3ffff) >> 4; }
__device__ unsigned long long descriptor(const void* tile, unsigned leading, unsigned stride) {
    const auto at = unsigned(__cvta_generic_to_shared(tile));
    return encode(at) | encode(leading) << 16 | encode(stride) << 32 | 1ull << 62;
}
/// The place of byte `column` of a row of 128.
__device__ unsigned place(unsigned row, unsigned column) { return 128 * row + (column ^ row % 8 * 16); }

/// A tile of 64 rows of 64 elements.
template <class T>
__device__ void fill(unsigned char* tile, const T* from, int pitch) {
    for (unsigned i = threadIdx.x % 128; i < 64 * 64; i += 128)
        *reinterpret_cast<T*>(tile + place(i / 64, i % 64 * sizeof(T))) = from[i / 64 * pitch + i % 64];
}
__device__ void publish() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
}

__device__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N>
__device__ void wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

#define SUMS(d)                                                                                                         \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),          \
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),           \
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),          \
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define NAMES                                                                                                           \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "    \
    "%24, %25, %26, %27, %28, %29, %30, %31}"

/// Keeps what writes d before a fence there: nvcc moves zeros to where they are used.
__device__ void settle(float (&d)[32]) { asm volatile("" : SUMS(d)::"memory"); }

/// d (+)= a * b of bf16; b by rows if it is transposed.
template <int TransposedB>
__device__ void multiply(float (&d)[32], unsigned long long a, unsigned long long b, int adds) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " NAMES ", %32, %33, p, 1, 1, 0, %35;\n}\n"
                 : SUMS(d)
                 : "l"(a), "l"(b), "r"(adds), "n"(TransposedB));
}
/// ... with a in registers, b by rows.
__device__ void multiply_registers(float (&d)[32], const unsigned (&a)[4], unsigned long long b, int adds) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " NAMES
                 ", {%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}\n"
                 : SUMS(d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds));
}
__device__ void multiply_bytes(float (&d)[32], unsigned long long a, unsigned long long b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 " NAMES ", %32, %33, 1, 1, -1;\n"
                 : SUMS(d)
                 : "l"(a), "l"(b));
}

__device__ void store(float* c, int pitch, const float (&d)[32]) {
    for (int i = 0; i < 32; ++i) c[row_of(i) * pitch + column_of(i)] = d[i];
}

}  // namespace

/// c[64][64] = a[64][k] b[64][k]^T: two tiles of each are in shared memory, and one product is in flight.
extern "C" __global__ void __launch_bounds__(128) pipelined(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int k) {
    __shared__ __align__(1024) unsigned char tile_a[2][8192], tile_b[2][8192];
    float d[32];
    for (int tile = 0; tile < k / 64; ++tile) {
        const int stage = tile % 2;
        fill(tile_a[stage], a + 64 * tile, k);
        fill(tile_b[stage], b + 64 * tile, k);
        publish();
        fence();
        for (int step = 0; step < 4; ++step)
            multiply<0>(d, descriptor(tile_a[stage] + 32 * step, 1, 1024), descriptor(tile_b[stage] + 32 * step, 1, 1024),
                        tile + step > 0);
        commit();
        wait<1>();  // the one that reads the other stage
        __syncthreads();
    }
    wait<0>();
    store(c, 64, d);
}

/// The same without the wait that the other stage needs.
extern "C" __global__ void __launch_bounds__(128) unawaited(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int k) {
    __shared__ __align__(1024) unsigned char tile_a[2][8192], tile_b[2][8192];
    float d[32];
    for (int tile = 0; tile < k / 64; ++tile) {
        const int stage = tile % 2;
        fill(tile_a[stage], a + 64 * tile, k);
        fill(tile_b[stage], b + 64 * tile, k);
        publish();
        fence();
        for (int step = 0; step < 4; ++step)
            multiply<0>(d, descriptor(tile_a[stage] + 32 * step, 1, 1024), descriptor(tile_b[stage] + 32 * step, 1, 1024),
                        tile + step > 0);
        commit();
        wait<2>();
    }
    wait<0>();
    store(c, 64, d);
}

/// o[64][64] = (q[64][64] k[64][64]^T > 0) v[64][64], for each of two warpgroups with a q and an o of its own.
extern "C" __global__ void __launch_bounds__(256) chained(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                                                          float* o) {
    __shared__ __align__(1024) unsigned char tile_q[2][8192], tile_k[8192], tile_v[8192];
    const unsigned group = threadIdx.x / 128;
    fill(tile_q[group], q + 4096 * group, 64);
    if (group == 0) fill(tile_k, k, 64); else fill(tile_v, v, 64);
    publish();
    float s[32], sums[32];
    fence();
    for (int step = 0; step < 4; ++step)
        multiply<0>(s, descriptor(tile_q[group] + 32 * step, 1, 1024), descriptor(tile_k + 32 * step, 1, 1024), step > 0);
    commit();
    wait<0>();
    unsigned p[16];  // two elements each: those of s are those of a
    for (int i = 0; i < 16; ++i) {
        const __nv_bfloat162 pair{__float2bfloat16(s[2 * i] > 0), __float2bfloat16(s[2 * i + 1] > 0)};
        p[i] = *reinterpret_cast<const unsigned*>(&pair);
    }
    fence();
    for (int step = 0; step < 4; ++step) {
        const unsigned part[4] = {p[4 * step], p[4 * step + 1], p[4 * step + 2], p[4 * step + 3]};
        multiply_registers(sums, part, descriptor(tile_v + 2048 * step, 8192, 1024), step > 0);
    }
    commit();
    wait<0>();
    store(o + 4096 * group, 64, sums);
}

/// c[64][64] = a[64][64] b[64][64], b by rows.
extern "C" __global__ void __launch_bounds__(128) by_rows(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
    __shared__ __align__(1024) unsigned char tile_a[8192], tile_b[8192];
    fill(tile_a, a, 64);
    fill(tile_b, b, 64);
    publish();
    float d[32] = {};
    settle(d);
    fence();
    for (int step = 0; step < 4; ++step)
        multiply<1>(d, descriptor(tile_a + 32 * step, 1, 1024), descriptor(tile_b + 2048 * step, 8192, 1024), 1);
    commit();
    wait<0>();
    store(c, 64, d);
}

/// c[64][64] -= a[64][128] b[64][128]^T of e4m3.
extern "C" __global__ void __launch_bounds__(128) bytes(const unsigned char* a, const unsigned char* b, float* c) {
    __shared__ __align__(1024) unsigned char tile_a[8192], tile_b[8192];
    for (unsigned i = threadIdx.x; i < 64 * 128; i += 128)
        tile_a[place(i / 128, i % 128)] = a[i], tile_b[place(i / 128, i % 128)] = b[i];
    publish();
    float d[32];
    for (int i = 0; i < 32; ++i) d[i] = c[64 * row_of(i) + column_of(i)];
    settle(d);
    fence();
    for (int step = 0; step < 4; ++step)
        multiply_bytes(d, descriptor(tile_a + 32 * step, 1, 1024), descriptor(tile_b + 32 * step, 1, 1024));
    commit();
    wait<0>();
    store(c, 64, d);
}
