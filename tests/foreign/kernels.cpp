// SPDX-License-Identifier: Apache-2.0
// Plain C++ for clang's NVPTX back end, as a source of foreign PTX for the parser and the emulator. (No headers: the
// target has none.)
#define KERNEL extern "C" __attribute__((nvptx_kernel)) void

__attribute__((address_space(3))) int shared_words[64];
int table[5] = {1, 2, 3, 4, 5};
int* inside = table + 2;
const char* words[2] = {"one", "two\ttabs"};
struct Pair {
    int a;
    double b;
    char c[9];
};

__attribute__((noinline)) int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
KERNEL recursion(int* p) {
    int i = __nvvm_read_ptx_sreg_tid_x();
    p[i] = fibonacci(i);
}

typedef float (*Function)(float);
__attribute__((noinline)) float plus(float x) { return x + 1; }
__attribute__((noinline)) float twice(float x) { return x * 2; }
Function functions[2] = {plus, twice};
KERNEL indirect(float* p) {
    int i = __nvvm_read_ptx_sreg_tid_x();
    p[i] = functions[i & 1](p[i]);
}

extern "C" __attribute__((noinline)) Pair step(Pair x, int i) {
    x.a -= i;
    x.b += i;
    x.c[i & 7] = 3;
    return x;
}
KERNEL pairs(Pair* p) {
    int i = __nvvm_read_ptx_sreg_tid_x();
    p[i] = step(p[i], i);
}

KERNEL switching(int* p) {
    int i = __nvvm_read_ptx_sreg_tid_x();
    switch (p[i]) {
        case 0: p[i] = 11; break;
        case 1: p[i] *= 7; break;
        case 2: p[i] = 5; break;
        case 3: p[i] -= 3; break;
        case 4: p[i] = ~p[i]; break;
        case 5: p[i] = 55; break;
        case 6: p[i] = p[i] << 3; break;
        default: p[i] = -1;
    }
}

KERNEL numbers(long long* p, double* d, float* f, short* s, unsigned char* b) {
    int i = __nvvm_read_ptx_sreg_tid_x();
    p[i] = p[i] / 7 + p[i] % 5 + (p[i] >> (i & 63)) * 3 + __builtin_popcountll(p[i]) + __builtin_clzll(p[i] | 1);
    d[i] = __builtin_fma(d[i], 2.0, 1.5) / 3.0 + (double)p[i] + __builtin_floor(d[i]);
    f[i] = (float)d[i] + __builtin_fabsf(f[i]) + (float)s[i] + __builtin_fminf(f[i], 3.f);
    s[i] = (short)(s[i] * 3 + s[i] / 3);
    b[i] = (unsigned char)(b[i] * 5 + (b[i] >> 1));
}

KERNEL atomics(int* p, long* q) {
    __atomic_fetch_add(p, 1, __ATOMIC_RELAXED);
    __atomic_fetch_or(q, 1, __ATOMIC_RELAXED);
    int expected = 0;
    __atomic_compare_exchange_n(p + 1, &expected, 4, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    __atomic_store_n(p + 2, 5, __ATOMIC_RELAXED);
    __nvvm_membar_gl();
    __atomic_fetch_min(p + 3, -3, __ATOMIC_RELAXED);
}

KERNEL many(float* a, float* b, int n) {
    int i = __nvvm_read_ptx_sreg_tid_x();
    if (i < n) {
        shared_words[i] = i;
        __syncthreads();
        a[i] += shared_words[n - 1 - i] * table[i & 3] + *inside + words[i & 1][2];
        b[i] = 0;
        for (int j = 0; j < n; ++j) b[i] += __builtin_fabsf((float)(j - i)) / 3;
    }
    if (n == 77) __builtin_trap();
    if (n == 78) __builtin_debugtrap();
}

KERNEL exchange(int* p) {
    const int i = __nvvm_read_ptx_sreg_tid_x();
    const int left = __nvvm_shfl_sync_up_i32(-1, p[i], 1, 0), across = __nvvm_shfl_sync_bfly_i32(-1, p[i], 16, 31);
    const unsigned odd = __nvvm_vote_ballot_sync(-1, p[i] & 1);
    p[i] = left + 100 * across + __builtin_popcount(odd) + (int)__nvvm_match_any_sync_i32(-1, i & 3);
}

extern "C" int vprintf(const char*, void*);
KERNEL printing(int n) {
    struct {
        int n;
        double half;
        const char* word;
    } arguments = {n, n / 2.0, words[0]};
    vprintf("%d and %.2f, %s\n", &arguments);
}

KERNEL arrays(Pair pair, int* p) {
    const int i = __nvvm_read_ptx_sreg_tid_x();
    int counts[16];
    for (int j = 0; j < 16; ++j) counts[j] = pair.a + j;
    for (int j = 0; j < 40; ++j) counts[(i * j) & 15] += j;
    p[i] = counts[i & 15] + (int)pair.b + pair.c[i % 9];
}

KERNEL halves(_Float16* h, __bf16* b, float* f) {
    const int i = __nvvm_read_ptx_sreg_tid_x();
    h[i] = h[i] * h[i] + (_Float16)f[i];
    b[i] = b[i] + (__bf16)f[i];
    f[i] = (float)h[i] - (float)b[i] + (h[i] < (_Float16)2 ? 1 : 0);
}

KERNEL ordered(unsigned* p, unsigned long long* q, float* f) {
    __atomic_fetch_add(p, 2, __ATOMIC_RELAXED);
    __atomic_fetch_xor(p + 1, 1u << __nvvm_read_ptx_sreg_tid_x(), __ATOMIC_RELAXED);
    __atomic_fetch_max(q, (unsigned long long)__nvvm_read_ptx_sreg_tid_x() << 33, __ATOMIC_RELAXED);
    __atomic_exchange_n(q + 1, 7, __ATOMIC_RELAXED);
    __nvvm_atom_add_gen_f(f, 0.5f);
    __nvvm_atom_inc_gen_ui(p + 2, 9);
}
