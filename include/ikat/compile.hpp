// SPDX-License-Identifier: Apache-2.0
// The compiler: a captured kernel in, PTX out; and a report of the resources that the kernel uses.
#pragma once
#include "codegen/pipeline/compile.hpp"
#include "codegen/report/report.hpp"
#include "codegen/support/notes.hpp"
