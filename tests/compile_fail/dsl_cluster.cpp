// SPDX-License-Identifier: Apache-2.0
// clang-format off
// Clusters and roles.
// expect: only threads of its own block wait at a barrier
// expect: peer(s, rank) is of a Shared<T, N> array of numbers, of dynamic_shared<T>(), or of a barrier, full[i]
// expect: a thread has 24 to 256 registers, a multiple of 8
// errors: 8
#include <ikat/cluster.hpp>
using namespace ikat;

void misuse(Shared<Barrier, 1>& b, Shared<float, 64>& s, Local<float, 4>& own, u32& n) {
    peer(s, n)[0] = 1;
    peer(b[0], 1).wait(0);
    peer(b[0], 1).try_wait(n);
    peer(b, 1);
    peer(own, 1);
    peer(s[0], 1);
    registers_grow<20>();
    registers_shrink<100>();
    registers_grow<264>();
}
