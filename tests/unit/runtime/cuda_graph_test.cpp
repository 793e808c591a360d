// SPDX-License-Identifier: Apache-2.0
// Which nodes and edges of the driver graphs become.
#include <memory>
#include <vector>

#include "runtime/cuda/device.hpp"
#include "runtime/graph/device_graph.hpp"
#include "tests/catch.hpp"
#include "tests/unit/runtime/cuda_fixture.hpp"

namespace ikat::tests {
namespace {
namespace cuda_graphs {

using namespace runtime;

struct Scene {
    FakeCuda fake;
    Reference<Backend> device;
    ModuleHandle module{};

    explicit Scene(std::shared_ptr<const cuda::Driver> driver = cuda::load_driver(FAKE_CUDA))
        : device(cuda::open_device(std::move(driver), 0)), module(device->load({.text = "ptx", .name = "k.ptx"})) {
        device->instantiate({launch()});  // the entry is known
        fake.log();
    }
    ~Scene() { device->unload(module); }
    Scene(const Scene&) = delete;
    Scene& operator=(const Scene&) = delete;
    GraphNode launch(std::vector<std::uint32_t> after = {}, bool begins_early = false) const {
        GraphNode out;
        out.work = GraphNode::Launch{module, "k", Grid{{1}, {32}}, {}, {}, begins_early, {}};
        out.after = std::move(after);
        return out;
    }
    static GraphNode body(bool is_loop, std::vector<GraphNode> nodes, std::vector<std::uint32_t> after = {}) {
        GraphNode out;
        out.work = GraphNode::Conditional{is_loop, 0x1000, std::move(nodes), {}};
        out.after = std::move(after);
        return out;
    }
    std::string log_of(std::vector<GraphNode> nodes) {
        fake.log();
        const auto graph = device->instantiate(std::move(nodes));
        return fake.log();
    }
};

struct Nothing final : HostFunction {
    void operator()() const override {}
};

TEST_CASE("graphs on CUDA: a kernel that may begin early has a programmatic edge from the one kernel before it") {
    Scene its;
    GraphNode empty;
    empty.after = {0};
    CHECK(its.log_of({its.launch(), its.launch({0}, true), its.launch({1})}) ==
          "kernel 1 in graph 1\nkernel 2 in graph 1\nedge 1 1 2 1 1\nkernel 3 in graph 1 after 2\ninstantiate 1\n");
    // Not from what is no kernel, nor from several.
    CHECK(its.log_of({its.launch(), empty, its.launch({1}, true), its.launch({0, 2}, true)}) ==
          "kernel 1 in graph 1\nempty 2 in graph 1 after 1\nkernel 3 in graph 1 after 2\n"
          "kernel 4 in graph 1 after 1 3\ninstantiate 1\n");
}

TEST_CASE("graphs on CUDA: an older driver has only edges that wait") {
    auto older = std::make_shared<cuda::Driver>(*cuda::load_driver(FAKE_CUDA));
    older->cuGraphAddDependencies_v2 = nullptr;
    Scene its(older);
    CHECK(its.log_of({its.launch(), its.launch({0}, true)}) ==
          "kernel 1 in graph 1\nkernel 2 in graph 1 after 1\ninstantiate 1\n");
}

TEST_CASE("graphs on CUDA: conditions are given to the driver before a body, and at the end of each round") {
    Scene its;
    its.device->instantiate({its.body(false, {})});  // the kernel that does it is loaded once
    CHECK(its.log_of({its.launch(), its.body(false, {its.launch()}, {0}), its.launch({1})}) ==
          "kernel 1 in graph 1\ncuModuleGetFunction ikat_set_condition\nhandle 1 0 0\nkernel 2 in graph 1 after 1\n"
          "if 3 in graph 1 after 2\nkernel 4 in graph 2\nkernel 5 in graph 1 after 3\ninstantiate 1\n");
    CHECK(its.log_of({its.body(true, {its.launch(), its.launch(), its.launch({0})})}) ==
          "cuModuleGetFunction ikat_set_condition\nhandle 1 0 0\nkernel 1 in graph 1\nwhile 2 in graph 1 after 1\n"
          "kernel 3 in graph 2\nkernel 4 in graph 2\nkernel 5 in graph 2 after 3\n"
          "kernel 6 in graph 2 after 3 4 5\ninstantiate 1\n");
}

TEST_CASE("graphs on CUDA: nodes of a body are updated by their numbers") {
    Scene its;
    its.fake.log();
    const auto graph =
        its.device->instantiate({its.launch(), its.body(true, {its.launch(), its.launch({0})}, {0}), its.launch({1})});
    its.fake.log();
    graph->update(3, its.launch());  // the second one of the body
    CHECK(its.fake.log() == "set kernel 5\n");
    graph->update(4, its.launch());
    CHECK(its.fake.log() == "set kernel 7\n");
}

TEST_CASE("graphs on CUDA: what bodies cannot have is refused, and so is a driver that has none") {
    Scene its;
    GraphNode call;
    call.work = GraphNode::Call{Reference<const HostFunction>(make_reference<Nothing>())};
    CHECK_THAT(message_of([&] { its.device->instantiate({its.body(false, {call})}); }),
               contains("a body of a graph calls a function of the program"));
    auto older = std::make_shared<cuda::Driver>(*cuda::load_driver(FAKE_CUDA));
    older->cuGraphConditionalHandleCreate = nullptr;
    Scene old(older);
    const std::string message = message_of([&] { old.device->instantiate({old.body(false, {old.launch()})}); });
    CHECK_THAT(message, contains("the CUDA driver has no conditional nodes") && contains("older than CUDA 12.4"));
}

}  // namespace cuda_graphs
}  // namespace
}  // namespace ikat::tests
