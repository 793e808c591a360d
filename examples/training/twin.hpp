// SPDX-License-Identifier: Apache-2.0
// What programs that train compare their losses with: a twin in NumPy, and other runs.
#pragma once
#include <ikat/ikat.hpp>

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ikat::training {

/// A line with what has been compared; gives whether it is right.
inline bool report(bool is_right, const std::string& what, double difference, double bound) {
    std::printf("%-44s %10.3g %s %.3g%s\n", what.c_str(), difference, is_right ? "<=" : "> ", bound,
                is_right ? "" : "   WRONG");
    return is_right;
}

/// The output of a command, or nothing where it fails.
inline std::optional<std::string> output_of(const std::string& command) {
    std::FILE* pipe = popen(command.c_str(), "r");
    if (!pipe) return {};
    std::string out;
    char part[256];
    while (std::fgets(part, sizeof part, pipe)) out += part;
    return pclose(pipe) == 0 ? std::optional(out) : std::nullopt;
}
/// A word of a shell's command.
inline std::string quoted(const std::string& text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
    return out + "'";
}

/// A number for the metadata of a file: as many digits as a float needs.
inline std::string text_of(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", number);
    return text;
}

/// Losses with those that a script prints, line by line, of a file that write(path) makes. True where there is no such
/// Python, or it has no NumPy, which is said.
inline bool check_twin(const std::string& python, const std::string& script, const std::vector<double>& losses,
                       double bound, const std::function<void(const std::filesystem::path&)>& write) {
    if (!output_of(quoted(python) + " -c 'import numpy' 2>&1")) {
        std::printf("twin in float64: skipped, since %s with NumPy was not found\n", python.c_str());
        return true;
    }
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("ikat_twin_" + std::to_string(getpid()) + ".safetensors");
    write(path);
    const std::optional<std::string> text = output_of(quoted(python) + " " + quoted(script) + " " + quoted(path));
    std::filesystem::remove(path);
    double difference = 0;
    std::size_t read = 0;
    const char* at = text ? text->c_str() : "";
    for (char* end = nullptr; read < losses.size(); ++read, at = end) {
        const double twin = std::strtod(at, &end);
        if (end == at) break;
        const double here = std::abs(twin - losses[read]);
        if (!(here <= difference)) difference = here;
    }
    if (read < losses.size()) std::printf("the twin gave %zu of %zu losses\n", read, losses.size());
    return report(read == losses.size() && difference <= bound,
                  std::to_string(losses.size()) + " losses, and those of a twin in float64", difference, bound);
}

/// The bits of the losses that run(device, as_graph) gives, in two runs on the device that there is, and on the
/// emulator with one and with several host threads, for targets with and without the newest instructions.
inline bool check_bits(const std::string& target,
                       const std::function<std::vector<double>(const Device&, bool as_graph)>& run) {
    bool is_right = true;
    const auto compare = [&](const std::string& what, const std::vector<double>& a, const std::vector<double>& b) {
        const bool is_same = a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
        std::printf("%-44s %s\n", what.c_str(), is_same ? "the same bits" : "OTHER BITS   WRONG");
        is_right &= is_same;
    };
    const auto on_emulator = [&](const char* of, std::uint32_t threads) {
        return run(Device::open({.device = "emulator", .target = of, .threads = threads}), true);
    };
    for (const char* of : {"sm_80", "sm_90a"}) {
        const std::vector<double> first = on_emulator(of, 1);
        compare("two runs on " + std::string(of), first, on_emulator(of, 1));
        compare("three host threads on " + std::string(of), first, on_emulator(of, 3));
    }
    const Device device = Device::open({.target = target});
    const std::vector<double> by_graph = run(device, true);
    compare("a graph, and kernel by kernel", by_graph, run(device, false));
    if (device.properties().kind != runtime::DeviceKind::Emulator)
        compare("two runs on " + device.properties().name, by_graph, run(device, true));
    return is_right;
}

}  // namespace ikat::training
