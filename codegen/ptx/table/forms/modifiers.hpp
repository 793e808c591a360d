// SPDX-License-Identifier: Apache-2.0
// Features needed by modifiers, independent of the opcode.
#pragma once
#include "codegen/ptx/table/forms/row.hpp"

namespace ikat::ptx::table {

inline constexpr ModifierFeature feature_of_modifier[] = {
    {"L1::evict_normal", Feature::CacheHints},
    {"L1::evict_unchanged", Feature::CacheHints},
    {"L1::evict_first", Feature::CacheHints},
    {"L1::evict_last", Feature::CacheHints},
    {"L1::no_allocate", Feature::CacheHints},
    {"L2::64B", Feature::CacheHints},
    {"L2::128B", Feature::CacheHints},
    {"L2::256B", Feature::CachePolicy},
    {"L2::cache_hint", Feature::CachePolicy},
    {"shared::cta", Feature::CtaSpace},
    {"shared::cluster", Feature::Clusters},
    {"cluster", Feature::Clusters},
    {"param", Feature::ParameterAddress, "cvta"},
    {"param", Feature::ParameterAddress, "isspacep"},
    {"param::entry", Feature::ParameterSpaces},
    {"param::func", Feature::ParameterSpaces},
    {"NaN", Feature::NanMinMax},
    {"xorsign", Feature::XorSignMinMax},
    {"b128", Feature::Wide128},
    {"cta", Feature::CtaSpace, "bar"},
    {"cta", Feature::CtaSpace, "barrier"},
    {"acquire", Feature::ClusterOrder, "barrier"},
    {"release", Feature::ClusterOrder, "barrier"},
    {"relaxed", Feature::ClusterOrder, "barrier"},
    {"cta_group::1", Feature::BulkCopyPairs, "cp"},
    {"cta_group::2", Feature::BulkCopyPairs, "cp"},
    {"acc::f32", Feature::MultimemPrecision},
    {"sp::ordered_metadata", Feature::MmaOrderedSparse},
};

}  // namespace ikat::ptx::table
