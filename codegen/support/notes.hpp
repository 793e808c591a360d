// SPDX-License-Identifier: Apache-2.0
// What the library says besides its results and its errors: stages that were to be dumped, a schedule that was drawn,
// the progress of a long launch.
#pragma once
#include <string_view>

namespace ikat {

/// Takes the text of a note, whole lines. May be called from several threads.
using NoteSink = void (*)(std::string_view text);

/// From now on notes go to the sink; with nullptr, and at first, to standard error.
void send_notes_to(NoteSink sink);

/// Gives a line to the sink; without one, to standard error.
void note(std::string_view text);

/// Appends whole lines to the file that IKAT_LOG names, if it names one: findings, which a program may hide.
void log(std::string_view text);

}  // namespace ikat
