// SPDX-License-Identifier: Apache-2.0
// The kernels of the standard library, with launch helpers and host references; and elementary
// functions and reductions for kernels of your own.
#pragma once
#include "stdlib/attention/attention.hpp"
#include "stdlib/conv/conv2d.hpp"
#include "stdlib/elementwise/elementwise.hpp"
#include "stdlib/elementwise/saxpy.hpp"
#include "stdlib/gemm/gemm.hpp"
#include "stdlib/gemm/gemv.hpp"
#include "stdlib/gemm/tensor_core.hpp"
#include "stdlib/layout/copy.hpp"
#include "stdlib/layout/layout.hpp"
#include "stdlib/math/math.hpp"
#include "stdlib/norm/norm.hpp"
#include "stdlib/quantised/quantised.hpp"
#include "stdlib/reduce/dot.hpp"
#include "stdlib/reduce/reduce.hpp"
#include "stdlib/reduce/reduction.hpp"
#include "stdlib/reference/reference.hpp"
#include "stdlib/softmax/softmax.hpp"
#include "stdlib/tile/rows.hpp"
#include "stdlib/tile/stage.hpp"
#include "stdlib/tile/vectors.hpp"
