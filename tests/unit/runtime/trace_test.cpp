// SPDX-License-Identifier: Apache-2.0
// The file that IKAT_TRACE names.
#include <ikat/ikat.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/support/notes.hpp"
#include "tests/catch.hpp"
#include "tests/environment.hpp"
#include "tests/message.hpp"
#include "tests/unit/runtime/emulator.hpp"

namespace ikat::tests {
namespace {
namespace trace_test {

using namespace runtime;
const auto twice = kernel("twice", params("y", "x", "n"), [](Out<float> y, In<float> x, u32 n) {
    const u32 i = global_id().x;
    return_if(i >= n);
    y[i] = x[i] * 2.0f;
});

/// A line of the file, which is an object of JSON.
struct Event {
    std::string line;
    /// What follows a key, up to the next comma or the end of the text.
    std::string value(const std::string& key) const {
        const std::size_t found = line.find('"' + key + "\":");
        if (found == line.npos) return {};
        const std::size_t begin = found + key.size() + 3;
        if (line[begin] == '"') return line.substr(begin + 1, line.find('"', begin + 1) - begin - 1);
        return line.substr(begin, line.find_first_of(",}", begin) - begin);
    }
    double number(const std::string& key) const { return std::stod(value(key)); }
    double end() const { return number("ts") + number("dur"); }
};
using Events = std::vector<Event>;

Events read(const std::string& path) {
    std::ifstream in(path);
    Events out;
    std::string line;
    std::getline(in, line);
    CHECK(line == "[");
    bool is_last = true;
    while (std::getline(in, line) && line != "]") {
        CHECK(line.front() == '{');
        CHECK(std::ranges::count(line, '{') == std::ranges::count(line, '}'));
        is_last = line.back() != ',';
        if (!is_last) line.pop_back();
        CHECK(line.back() == '}');
        out.push_back({line});
    }
    CHECK(line == "]");
    CHECK(is_last);
    CHECK_FALSE(std::getline(in, line));
    return out;
}

Events of(const Events& all, const std::string& category, const std::string& name) {
    Events out;
    for (const Event& event : all)
        if (event.value("cat") == category && event.value("name") == name) out.push_back(event);
    return out;
}

TEST_CASE("trace: what the program enqueues and waits for, and what the device does, with bytes and lines") {
    const std::string path = std::filesystem::temp_directory_path() / "ikat-trace-test.json";
    const Environment file("IKAT_TRACE", path.c_str());
    const Device device = emulator();
    auto x = device.upload(std::vector<float>(256, 1.0f), "x"), y = device.buffer<float>(256, "y");
    const Stream first = device.stream(), second = device.stream();
    first.launch(twice, grid(256, 64), y, x, 256u);
    second.wait(first.record());
    second.fill(x.slice(0, 10), 3.0f);
    CHECK(of(read(path), "device", "twice").empty());  // nothing has been done yet
    device.synchronize();
    const Events trace = read(path);  // complete, though the device is open

    const Events enqueued = of(trace, "program", "enqueue: twice"), done = of(trace, "device", "twice");
    REQUIRE(enqueued.size() == 1);
    REQUIRE(done.size() == 1);
    CHECK(enqueued[0].value("stream") == "1");
    CHECK(done[0].value("tid") == "1");
    CHECK(done[0].value("bytes read") == "1024");
    CHECK(done[0].value("bytes written") == "1024");
    CHECK(done[0].value("grid") == "(4,1,1)");
    CHECK(done[0].value("block") == "(64,1,1)");
    CHECK_THAT(done[0].value("enqueued at"), contains("trace_test.cpp:"));
    CHECK(done[0].number("ts") >= enqueued[0].end());
    const Events fills = of(trace, "device", "fill");
    REQUIRE(fills.size() == 1);
    CHECK(fills[0].value("bytes written") == "40");
    CHECK(fills[0].number("ts") >= done[0].end());
    CHECK(of(trace, "device", "copy to the device").front().value("bytes written") == "1024");
    CHECK(of(trace, "program", "wait for the device").size() >= 1);

    // Each piece has an arrow from the program to its stream.
    std::map<std::string, std::string> arrows;
    for (const Event& each : trace)
        if (each.value("cat") == "work") arrows[each.value("id")] += each.value("ph");
    CHECK(arrows.size() >= 5);
    for (const auto& [id, ends] : arrows) CHECK(ends == "sf");
    std::set<std::string> tracks;
    for (const Event& each : trace)
        if (each.value("name") == "thread_name" && each.value("pid") == done[0].value("pid"))
            tracks.insert(each.line.substr(each.line.rfind(':') + 1));
    CHECK(tracks ==
          std::set<std::string>{R"("program"}})", R"("default stream"}})", R"("stream 1"}})", R"("stream 2"}})"});

    const Device other = emulator();  // in the same file, as a process of its own
    other.upload(std::vector<float>(3, 1.0f), "x");
    CHECK(of(read(path), "device", "copy to the device").back().value("pid") != done[0].value("pid"));
    std::filesystem::remove(path);
}

std::string noted;

TEST_CASE("trace: a file that cannot be written") {
    {
        const Environment file("IKAT_TRACE", "/no/such/folder/trace.json");
        CHECK_THAT(message_of([] { emulator(); }),
                   contains("the trace cannot be written to '/no/such/folder/trace.json': No such file"));
    }
    if (!std::filesystem::exists("/dev/full")) return;
    send_notes_to([](std::string_view text) { noted += text; });
    {
        const Environment file("IKAT_TRACE", "/dev/full");
        const Device device = emulator();
        CHECK(device.upload(std::vector<float>(3, 1.0f), "x").download() == std::vector<float>(3, 1.0f));
    }
    send_notes_to(nullptr);
    CHECK(noted == "the trace in '/dev/full' is not complete: No space left on device\n");
}

}  // namespace trace_test
}  // namespace
}  // namespace ikat::tests
