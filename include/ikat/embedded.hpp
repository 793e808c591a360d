// SPDX-License-Identifier: Apache-2.0
// Kernels that ikat_add_kernels() compiled when the program was built. See docs/package.md.
#pragma once
#include "runtime/embedded.hpp"
