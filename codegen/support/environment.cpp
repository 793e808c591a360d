// SPDX-License-Identifier: Apache-2.0
#include "codegen/support/environment.hpp"

#include <cstdlib>

namespace ikat {

std::string_view environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

}  // namespace ikat
