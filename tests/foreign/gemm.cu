// SPDX-License-Identifier: Apache-2.0
// A product of matrices as kernels for sm_90 make it: c[m][n] = a[m][k] b[n][k]^T. Of three warpgroups the first copies
// tiles, by bulk tensor copies or by threads, into a ring of stages; the others multiply, 64 rows each. Barriers in shared
// memory tell that a stage is full, and that it is empty. A block makes several tiles of c, one after the other.
#include <cuda_bf16.h>

namespace {

constexpr int rows = 128, columns = 128, depth = 64, stages = 3, row_bytes = 128;
constexpr int stage_bytes = (rows + columns) * row_bytes;

struct alignas(64) Map {
    char bytes[128];
};

struct Ring {
    unsigned tiles, full, empty;  // addresses in shared memory
    unsigned stage = 0, phase = 0;
    __device__ unsigned a() const { return tiles + stage * stage_bytes; }
    __device__ unsigned b() const { return a() + rows * row_bytes; }
    __device__ unsigned full_now() const { return full + 8 * stage; }
    __device__ unsigned empty_now() const { return empty + 8 * stage; }
    __device__ void next() {
        if (++stage == stages) stage = 0, phase ^= 1;
    }
};

__device__ void init(unsigned barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ void arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ void expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ void wait(unsigned barrier, unsigned phase) {
    asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra done;\nbra again;\ndone:\n}" ::"r"(barrier), "r"(phase)
                 : "memory");
}
__device__ void copy_box(unsigned to, const Map& map, int column, int row, unsigned barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}
/// A tile of 128 rows of 128 bytes, by 128 threads, in the places of a swizzle of 128 bytes.
__device__ void copy_rows(unsigned to, const __nv_bfloat16* from, int pitch) {
    for (unsigned i = threadIdx.x; i < 128 * 8; i += 128) {
        const unsigned row = i / 8, part = i % 8;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + row_bytes * row + 16 * (part ^ row % 8)),
                     "l"(from + row * pitch + 8 * part)
                     : "memory");
    }
}

__device__ unsigned long long descriptor(unsigned at) {
    return (at & 0x3ffff) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

#define FOUR(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SIXTEEN(d, i) FOUR(d, i), FOUR(d, i + 4), FOUR(d, i + 8), FOUR(d, i + 12)
__device__ void multiply(float (&d)[64], unsigned long long a, unsigned long long b, int adds) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
        "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, "
        "%37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "
        "%60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 0;\n}\n"
        : SIXTEEN(d, 0), SIXTEEN(d, 16), SIXTEEN(d, 32), SIXTEEN(d, 48)
        : "l"(a), "l"(b), "r"(adds));
}

/// `released_early`: a stage is said to be empty before its product is over.
template <bool Bulk, bool ReleasedEarly>
__device__ void gemm(const Map* map_a, const Map* map_b, const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int m,
                     int n, int k) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const auto tiles = unsigned(__cvta_generic_to_shared(memory));
    Ring ring{tiles, tiles + stages * stage_bytes, tiles + stages * stage_bytes + 8 * stages};
    const int group = threadIdx.x / 128;
    if (threadIdx.x == 0) {
        for (int i = 0; i < stages; ++i) init(ring.full + 8 * i, Bulk ? 1 : 128), init(ring.empty + 8 * i, 2);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const int of_columns = n / columns, count = m / rows * of_columns;
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (Bulk && threadIdx.x != 0) return;
        for (int tile = blockIdx.x; tile < count; tile += gridDim.x)
            for (int at = 0; at < k; at += depth, ring.next()) {
                const int row = tile / of_columns * rows, column = tile % of_columns * columns;
                wait(ring.empty_now(), ring.phase ^ 1);
                if (Bulk) {
                    expect(ring.full_now(), stage_bytes);
                    copy_box(ring.a(), *map_a, at, row, ring.full_now());
                    copy_box(ring.b(), *map_b, at, column, ring.full_now());
                } else {
                    copy_rows(ring.a(), a + row * k + at, k);
                    copy_rows(ring.b(), b + column * k + at, k);
                    asm volatile("cp.async.wait_all;\nfence.proxy.async.shared::cta;" ::: "memory");
                    arrive(ring.full_now());
                }
            }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    for (int tile = blockIdx.x; tile < count; tile += gridDim.x) {
        float d[64];
        unsigned before = 0;
        for (int at = 0; at < k; at += depth, ring.next()) {
            wait(ring.full_now(), ring.phase);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            for (int step = 0; step < 4; ++step)
                multiply(d, descriptor(ring.a() + (group - 1) * 64 * row_bytes + 32 * step), descriptor(ring.b() + 32 * step),
                         at + step > 0);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            if (ReleasedEarly && threadIdx.x % 128 == 0) arrive(ring.empty_now());
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            if (!ReleasedEarly && at > 0 && threadIdx.x % 128 == 0) arrive(before);
            before = ring.empty_now();
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (!ReleasedEarly && threadIdx.x % 128 == 0) arrive(before);
        const int row = tile / of_columns * rows + 64 * (group - 1) + 16 * (threadIdx.x / 32 % 4) + threadIdx.x % 32 / 4;
        const int column = tile % of_columns * columns + 2 * (threadIdx.x % 4);
        for (int i = 0; i < 64; i += 2)
            *reinterpret_cast<float2*>(c + (row + 8 * (i / 2 % 2)) * n + column + 8 * (i / 4)) = {d[i], d[i + 1]};
    }
}

}  // namespace

#define ARGUMENTS const __grid_constant__ Map map_a, const __grid_constant__ Map map_b, const __nv_bfloat16 *a, \
                  const __nv_bfloat16 *b, float *c, int m, int n, int k
extern "C" __global__ void __launch_bounds__(384, 1) gemm_of_threads(ARGUMENTS) {
    gemm<false, false>(&map_a, &map_b, a, b, c, m, n, k);
}
extern "C" __global__ void __launch_bounds__(384, 1) gemm_of_threads_released_early(ARGUMENTS) {
    gemm<false, true>(&map_a, &map_b, a, b, c, m, n, k);
}
extern "C" __global__ void __launch_bounds__(384, 1) gemm_of_boxes(ARGUMENTS) {
    gemm<true, false>(&map_a, &map_b, a, b, c, m, n, k);
}
extern "C" __global__ void __launch_bounds__(384, 1) gemm_of_boxes_released_early(ARGUMENTS) {
    gemm<true, true>(&map_a, &map_b, a, b, c, m, n, k);
}
