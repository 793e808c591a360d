// SPDX-License-Identifier: Apache-2.0
// The command line of ptxas. Options about machine code are taken and change nothing, as there is none.
#pragma once
#include <span>
#include <string>
#include <vector>

namespace ikat::ptxas {

struct Options {
    std::vector<std::string> inputs;
    std::string output = "elf.o";  // ptxas's default
    std::string target = "sm_75";
    bool is_part = false;  // -c: others are linked to it
    bool asks_version = false, asks_help = false;
};

/// Throws Error for an option that ptxas does not have, or one without its value.
Options parse(std::span<const std::string> words);

}  // namespace ikat::ptxas
