// SPDX-License-Identifier: Apache-2.0
// Kernels that ikat_add_kernels() compiled at build time. See docs/package.md.
#pragma once
#include "runtime/embedded.hpp"
