// SPDX-License-Identifier: Apache-2.0
// Where work goes: a device, which does it and waits, a stream, which does it in order, a recorder, which notes it.
#pragma once
#include "codegen/support/reference.hpp"

namespace ikat::runtime {

struct Node;

/// What a Queue hands its work to.
class Sink : public Counted {
public:
    /// Does the work, begins it, or notes it. Throws Error for what cannot be done.
    virtual void take(const Node& work) = 0;
    /// Whether the work may continue when take() has returned.
    virtual bool is_asynchronous() const = 0;
};

}  // namespace ikat::runtime
