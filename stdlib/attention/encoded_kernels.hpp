// SPDX-License-Identifier: Apache-2.0
// The kernels of flash_attention() to encoded caches, and to pages.
#pragma once
#include "stdlib/attention/attention_kernels.hpp"

namespace ikat::stdlib::flash {

KernelHandle of_encoded(const AttentionKernel& is);

}  // namespace ikat::stdlib::flash
