// SPDX-License-Identifier: Apache-2.0
#include "codegen/ptx/table/target.hpp"

#include <algorithm>

#include "codegen/support/diagnostic.hpp"
#include "tests/catch.hpp"
#include "tests/ptxas.hpp"

using namespace ikat::ptx;

TEST_CASE("targets are found by name, and an unknown one lists them") {
    CHECK(target("sm_90a").specific);
    CHECK(target("sm_90").shared_opt_in == 232448);
    CHECK(find_target("sm_1") == nullptr);
    try {
        target("sm_91");
        FAIL();
    } catch (const ikat::Error& error) {
        CHECK_THAT(error.what(), ikat::tests::contains("unknown target 'sm_91'"));
        CHECK_THAT(error.what(), ikat::tests::contains(
                                     "sm_75, sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100, sm_100a, sm_103a, sm_120"));
    }
}

TEST_CASE("the lowest version covers the target and the features") {
    const auto lowest = [](std::string_view name, std::vector<Feature> features) {
        const Version version = lowest_version(target(name), features);
        return version.major * 10 + version.minor;
    };
    CHECK(lowest("sm_75", {}) == 63);
    CHECK(lowest("sm_80", {Feature::AsyncCopy}) == 70);
    CHECK(lowest("sm_80", {Feature::AsyncCopy, Feature::CacheHints, Feature::MatrixLoad}) == 74);
    CHECK(lowest("sm_90", {Feature::AsyncCopy}) == 78);
    CHECK(lowest("sm_90a", {Feature::Wgmma}) == 80);
    CHECK(lowest("sm_90a", {Feature::VectorReduction, Feature::Wgmma}) == 81);
    CHECK_THROWS_AS(lowest("sm_75", {Feature::AsyncCopy}), ikat::Error);
    CHECK_THROWS_AS(lowest("sm_90", {Feature::Wgmma}), ikat::Error);
    CHECK_THROWS_AS(lowest("sm_100", {Feature::Wgmma}), ikat::Error);  // an "a" feature is not inherited
    CHECK(supports(target("sm_120"), Feature::ThreeWayMinMax));
    CHECK(supports(target("sm_100a"), Feature::SetMaxRegisters));  // this one is
    CHECK_FALSE(supports(target("sm_100a"), Feature::Wgmma));
    CHECK_FALSE(supports(target("sm_120a"), Feature::Tcgen05));
}

TEST_CASE("each feature has a row, and some target has it") {
    for (int i = 0; i <= int(Feature::ThreeWayMinMax); ++i) {
        const FeatureInfo& row = info(Feature(i));
        INFO(row.name);
        CHECK(row.feature == Feature(i));
        CHECK(std::ranges::any_of(targets(), [&](const Target& each) { return supports(each, row.feature); }));
    }
}

TEST_CASE("ptxas knows each target from its version on, and not before") {
    if (ikat::tests::skip_without_ptxas()) return;
    const auto assembles = [](const Target& target, Version version) {
        const std::string name(target.name);
        const std::string text = ".version " + std::to_string(version.major) + '.' + std::to_string(version.minor) +
                                 "\n.target " + name + "\n.address_size 64\n.visible .entry k() { ret; }\n";
        return ikat::tests::assemble(text, name).assembled;
    };
    for (const Target& each : targets()) {
        INFO(each.name);
        CHECK(assembles(each, each.version));
        const Version before = each.version.minor ? Version{each.version.major, each.version.minor - 1}
                                                  : Version{each.version.major - 1, 8};
        CHECK_FALSE(assembles(each, before));
    }
}
