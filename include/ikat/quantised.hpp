// SPDX-License-Identifier: Apache-2.0
// Quantised weights: blocks to fill on the host, their quantisers and decoder there, and decoders for your own kernels.
#pragma once
#include "stdlib/quantised/blocks.hpp"
#include "stdlib/quantised/quantise.hpp"
#include "stdlib/quantised/quantised.hpp"
#include "stdlib/quantised/stored.hpp"
#include "stdlib/reference/quantised.hpp"
