// SPDX-License-Identifier: Apache-2.0
// expect: these words
// expect: the words that were expected
static_assert(sizeof(int) == 1, "these words");
