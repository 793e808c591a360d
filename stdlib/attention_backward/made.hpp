// SPDX-License-Identifier: Apache-2.0
// The kernels of attention_backward() as they are captured; their parameters are compiled once for each type.
#pragma once
#include <functional>

#include "stdlib/attention_backward/bias_block.hpp"
#include "stdlib/attention_backward/block.hpp"
#include "stdlib/attention_backward/query_rows.hpp"

namespace ikat::stdlib::gradient {

using Offsets = Optional<In<std::uint32_t>>;

template <class T>
KernelHandle of_rows(const GradientKernel& is) {
    return kernel(is.name().c_str(),
                  params("O", "dO", "log_sum", "sums", "with", only_if(is.has_offsets, "query_offsets"),
                         only_if(is.has_offsets, "key_offsets")),
                  [is](In<T, 4> O, In<T, 4> dO, In<float, 3> log_sum, Out<float> sums, Struct<ScoreParameters> with,
                       Offsets query_offsets, Offsets key_offsets) {
                      const auto none = value(word(0u));
                      const Scoring<T> scoring(O.extent(2), none, O.extent(1), with,
                                               Optional<In<T, 4>>::without("bias"), query_offsets, key_offsets,
                                               Optional<In<float>>::without("sinks"),
                                               Optional<Out<float, 3>>::without("log_sum"), nullptr);
                      query_rows<T>(is, scoring, O, dO, log_sum, sums);
                  })
        .launch_bounds(GradientTile::threads)
        .handle();
}

/// What a kernel records, with the arrays that it makes: one or two.
template <class T>
using Body = std::function<void(const Given<T>&, const Out<T, 4>* made, const Out<T, 4>* more)>;

template <class T>
KernelHandle with_parameters(const GradientKernel& is, const Body<T>& body) {
    const bool makes_keys = is.of == Gradient::Keys || is.of == Gradient::KeysAndValues,
               makes_values = is.of == Gradient::Values || is.of == Gradient::KeysAndValues;
    const MoreParameters more = is.own.more();
    return kernel(is.name().c_str(),
                  params("Q", "K", "V", "dO", only_if(is.of == Gradient::Queries, "dQ"), only_if(makes_keys, "dK"),
                         only_if(makes_values, "dV"), only_if(is.of == Gradient::Bias, "dbias"), "sums", "scale",
                         "with", only_if(is.has_bias, "bias"), only_if(is.has_offsets, "query_offsets"),
                         only_if(is.has_offsets, "key_offsets"), more),
                  [body, own = is.own](In<T, 4> Q, In<T, 4> K, In<T, 4> V, In<T, 4> dO, Optional<Out<T, 4>> dQ,
                                       Optional<Out<T, 4>> dK, Optional<Out<T, 4>> dV, Optional<Out<T, 4>> dbias,
                                       In<float> sums, f32 scale, Struct<ScoreParameters> with, Optional<In<T, 4>> bias,
                                       Offsets query_offsets, Offsets key_offsets, More rest) {
                      const BoundAttention functions(own, rest);
                      const Scoring<T> scoring(Q.extent(2), K.extent(2), Q.extent(1), with, bias, query_offsets,
                                               key_offsets, Optional<In<float>>::without("sinks"),
                                               Optional<Out<float, 3>>::without("log_sum"), own ? &functions : nullptr);
                      const Out<T, 4>* const made = dQ ? &*dQ : dK ? &*dK : dbias ? &*dbias : nullptr;
                      body({scoring, Q, K, V, dO, sums, value(scale)}, made, dV ? &*dV : nullptr);
                  })
        // ptxas would rather spill than have one block less.
        .launch_bounds(GradientTile::threads, 1)
        .handle();
}

template <class T, std::uint32_t d, Gradient of, bool has_more>
KernelHandle made(const GradientKernel& is) {
    return with_parameters<T>(is, [is](const Given<T>& given, const Out<T, 4>* dX, const Out<T, 4>* dY) {
        if constexpr (of == Gradient::Bias)
            BiasBlock<T, d>(is, given).run(*dX);
        else
            Block<T, d, of, has_more>(is, given).run(dX, dY);
    });
}
/// The tiles of both may be the same.
template <class T, std::uint32_t d, Gradient of>
KernelHandle of_tile(const GradientKernel& is) {
    if constexpr (GradientTile::of(of, d, true).rows != GradientTile::of(of, d, false).rows)
        if (is.has_more()) return made<T, d, of, true>(is);
    return made<T, d, of, false>(is);
}
template <class T, std::uint32_t d>
KernelHandle of_head_dim(const GradientKernel& is) {
    if (is.of == Gradient::Queries) return of_tile<T, d, Gradient::Queries>(is);
    if (is.of == Gradient::Bias) return of_tile<T, d, Gradient::Bias>(is);
    if constexpr (makes_both(d))
        return of_tile<T, d, Gradient::KeysAndValues>(is);
    else
        return is.of == Gradient::Keys ? of_tile<T, d, Gradient::Keys>(is) : of_tile<T, d, Gradient::Values>(is);
}
template <class T>
KernelHandle of_type(const GradientKernel& is) {
    if (is.of == Gradient::Rows) return of_rows<T>(is);
    switch (is.head_dim) {
        case 64: return of_head_dim<T, 64>(is);
        case 80: return of_head_dim<T, 80>(is);
        case 96: return of_head_dim<T, 96>(is);
        case 128: return of_head_dim<T, 128>(is);
        default: return of_head_dim<T, 256>(is);
    }
}

}  // namespace ikat::stdlib::gradient
