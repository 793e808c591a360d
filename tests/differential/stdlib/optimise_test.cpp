// SPDX-License-Identifier: Apache-2.0
// Optimisers against their formulas in double precision, for single tensors and for tables of them.
#include "stdlib/optimise/optimise.hpp"

#include "codegen/pipeline/compile.hpp"
#include "runtime/exec/recorder.hpp"
#include "tests/differential/stdlib/optimise_model.hpp"
#include "tests/message.hpp"
#include "tests/ptxas.hpp"
#include "tests/targets.hpp"

namespace ikat::test::optimise {
namespace {

template <class G>
void check_single(const Device& device, std::uint32_t seed) {
    for (const Optimiser kind : all_kinds)
        for (const std::uint64_t n : {0, 1, 3, 4, 31, 1000, 2051})
            for (const std::uint64_t first : {0, 1, 4}) {
                Tensor<G> tensor(device, n, first, seed + std::uint32_t(n));
                const auto old = tensor.download();
                const auto row = tensor.row(false);
                run_one(kind, device, row.gradient, row.parameter, row.first, *row.second, 3, 0.5f);
                check_step(kind, tensor, old, 3, 0.5f, false);
            }
}

template <class G>
void check_table(Optimiser kind, const std::string& schedule, std::uint32_t seed, bool has_copy) {
    const Device device = open_device({.schedule = schedule, .check = "strict,registers,races"});
    Model<G> model = make_model<G>(device, seed);
    const stdlib::OptimisedTensors tensors(device, rows_of(model, has_copy));
    std::vector<typename Tensor<G>::Host> old;
    for (auto& each : model) old.push_back(each->download());
    const auto step = device.upload(std::vector<std::uint32_t>{1 + seed % 7}, "step");
    const auto scale = device.upload(std::vector<float>{0.25f}, "scale");
    run_all(kind, device, tensors, {.step = step, .scale = scale}, 2);
    for (std::size_t i = 0; i < model.size(); ++i) check_step(kind, *model[i], old[i], 1 + seed % 7, 0.5f, has_copy);
}

/// After three steps, by a number of host threads and an order of warps.
std::vector<Tensor<half>::Host> after_steps(Optimiser kind, std::uint32_t threads, const std::string& schedule) {
    const Device device = open_device({.threads = threads, .schedule = schedule});
    Model<half> model = make_model<half>(device, 5);
    const stdlib::OptimisedTensors tensors(device, rows_of(model, true));
    auto norm = device.buffer<float>(1, "norm"), scale = device.buffer<float>(1, "scale");
    const auto loss_scale = device.upload(std::vector<float>{8}, "loss_scale");
    auto step = device.upload(std::vector<std::uint32_t>{0}, "step");
    for (int i = 0; i < 3; ++i) {
        gradient_norm(device, tensors, norm);
        clip_by_norm(device, norm, loss_scale, scale, step, 1.5f);
        run_all(kind, device, tensors, {.step = step, .scale = scale});
    }
    CHECK(step.download()[0] == 3);
    std::vector<Tensor<half>::Host> out;
    for (auto& each : model) out.push_back(each->download());
    return out;
}

}  // namespace

TEST_CASE("optimisers: a step of one tensor, of any size and place") {
    for (const std::uint32_t seed : {1, 2, 3, 4}) {
        const Device device = open_device({.schedule = std::to_string(seed), .check = "strict,registers,races"});
        if (seed != 2) check_single<float>(device, seed);
        if (seed != 3) check_single<half>(device, seed);
        if (seed != 4) check_single<bfloat16>(device, seed);
    }
}

TEST_CASE("optimisers: a step of a table of tensors") {
    std::uint32_t seed = 0;
    for (const Optimiser kind : all_kinds)
        for (const bool has_copy : {false, true}) {
            ++seed;
            const std::string schedule = std::to_string(seed);
            check_table<float>(kind, schedule, seed, has_copy);
            check_table<half>(kind, schedule, seed + 100, has_copy);
            check_table<bfloat16>(kind, schedule, seed + 200, has_copy);
        }
}

TEST_CASE("optimisers: a table and single tensors have the same bits where the host knows all numbers") {
    const Device device = open_device();
    for (const Optimiser kind : {Optimiser::Sgd, Optimiser::Nesterov, Optimiser::Lion}) {
        Model<half> one = make_model<half>(device, 7), other = make_model<half>(device, 7);
        run_all(kind, device, stdlib::OptimisedTensors(device, rows_of(one, false)), {}, 0.5f);
        for (std::size_t i = 0; i < one.size(); ++i) {
            const auto row = other[i]->row(false);
            run_one(kind, device, row.gradient, row.parameter, row.first, *row.second, 1, 0.5f);
            CHECK(same_state(one[i]->download(), other[i]->download()));
        }
    }
}

TEST_CASE("optimisers: the same bits in every order of warps and by any number of host threads") {
    for (const Optimiser kind : {Optimiser::Nesterov, Optimiser::AdamW, Optimiser::Lion}) {
        const auto wanted = after_steps(kind, 1, "0");
        for (const auto& [threads, schedule] :
             {std::pair{2u, "1"}, std::pair{1u, "2"}, std::pair{3u, "3,lanes"}, std::pair{1u, "4"}}) {
            const auto got = after_steps(kind, threads, schedule);
            for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(same_state(got[i], wanted[i]));
        }
    }
}

TEST_CASE("optimisers: zeros, subnormal numbers, infinities and NaNs") {
    const Device device = open_device();
    const float tiny = 0x1p-149f;
    const std::vector<float> hostile{0, -0.0f, tiny, -tiny, 0x1p-130f, infinity, -infinity, nan};
    for (const Optimiser kind : all_kinds) {
        const auto g = device.upload(hostile);
        auto p = device.upload(std::vector<float>(8, 0.5f)), m = device.upload(std::vector<float>(8, 0.0f)),
             v = device.upload(std::vector<float>(8, 0.0f));
        run_one(kind, device, g, p, m, v, 1, 1);
        const auto of = step_of(kind, 1, 1);
        const auto now = p.download(), first = m.download();
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < 5; ++i) {
            const auto wanted = stdlib::reference::optimised(kind, of, double(hostile[i]), 0.5, 0, 0, of_corrections);
            check_close(now[i], wanted.parameter, wrong);
            check_close(first[i], wanted.first, wrong);
        }
        CHECK(wrong == 0);
        CHECK(first[5] == infinity);
        CHECK(first[6] == -infinity);
        CHECK(std::isnan(first[7]));
        CHECK(std::isnan(now[7]));
        if (kind == Optimiser::Sgd) CHECK((now[5] == -infinity && now[6] == infinity));
        if (kind == Optimiser::Lion) CHECK((std::abs(now[5]) < 1 && now[5] < now[6]));
        if (stdlib::has_second_moment(kind)) CHECK((std::isnan(now[5]) && std::isnan(now[6])));
    }
}

TEST_CASE("optimisers: a table moves hardly more than the minimum") {
    std::vector<emulator::LaunchTraffic> traffic;
    const auto device = Device::open({.device = "emulator", .threads = 1, .traffic = &traffic});
    Tensor<half> one(device, 40000, 0, 1), two(device, 3000, 0, 2);
    const stdlib::OptimisedTensors tensors(device, {one.row(true), two.row(true)});
    auto norm = device.buffer<float>(1);
    adam(device, tensors, {.step = 1});
    gradient_norm(device, tensors, norm);
    const auto moved = [&](std::size_t launch) {
        std::uint64_t out = 0;
        for (const auto& buffer : traffic.at(launch).buffers) out += buffer.read.moved + buffer.written.moved;
        return double(out);
    };
    const double n = 43000;
    CHECK(moved(0) >= n * 28);
    CHECK(moved(0) <= n * 28 * 1.05);
    CHECK(moved(1) >= n * 2);
    CHECK(moved(1) + moved(2) <= n * 2 * 1.05);
}

TEST_CASE("optimisers: what does not fit is an error") {
    using tests::message_of;
    const Device device = open_device();
    Tensor<float> a(device, 8, 0, 1);
    auto row = a.row(true);
    const auto message = [&](auto&& call) { return message_of(call); };
    const auto has = [](const std::string& text, const char* part) {
        INFO(text);
        CHECK(text.find(part) != std::string::npos);
    };
    has(message([&] { adam(device, row.gradient, row.parameter, row.first, *row.second, 0); }), "step 0");
    has(message([&] { adam(device, row.gradient, row.parameter, row.first, *row.second, 1, {.beta2 = 1}); }),
        "beta2 is 1");
    has(message([&] { lion(device, row.gradient, row.parameter, row.first, {.learning_rate = nan}); }),
        "learning_rate is nan");
    has(message([&] { lion(device, row.gradient, row.parameter, row.parameter); }), "lion");
    has(message([&] {
            sgd_momentum(device, a.g.view(2, 4).columns(0, 2), a.p.view(2, 4).columns(0, 2),
                         a.m.view(2, 4).columns(0, 2));
        }),
        "gaps between its rows");
    using Table = stdlib::OptimisedTensors;
    auto shorter = row;
    shorter.gradient = a.g.slice(0, 4);
    has(message([&] { Table(device, {shorter}); }), "'gradient' has another shape");
    auto no_second = row;
    no_second.second.reset();
    has(message([&] { adam(device, Table(device, {no_second}), {}); }), "have no 'second'");
    has(message([&] { Table(device, {row, no_second}); }), "differ in the types");
    has(message([&] { Table(device, {row, row}); }), "OptimisedTensors");
    auto wrong = row;
    wrong.parameter = a.copy.slice(0, 8);
    has(message([&] { Table(device, {wrong}); }), "'parameter' has elements of bf16");
    auto gaps = row;
    gaps.gradient = a.g.view(2, 4).columns(0, 2);
    has(message([&] { Table(device, {gaps}); }), "another shape");
    const auto step = device.upload(std::vector<float>{1});
    has(message([&] { adam(device, Table(device, {row}), {.step = TensorView(step)}); }), "'step' has elements of f32");
    has(message([&] { clip_by_norm(device, a.p, a.m, a.v, a.copy, -1); }), "max_norm is -1");
    has(message([&] { loss_scale_update(device, a.p, a.m, a.v, {.interval = 0}); }), "an interval of 0");
    std::unique_ptr<Table> table;
    {
        Tensor<float> freed(device, 8, 0, 1);
        table = std::make_unique<Table>(device, std::vector{freed.row(false)});
    }
    has(message([&] { adam(device, *table, {}); }), "has been freed");
}

TEST_CASE("optimisers: kernels of tables are assembled without spills") {
    if (tests::skip_without_ptxas()) return;
    const Device device = Device::open({.device = "emulator", .is_plan = true});
    runtime::Recorder recorder(device, runtime::Recorder::Runs::No);
    auto norm = device.buffer<float>(1);
    const auto record = [&]<class G>(G) {
        for (const bool has_copy : {false, true}) {
            Tensor<G> tensor(device, 8, 0, 1);
            const stdlib::OptimisedTensors tensors(device, {tensor.row(has_copy)});
            for (const Optimiser kind : all_kinds) run_all(kind, recorder, tensors, {});
            gradient_norm(recorder, tensors, norm);
        }
    };
    record(float());
    record(half());
    record(bfloat16());
    constexpr const char* targets[] = {"sm_75", "sm_80", "sm_90", "sm_120"};
    std::size_t number = 0;
    for (const auto& launch : recorder.launches()) {
        for (std::size_t which = 0; which < std::size(targets); ++which) {
            if (!tests::is_for_target(number, which, std::size(targets))) continue;
            const std::string ptx = file_text(compile(launch.kernel->ast(), {.target = targets[which]}));
            const tests::PtxasReport report = tests::assemble(ptx, targets[which]);
            INFO(launch.kernel->name() << " for " << targets[which] << "\n" << report.log);
            CHECK(report.clean());
        }
        ++number;
    }
    CHECK(number == 42);
}

}  // namespace ikat::test::optimise
