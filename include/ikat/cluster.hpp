// SPDX-License-Identifier: Apache-2.0
// Clusters: blocks that wait for each other and reach each other's shared memory. See docs/language/threads.md.
#pragma once
#include "ikat/async.hpp"

#include "dsl/threads/cluster.hpp"
