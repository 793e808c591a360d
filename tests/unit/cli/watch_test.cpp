// SPDX-License-Identifier: Apache-2.0
// `ikat devices --watch`: what a stand-in for NVIDIA's management library says, and the command on a terminal.
#include <dlfcn.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>

#include "tests/catch.hpp"
#include "tests/environment.hpp"
#include "tests/message.hpp"
#include "tools/cli/monitor/sample.hpp"

namespace ikat::tests {
namespace {
namespace watching {

struct FakeNvml {
    void* library = dlopen(FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
    FakeNvml() { reset(); }
    void reset() const { reinterpret_cast<void (*)()>(dlsym(library, "fake_nvml_reset"))(); }
    void fail(const char* symbol, unsigned result) const {
        reinterpret_cast<void (*)(const char*, unsigned)>(dlsym(library, "fake_nvml_fail"))(symbol, result);
    }
    int users() const { return reinterpret_cast<int (*)()>(dlsym(library, "fake_nvml_users"))(); }
};

TEST_CASE("watch: each reading is what the library says, in its units") {
    const FakeNvml fake;
    {
        const cli::Nvml nvml(FAKE_NVML);
        CHECK(fake.users() == 1);
        const auto gpus = nvml.read();
        REQUIRE(gpus.size() == 2);
        const cli::GpuReadings& its = gpus[0];
        CHECK((its.name == "Fake GPU 0" && its.gpu_percent == 97 && its.memory_percent == 41));
        CHECK((its.memory_used == 4ull << 30 && its.memory_total == 16ull << 30));
        CHECK((its.celsius == 62 && its.watts == 412.3 && its.watt_limit == 700.0));
        CHECK((its.sm_megahertz == 1980 && its.memory_megahertz == 2619));
        REQUIRE((its.processes && its.processes->size() == 2));
        CHECK(((*its.processes)[0].id == 4711 && (*its.processes)[0].memory_bytes == 3ull << 30));
        CHECK(((*its.processes)[1].id == 4712 && !(*its.processes)[1].memory_bytes));
        CHECK((gpus[1].name == "Fake \"GPU\" 1" && !gpus[1].gpu_percent && !gpus[1].celsius && !gpus[1].memory_used));
        CHECK((gpus[1].processes && gpus[1].processes->empty()));
    }
    CHECK(fake.users() == 0);
}

TEST_CASE("watch: what is not supported is a dash, and null in JSON") {
    const FakeNvml fake;
    const cli::Nvml nvml(FAKE_NVML);
    cli::Sample sample{.time = 12.5, .gpus = nvml.read(), .host = {.threads = 2, .cpu_percent = 12.34}};
    const std::string text = text_of(sample);
    CHECK(text ==
          "gpu 0: Fake GPU 0\n"
          "  busy         GPU 97 %, memory 41 %\n"
          "  memory       4.0 of 16.0 GiB\n"
          "  temperature  62 C\n"
          "  power        412.3 of 700.0 W\n"
          "  clocks       SM 1980 MHz, memory 2619 MHz\n"
          "  processes    4711 (3.0 GiB), 4712 (- GiB)\n"
          "gpu 1: Fake \"GPU\" 1\n"
          "  busy         GPU -, memory -\n"
          "  memory       - of - GiB\n"
          "  temperature  -\n"
          "  power        - of - W\n"
          "  clocks       SM -, memory -\n"
          "  processes    none\n"
          "emulator: 2 host threads\n"
          "  host CPU     12.3 %\n"
          "  host memory  - of - GiB\n");
    const std::string json = json_of(sample);
    CHECK(json == R"({"time":12.500,"device":"gpu 0","name":"Fake GPU 0","gpu_percent":97,"memory_percent":41,)"
                  R"("memory_used_bytes":4294967296,"memory_total_bytes":17179869184,"celsius":62,"watts":412.3,)"
                  R"("watt_limit":700.0,"sm_megahertz":1980,"memory_megahertz":2619,)"
                  R"("processes":[{"pid":4711,"memory_bytes":3221225472},{"pid":4712,"memory_bytes":null}]})"
                  "\n"
                  R"({"time":12.500,"device":"gpu 1","name":"Fake \"GPU\" 1","gpu_percent":null,"memory_percent":null,)"
                  R"("memory_used_bytes":null,"memory_total_bytes":null,"celsius":null,"watts":null,"watt_limit":null,)"
                  R"("sm_megahertz":null,"memory_megahertz":null,"processes":[]})"
                  "\n"
                  R"({"time":12.500,"device":"emulator","host_threads":2,"host_cpu_percent":12.3,)"
                  R"("host_memory_used_bytes":null,"host_memory_total_bytes":null})"
                  "\n");
    for (const char* const each : {"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetName",
                                   "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetHandleByIndex_v2"})
        fake.fail(each, 3);
    CHECK_THAT(cli::text_of({.gpus = nvml.read()}), contains("gpu 0: -\n  busy         GPU -, memory -\n"));
    fake.reset();
    fake.fail("nvmlDeviceGetPowerUsage", 3);
    CHECK_THAT(cli::text_of({.gpus = nvml.read()}), contains("power        - of 700.0 W"));
    fake.fail("nvmlDeviceGetComputeRunningProcesses_v3", 999);
    CHECK_THAT(cli::text_of({.gpus = nvml.read()}), contains("processes    -\n"));
}

TEST_CASE("watch: a library that is missing, fails or is too old is one message") {
    const FakeNvml fake;
    CHECK_THAT(message_of([] { cli::Nvml("/no/such/libnvidia-ml.so.1"); }),
               contains("no management library of NVIDIA (NVML): /no/such/libnvidia-ml.so.1") && contains("IKAT_NVML"));
    CHECK_THAT(message_of([] { cli::Nvml(FAKE_NVML_WITHOUT_CLOCKS); }),
               contains("has no function nvmlDeviceGetClockInfo"));
    CHECK(cli::Nvml(FAKE_NVML_WITHOUT_PROCESSES).read()[0].celsius == 62);  // older libraries lack these
    CHECK_FALSE(cli::Nvml(FAKE_NVML_WITHOUT_PROCESSES).read()[0].processes);
    fake.fail("nvmlInit_v2", 9);
    CHECK_THAT(message_of([] { cli::Nvml{FAKE_NVML}; }),
               contains("nvmlInit of NVIDIA's management library failed: Driver Not Loaded"));
    CHECK(fake.users() == 0);
    fake.reset();
    const cli::Nvml nvml(FAKE_NVML);
    fake.fail("nvmlDeviceGetCount_v2", 1);
    CHECK_THAT(message_of([&] { nvml.read(); }), contains("nvmlDeviceGetCount of NVIDIA's"));
}

TEST_CASE("watch: the load of the host") {
    const auto ticks = cli::cpu_ticks("cpu  10 1 5 70 4 2 3 5 9 9\ncpu0 1 2 3 4\n");
    REQUIRE(ticks);
    CHECK((ticks->all == 100 && ticks->busy == 26));
    CHECK_FALSE(cli::cpu_ticks("nothing"));
    CHECK(cli::memory_line("MemTotal:       1024 kB\nMemAvailable:   512 kB\n", "MemAvailable") == 512 * 1024);
    CHECK_FALSE(cli::memory_line("MemTotal: x\n", "MemTotal"));
    CHECK_FALSE(cli::memory_line("", "MemTotal"));
}

/// What the command says on a terminal until `enough` is in it; then it gets `keys`.
struct OnTerminal {
    std::string text;
    int status = -1;

    OnTerminal(const char* enough, int times, const char* keys, const char* count = nullptr) {
        int terminal = -1;
        winsize size{.ws_row = 50, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
        const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
        if (child == 0) {
            execl(IKAT_PROGRAM, "ikat", "devices", "--watch", "--interval", "0.05", count ? "--count" : nullptr, count,
                  nullptr);
            _exit(127);
        }
        char buffer[4096];
        bool has_pressed = false;
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        for (ssize_t bytes = 0; (bytes = read(terminal, buffer, sizeof buffer)) > 0;) {
            text.append(buffer, std::size_t(bytes));
            int seen = 0;
            for (std::size_t at = text.find(enough); at != text.npos; at = text.find(enough, at + 1)) ++seen;
            if (keys && !has_pressed && seen >= times) has_pressed = write(terminal, keys, 1) == 1;
            if (std::chrono::steady_clock::now() > end) kill(child, SIGKILL);
        }
        waitpid(child, &status, 0);
        close(terminal);
    }
};

TEST_CASE("watch: a terminal is redrawn until Ctrl-C, and has its cursor then") {
    const Environment nvml("IKAT_NVML", FAKE_NVML);
    const OnTerminal its("emulator: ", 3, "\x03");
    CHECK((WIFEXITED(its.status) && WEXITSTATUS(its.status) == 0));
    CHECK(its.text.starts_with("\x1b[?25l"));
    CHECK_THAT(its.text, contains("gpu 0: Fake GPU 0\r\n") && contains("\x1b[17A\x1b[J"));
    CHECK(its.text.ends_with("\x1b[?25h"));
    CHECK_THAT(its.text, contains("  processes    4711 (3.0 GiB), 4712 (- \r\n"));  // cut to the terminal's 40 columns
}

TEST_CASE("watch: a count ends it, too") {
    const Environment nvml("IKAT_NVML", "/no/such/library.so");
    const OnTerminal its("emulator: ", 1, nullptr, "2");
    CHECK((WIFEXITED(its.status) && WEXITSTATUS(its.status) == 0));
    CHECK_THAT(its.text, contains("gpu: no management library of NVIDIA") && contains("\x1b[4A\x1b[J"));
    CHECK(its.text.ends_with("\x1b[?25h"));
}

}  // namespace watching
}  // namespace
}  // namespace ikat::tests
