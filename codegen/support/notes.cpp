// SPDX-License-Identifier: Apache-2.0
#include "codegen/support/notes.hpp"

#include <atomic>
#include <cstdio>

namespace ikat {
namespace {

void to_standard_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

std::atomic<NoteSink> notes = to_standard_error;

}  // namespace

void send_notes_to(NoteSink sink) { notes = sink ? sink : to_standard_error; }

void note(std::string_view text) { notes.load()(text); }

}  // namespace ikat
