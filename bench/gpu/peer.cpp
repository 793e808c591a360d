// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/peer.hpp"

#include "codegen/support/diagnostic.hpp"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <memory>

namespace ikat::bench {
namespace {

constexpr int max_choices = 8;

/// The functions of the library, which is loaded when it is first asked for.
struct Library {
    void* const handle = open();
#define IKAT_BENCH_FUNCTION(name) decltype(&::name) name = reinterpret_cast<decltype(&::name)>(find(#name))
    IKAT_BENCH_FUNCTION(cublasLtCreate);
    IKAT_BENCH_FUNCTION(cublasLtMatmulDescCreate);
    IKAT_BENCH_FUNCTION(cublasLtMatmulDescSetAttribute);
    IKAT_BENCH_FUNCTION(cublasLtMatrixLayoutCreate);
    IKAT_BENCH_FUNCTION(cublasLtMatmulPreferenceCreate);
    IKAT_BENCH_FUNCTION(cublasLtMatmulPreferenceSetAttribute);
    IKAT_BENCH_FUNCTION(cublasLtMatmulAlgoGetHeuristic);
    IKAT_BENCH_FUNCTION(cublasLtMatmul);
#undef IKAT_BENCH_FUNCTION
    cublasLtHandle_t blas = nullptr;

    Library() { check(cublasLtCreate(&blas), "cublasLtCreate"); }

    static void check(cublasStatus_t status, std::string_view what) {
        if (status != CUBLAS_STATUS_SUCCESS)
            throw Error(fmt::format("{} failed with status {}", what, int(status)), "cublasStatus_t says which it is");
    }

private:
    static void* open() {
        for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"})
            if (void* found = dlopen(name, RTLD_NOW)) return found;
        throw Error("libcublasLt is not found", "name its folder in LD_LIBRARY_PATH");
    }
    void* find(const char* name) const {
        if (void* found = dlsym(handle, name)) return found;
        throw Error(fmt::format("libcublasLt has no {}", name), "it is older than the header was");
    }
};

const Library& library() {
    static const Library loaded;
    return loaded;
}

struct Types {
    cudaDataType_t factors, sums, scale;
    cublasComputeType_t compute;
};

Types types_of(const Product& product) {
    const auto of_16 = [&](cudaDataType_t factors) -> Types {
        return {factors, product.c_is_f32 ? CUDA_R_32F : factors, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    };
    switch (product.type) {
        case ir::Type::F16: return of_16(CUDA_R_16F);
        case ir::Type::BF16: return of_16(CUDA_R_16BF);
        case ir::Type::I8: return {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I};
        default:
            return {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
                    product.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
    }
}

/// What all choices of one product share. Descriptors live as long as the process.
struct Shared {
    Product product;
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
};

}  // namespace

// cuBLAS has matrices by columns: it computes the transpose of C from those of B and A.
std::vector<std::function<void()>> cublaslt_choices(const Product& product) {
    const Library& lt = library();
    const Types types = types_of(product);
    auto shared = std::make_shared<Shared>(Shared{.product = product});
    lt.check(lt.cublasLtMatmulDescCreate(&shared->operation, types.compute, types.scale), "cublasLtMatmulDescCreate");
    const auto transposed = [&](cublasLtMatmulDescAttributes_t which, bool is) {
        const cublasOperation_t value = is ? CUBLAS_OP_T : CUBLAS_OP_N;
        lt.check(lt.cublasLtMatmulDescSetAttribute(shared->operation, which, &value, sizeof value), "an attribute");
    };
    transposed(CUBLASLT_MATMUL_DESC_TRANSA, product.b_by_columns);
    transposed(CUBLASLT_MATMUL_DESC_TRANSB, product.a_by_columns);
    const auto layout = [&](cublasLtMatrixLayout_t* out, cudaDataType_t type, std::uint64_t rows,
                            std::uint64_t columns) {
        lt.check(lt.cublasLtMatrixLayoutCreate(out, type, columns, rows, std::int64_t(columns)), "a layout");
    };
    const auto stored = [&](cublasLtMatrixLayout_t* out, bool by_columns, std::uint64_t rows, std::uint64_t columns) {
        layout(out, types.factors, by_columns ? columns : rows, by_columns ? rows : columns);
    };
    stored(&shared->b, product.b_by_columns, product.k, product.n);
    stored(&shared->a, product.a_by_columns, product.m, product.k);
    layout(&shared->c, types.sums, product.m, product.n);

    cublasLtMatmulPreference_t preference = nullptr;
    lt.check(lt.cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    const std::size_t max_bytes = product.workspace_bytes;
    lt.check(lt.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &max_bytes,
                                                     sizeof max_bytes),
             "a preference");
    std::array<cublasLtMatmulHeuristicResult_t, max_choices> results{};
    int count = 0;
    lt.check(lt.cublasLtMatmulAlgoGetHeuristic(lt.blas, shared->operation, shared->b, shared->a, shared->c, shared->c,
                                               preference, max_choices, results.data(), &count),
             "cublasLtMatmulAlgoGetHeuristic");
    std::vector<std::function<void()>> out;
    for (int i = 0; i < count; ++i)
        out.push_back([shared, algorithm = results[std::size_t(i)].algo, is_integer = types.scale == CUDA_R_32I] {
            const float one = 1, zero = 0;
            const std::int32_t integer_one = 1, integer_zero = 0;
            const Product& p = shared->product;
            const auto at = [](std::uint64_t address) { return reinterpret_cast<void*>(address); };
            const Library& lt = library();
            lt.check(lt.cublasLtMatmul(lt.blas, shared->operation, is_integer ? (const void*)&integer_one : &one,
                                       at(p.b), shared->b, at(p.a), shared->a,
                                       is_integer ? (const void*)&integer_zero : &zero, at(p.c), shared->c, at(p.c),
                                       shared->c, &algorithm, at(p.workspace), p.workspace_bytes, nullptr),
                     "cublasLtMatmul");
        });
    if (out.empty()) throw Error("cuBLASLt has no such product", "integers are only multiplied as nt");
    return out;
}

}  // namespace ikat::bench

#else

namespace ikat::bench {

std::vector<std::function<void()>> cublaslt_choices(const Product&) {
    throw Error("bench_gpu was built without cublasLt.h", "build it where CUDA's headers are");
}

}  // namespace ikat::bench

#endif
