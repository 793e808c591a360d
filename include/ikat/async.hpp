// SPDX-License-Identifier: Apache-2.0
// Copies that go on while the thread does. See docs/language.md.
#pragma once
#include "ikat/dsl.hpp"

#include "dsl/memory/async.hpp"
