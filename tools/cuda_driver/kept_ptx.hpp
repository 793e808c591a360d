// SPDX-License-Identifier: Apache-2.0
// The PTX that a program has loaded, as files: of all modules in the folder that IKAT_EMIT names, else of those with a
// finding, in a folder of the process among the temporary files.
#pragma once
#include <string>

namespace ikat::cuda_driver {

/// A text and the file where it is, or will be, once something was found in it.
class KeptPtx {
public:
    KeptPtx() = default;
    /// `name` is that of the module's first entry; the file has it, with a number from the second of that name on.
    KeptPtx(std::string text, const std::string& name);

    const std::string& path() const { return path_; }
    const std::string& text() const { return text_; }
    /// Writes the file if it is not there yet. False if it cannot be written.
    bool write();

private:
    std::string text_, path_;
    bool is_written_ = false;
};

}  // namespace ikat::cuda_driver
