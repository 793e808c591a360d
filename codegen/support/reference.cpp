// SPDX-License-Identifier: Apache-2.0
#include "codegen/support/reference.hpp"

#include <atomic>

namespace ikat {

AnyReference::AnyReference(Counted* object) : object_(object) {
    if (object_) std::atomic_ref(object_->references_).fetch_add(1, std::memory_order_relaxed);
}

AnyReference::~AnyReference() {
    if (object_ && std::atomic_ref(object_->references_).fetch_sub(1, std::memory_order_acq_rel) == 1) delete object_;
}

}  // namespace ikat
