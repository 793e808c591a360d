// SPDX-License-Identifier: Apache-2.0
// The language alone: device values, control flow, memory, threads, kernels. See docs/language.md.
#pragma once
#include "dsl/export.hpp"
#include "dsl/function.hpp"
#include "dsl/inline.hpp"
#include "dsl/kernel.hpp"
#include "dsl/simt.hpp"
