// SPDX-License-Identifier: Apache-2.0
// The options of a program, `--name VALUE` or `--name`, with the text of --help made from them:
//
//     Arguments arguments(argc, argv, "train_mlp: learns ...");
//     const auto steps = arguments.number("steps", 150u, "steps of the optimiser");
//     const bool is_json = arguments.flag("json", "print one JSON object");
//     if (arguments.finish()) return 0;                          // --help, which it has printed
#pragma once
#include <ikat/ikat.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ikat::training {

/// A mistake in the command line: a program prints it and ends with status 2.
struct BadArguments : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Throws BadArguments unless the emulator has this target; "" is that of the device.
inline void check_target(const std::string& target) {
    if (target.empty()) return;
    try {
        Device::open({.device = "emulator", .target = target});
    } catch (const Error& error) {
        throw BadArguments("--target: " + error.diagnostics()[0].message + "; " + error.diagnostics()[0].hint);
    }
}

/// Each option is asked for once, then finish() refuses what was not asked for.
class Arguments {
public:
    Arguments(int argc, const char* const* argv, std::string summary)
        : given_(argv + 1, argv + argc), taken_(given_.size()), help_(std::move(summary) + "\n\n") {}

    /// Whether `--name` is given.
    bool flag(std::string_view name, std::string_view what) {
        describe(name, "", what, "");
        const std::size_t at = find(name);
        if (at == given_.size()) return false;
        taken_[at] = true;
        return true;
    }
    /// What follows `--name`, or another text without it.
    std::string text(std::string_view name, std::string_view value_name, std::string otherwise, std::string_view what) {
        describe(name, value_name, what, otherwise);
        const std::size_t at = find(name);
        if (at == given_.size()) return otherwise;
        if (at + 1 == given_.size() || given_[at + 1].starts_with("--"))
            throw BadArguments("--" + std::string(name) + " needs a value, " + std::string(value_name));
        taken_[at] = taken_[at + 1] = true;
        return std::string(given_[at + 1]);
    }
    /// A number of that type between two, both included.
    template <class T>
    T number(std::string_view name, T otherwise, T least, T most, std::string_view what) {
        char shown[32];
        std::snprintf(shown, sizeof shown, "%g", double(otherwise));
        const std::string word = text(name, "N", shown, what);
        T out{};
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
        if (error != std::errc() || end != word.data() + word.size() || !(out >= least && out <= most)) {
            char range[96];
            std::snprintf(range, sizeof range, "a number from %.9g to %.9g", double(least), double(most));
            throw BadArguments("--" + std::string(name) + " is " + word + ", but must be " + range);
        }
        return out;
    }
    /// One of some words.
    std::string choice(std::string_view name, const std::vector<std::string>& words, std::string_view what) {
        std::string all;
        for (const std::string& word : words) all += (all.empty() ? "" : "|") + word;
        const std::string word = text(name, all, words[0], what);
        if (std::ranges::find(words, word) == words.end())
            throw BadArguments("--" + std::string(name) + " is " + word + ", but must be one of " + all);
        return word;
    }
    /// Whether --help was given, and printed. Throws BadArguments for what no option has taken.
    bool finish() {
        const bool is_help = flag("help", "print this");
        if (is_help) std::printf("%s", help_.c_str());
        for (std::size_t i = 0; i < given_.size() && !is_help; ++i)
            if (!taken_[i]) throw BadArguments("there is no option " + std::string(given_[i]) + "; see --help");
        return is_help;
    }

private:
    std::size_t find(std::string_view name) const {
        const auto is_it = [&](std::string_view word) { return word.starts_with("--") && word.substr(2) == name; };
        const auto found = std::ranges::find_if(given_, is_it);
        if (std::ranges::count_if(given_, is_it) > 1) throw BadArguments(std::string(*found) + " is given twice");
        return std::size_t(found - given_.begin());
    }
    void describe(std::string_view name, std::string_view value, std::string_view what, std::string_view otherwise) {
        std::string left = "  --" + std::string(name) + (value.empty() ? "" : " ") + std::string(value);
        left.resize(std::max<std::size_t>(left.size() + 2, 24), ' ');
        help_ += left + std::string(what) + (otherwise.empty() ? "" : " (" + std::string(otherwise) + ")") + "\n";
    }

    std::vector<std::string_view> given_;
    std::vector<bool> taken_;
    std::string help_;
};

}  // namespace ikat::training
