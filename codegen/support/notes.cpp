// SPDX-License-Identifier: Apache-2.0
#include "codegen/support/notes.hpp"

#include <atomic>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <string>

#include "codegen/support/environment.hpp"

namespace ikat {
namespace {

void to_standard_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

std::atomic<NoteSink> notes = to_standard_error;

}  // namespace

void send_notes_to(NoteSink sink) { notes = sink ? sink : to_standard_error; }

void note(std::string_view text) { notes.load()(text); }

void log(std::string_view text) {
    const std::string path(environment("IKAT_LOG"));
    if (path.empty()) return;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    std::ofstream file(path, std::ios::app | std::ios::binary);
    if (file.write(text.data(), std::streamsize(text.size())).flush()) return;
    static std::once_flag said;
    std::call_once(said, [&] { note("IKAT_LOG: '" + path + "' cannot be written\n"); });
}

}  // namespace ikat
