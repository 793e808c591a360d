// SPDX-License-Identifier: Apache-2.0
// The measured kernels in OpenCL C: as they are written for a GPU, and as they suit a CPU.

kernel void saxpy(global const float* restrict x, global float* restrict y, float a, uint n) {
    const uint i = get_global_id(0);
    if (i < n) y[i] = fma(a, x[i], y[i]);
}

kernel void saxpy_vectors(global const float16* restrict x, global float16* restrict y, float a, uint n) {
    const uint i = get_global_id(0);
    if (i < n / 16) y[i] = fma((float16)(a), x[i], y[i]);
}

kernel void matmul(global const float* restrict A, global const float* restrict B, global float* restrict C, uint n) {
    const uint i = get_global_id(1), j = get_global_id(0);
    if (i >= n || j >= n) return;
    float v = 0;
    for (uint k = 0; k < n; ++k) v = fma(A[i * n + k], B[k * n + j], v);
    C[i * n + j] = v;
}

// Tiles of 64 x 64, of which each of 16 x 16 work items has 4 x 4.
kernel void gemm(global const float* restrict A, global const float* restrict B, global float* restrict C, uint n) {
    local float4 a[16][16], b[16][16];
    const uint tx = get_local_id(0), ty = get_local_id(1), t = ty * 16 + tx;
    const uint first_row = get_group_id(1) * 64, first_column = get_group_id(0) * 64;
    float4 sums[4] = {0, 0, 0, 0};
    for (uint slice = 0; slice < n; slice += 16) {
        for (uint s = 0; s < 4; ++s) {
            const uint at = t + 256 * s;
            ((local float*)a)[at % 16 * 64 + at / 16] = A[(first_row + at / 16) * n + slice + at % 16];
            ((local float*)b)[at] = B[(slice + at / 64) * n + first_column + at % 64];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < 16; ++k) {
            const float4 x = a[k][ty], y = b[k][tx];
            sums[0] = fma(x.xxxx, y, sums[0]);
            sums[1] = fma(x.yyyy, y, sums[1]);
            sums[2] = fma(x.zzzz, y, sums[2]);
            sums[3] = fma(x.wwww, y, sums[3]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint i = 0; i < 4; ++i) vstore4(sums[i], 0, C + (first_row + 4 * ty + i) * n + first_column + 4 * tx);
}

// Without local memory: each work item has 4 rows of 16.
kernel void gemm_registers(global const float* restrict A, global const float* restrict B, global float* restrict C,
                           uint n) {
    const uint row = 4 * get_global_id(1), column = 16 * get_global_id(0);
    float16 sums[4] = {0, 0, 0, 0};
    for (uint k = 0; k < n; ++k) {
        const float16 y = vload16(0, B + k * n + column);
        for (uint i = 0; i < 4; ++i) sums[i] = fma((float16)(A[(row + i) * n + k]), y, sums[i]);
    }
    for (uint i = 0; i < 4; ++i) vstore16(sums[i], 0, C + (row + i) * n + column);
}

#ifdef NATIVE
#define RSQRT native_rsqrt
#else
#define RSQRT rsqrt
#endif

// Tiles of as many bodies as a work group has items.
kernel void nbody(global const float4* restrict bodies, global float4* restrict forces, uint n, local float4* tile) {
    const uint t = get_local_id(0), i = get_global_id(0), size = get_local_size(0);
    const float4 own = bodies[i];
    float fx = 0, fy = 0, fz = 0;
    for (uint first = 0; first < n; first += size) {
        tile[t] = bodies[first + t];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < size; ++k) {
            const float4 other = tile[k];
            const float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
            const float r = RSQRT(fma(dx, dx, fma(dy, dy, fma(dz, dz, 0.01f))));
            const float s = other.w * (r * r * r);
            fx = fma(dx, s, fx), fy = fma(dy, s, fy), fz = fma(dz, s, fz);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    forces[i] = (float4)(fx, fy, fz, 0);
}

// The same without local memory: all work items read the same body.
kernel void nbody_plain(global const float4* restrict bodies, global float4* restrict forces, uint n) {
    const uint i = get_global_id(0);
    const float4 own = bodies[i];
    float fx = 0, fy = 0, fz = 0;
    for (uint k = 0; k < n; ++k) {
        const float4 other = bodies[k];
        const float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
        const float r = RSQRT(fma(dx, dx, fma(dy, dy, fma(dz, dz, 0.01f))));
        const float s = other.w * (r * r * r);
        fx = fma(dx, s, fx), fy = fma(dy, s, fy), fz = fma(dz, s, fz);
    }
    forces[i] = (float4)(fx, fy, fz, 0);
}
