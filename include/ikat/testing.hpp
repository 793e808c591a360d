// SPDX-License-Identifier: Apache-2.0
// Golden tests of your own kernels: approved text in files, which one command compares and rewrites; the PTX of a
// kernel.
#pragma once
#include "tools/testing/golden.hpp"
#include "tools/testing/ptx.hpp"
