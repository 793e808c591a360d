// SPDX-License-Identifier: Apache-2.0
// The report of a pool: as text, as JSON, and as a map.
#include "runtime/pool/report.hpp"

#include "tests/catch.hpp"

namespace ikat::tests {
namespace {
namespace pool_report {

using namespace runtime;
using State = PoolReport::State;

const PoolReport report{.used = 3072,
                        .reserved = 6291456,
                        .peak_used = 5000192,
                        .largest_free = 4194304,
                        .limit = 8388608,
                        .kind = "own",
                        .classes = {{1024, 1, 0}, {2048, 1, 1}, {1 << 20, 0, 1}, {4 << 20, 0, 1}},
                        .segments = {{0,
                                      2097152,
                                      {{0, 1024, State::Used},
                                       {1024, 2048, State::Waiting},
                                       {3072, 1570816, State::Free},
                                       {1573888, 2048, State::Used},
                                       {1575936, 521216, State::Waiting}}},
                                     {2, 4194304, {{0, 4194304, State::Free}}}}};

TEST_CASE("pool report: text") {
    CHECK(to_text(report) ==
          "pool 'own', in bytes\n"
          "   used                    3072   at most 5000192 so far\n"
          "   reserved             6291456   in 2 segments, limit 8388608\n"
          "   free                 6288384   the largest block has 4194304\n"
          "   fragmentation          33.3%\n"
          "   blocks from           used      free\n"
          "             1024         1         0\n"
          "             2048         1         1\n"
          "          1048576         0         1\n"
          "          4194304         0         1\n");
    CHECK(to_text({.kind = "off"}) ==
          "pool 'off', in bytes\n"
          "   used                       0   at most 0 so far\n"
          "   reserved                   0   in 0 segments, no limit\n"
          "   free                       0   the largest block has 0\n"
          "   fragmentation           0.0%\n");
}

TEST_CASE("pool report: JSON") {
    const std::string json = to_json(report);
    CHECK_THAT(json, Catch::StartsWith("{\n"
                                       "  \"kind\": \"own\",\n"
                                       "  \"used\": 3072,\n"
                                       "  \"reserved\": 6291456,\n"
                                       "  \"peak_used\": 5000192,\n"
                                       "  \"free\": 6288384,\n"
                                       "  \"largest_free\": 4194304,\n"
                                       "  \"fragmentation\": 0.3330,\n"
                                       "  \"limit\": 8388608,\n"
                                       "  \"classes\": [\n"));
    CHECK_THAT(json, Catch::Contains("        {\n"
                                     "          \"offset\": 1024,\n"
                                     "          \"bytes\": 2048,\n"
                                     "          \"state\": \"waiting\"\n"
                                     "        },\n"));
    CHECK(to_json({}) ==
          "{\n"
          "  \"kind\": \"\",\n"
          "  \"used\": 0,\n"
          "  \"reserved\": 0,\n"
          "  \"peak_used\": 0,\n"
          "  \"free\": 0,\n"
          "  \"largest_free\": 0,\n"
          "  \"fragmentation\": 0.0000,\n"
          "  \"classes\": [],\n"
          "  \"segments\": []\n"
          "}\n");
}

TEST_CASE("pool report: the map") {
    CHECK(map_as_text(report) ==
          "segment 0, 2097152 bytes\n"
          "|#...............................................#+++++++++++++++|\n"
          "segment 2, 4194304 bytes\n"
          "|................................................................|\n");
    CHECK(map_as_text({}).empty());
    const std::string svg = map_as_svg(report);
    CHECK_THAT(svg, Catch::StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1044\" height=\"128\"") &&
                        Catch::EndsWith("</svg>\n"));
    CHECK_THAT(svg, Catch::Contains("<rect x=\"10.50\" y=\"54\" width=\"1.00\" height=\"20\" fill=\"#c0c0c0\" "
                                    "stroke=\"black\" stroke-width=\"0.25\"><title>waiting: 2048 bytes from 1024 "
                                    "on</title></rect>\n"));
    const auto count = [&](std::string_view what) {
        std::size_t found = 0;
        for (std::size_t at = svg.find(what); at != svg.npos; at = svg.find(what, at + 1)) ++found;
        return found;
    };
    CHECK(count("<rect ") == 6);
    CHECK(count("</rect>") == 6);
    CHECK(count("<text ") == 3);
    CHECK(count("</text>") == 3);
}

}  // namespace pool_report
}  // namespace
}  // namespace ikat::tests
