// SPDX-License-Identifier: Apache-2.0
// The kernels of *_kernels.cpp as CUDA C++, by the same algorithm, tile and launch; compiled by nvcc with -fmad=false, so
// that a fused product is one where it is written, and results can be compared.
// Indices are int, as CUDA programs have them: they must not wrap, so that nvcc may unroll loops and increment
// pointers. Only where the algorithm is about bits, or relies on wrapping, they are unsigned: conv, bitonic, grey,
// Philox.
#include <cstdint>

#define KERNEL extern "C" __global__ void

using u8 = std::uint8_t;
using u32 = std::uint32_t;

KERNEL saxpy(const float* __restrict__ x, float* __restrict__ y, float a, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = fmaf(a, x[i], y[i]);
}

KERNEL scale4(float4* __restrict__ x, float a, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float4 v = x[i];
        x[i] = make_float4(v.x * a, v.y * a, v.z * a, v.w * a);
    }
}

__device__ float block_sum(float v) {
    __shared__ float parts[8];
    for (int distance = 16; distance > 0; distance /= 2) v += __shfl_xor_sync(0xffffffff, v, distance);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) sum += parts[k];
    __syncthreads();
    return sum;
}
__device__ float block_max(float v) {
    __shared__ float parts[8];
    for (int distance = 16; distance > 0; distance /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, distance));
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    float maximum = parts[0];
#pragma unroll
    for (int k = 1; k < 8; ++k) maximum = fmaxf(maximum, parts[k]);
    __syncthreads();
    return maximum;
}

KERNEL sum(const float* __restrict__ x, float* __restrict__ y, int n) {
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
    v = block_sum(v);
    if (threadIdx.x == 0) y[blockIdx.x] = v;
}

KERNEL softmax(const float* __restrict__ x, float* __restrict__ y, int columns) {
    const float* row = x + std::uint64_t(blockIdx.x) * columns;
    float* out = y + std::uint64_t(blockIdx.x) * columns;
    float maximum = -3.402823466e38f;
    for (int i = threadIdx.x; i < columns; i += 256) maximum = fmaxf(maximum, row[i]);
    maximum = block_max(maximum);
    float total = 0;
    for (int i = threadIdx.x; i < columns; i += 256) total += expf(row[i] - maximum);
    const float factor = __frcp_rn(block_sum(total));
    for (int i = threadIdx.x; i < columns; i += 256) out[i] = expf(row[i] - maximum) * factor;
}

KERNEL layernorm(const float* __restrict__ x, float* __restrict__ y, int columns, float scale) {
    const float* row = x + std::uint64_t(blockIdx.x) * columns;
    float* out = y + std::uint64_t(blockIdx.x) * columns;
    float total = 0;
    for (int i = threadIdx.x; i < columns; i += 256) total += row[i];
    const float mean = block_sum(total) * scale;
    float squares = 0;
    for (int i = threadIdx.x; i < columns; i += 256) squares = fmaf(row[i] - mean, row[i] - mean, squares);
    const float factor = rsqrtf(fmaf(block_sum(squares), scale, 1e-5f));
    for (int i = threadIdx.x; i < columns; i += 256) out[i] = (row[i] - mean) * factor;
}

KERNEL matmul(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int n) {
    const int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || j >= n) return;
    float v = 0;
    for (int k = 0; k < n; ++k) v = fmaf(A[i * n + k], B[k * n + j], v);
    C[i * n + j] = v;
}

KERNEL gemm(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int n) {
    __shared__ __align__(16) float a[16][64], b[16][64];
    const int t = threadIdx.x, row = t / 16 * 4, column = t % 16 * 4;
    const int first_row = blockIdx.y * 64, first_column = blockIdx.x * 64;
    float sums[4][4] = {};
    for (int slice = 0; slice < n; slice += 16) {
#pragma unroll
        for (int s = 0; s < 4; ++s) {
            const int at = t + 256 * s;
            a[at % 16][at / 16] = A[(first_row + at / 16) * n + slice + at % 16];
            b[at / 64][at % 64] = B[(slice + at / 64) * n + first_column + at % 64];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            const float4 x = *(const float4*)&a[k][row], y = *(const float4*)&b[k][column];
            const float xs[] = {x.x, x.y, x.z, x.w}, ys[] = {y.x, y.y, y.z, y.w};
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sums[i][j] = fmaf(xs[i], ys[j], sums[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
        *(float4*)&C[(first_row + row + i) * n + first_column + column] =
            make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
}

KERNEL stencil(const float* __restrict__ x, float* __restrict__ y, int columns, int rows) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i == 0 || j == 0 || i >= rows - 1 || j >= columns - 1) return;
    const int at = i * columns + j;
    y[at] = fmaf(x[at], 0.5f, (x[at - 1] + x[at + 1] + x[at - columns] + x[at + columns]) * 0.125f);
}

KERNEL transpose(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float tile[32][33];
    const int tx = threadIdx.x, ty = threadIdx.y, column = blockIdx.x * 32, row = blockIdx.y * 32;
#pragma unroll
    for (int k = 0; k < 32; k += 8) tile[ty + k][tx] = x[(row + ty + k) * n + column + tx];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 32; k += 8) y[(column + ty + k) * n + row + tx] = tile[tx][ty + k];
}

KERNEL scan(const u32* __restrict__ x, u32* __restrict__ y) {
    __shared__ u32 sums[8];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32, i = blockIdx.x * 256 + t;
    u32 v = x[i];
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const u32 below = __shfl_up_sync(0xffffffff, v, distance);
        if (lane >= distance) v += below;
    }
    if (lane == 31) sums[warp] = v;
    __syncthreads();
    u32 before = 0;
#pragma unroll
    for (int k = 0; k < 7; ++k) before += k < warp ? sums[k] : 0;
    y[i] = v + before;
}

KERNEL histogram(const u8* __restrict__ x, u32* __restrict__ y, int n) {
    __shared__ u32 bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[x[i]], 1u);
    __syncthreads();
    atomicAdd(&y[threadIdx.x], bins[threadIdx.x]);
}

KERNEL mandelbrot(u32* __restrict__ y, int columns, int max_steps) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    const float cx = fmaf(float(j), 0.02f, -2.0f), cy = fmaf(float(i), 0.05f, -1.0f);
    float a = 0, b = 0;
    int steps = 0;
    while (steps < max_steps && fmaf(a, a, b * b) < 4.0f) {
        const float next = fmaf(a, a, cx) - b * b;
        b = fmaf(a * 2, b, cy);
        a = next;
        ++steps;
    }
    y[i * columns + j] = steps;
}

KERNEL nbody(const float4* __restrict__ bodies, float4* __restrict__ forces, int n) {
    __shared__ float4 tile[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    const float4 own = bodies[i];
    float fx = 0, fy = 0, fz = 0;
    for (int first = 0; first < n; first += 128) {
        tile[t] = bodies[first + t];
        __syncthreads();
        for (int k = 0; k < 128; ++k) {
            const float4 other = tile[k];
            const float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
            const float r = rsqrtf(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, 0.01f))));
            const float s = other.w * (r * r * r);
            fx = fmaf(dx, s, fx), fy = fmaf(dy, s, fy), fz = fmaf(dz, s, fz);
        }
        __syncthreads();
    }
    forces[i] = make_float4(fx, fy, fz, 0);
}

// Super-blocks of 144 bytes: two f16, 12 bytes with 8 scales and 8 minima of 6 bits, 128 bytes with two numbers each.
KERNEL q4k(const u8* __restrict__ x, float* __restrict__ y) {
    const int t = threadIdx.x, group = t / 32, lane = t % 32;
    const u8* block = x + std::uint64_t(blockIdx.x) * 144;
    float d, minimum;
    asm("cvt.f32.f16 %0, %1;" : "=f"(d) : "h"(*(const std::uint16_t*)block));
    asm("cvt.f32.f16 %0, %1;" : "=f"(minimum) : "h"(*(const std::uint16_t*)(block + 2)));
    const int q = block[16 + t];
    float* out = y + std::uint64_t(blockIdx.x) * 256 + group * 64 + lane;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int j = group * 2 + half;
        int scale, offset;
        if (j < 4) {
            scale = block[4 + j] & 63;
            offset = block[8 + j] & 63;
        } else {
            scale = (block[8 + j] & 15) | (block[j] >> 6) << 4;
            offset = block[8 + j] >> 4 | (block[4 + j] >> 6) << 4;
        }
        const int number = half ? q >> 4 : q & 15;
        out[half * 32] = fmaf(d * float(scale), float(number), -(minimum * float(offset)));
    }
}

KERNEL gemv_dp4a(const u32* __restrict__ A, const u32* __restrict__ x, int* __restrict__ y, int words) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    int v = 0;
    for (int k = lane; k < words; k += 32) v = __dp4a(int(A[row * words + k]), int(x[k]), v);
    for (int distance = 16; distance > 0; distance /= 2) v += __shfl_xor_sync(0xffffffff, v, distance);
    if (lane == 0) y[row] = v;
}

KERNEL conv(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, u32 channels, u32 rows,
            u32 columns) {
    const u32 j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= rows || j >= columns) return;
    float v = 0;
    for (u32 c = 0; c < channels; ++c)
#pragma unroll
        for (u32 di = 0; di < 3; ++di)
#pragma unroll
            for (u32 dj = 0; dj < 3; ++dj) {
                const u32 r = i + di - 1, s = j + dj - 1;
                if (r < rows && s < columns) v = fmaf(x[(c * rows + r) * columns + s], w[c * 9 + di * 3 + dj], v);
            }
    y[i * columns + j] = v;
}

KERNEL bitonic(const u32* __restrict__ x, u32* __restrict__ y) {
    __shared__ u32 s[512];
    const u32 t = threadIdx.x, first = blockIdx.x * 512;
    s[t] = x[first + t], s[t + 256] = x[first + t + 256];
    __syncthreads();
    for (u32 size = 2; size <= 512; size *= 2)
        for (u32 stride = size / 2; stride > 0; stride /= 2) {
            const u32 low = 2 * t - (t & (stride - 1)), high = low + stride;
            const u32 a = s[low], b = s[high];
            const bool up = (low & size) == 0;
            s[low] = up ? min(a, b) : max(a, b);
            s[high] = up ? max(a, b) : min(a, b);
            __syncthreads();
        }
    y[first + t] = s[t], y[first + t + 256] = s[t + 256];
}

KERNEL grey(const u32* __restrict__ x, u8* __restrict__ y, u32 n) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const u32 p = x[i];
    y[i] = u8(((p & 255) * 77 + (p >> 8 & 255) * 150 + (p >> 16 & 255) * 29) >> 8);
}

KERNEL philox(uint4* __restrict__ y, u32 key0, u32 key1) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    u32 a = i, b = 0, c = 0, d = 0;
    u32 k0 = key0, k1 = key1;
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const u32 high0 = __umulhi(a, 0xd2511f53u), low0 = a * 0xd2511f53u;
        const u32 high1 = __umulhi(c, 0xcd9e8d57u), low1 = c * 0xcd9e8d57u;
        a = high1 ^ b ^ k0, b = low1, c = high0 ^ d ^ k1, d = low0;
        k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
    }
    y[i] = make_uint4(a, b, c, d);
}

KERNEL rope(float2* __restrict__ x, const float* __restrict__ cosines, const float* __restrict__ sines, int half,
            int heads, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int position = i / (half * heads), at = position * half + i % half;
    const float2 pair = x[i];
    const float c = cosines[at], s = sines[at];
    x[i] = make_float2(fmaf(pair.x, c, -(pair.y * s)), fmaf(pair.x, s, pair.y * c));
}

KERNEL gemv_i8(const char4* __restrict__ A, const float4* __restrict__ x, float* __restrict__ y, int vectors) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    float v = 0;
    for (int k = lane; k < vectors; k += 32) {
        const char4 a = A[row * vectors + k];
        const float4 b = x[k];
        v = fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, v))));
    }
    for (int distance = 16; distance > 0; distance /= 2) v += __shfl_xor_sync(0xffffffff, v, distance);
    if (lane == 0) y[row] = v;
}

KERNEL scan4(const uint4* __restrict__ x, uint4* __restrict__ y) {
    __shared__ u32 sums[8];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32, i = blockIdx.x * 256 + t;
    uint4 own = x[i];
    own.y += own.x, own.z += own.y, own.w += own.z;
    u32 v = own.w;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const u32 below = __shfl_up_sync(0xffffffff, v, distance);
        if (lane >= distance) v += below;
    }
    if (lane == 31) sums[warp] = v;
    __syncthreads();
    u32 before = v - own.w;
#pragma unroll
    for (int k = 0; k < 7; ++k) before += k < warp ? sums[k] : 0;
    y[i] = make_uint4(before + own.x, before + own.y, before + own.z, before + own.w);
}

KERNEL sobel(const u8* __restrict__ x, u8* __restrict__ y, int columns, int rows) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i == 0 || j == 0 || i >= rows - 1 || j >= columns - 1) return;
    const int at = i * columns + j;
    const int a = x[at - columns - 1], b = x[at - columns], c = x[at - columns + 1], d = x[at - 1], e = x[at + 1],
              f = x[at + columns - 1], g = x[at + columns], h = x[at + columns + 1];
    const int across = c + 2 * e + h - a - 2 * d - f, down = f + 2 * g + h - a - 2 * b - c;
    y[at] = u8(min(abs(across) + abs(down), 255));
}

KERNEL batched4x4(const float4* __restrict__ A, const float4* __restrict__ B, float4* __restrict__ C, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 b[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) b[k] = B[i * 4 + k];
#pragma unroll
    for (int row = 0; row < 4; ++row) {
        const float4 a = A[i * 4 + row];
        float4 c = make_float4(a.x * b[0].x, a.x * b[0].y, a.x * b[0].z, a.x * b[0].w);
        c = make_float4(fmaf(a.y, b[1].x, c.x), fmaf(a.y, b[1].y, c.y), fmaf(a.y, b[1].z, c.z), fmaf(a.y, b[1].w, c.w));
        c = make_float4(fmaf(a.z, b[2].x, c.x), fmaf(a.z, b[2].y, c.y), fmaf(a.z, b[2].z, c.z), fmaf(a.z, b[2].w, c.w));
        c = make_float4(fmaf(a.w, b[3].x, c.x), fmaf(a.w, b[3].y, c.y), fmaf(a.w, b[3].z, c.z), fmaf(a.w, b[3].w, c.w));
        C[i * 4 + row] = c;
    }
}

// Rows of bf16; what the mask leaves out counts as very small.
__device__ float masked(const std::uint16_t* row, const u8* mask, int i) {
    return mask[i] & 1 ? __uint_as_float(u32(row[i]) << 16) : -1e30f;
}
KERNEL masked_softmax(const std::uint16_t* __restrict__ x, const u8* __restrict__ mask, float* __restrict__ y,
                      int columns) {
    const std::uint16_t* row = x + std::uint64_t(blockIdx.x) * columns;
    float* out = y + std::uint64_t(blockIdx.x) * columns;
    float maximum = -1e30f;
    for (int i = threadIdx.x; i < columns; i += 256) maximum = fmaxf(maximum, masked(row, mask, i));
    maximum = block_max(maximum);
    float total = 0;
    for (int i = threadIdx.x; i < columns; i += 256) total += expf(masked(row, mask, i) - maximum);
    const float factor = __frcp_rn(block_sum(total));
    for (int i = threadIdx.x; i < columns; i += 256) out[i] = expf(masked(row, mask, i) - maximum) * factor;
}

// The four largest of a row, by one thread for each.
KERNEL top4(const float* __restrict__ x, float4* __restrict__ y, int columns, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float a = -1e30f, b = -1e30f, c = -1e30f, d = -1e30f;
    for (int i = 0; i < columns; ++i) {
        float v = x[i * rows + row], less;
        less = fminf(a, v), a = fmaxf(a, v), v = less;
        less = fminf(b, v), b = fmaxf(b, v), v = less;
        less = fminf(c, v), c = fmaxf(c, v), v = less;
        d = fmaxf(d, v);
    }
    y[row] = make_float4(a, b, c, d);
}

KERNEL layernorm_backward(const float* __restrict__ x, const float* __restrict__ dy, const float* __restrict__ gamma,
                          float* __restrict__ dx, int columns, float scale, float mean, float factor) {
    const std::uint64_t first = std::uint64_t(blockIdx.x) * columns;
    const float *row = x + first, *above = dy + first;
    float* out = dx + first;
    float sum = 0, product = 0;
    for (int i = threadIdx.x; i < columns; i += 256) {
        const float g = above[i] * gamma[i];
        sum += g;
        product = fmaf(g, (row[i] - mean) * factor, product);
    }
    sum = block_sum(sum) * scale;
    product = block_sum(product) * scale;
    for (int i = threadIdx.x; i < columns; i += 256) {
        const float g = above[i] * gamma[i];
        out[i] = (g - fmaf((row[i] - mean) * factor, product, sum)) * factor;
    }
}
