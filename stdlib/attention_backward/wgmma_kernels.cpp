// SPDX-License-Identifier: Apache-2.0
// The kernels by wgmma as they are captured; their parameters are compiled once for each type.
#include <functional>

#include "stdlib/attention_backward/block_kernels.hpp"
#include "stdlib/attention_backward/wgmma_block.hpp"

namespace ikat::stdlib::gradient {
namespace {

using Offsets = Optional<In<std::uint32_t>>;

/// What a kernel records, with the maps of Q, K, V, dO and what is made.
template <class T, class Map>
using WgmmaBody =
    std::function<void(const std::vector<Map>&, const Scoring<T>&, const In<float>& sums, const Leaf<float>& scale)>;

template <class T, class Map>
KernelHandle with_maps(const GradientKernel& is, const WgmmaBody<T, Map>& body) {
    const bool are_keys = is.of == Gradient::KeysAndValues;
    return kernel(is.name().c_str(),
                  params("Q", "K", "V", "dO", only_if(!are_keys, "dQ"), only_if(are_keys, "dK"),
                         only_if(are_keys, "dV"), "sums", "scale", "queries", "keys", "heads", "with",
                         only_if(is.has_offsets, "query_offsets"), only_if(is.has_offsets, "key_offsets")),
                  [body](Map Q, Map K, Map V, Map dO, Optional<Map> dQ, Optional<Map> dK, Optional<Map> dV,
                         In<float> sums, f32 scale, u32 queries, u32 keys, u32 heads, Struct<ScoreParameters> with,
                         Offsets query_offsets, Offsets key_offsets) {
                      std::vector<Map> maps{Q, K, V, dO};
                      for (const auto* made : {&dQ, &dK, &dV})
                          if (*made) maps.push_back(**made);
                      const Scoring<T> scoring(value(queries), value(keys), value(heads), with,
                                               Optional<In<T, 4>>::without("bias"), query_offsets, key_offsets,
                                               Optional<In<float>>::without("sinks"),
                                               Optional<Out<float, 3>>::without("log_sum"), nullptr);
                      body(maps, scoring, sums, value(scale));
                  })
        .launch_bounds(WgmmaGradientTile::threads, 1)
        .handle();
}

template <class T, std::uint32_t d>
KernelHandle made_by_wgmma(const GradientKernel& is) {
    using OfQueries = WgmmaBlock<T, d, Gradient::Queries>;
    using OfKeys = WgmmaBlock<T, d, Gradient::KeysAndValues>;
    using Map = typename OfQueries::Map;
    return with_maps<T, Map>(is, [is](const std::vector<Map>& of, const auto&... more) {
        if (is.of == Gradient::Queries) {
            const typename OfQueries::Maps maps{of[0], of[3], of[1], of[2], of[4], {}};
            OfQueries(is, maps, more...).run();
        } else {
            const typename OfKeys::Maps maps{of[1], of[2], of[0], of[3], of[4], of[5]};
            OfKeys(is, maps, more...).run();
        }
    });
}
template <class T>
KernelHandle made_of_type(const GradientKernel& is) {
    return is.head_dim == 64 ? made_by_wgmma<T, 64>(is) : made_by_wgmma<T, 128>(is);
}

}  // namespace

KernelHandle of_wgmma(const GradientKernel& is) {
    return is.type == ir::Type::F16 ? made_of_type<half>(is) : made_of_type<bfloat16>(is);
}

}  // namespace ikat::stdlib::gradient
