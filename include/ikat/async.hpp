// SPDX-License-Identifier: Apache-2.0
// Copies that continue while the thread does, and barriers that they arrive at. See docs/language/async.md.
#pragma once
#include "ikat/dsl.hpp"

#include "dsl/kernel/tensor_map.hpp"
#include "dsl/memory/async.hpp"
#include "dsl/threads/barrier.hpp"
