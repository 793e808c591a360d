# SPDX-License-Identifier: Apache-2.0
"""Graphs as cuda.core makes them: by capture with a fork, node by node with memory of the graph and a function of the
host, and with conditions."""
import sys

try:
    import numpy as np
    from cuda.core import Device, LaunchConfig, ObjectCode, launch
    from cuda.core.graph import GraphDefinition
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

PTX = b""".version 8.0
.target sm_90
.address_size 64
.visible .entry append(.param .u64 p, .param .u32 n) {
  .reg .b64 %d; .reg .b32 %r<2>;
  ld.param.u64 %d, [p]; ld.param.u32 %r1, [n]; ld.global.u32 %r0, [%d];
  mad.lo.u32 %r0, %r0, 10, %r1; st.global.u32 [%d], %r0; ret;
}"""
COUNT_DOWN = b""".version 8.4
.target sm_90
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry count_down(.param .u64 h, .param .u64 p) {
  .reg .b64 %h; .reg .b64 %d; .reg .b32 %r;
  ld.param.u64 %h, [h]; ld.param.u64 %d, [p]; ld.global.u32 %r, [%d]; sub.u32 %r, %r, 1; st.global.u32 [%d], %r;
  { .param .b64 a; .param .b32 b; st.param.b64 [a], %h; st.param.b32 [b], %r;
    call.uni cudaGraphSetConditional, (a, b); }
  ret;
}"""
ONE = LaunchConfig(grid=1, block=1)


def value(buffer, device, stream):
    out = np.zeros(1, np.uint32)
    host = device.allocate(4, stream=stream)
    host.copy_from(buffer, stream=stream)
    stream.sync()
    from cuda.bindings import driver

    assert driver.cuMemcpyDtoH(out.ctypes.data, int(host.handle), 4)[0] == 0
    host.close(stream)
    return int(out[0])


def captured(device, stream, append):
    buffer, other = device.allocate(4, stream=stream), device.allocate(4, stream=stream)
    buffer.fill(np.uint32(0), stream=stream)
    other.fill(np.uint32(0), stream=stream)
    stream.sync()
    builder = device.create_graph_builder().begin_building()
    launch(builder, ONE, append, buffer, np.uint32(1))
    left, right = builder.split(2)
    launch(left, ONE, append, buffer, np.uint32(2))
    launch(right, ONE, append, other, np.uint32(7))
    builder = builder.join(left, right)
    launch(builder, ONE, append, buffer, np.uint32(3))
    graph = builder.end_building().complete()
    graph.upload(stream)
    graph.launch(stream)
    graph.launch(stream)
    stream.sync()
    assert value(buffer, device, stream) == 123123
    assert value(other, device, stream) == 77


def defined(device, stream, append):
    buffer = device.allocate(4, stream=stream)
    calls = []
    definition = GraphDefinition()
    node = definition.memset(int(buffer.handle), np.uint32(0), 1)
    node = node.launch(ONE, append, buffer, np.uint32(4)).launch(ONE, append, buffer, np.uint32(5))
    node.callback(lambda: calls.append(1))
    memory = definition.allocate(256)
    memory.memset(memory.dptr, np.uint32(7), 64).deallocate(memory.dptr)
    assert len(definition.nodes()) == 7
    graph = definition.instantiate()
    for _ in range(2):
        graph.launch(stream)
        stream.sync()
    assert calls == [1, 1], calls
    assert value(buffer, device, stream) == 45


def with_conditions(device, stream, append, count_down):
    buffer, left = device.allocate(4, stream=stream), device.allocate(4, stream=stream)
    stream.sync()
    definition = GraphDefinition()
    more, never = definition.create_condition(1), definition.create_condition(0)
    node = definition.memset(int(buffer.handle), np.uint32(0), 1).memset(int(left.handle), np.uint32(3), 1)
    loop = node.while_loop(more)
    loop.body.launch(ONE, append, buffer, np.uint32(1)).launch(ONE, count_down, more, left)
    other = loop.if_else(never)
    other.then.launch(ONE, append, buffer, np.uint32(2))
    other.else_.launch(ONE, append, buffer, np.uint32(3))
    graph = definition.instantiate()
    for _ in range(2):
        graph.launch(stream)
        stream.sync()
        assert value(buffer, device, stream) == 1113

    left.fill(np.uint32(2), stream=stream)
    buffer.fill(np.uint32(0), stream=stream)
    stream.sync()
    builder = device.create_graph_builder().begin_building()
    more = builder.create_condition(default_value=1)
    body = builder.while_loop(more).begin_building()
    launch(body, ONE, append, buffer, np.uint32(4))
    launch(body, ONE, count_down, more, left)
    body.end_building()
    launch(builder, ONE, append, buffer, np.uint32(5))
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    assert value(buffer, device, stream) == 445


device = Device()
device.set_current()
stream = device.create_stream()
append = ObjectCode.from_ptx(PTX).get_kernel("append")
captured(device, stream, append)
defined(device, stream, append)
with_conditions(device, stream, append, ObjectCode.from_ptx(COUNT_DOWN).get_kernel("count_down"))
print("graphs of cuda.core are right")
