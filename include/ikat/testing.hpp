// SPDX-License-Identifier: Apache-2.0
// Tests of your own kernels: what the emulator finds with every check; golden tests, approved text in files, which one
// command compares and rewrites; the PTX of a kernel.
#pragma once
#include "tools/testing/findings.hpp"
#include "tools/testing/golden.hpp"
#include "tools/testing/ptx.hpp"
