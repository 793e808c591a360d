// SPDX-License-Identifier: Apache-2.0
// The compiler: a captured kernel in, PTX and what there is to know about it out.
#pragma once
#include "codegen/compile.hpp"
