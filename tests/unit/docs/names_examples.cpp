// SPDX-License-Identifier: Apache-2.0
// The functions that the pages name in their text and in tables; pages_test.cpp compares the names with this file.
#include <ikat/ikat.hpp>
#include <ikat/stdlib.hpp>
#include <ikat/testing.hpp>

#include "tests/catch.hpp"

namespace {

using ikat::approx::cos;
using ikat::approx::div;
using ikat::approx::exp;
using ikat::approx::exp2;
using ikat::approx::gelu_tanh;
using ikat::approx::log;
using ikat::approx::log2;
using ikat::approx::pow;
using ikat::approx::rcp;
using ikat::approx::rsqrt;
using ikat::approx::sigmoid;
using ikat::approx::sin;
using ikat::approx::sqrt;
using ikat::approx::tanh;
using ikat::golden::compare;
using ikat::golden::ptx;
using ikat::golden::run;
using ikat::stdlib::elementwise;
using ikat::stdlib::gemm_naive;
using ikat::stdlib::incremental_attention;
using ikat::stdlib::OptimisedTensors;
using ikat::stdlib::philox;
using ikat::stdlib::reduction_workspace;
using ikat::stdlib::sum;

}  // namespace

namespace in_stdlib {

using ikat::stdlib::exp;

}  // namespace in_stdlib
