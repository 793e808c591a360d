// SPDX-License-Identifier: Apache-2.0
// Layouts of tiles, computed on the host, and places in them in kernels. See docs/language/lanes.md.
#pragma once
#include "dsl/lanes/layout_places.hpp"
