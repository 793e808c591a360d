// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/check.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>

#include "codegen/report/json.hpp"
#include "runtime/backend.hpp"
#include "tools/cli/commands/commands.hpp"
#include "tools/cli/text/files.hpp"

namespace ikat::cli {
namespace {

std::string plural(std::uint64_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : what.ends_with("ch") ? "es" : "s");
}

const char* name_of(Severity severity) {
    return severity == Severity::Error ? "error" : severity == Severity::Warning ? "warning" : "note";
}

std::size_t count(const Verdict& verdict, Severity severity) {
    return std::size_t(std::ranges::count(verdict.findings, severity, &Diagnostic::severity));
}

/// Of all launches of a kernel.
struct OfKernel {
    std::uint64_t launches = 0;
    unsigned orders = ~0u;  // the fewest
    bool has_all = true;
    emulator::RaceCounts races{};
};

std::map<std::string, OfKernel> by_kernel(const Verdict& verdict) {
    std::map<std::string, OfKernel> out;
    for (const emulator::Coverage& each : verdict.coverage) {
        OfKernel& kernel = out[each.entry];
        ++kernel.launches;
        kernel.orders = std::min(kernel.orders, each.orders);
        kernel.has_all &= each.orders == each.asked;
        kernel.races += each.races;
    }
    return out;
}

/// Memory that kernels have allocated, and none has freed.
std::optional<Diagnostic> leak(const std::vector<emulator::Coverage>& coverage) {
    std::int64_t left = 0;
    std::string names;
    for (const emulator::Coverage& each : coverage) {
        left += each.heap_bytes;
        std::string by = fmt::format("'{}'", each.entry);
        for (const emulator::HeapLeft& line : each.heap_left)
            by += fmt::format("{}{} at {}:{}", line == each.heap_left.front() ? ", " : " and ",
                              plural(line.bytes, "byte"), line.file, line.line);
        if (each.heap_bytes > 0 && !names.contains(by)) names += (names.empty() ? "" : "; ") + by;
    }
    if (left <= 0) return {};
    return Diagnostic{.severity = Severity::Warning,
                      .message = fmt::format("{} of the heap that kernels have allocated are not freed: {}",
                                             plural(std::uint64_t(left), "byte"), names),
                      .hint = "free what malloc returned, in the kernel or in a later one",
                      .code = "heap-leak"};
}

/// In a word or two.
std::string verdict_of(const Verdict& verdict) {
    const auto errors = count(verdict, Severity::Error), warnings = count(verdict, Severity::Warning);
    if (errors && warnings) return fmt::format("{}, {}", plural(errors, "error"), plural(warnings, "warning"));
    if (errors || warnings) return errors ? plural(errors, "error") : plural(warnings, "warning");
    if (verdict.coverage.empty()) return "nothing was launched";
    const auto is_incomplete = [](const emulator::Coverage& each) { return each.races.unchecked > 0; };
    return std::ranges::any_of(verdict.coverage, is_incomplete) ? "incomplete" : "clean";
}

std::string text_of(const Verdict& verdict) {
    std::string out;
    for (const Diagnostic& each : verdict.unused) out += to_string(each) + "\n";
    for (const auto& [name, kernel] : by_kernel(verdict)) {
        out += fmt::format("{}: {}, {}{}; accesses looked at for races: {} of shared memory, {} of global memory", name,
                           plural(kernel.launches, "launch"), plural(kernel.orders, "order"),
                           kernel.has_all ? "" : " because it leaves other buffers than before", kernel.races.shared,
                           kernel.races.global);
        if (kernel.races.unsure) out += fmt::format(", {} unsure", kernel.races.unsure);
        if (kernel.races.unchecked) out += fmt::format(", {} not looked at", kernel.races.unchecked);
        out += "\n";
    }
    return out + verdict_of(verdict) + "\n";
}

void write(Json& json, const Diagnostic& finding) {
    json.open('{');
    json.text("severity", name_of(finding.severity));
    json.text("code", finding.code);
    json.text("message", finding.message);
    json.text("file", finding.where.file);
    json.number("line", finding.where.line);
    json.number("column", finding.where.column);
    json.key("notes"), json.open('[');
    for (const Diagnostic::Note& note : finding.notes) {
        json.open('{');
        json.text("message", note.message);
        json.text("file", note.where.file);
        json.number("line", note.where.line);
        json.number("column", note.where.column);
        json.close('}');
    }
    json.close(']');
    json.text("hint", finding.hint);
    json.close('}');
}

std::string json_of(const Verdict& verdict) {
    std::string out;
    for (const auto* findings : {&verdict.findings, &verdict.unused})
        for (const Diagnostic& each : *findings) {
            Json json(Json::Layout::OneLine);
            write(json, each);
            out += json.take();
        }
    Json json(Json::Layout::OneLine);
    json.open('{');
    json.text("verdict", verdict_of(verdict));
    json.key("kernels"), json.open('[');
    for (const auto& [name, kernel] : by_kernel(verdict)) {
        json.open('{');
        json.text("name", name);
        json.number("launches", kernel.launches);
        json.number("orders", kernel.orders);
        json.number("shared_accesses", kernel.races.shared);
        json.number("global_accesses", kernel.races.global);
        json.number("unsure", kernel.races.unsure);
        json.number("unchecked", kernel.races.unchecked);
        json.close('}');
    }
    json.close(']');
    json.close('}');
    return out + json.take();
}

void place(Json& json, const Location& where, std::string_view message) {
    json.open('{');
    json.key("physicalLocation"), json.open('{');
    json.key("artifactLocation"), json.open('{'), json.text("uri", where.file), json.close('}');
    json.key("region"), json.open('{');
    json.number("startLine", where.line);
    json.number("startColumn", std::max(where.column, 1u));
    json.close('}');
    json.close('}');
    if (!message.empty()) json.key("message"), json.open('{'), json.text("text", message), json.close('}');
    json.close('}');
}

/// https://docs.oasis-open.org/sarif/sarif/v2.1.0
std::string sarif_of(const Verdict& verdict) {
    Json json;
    json.open('{');
    json.text("$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    json.text("version", "2.1.0");
    json.key("runs"), json.open('['), json.open('{');
    json.key("tool"), json.open('{'), json.key("driver"), json.open('{');
    json.text("name", "ikat");
    json.close('}'), json.close('}');
    json.key("results"), json.open('[');
    for (const auto* findings : {&verdict.findings, &verdict.unused})
        for (const Diagnostic& each : *findings) {
            json.open('{');
            json.text("ruleId", *each.code ? each.code : "finding");
            json.text("level", name_of(each.severity));
            json.key("message"), json.open('{');
            json.text("text", each.hint.empty() ? each.message : each.message + "\nhint: " + each.hint);
            json.close('}');
            json.key("locations"), json.open('[');
            if (each.where.known()) place(json, each.where, {});
            json.close(']');
            json.key("relatedLocations"), json.open('[');
            for (const Diagnostic::Note& note : each.notes)
                if (note.where.known()) place(json, note.where, note.message);
            json.close(']');
            json.close('}');
        }
    json.close(']');
    json.close('}'), json.close(']');
    json.close('}');
    return json.take();
}

// ---- programs

/// What a run has written to IKAT_LOG. Files' names are kept beside it.
class Log {
public:
    explicit Log(std::string_view text) {
        while (!text.empty()) {
            const std::string_view line = text.substr(0, text.find('\n'));
            text.remove_prefix(std::min(text.size(), line.size() + 1));
            add(line);
        }
    }
    Verdict verdict;

private:
    void add(std::string_view line) {
        if (line.starts_with("checked: ")) return add_coverage(line);
        if (line.starts_with("  hint: ")) {
            if (!verdict.findings.empty()) verdict.findings.back().hint = line.substr(8);
            return;
        }
        for (const Severity severity : {Severity::Error, Severity::Warning, Severity::Note}) {
            const std::string word = fmt::format("{}: ", name_of(severity));
            const std::size_t at = line.starts_with(word) ? 0 : line.find(": " + word);
            if (at == line.npos) continue;
            const Location where = at ? place_of(line.substr(0, at)) : Location{};
            const std::string message(line.substr(at ? at + 2 + word.size() : word.size()));
            // Notes of their own are not told from those of a finding.
            if (severity == Severity::Note && !verdict.findings.empty())
                verdict.findings.back().notes.push_back({where, message});
            else
                verdict.findings.push_back({.severity = severity, .where = where, .message = message});
            return;
        }
    }
    Location place_of(std::string_view text) {
        Location out;
        for (std::uint32_t* const number : {&out.column, &out.line}) {
            const std::size_t colon = text.rfind(':');
            if (colon == text.npos) return {};
            std::from_chars(text.data() + colon + 1, text.data() + text.size(), *number);
            text = text.substr(0, colon);
        }
        out.file = files_.emplace_back(text).c_str();
        return out;
    }
    void add_coverage(std::string_view line) {
        const std::size_t open = line.find('\''), close = line.find('\'', open + 1);
        if (close == line.npos) return;
        emulator::Coverage coverage{.entry = std::string(line.substr(open + 1, close - open - 1))};
        std::uint64_t orders = 1, asked = 1;
        std::uint64_t left = 0;
        std::uint64_t* const numbers[] = {&orders,
                                          &asked,
                                          &coverage.races.shared,
                                          &coverage.races.global,
                                          &coverage.races.unsure,
                                          &coverage.races.unchecked,
                                          &left};
        const char* at = line.data() + close;
        const char* const end = line.data() + line.size();
        for (std::uint64_t* const number : numbers) {
            at = std::find_if(at, end, [](char c) { return c >= '0' && c <= '9'; });
            const bool is_below = at > line.data() && at[-1] == '-';
            at = std::from_chars(at, end, *number).ptr;
            if (number == &left) coverage.heap_bytes = is_below ? -std::int64_t(left) : std::int64_t(left);
        }
        for (std::size_t open = line.find("; ", at - line.data()); open != line.npos;) {
            const std::size_t next = line.find("; ", open + 2), by = line.find(" by ", open);
            const Location where = place_of(std::string(line.substr(by + 4, next - by - 4)) + ":1");
            emulator::HeapLeft& left_by = coverage.heap_left.emplace_back(where.file, where.line);
            std::from_chars(line.data() + open + 2, end, left_by.bytes);
            open = next;
        }
        coverage.orders = unsigned(orders);
        coverage.asked = unsigned(asked);
        verdict.coverage.push_back(coverage);
    }

    std::deque<std::string> files_;
};

struct TemporaryFile {
    TemporaryFile() : path((std::filesystem::temp_directory_path() / "ikat-check-XXXXXX").string()) {
        const int file = mkstemp(path.data());
        if (file < 0) throw Error(fmt::format("no file can be made in {}", path), "set TMPDIR to a folder for it");
        close(file);
    }
    ~TemporaryFile() { std::remove(path.c_str()); }
    std::string path;
};

}  // namespace

std::string render(Verdict verdict, const std::string& format) {
    if (const auto found = leak(verdict.coverage)) {
        if (format == "text") fmt::print(stderr, "{}\n", to_string(*found));
        verdict.findings.push_back(*found);
    }
    return format == "json" ? json_of(verdict) : format == "sarif" ? sarif_of(verdict) : text_of(verdict);
}

void require_complete(const Verdict& verdict) {
    if (verdict.coverage.empty()) throw runtime::KernelError("nothing was launched, so nothing has been checked", {});
    const auto is_complete = [](const emulator::Coverage& each) { return each.races.unchecked == 0; };
    if (!std::ranges::all_of(verdict.coverage, is_complete))
        throw runtime::KernelError("not all accesses have been looked at for races",
                                   "there are too many: take a smaller problem");
}

void check_program(const std::vector<std::string>& command, const ProgramOptions& options) {
    const TemporaryFile log;
    std::fflush(stdout);
    const pid_t child = fork();
    if (child < 0) throw Error("no process can be started", "is there a limit on their number?");
    if (child == 0) {
        setenv("IKAT_CHECK", options.check.c_str(), 1);
        setenv("IKAT_SCHEDULES", std::to_string(options.schedules).c_str(), 1);
        setenv("IKAT_LOG", log.path.c_str(), 1);
        if (!options.suppressions.empty()) setenv("IKAT_SUPPRESS", options.suppressions.c_str(), 1);
        try {
            run_in_cuda_env(command);
        } catch (const Error& error) { fmt::print(stderr, "{}\n", error.what()); }
        constexpr int not_started = 127;  // as shells say it
        _exit(not_started);
    }
    int status = 0;
    waitpid(child, &status, 0);
    const Log said(read_text(log.path));
    std::fflush(stderr);
    write_text({}, render(said.verdict, options.format));
    if (count(said.verdict, Severity::Error)) throw runtime::KernelError("the program has errors", "they are above");
    if (status != 0)
        throw runtime::KernelError(WIFSIGNALED(status)
                                       ? fmt::format("the program ended by signal {}", WTERMSIG(status))
                                       : fmt::format("the program ended with status {}", WEXITSTATUS(status)),
                                   {});
    require_complete(said.verdict);
}

}  // namespace ikat::cli
