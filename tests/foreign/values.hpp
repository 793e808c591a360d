// SPDX-License-Identifier: Apache-2.0
// Sources and values for the tests that run foreign kernels.
#pragma once
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace ikat::tests {

inline std::string foreign_source(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(IKAT_SOURCE_DIR + std::string("/tests/foreign/") + name).rdbuf();
    return text.str();
}

/// value(0), value(1), ...
template <class T>
std::vector<T> made(std::size_t count, const std::function<T(int)>& value) {
    std::vector<T> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(value(int(i)));
    return values;
}

}  // namespace ikat::tests
