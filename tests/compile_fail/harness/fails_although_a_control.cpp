// SPDX-License-Identifier: Apache-2.0
// compiles
static_assert(sizeof(int) == 1);
