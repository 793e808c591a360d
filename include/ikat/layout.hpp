// SPDX-License-Identifier: Apache-2.0
// Layouts of tiles, computed on the host. See docs/language/lanes.md.
#pragma once
#include "dsl/lanes/layout.hpp"
