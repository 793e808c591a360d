// SPDX-License-Identifier: Apache-2.0
// Every form of mma of dense matrices, by inline PTX. Which element which register of which thread holds is as the
// formulas of the PTX ISA say, "Matrix Fragments for mma.m16n8k8" and so on, one after the other: nothing here is derived
// from what the forms have in common. Matrices lie in memory without gaps, a and c by rows, b by columns.

namespace {

struct Place {
    int row, column;
};

/// groupID and threadID_in_group of the ISA.
__device__ int group() { return int(threadIdx.x) >> 2; }
__device__ int in_group() { return int(threadIdx.x) % 4; }

struct Rows8 {
    static constexpr int m = 8, products = 1;
    static __device__ int product() { return 0; }
    static __device__ Place c(int i) { return {group(), in_group() * 2 + i}; }
};
struct Rows16 {
    static constexpr int m = 16, products = 1;
    static __device__ int product() { return 0; }
    static __device__ Place c(int i) { return {i < 2 ? group() : group() + 8, in_group() * 2 + (i & 1)}; }
};

struct M8N8K4_F64 : Rows8 {
    static constexpr int k = 4;
    static __device__ Place a(int) { return {group(), in_group()}; }
    static __device__ Place b(int) { return {in_group(), group()}; }
};
struct M8N8K16_Bytes : Rows8 {
    static constexpr int k = 16;
    static __device__ Place a(int i) { return {group(), in_group() * 4 + i}; }
    static __device__ Place b(int i) { return {in_group() * 4 + i, group()}; }
};
struct M8N8K32_Nibbles : Rows8 {
    static constexpr int k = 32;
    static __device__ Place a(int i) { return {group(), in_group() * 8 + i}; }
    static __device__ Place b(int i) { return {in_group() * 8 + i, group()}; }
};
struct M8N8K128_Bits : Rows8 {
    static constexpr int k = 128;
    static __device__ Place a(int i) { return {group(), in_group() * 32 + i}; }
    static __device__ Place b(int i) { return {in_group() * 32 + i, group()}; }
};
struct M16N8K4_Words : Rows16 {  // tf32, and f64
    static constexpr int k = 4;
    static __device__ Place a(int i) { return {i == 0 ? group() : group() + 8, in_group()}; }
    static __device__ Place b(int) { return {in_group(), group()}; }
};
struct M16N8K8_Words : Rows16 {
    static constexpr int k = 8;
    static __device__ Place a(int i) {
        return {i == 0 || i == 2 ? group() : group() + 8, i == 0 || i == 1 ? in_group() : in_group() + 4};
    }
    static __device__ Place b(int i) { return {i == 0 ? in_group() : in_group() + 4, group()}; }
};
struct M16N8K16_F64 : Rows16 {
    static constexpr int k = 16;
    static __device__ Place a(int i) {
        return {i % 2 == 0 ? group() : group() + 8, (i % 2 == 0 ? i * 2 : i * 2 - 2) + in_group()};
    }
    static __device__ Place b(int i) { return {in_group() + i * 4, group()}; }
};
struct M16N8K8_Halves : Rows16 {
    static constexpr int k = 8;
    static __device__ Place a(int i) { return {i < 2 ? group() : group() + 8, in_group() * 2 + (i & 1)}; }
    static __device__ Place b(int i) { return {in_group() * 2 + i, group()}; }
};
struct M16N8K16_Halves : Rows16 {
    static constexpr int k = 16;
    static __device__ Place a(int i) {
        return {i < 2 || (4 <= i && i < 6) ? group() : group() + 8, in_group() * 2 + (i & 1) + (i < 4 ? 0 : 8)};
    }
    static __device__ Place b(int i) { return {in_group() * 2 + (i & 1) + (i < 2 ? 0 : 8), group()}; }
};
struct M16N8K16_Bytes : Rows16 {
    static constexpr int k = 16;
    static __device__ Place a(int i) { return {i < 4 ? group() : group() + 8, in_group() * 4 + (i & 3)}; }
    static __device__ Place b(int i) { return {in_group() * 4 + i, group()}; }
};
struct M16N8K32_Bytes : Rows16 {
    static constexpr int k = 32;
    static __device__ Place a(int i) {
        return {i < 4 || (8 <= i && i < 12) ? group() : group() + 8, in_group() * 4 + (i & 3) + (i < 8 ? 0 : 16)};
    }
    static __device__ Place b(int i) { return {in_group() * 4 + (i & 3) + (i < 4 ? 0 : 16), group()}; }
};
struct M16N8K32_Nibbles : Rows16 {
    static constexpr int k = 32;
    static __device__ Place a(int i) { return {i < 8 ? group() : group() + 8, in_group() * 8 + (i & 7)}; }
    static __device__ Place b(int i) { return {in_group() * 8 + (i & 7), group()}; }
};
struct M16N8K64_Nibbles : Rows16 {
    static constexpr int k = 64;
    static __device__ Place a(int i) {
        return {i < 8 || (16 <= i && i < 24) ? group() : group() + 8, in_group() * 8 + (i & 7) + (i < 16 ? 0 : 32)};
    }
    static __device__ Place b(int i) { return {in_group() * 8 + (i & 7) + (i < 8 ? 0 : 32), group()}; }
};
struct M16N8K128_Bits : Rows16 {
    static constexpr int k = 128;
    static __device__ Place a(int i) { return {i < 32 ? group() : group() + 8, in_group() * 32 + (i & 31)}; }
    static __device__ Place b(int i) { return {in_group() * 32 + i, group()}; }
};
struct M16N8K256_Bits : Rows16 {
    static constexpr int k = 256;
    static __device__ Place a(int i) {
        return {i < 32 || (64 <= i && i < 96) ? group() : group() + 8, in_group() * 32 + (i & 31) + (i < 64 ? 0 : 128)};
    }
    static __device__ Place b(int i) { return {in_group() * 32 + (i & 31) + (i < 32 ? 0 : 128), group()}; }
};

/// Four products: threads 0 to 3 and 16 to 19 compute the first, and so on.
struct QuadPairs {
    static constexpr int m = 8, k = 4, products = 4;
    static __device__ int lane() { return int(threadIdx.x); }
    static __device__ int product() { return lane() % 16 / 4; }
    static __device__ int of_half(int x) { return lane() < 16 ? x : x + 4; }
};
struct ARows : QuadPairs {
    static __device__ Place a(int i) { return {of_half(lane() % 4), i}; }
};
struct AColumns : QuadPairs {
    static __device__ Place a(int i) { return {of_half(i % 4), lane() % 4}; }
};
template <class A>
struct BColumns : A {
    static __device__ Place b(int i) { return {i, A::of_half(A::lane() % 4)}; }
};
template <class A>
struct BRows : A {
    static __device__ Place b(int i) { return {A::lane() % 4, A::of_half(i)}; }
};
template <class Factors>
struct SumsF16 : Factors {
    static __device__ Place c(int i) { return {Factors::of_half(Factors::lane() % 4), i}; }
};
template <class Factors>
struct SumsF32 : Factors {
    static __device__ Place c(int i) {
        return {Factors::of_half((Factors::lane() & 1) + (i & 2)), (i & 4) + (Factors::lane() & 2) + (i & 1)};
    }
};

template <int bits>
__device__ unsigned long long element(const void* matrix, int i) {
    if constexpr (bits == 64)
        return static_cast<const unsigned long long*>(matrix)[i];
    else
        return static_cast<const unsigned*>(matrix)[i * bits / 32] >> i * bits % 32 &
               (bits == 32 ? ~0u : (1u << bits % 32) - 1);
}

template <int bits>
struct RegisterOf {
    using type = unsigned;
};
template <>
struct RegisterOf<64> {
    using type = double;
};

/// A thread's elements of a matrix, the first of a register lowest.
template <int bits, int count>
struct Registers {
    using Register = typename RegisterOf<bits>::type;
    Register r[count * bits / (bits == 64 ? 64 : 32)] = {};
    template <class At>
    __device__ void load(const void* matrix, At at) {
        for (int i = 0; i < count; ++i) {
            const unsigned long long one = element<bits>(matrix, at(i));
            if constexpr (bits == 64)
                r[i] = __longlong_as_double((long long)one);
            else
                r[i * bits / 32] |= unsigned(one) << i * bits % 32;
        }
    }
    /// Of 16 bits and more.
    template <class At>
    __device__ void store(void* matrix, At at) const {
        for (int i = 0; i < count; ++i) {
            if constexpr (bits == 64)
                static_cast<double*>(matrix)[at(i)] = r[i];
            else if constexpr (bits == 32)
                static_cast<unsigned*>(matrix)[at(i)] = r[i];
            else
                static_cast<unsigned short*>(matrix)[at(i)] = (unsigned short)(r[i / 2] >> i % 2 * 16);
        }
    }
};

template <class Form, int factor_bits, int sum_bits>
struct Fragments {
    static constexpr int of_a = Form::m * Form::k * Form::products / 32, of_b = Form::k * 8 * Form::products / 32,
                         of_c = Form::m * 8 * Form::products / 32;
    Registers<factor_bits, of_a> a;
    Registers<factor_bits, of_b> b;
    Registers<sum_bits, of_c> d;

    static __device__ int at_c(int i) { return (Form::product() * Form::m + Form::c(i).row) * 8 + Form::c(i).column; }
    __device__ Fragments(const void* left, const void* right, const void* sums) {
        a.load(left, [](int i) { return (Form::product() * Form::m + Form::a(i).row) * Form::k + Form::a(i).column; });
        b.load(right, [](int i) { return (Form::product() * 8 + Form::b(i).column) * Form::k + Form::b(i).row; });
        d.load(sums, at_c);
    }
    __device__ void store(void* sums) const { d.store(sums, at_c); }
};

}  // namespace

#define IN1(C, x) C(x[0])
#define IN2(C, x) IN1(C, x), C(x[1])
#define IN4(C, x) IN2(C, x), C(x[2]), C(x[3])
#define IN8(C, x) IN4(C, x), C(x[4]), C(x[5]), C(x[6]), C(x[7])
#define LIST_2_1_1 "{%0, %1}, {%2}, {%3}, {%0, %1};"
#define LIST_2_2_1 "{%0, %1}, {%2, %3}, {%4}, {%0, %1};"
#define LIST_2_4_2 "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
#define LIST_4_2_1 "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
#define LIST_4_2_2 "{%0, %1, %2, %3}, {%4, %5}, {%6, %7}, {%0, %1, %2, %3};"
#define LIST_4_4_2 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
#define LIST_4_8_4 "{%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
#define LIST_8_2_2 \
    "{%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, {%10, %11}, {%0, %1, %2, %3, %4, %5, %6, %7};"

// A kernel with one product, of so many registers of d, a and b.
#define PRODUCT(name, text, Form, factor_bits, sum_bits, C, D, A, B)                       \
    extern "C" __global__ void name(const void* a, const void* b, void* c) {               \
        Fragments<Form, factor_bits, sum_bits> f(a, b, c);                                 \
        asm volatile("mma.sync.aligned." text " " LIST_##D##_##A##_##B                     \
                     : IN##D("+" C, f.d.r)                                                 \
                     : IN##A(C, f.a.r), IN##B(C, f.b.r));                                  \
        f.store(c);                                                                        \
    }

// They have the names of the forms in the IR: shape, a, b, sums.
#define FORM(shape, X, Y, Sum, Places, bits, sum_bits, d, a, b) \
    PRODUCT(shape##_##X##_##Y##_##Sum, #shape ".row.col." #Sum "." #X "." #Y "." #Sum, Places, bits, sum_bits, "r", d, a, b)
FORM(m16n8k8, f16, f16, f16, M16N8K8_Halves, 16, 16, 2, 2, 1)
FORM(m16n8k8, f16, f16, f32, M16N8K8_Halves, 16, 32, 4, 2, 1)
FORM(m16n8k8, bf16, bf16, f32, M16N8K8_Halves, 16, 32, 4, 2, 1)
FORM(m16n8k16, f16, f16, f16, M16N8K16_Halves, 16, 16, 2, 4, 2)
FORM(m16n8k16, f16, f16, f32, M16N8K16_Halves, 16, 32, 4, 4, 2)
FORM(m16n8k16, bf16, bf16, f32, M16N8K16_Halves, 16, 32, 4, 4, 2)
FORM(m16n8k4, tf32, tf32, f32, M16N8K4_Words, 32, 32, 4, 2, 1)
FORM(m16n8k8, tf32, tf32, f32, M16N8K8_Words, 32, 32, 4, 4, 2)

#define DOUBLES(shape, Places, d, a, b) \
    PRODUCT(shape##_f64_f64_f64, #shape ".row.col.f64.f64.f64.f64", Places, 64, 64, "d", d, a, b)
DOUBLES(m8n8k4, M8N8K4_F64, 2, 1, 1)
DOUBLES(m16n8k4, M16N8K4_Words, 4, 2, 1)
DOUBLES(m16n8k8, M16N8K8_Words, 4, 4, 2)
DOUBLES(m16n8k16, M16N8K16_F64, 4, 8, 4)

#define FLOATS8(X, Y)                                          \
    FORM(m16n8k16, X, Y, f16, M16N8K16_Bytes, 8, 16, 2, 2, 1)  \
    FORM(m16n8k16, X, Y, f32, M16N8K16_Bytes, 8, 32, 4, 2, 1)  \
    FORM(m16n8k32, X, Y, f16, M16N8K32_Bytes, 8, 16, 2, 4, 2)  \
    FORM(m16n8k32, X, Y, f32, M16N8K32_Bytes, 8, 32, 4, 4, 2)
FLOATS8(e4m3, e4m3)
FLOATS8(e4m3, e5m2)
FLOATS8(e5m2, e4m3)
FLOATS8(e5m2, e5m2)

#define INTEGERS(shape, X, Y, Places, bits, d, a, b)                                                                  \
    FORM(shape, X, Y, s32, Places, bits, 32, d, a, b)                                                                 \
    PRODUCT(shape##_##X##_##Y##_s32_sat, #shape ".row.col.satfinite.s32." #X "." #Y ".s32", Places, bits, 32, "r", d, \
            a, b)
#define BYTES(X, Y)                                      \
    INTEGERS(m8n8k16, X, Y, M8N8K16_Bytes, 8, 2, 1, 1)   \
    INTEGERS(m16n8k16, X, Y, M16N8K16_Bytes, 8, 4, 2, 1) \
    INTEGERS(m16n8k32, X, Y, M16N8K32_Bytes, 8, 4, 4, 2)
BYTES(s8, s8)
BYTES(s8, u8)
BYTES(u8, s8)
BYTES(u8, u8)
#define NIBBLES(X, Y)                                      \
    INTEGERS(m8n8k32, X, Y, M8N8K32_Nibbles, 4, 2, 1, 1)   \
    INTEGERS(m16n8k32, X, Y, M16N8K32_Nibbles, 4, 4, 2, 1) \
    INTEGERS(m16n8k64, X, Y, M16N8K64_Nibbles, 4, 4, 4, 2)
NIBBLES(s4, s4)
NIBBLES(s4, u4)
NIBBLES(u4, s4)
NIBBLES(u4, u4)

#define BITS(shape, Places, d, a, b)                                                                            \
    PRODUCT(shape##_b1_b1_s32_xor, #shape ".row.col.s32.b1.b1.s32.xor.popc", Places, 1, 32, "r", d, a, b)       \
    PRODUCT(shape##_b1_b1_s32_and, #shape ".row.col.s32.b1.b1.s32.and.popc", Places, 1, 32, "r", d, a, b)
BITS(m8n8k128, M8N8K128_Bits, 2, 1, 1)
BITS(m16n8k128, M16N8K128_Bits, 4, 2, 1)
BITS(m16n8k256, M16N8K256_Bits, 4, 4, 2)

#define QUADS(turned, layouts, Factors)                                                                          \
    PRODUCT(m8n8k4_f16_f16_f16##turned, "m8n8k4." layouts ".f16.f16.f16.f16", SumsF16<Factors>, 16, 16, "r", 4, 2, 2) \
    PRODUCT(m8n8k4_f16_f16_f32##turned, "m8n8k4." layouts ".f32.f16.f16.f32", SumsF32<Factors>, 16, 32, "r", 8, 2, 2)
QUADS(, "row.col", BColumns<ARows>)
QUADS(_trans_b, "row.row", BRows<ARows>)
QUADS(_trans_a, "col.col", BColumns<AColumns>)
QUADS(_trans_a_trans_b, "col.row", BRows<AColumns>)
