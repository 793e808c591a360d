// SPDX-License-Identifier: Apache-2.0
// The kernels of incremental_attention() to encoded caches.
#pragma once
#include "stdlib/attention/incremental/kernels.hpp"

namespace ikat::stdlib::decode {

/// Whole or Part.
KernelHandle attending_encoded(const DecodeKernel& is);

}  // namespace ikat::stdlib::decode
