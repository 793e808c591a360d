// SPDX-License-Identifier: Apache-2.0
// The kernels of incremental_attention() by their keys, see block.hpp, and the one that makes O of the parts of keys.
#include "stdlib/attention/incremental/kernels.hpp"

#include "dsl/threads/grids.hpp"
#include "stdlib/attention/incremental/block.hpp"
#include "stdlib/attention/incremental/encoded.hpp"
#include "stdlib/spec/kernels.hpp"

namespace ikat::stdlib {
namespace {

using decode::Result, decode::Step;

template <class T>
void merge(const In<float>& sums, const In<float>& statistics, const Result<T>& result, std::uint32_t d,
           const u32& parts) {
    grid_wait();
    require_linear_blocks();
    const auto heads = result.to.extent(1), queries = result.to.extent(2);
    const auto rows = value(result.to.extent(0) * heads * queries);
    const auto at = value(global_id().x), row = value(at / (d / 4)), column = value(at % (d / 4) * 4u);
    return_if(row >= rows);
    const auto first = value(mul_wide(row, parts));
    const auto of_row = statistics.slice(value(first * std::uint64_t{2}));
    const auto sums_of_row = sums.slice(value(first * std::uint64_t{d}));
    f32 largest = -std::numeric_limits<float>::infinity(), total = 0;
    for (auto part : range(parts)) largest = max(largest, of_row[part * 2u]);
    const auto offset = value(select(largest == -std::numeric_limits<float>::infinity(), 0.0f, largest));
    Regs<f32, 4> sum(0.0f);
    for (auto part : range(parts)) {
        const auto pair = of_row.template vec<2>(part);
        const auto weight = value(exp2_or_zero(pair.lane(0) - offset));
        total = fma(weight, pair.lane(1), total);
        sum = fma(weight, sums_of_row.template vec<4>((part * d + column) / 4u), sum);
    }
    const auto head = value(row / queries % heads), sequence = value(row / queries / heads);
    const auto query = value(row % queries);
    const auto offset_of_all = value(largest), all = value(total);
    result.store(sequence, head, query, column, sum, {offset_of_all, all});
}
template <class T>
KernelHandle merging(const DecodeKernel& is) {
    return kernel(is.name().c_str(), params("sums", "statistics", "O", "parts", only_if(is.has_log_sum, "log_sum")),
                  [is](In<float> sums, In<float> statistics, Out<T, 4> O, u32 parts, Optional<Out<float, 3>> log_sum) {
                      merge(sums, statistics, Result<T>{O, log_sum, is.o_is_aligned}, is.head_dim, parts);
                  })
        .handle();
}

template <class T>
KernelHandle made(const DecodeKernel& is) {
    return is.step == Step::Merge ? merging<T>(is) : decode::attending<T, T>(is);
}

}  // namespace

std::string DecodeKernel::name() const {
    std::string out = "incremental_attention_";
    out += type == ir::Type::F16 ? "f16" : type == ir::Type::BF16 ? "bf16" : "f32";
    out += suffix_of(encoding);
    out += "_d" + std::to_string(head_dim);
    if (has_lengths) out += "_lengths";
    if (has_pages) out += "_paged";
    if (is_causal) out += "_causal";
    if (has_before) out += "_before";
    if (has_cap) out += has_wide_cap ? "_wide_cap" : "_cap";
    if (has_sinks) out += "_sinks";
    if (has_log_sum) out += "_log_sum";
    out += own.suffix();
    const char* const steps[] = {"", "_part", "_merge"};
    return out + steps[int(step)];
}

KernelHandle DecodeKernel::make() const {
    if (encoding != CacheEncoding::none && step != Step::Merge) return decode::attending_encoded(*this);
    switch (type) {
        case ir::Type::F16: return made<half>(*this);
        case ir::Type::BF16: return made<bfloat16>(*this);
        default: return made<float>(*this);
    }
}

const KernelHandle& DecodeKernel::handle() const { return Kernels<DecodeKernel>::of(*this); }

}  // namespace ikat::stdlib
