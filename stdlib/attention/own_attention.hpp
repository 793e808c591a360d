// SPDX-License-Identifier: Apache-2.0
// The functions of scores() and sees() as what a kernel is made by.
#pragma once
#include <algorithm>
#include <compare>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/support/digest.hpp"
#include "stdlib/attention/own_scores.hpp"

namespace ikat {
class MoreParameters;
}

namespace ikat::stdlib {

/// Of each argument, what a kernel is made by.
struct ScoreParameter {
    ir::Type type = ir::Type::Void;
    bool is_array = false, is_in_i32 = false;
    std::vector<ScoreAxis> by{};  // how the function reads an array: by one axis, or by two

    auto operator<=>(const ScoreParameter&) const = default;
    /// Whether an array has one element for all scores of a head of a sequence.
    bool is_of_head() const {
        return std::ranges::none_of(by,
                                    [](ScoreAxis axis) { return axis == ScoreAxis::Query || axis == ScoreAxis::Key; });
    }
};

/// "head", "head x key"
std::string text_of(const std::vector<ScoreAxis>& by);

/// The key of both, of which each may be missing. Equal functions with parameters of the same kinds are the same.
class OwnAttention {
public:
    /// One of the functions, without it. "scores", "sees", "slope".
    struct Code {
        const char* kind = "";
        std::string name{};
        Digest digest{};
        std::vector<ScoreParameter> parameters{};

        std::strong_ordering operator<=>(const Code& other) const;
        bool operator==(const Code& other) const { return *this <=> other == 0; }
        std::string parameter(std::size_t number) const { return kind + std::to_string(number); }
    };
    using Fail = std::function<void(const std::string& message, std::string_view hint)>;

    OwnAttention() = default;
    /// Calls the functions once, as in a kernel. Throws Error with the mistakes in them; of arguments that do not fit
    /// them it calls `fail`, which throws.
    /// `slope` is the derivative of scores, for kernels of gradients.
    OwnAttention(const std::optional<OwnScores>& scores, const std::optional<OwnSight>& sight, const Fail& fail,
                 const std::optional<OwnScores>& slope = {});

    bool has_scores() const { return scores_function_ != nullptr; }
    bool has_sight() const { return sight_function_ != nullptr; }
    explicit operator bool() const { return has_scores() || has_sight(); }
    const Code& scores() const { return scores_; }
    const Code& sight() const { return sight_; }
    const Code& slope() const { return slope_; }
    const OwnScores::Function& scores_function() const { return *scores_function_; }
    const OwnScores::Function& slope_function() const { return *slope_function_; }
    const OwnSight::Function& sight_function() const { return *sight_function_; }
    const OwnSight::OfTile& sight_of_tile() const { return *sight_of_tile_; }
    /// For the kernel's name: "_alibi_window".
    std::string suffix() const;
    /// The parameters of the kernel: those of scores(), of sees(), and of the slope.
    MoreParameters more() const;

    std::strong_ordering operator<=>(const OwnAttention& other) const;
    bool operator==(const OwnAttention& other) const { return *this <=> other == 0; }

private:
    Code scores_{.kind = "scores"}, sight_{.kind = "sees"}, slope_{.kind = "slope"};
    std::shared_ptr<const OwnScores::Function> scores_function_{}, slope_function_{};
    std::shared_ptr<const OwnSight::Function> sight_function_{};
    std::shared_ptr<const OwnSight::OfTile> sight_of_tile_{};
};

}  // namespace ikat::stdlib
