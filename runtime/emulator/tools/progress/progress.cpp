// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/tools/progress/progress.hpp"

namespace ikat::emulator {

namespace {

using Clock = std::chrono::steady_clock;

class Teller final : public Tool {
public:
    using Told = std::function<void(const Progress&, std::chrono::seconds)>;
    Teller(std::chrono::milliseconds every, Told told) : every_(every), told_(std::move(told)) {}
    std::string_view name() const override { return "progress"; }
    std::unique_ptr<LaunchTool> of(LaunchState&, std::size_t) const override {
        return std::make_unique<OfLaunch>(*this);
    }

private:
    class OfLaunch final : public LaunchTool {
    public:
        explicit OfLaunch(const Teller& teller) : teller_(teller) {}
        void advance(const Progress& at) override {
            const Clock::time_point now = Clock::now();
            if (now < next_) return;
            next_ = now + teller_.every_;
            teller_.told_(at, std::chrono::duration_cast<std::chrono::seconds>(now - began_));
        }

    private:
        const Teller& teller_;
        const Clock::time_point began_ = Clock::now();
        Clock::time_point next_ = began_ + teller_.every_;
    };

    std::chrono::milliseconds every_;
    Told told_;
};

}  // namespace

std::shared_ptr<const Tool> tell_progress(std::chrono::milliseconds every, Teller::Told told) {
    return std::make_shared<Teller>(every, std::move(told));
}

}  // namespace ikat::emulator
