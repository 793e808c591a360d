// SPDX-License-Identifier: Apache-2.0
// The language alone: device values, control flow, memory, threads, kernels. See docs/language.md.
//
// Each header stands here, behind those that it includes: a compiler's messages then name few files on the way to it.
#pragma once
// clang-format off
#include "dsl/trace.hpp"
#include "dsl/mixing.hpp"
#include "dsl/expr.hpp"
#include "dsl/value.hpp"
#include "dsl/operators.hpp"
#include "dsl/math.hpp"
#include "dsl/bits.hpp"
#include "dsl/lanes.hpp"
#include "dsl/algebra.hpp"
#include "dsl/memory.hpp"
#include "dsl/registers.hpp"
#include "dsl/control.hpp"
#include "dsl/warp.hpp"
#include "dsl/atomic.hpp"
#include "dsl/simt.hpp"
#include "dsl/host_functions.hpp"
#include "dsl/capture.hpp"
#include "dsl/view.hpp"
#include "dsl/structs.hpp"
#include "dsl/kernel.hpp"
#include "dsl/function.hpp"
#include "dsl/inline.hpp"
#include "dsl/export.hpp"
