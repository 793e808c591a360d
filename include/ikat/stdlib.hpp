// SPDX-License-Identifier: Apache-2.0
// The kernels of the standard library, with launch helpers and host references; and elementary
// functions and reductions for kernels of your own.
#pragma once
#include "stdlib/conv2d.hpp"
#include "stdlib/copy.hpp"
#include "stdlib/dot.hpp"
#include "stdlib/elementwise.hpp"
#include "stdlib/gemm.hpp"
#include "stdlib/gemv.hpp"
#include "stdlib/layout.hpp"
#include "stdlib/math.hpp"
#include "stdlib/norm.hpp"
#include "stdlib/quantised.hpp"
#include "stdlib/reduce.hpp"
#include "stdlib/reduction.hpp"
#include "stdlib/reference.hpp"
#include "stdlib/rows.hpp"
#include "stdlib/saxpy.hpp"
#include "stdlib/softmax.hpp"
#include "stdlib/stage.hpp"
#include "stdlib/vectors.hpp"
