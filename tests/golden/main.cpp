// SPDX-License-Identifier: Apache-2.0
// The golden tests of ikat itself; their actions are registered in actions_<area>.cpp.
#include "tools/testing/golden.hpp"

int main(int argc, char** argv) { return ikat::golden::run(argc, argv, "cmake --build --preset dev -t bless"); }
