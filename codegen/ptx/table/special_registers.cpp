// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/table/special_registers.hpp"

namespace ikat::ptx {
namespace {

constexpr Type b32{Type::Kind::Integer, 32}, b64{Type::Kind::Integer, 64}, predicate{Type::Kind::Predicate, 1};

constexpr SpecialRegister registers[] = {
    {.name = "%tid", .type = b32, .is_vector = true},
    {.name = "%ntid", .type = b32, .is_vector = true},
    {.name = "%ctaid", .type = b32, .is_vector = true},
    {.name = "%nctaid", .type = b32, .is_vector = true},
    {.name = "%laneid", .type = b32},
    {.name = "%warpid", .type = b32},
    {.name = "%nwarpid", .type = b32},
    {.name = "%smid", .type = b32},
    {.name = "%nsmid", .type = b32},
    {.name = "%gridid", .type = b64},
    {.name = "%lanemask_eq", .type = b32},
    {.name = "%lanemask_le", .type = b32},
    {.name = "%lanemask_lt", .type = b32},
    {.name = "%lanemask_ge", .type = b32},
    {.name = "%lanemask_gt", .type = b32},
    {.name = "%clock", .type = b32},
    {.name = "%clock_hi", .type = b32},
    {.name = "%clock64", .type = b64},
    {.name = "%globaltimer", .type = b64},
    {.name = "%globaltimer_lo", .type = b32},
    {.name = "%globaltimer_hi", .type = b32},
    {.name = "%dynamic_smem_size", .type = b32},
    {.name = "%total_smem_size", .type = b32},
    {.name = "%aggr_smem_size", .type = b32, .feature = Feature::Clusters},
    {.name = "%clusterid", .type = b32, .is_vector = true, .feature = Feature::Clusters},
    {.name = "%nclusterid", .type = b32, .is_vector = true, .feature = Feature::Clusters},
    {.name = "%cluster_ctaid", .type = b32, .is_vector = true, .feature = Feature::Clusters},
    {.name = "%cluster_nctaid", .type = b32, .is_vector = true, .feature = Feature::Clusters},
    {.name = "%cluster_ctarank", .type = b32, .feature = Feature::Clusters},
    {.name = "%cluster_nctarank", .type = b32, .feature = Feature::Clusters},
    {.name = "%is_explicit_cluster", .type = predicate, .feature = Feature::Clusters},
    {.name = "%current_graph_exec", .type = b64, .feature = Feature::BulkCopy},
    {.name = "%envreg*", .type = b32},
    {.name = "%pm*_64", .type = b64},
    {.name = "%pm*", .type = b32},
    {.name = "%reserved_smem_offset_begin", .type = b32},
    {.name = "%reserved_smem_offset_end", .type = b32},
    {.name = "%reserved_smem_offset_cap", .type = b32},
    {.name = "%reserved_smem_offset_*", .type = b32},
};

/// '*' matches digits.
bool suits(std::string_view pattern, std::string_view name) {
    const std::size_t star = pattern.find('*');
    if (star == pattern.npos) return pattern == name;
    const std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
    if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
        return false;
    const std::string_view digits = name.substr(before.size(), name.size() - before.size() - after.size());
    return digits.find_first_not_of("0123456789") == digits.npos;
}

}  // namespace

const SpecialRegister* find_special_register(std::string_view name) {
    // Most names are clearly not special: %r12.
    if (!name.starts_with('%') || (name.size() > 2 && name[2] >= '0' && name[2] <= '9')) return nullptr;
    for (const SpecialRegister& each : registers)
        if (suits(each.name, name)) return &each;
    return nullptr;
}

}  // namespace ikat::ptx
