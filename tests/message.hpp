// SPDX-License-Identifier: Apache-2.0
// The message that a call throws, for tests.
#pragma once
#include <string>

#include "codegen/support/diagnostic.hpp"

namespace ikat::tests {

/// The text of the Error that a call throws; "" if it throws none.
std::string message_of(auto&& call) {
    try {
        call();
    } catch (const Error& error) { return error.what(); }
    return {};
}

}  // namespace ikat::tests
