// SPDX-License-Identifier: Apache-2.0
// What the stand-in says, for tests.
#pragma once
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace ikat::tests {

/// What is written to standard error meanwhile.
template <class Body>
std::string said(Body body) {
    char name[] = "/tmp/ikat-said-XXXXXX";
    const int file = mkstemp(name), before = dup(2);
    std::fflush(stderr);
    dup2(file, 2);
    body();
    std::fflush(stderr);
    dup2(before, 2);
    close(before);
    close(file);
    std::ifstream in(name);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    unlink(name);
    return text;
}

}  // namespace ikat::tests
