// SPDX-License-Identifier: Apache-2.0
#include "stdlib/batch/async.hpp"

#include "runtime/exec/node.hpp"

namespace ikat::stdlib {

void AsyncQueue::read(const runtime::Device& device, const runtime::Event& after, const runtime::BufferPart& from,
                      void* to, const std::source_location& where) {
    std::call_once(has_reader_, [&] { reader_ = device.stream(); });
    reader_->wait(after, where);
    runtime::Queue(*reader_, where)
        .submit({runtime::node::Copy{.to = {.host = static_cast<std::byte*>(to)},
                                     .from = {.part = from},
                                     .bytes = from.bytes,
                                     .where = Location::of(where)}});
    reader_->synchronize(where);
}

void detail::refuse_taken(const std::source_location& where) {
    throw Error(Diagnostic{.where = Location::of(where),
                           .message = "get() of a future whose value has been taken",
                           .hint = "keep what get() gives: it gives it once"});
}

}  // namespace ikat::stdlib
