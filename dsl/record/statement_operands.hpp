// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dsl/record/recorder.hpp"

namespace ikat::trace {

/// The operands of a memory statement, in the order in which they must be computed.
class Operands {
public:
    void add(const Recorded& value) { values_[count_++] = value; }
    void add(const Array& array, const Recorded& index) {
        if (array.peer) add(array.base);
        if (array.sliced) add(array.first);
        add(index);
    }
    /// Arranges their nodes in this order; returns their combined effects.
    Recorded arrange(Recorder& recorder) const {
        std::uint32_t roots[max_operands];
        for (std::uint32_t i = 0; i < count_; ++i) roots[i] = recorder.adopt(values_[i]);
        const Recorded history = recorder.together({values_, count_});
        recorder.arrange(roots, count_);
        return history;
    }

private:
    // A condition, a block's base, a slice's start, the index, the lanes.
    static constexpr int max_operands = max_lanes + 4;
    Recorded values_[max_operands];
    std::uint32_t count_ = 0;
};

}  // namespace ikat::trace
