// SPDX-License-Identifier: Apache-2.0
// Golden tests of your own kernels: approved text in files, compared and rewritten by one command; the PTX of a kernel.
#pragma once
#include "tools/testing/golden.hpp"
#include "tools/testing/ptx.hpp"
