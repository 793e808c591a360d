// SPDX-License-Identifier: Apache-2.0
// Products of small matrices on tensor cores. See docs/language/tensor-cores.md.
#pragma once
#include "ikat/dsl.hpp"

#include "dsl/threads/mma.hpp"
#include "dsl/threads/wgmma.hpp"
