// SPDX-License-Identifier: Apache-2.0
// What a call throws, for tests of messages.
#pragma once
#include <string>

#include "codegen/support/diagnostic.hpp"

namespace ikat::tests {

/// What a call throws, as text; "" if it throws no Error.
std::string message_of(auto&& call) {
    try {
        call();
    } catch (const Error& error) { return error.what(); }
    return {};
}

}  // namespace ikat::tests
