// SPDX-License-Identifier: Apache-2.0
// The language alone: device values, control flow, memory, threads, kernels. See docs/language.md.
// Each header is listed after those that it includes: this keeps the include chains in compiler messages short.
#pragma once
// clang-format off
#include "dsl/record/trace.hpp"
#include "dsl/values/mixing.hpp"
#include "dsl/values/expr.hpp"
#include "dsl/values/value.hpp"
#include "dsl/values/operators.hpp"
#include "dsl/values/math.hpp"
#include "dsl/values/bits.hpp"
#include "dsl/lanes/lanes.hpp"
#include "dsl/lanes/algebra.hpp"
#include "dsl/memory/memory.hpp"
#include "dsl/lanes/registers.hpp"
#include "dsl/threads/control.hpp"
#include "dsl/threads/warp.hpp"
#include "dsl/threads/atomic.hpp"
#include "dsl/threads/simt.hpp"
#include "dsl/values/host_functions.hpp"
#include "dsl/record/capture.hpp"
#include "dsl/memory/view.hpp"
#include "dsl/memory/structs.hpp"
#include "dsl/kernel/kernel.hpp"
#include "dsl/kernel/function.hpp"
#include "dsl/kernel/inline.hpp"
#include "dsl/kernel/export.hpp"
