// SPDX-License-Identifier: Apache-2.0
// A library that opens but has none of the driver's functions.
extern "C" int ikat_empty_cuda() { return 0; }
