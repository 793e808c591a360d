// SPDX-License-Identifier: Apache-2.0
#include "dsl/record/callers.hpp"

#include <algorithm>
#include <string_view>

namespace ikat::trace {
namespace {

/// Whether a location is in the C++ standard library or in a system header.
bool is_system(const Location& where) {
    const std::string_view file = where.file;
    return file.find("/include/c++/") != file.npos || file.starts_with("/usr/include/");
}

}  // namespace

bool Callers::is_inside(const Location& where) const {
    return where.line >= kernel_.line && (where.file == kernel_.file || std::string_view(where.file) == kernel_.file);
}

void Callers::at(const Location& where) {
    const bool again = where.line == last_.line && where.column == last_.column && where.file == last_.file;
    if (again && open_ == calls_.size()) return;
    if (where == kernel_) return;  // the location of parameters and of the end of the body
    if (is_inside(where)) {
        for (; open_ < calls_.size(); ++open_) calls_[open_].after = where;
        last_ = where;
        return;
    }
    constexpr std::size_t max_calls = 1 << 16;  // in case no statement of the kernel's own text ever follows
    if (calls_.size() == max_calls || (calls_.size() > open_ && calls_.back().place == where)) return;
    calls_.push_back({where, last_, {}});
}

void Callers::explain(std::vector<Diagnostic>& diagnostics) const {
    std::vector<Diagnostic> out;
    for (Diagnostic& diagnostic : diagnostics) {
        if (diagnostic.where.known() && !is_inside(diagnostic.where)) explain(diagnostic);
        // A function that is called twice reports its mistakes twice.
        const bool is_new = std::ranges::none_of(out, [&](const Diagnostic& other) {
            return other.where == diagnostic.where && other.message == diagnostic.message;
        });
        if (is_new) out.push_back(std::move(diagnostic));
    }
    diagnostics = std::move(out);
}

void Callers::explain(Diagnostic& diagnostic) const {
    constexpr std::size_t max_notes = 3;
    std::vector<Diagnostic::Note> notes;
    for (const Call& call : calls_) {
        const Location& caller = call.after.known() ? call.after : call.before;
        if (!(call.place == diagnostic.where) || !caller.known() || notes.size() == max_notes) continue;
        const bool is_new =
            std::ranges::none_of(notes, [&](const auto& note) { return note.where.line == caller.line; });
        const char* more = call.after.line == call.before.line ? ""
                           : call.after.known()                ? ", or just above"
                                                               : ", or just below";
        if (is_new)
            notes.push_back(
                {caller, std::string("the kernel calls it ") + (is_system(call.place) ? "there" : "here") + more});
    }
    if (!notes.empty() && is_system(diagnostic.where)) {
        notes[0].message = "it is recorded in the standard library; " + notes[0].message;
        std::swap(notes[0].where, diagnostic.where);
    }
    diagnostic.notes.insert(diagnostic.notes.end(), notes.begin(), notes.end());
}

}  // namespace ikat::trace
