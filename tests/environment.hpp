// SPDX-License-Identifier: Apache-2.0
// Environment variables set for a test.
#pragma once
#include <cstdlib>
#include <string>

namespace ikat::tests {

/// Sets an environment variable for its lifetime.
class Environment {
public:
    Environment(const char* name, const char* value) : name_(name) {
        if (const char* old = std::getenv(name)) old_ = old;
        value ? setenv(name, value, 1) : unsetenv(name);
    }
    ~Environment() { old_.empty() ? unsetenv(name_) : setenv(name_, old_.c_str(), 1); }

private:
    const char* name_;
    std::string old_;
};

}  // namespace ikat::tests
