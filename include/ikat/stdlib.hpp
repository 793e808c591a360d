// SPDX-License-Identifier: Apache-2.0
// The kernels of the standard library, with launch helpers and host references; and elementary
// functions and reductions for kernels of your own.
#pragma once
#include "stdlib/elementwise.hpp"
#include "stdlib/gemm.hpp"
#include "stdlib/math.hpp"
#include "stdlib/norm.hpp"
#include "stdlib/reduce.hpp"
#include "stdlib/reduction.hpp"
#include "stdlib/reference.hpp"
#include "stdlib/rows.hpp"
#include "stdlib/saxpy.hpp"
#include "stdlib/softmax.hpp"
#include "stdlib/vectors.hpp"
