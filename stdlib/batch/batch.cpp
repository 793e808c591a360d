// SPDX-License-Identifier: Apache-2.0
#include "stdlib/batch/batch.hpp"

#include <fmt/format.h>

namespace ikat::stdlib {

namespace {

[[noreturn]] void refuse(const BatchArray& value, const std::source_location& asked, std::string_view what,
                         const char* hint) {
    const Location where = Location::of(asked), made = Location::of(value.where);
    Diagnostic out{.where = where, .message = fmt::format("'{}' {}", value.name, what), .hint = hint};
    if (made.known() && !(made == where)) out.notes.push_back({made, "the call that makes it is here"});
    throw Error(std::move(out));
}

constexpr const char* given_up = "will not be computed: its batch has ended, or its execute() has failed";
constexpr const char* given_up_hint = "record the call again, in a batch that is executed";

}  // namespace

void detail::refuse_size(std::string_view name, const std::source_location& where) {
    throw Error(Diagnostic{.where = Location::of(where),
                           .message = fmt::format("array '{}' is larger than any memory", name),
                           .hint = "its extents are numbers of elements"});
}

void BatchArray::check_computed(const std::source_location& asked) const {
    if (run->is_done) return;
    if (run->is_over) refuse(*this, asked, given_up, given_up_hint);
    refuse(*this, asked, "has not been computed", "it has contents when its batch has been executed: execute()");
}

void BatchArray::check_used_by(const runtime::Deferred& batch, const std::source_location& asked) const {
    if (sink.get() != batch.sink().get())
        refuse(*this, asked, "is a value of another batch",
               "use one batch for both calls, or give it value.slice() when the other has been executed");
    if (run->is_over && !run->is_done) refuse(*this, asked, given_up, given_up_hint);
}

}  // namespace ikat::stdlib
