// SPDX-License-Identifier: Apache-2.0
// Races in global memory between blocks that a flag, a release or a count should order; flags in shared memory.
#include "tests/races/twins.hpp"

using namespace ikat::tests::races;

namespace {

#define PRODUCER "@!%p10 bra $consumer; st.global.u32 [%d1], %r1; bar.sync 0; @!%p1 bra $end; "
#define CONSUMER " bra $end; $consumer: @!%p1 bra $ready; $again: "
#define READS " setp.eq.u32 %p4, %r9, 0; @%p4 bra $again; "
constexpr Twins by_flags[] = {
    between("a flag after a fence", 2, 64,
            PRODUCER "<fence.acq_rel.gpu;|> st.relaxed.gpu.global.u32 [%d3], 1;" CONSUMER
                     "ld.relaxed.gpu.global.u32 %r9, [%d3];" READS
                     "fence.acq_rel.gpu; $ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("a fence after a flag", 2, 64,
            PRODUCER "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%d3], 1;" CONSUMER
                     "ld.relaxed.gpu.global.u32 %r9, [%d3];" READS
                     "<fence.acq_rel.gpu;|> $ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("a fence in the scope of its block", 2, 64,
            PRODUCER "fence.acq_rel.<gpu|cta>; st.relaxed.gpu.global.u32 [%d3], 1;" CONSUMER
                     "ld.relaxed.gpu.global.u32 %r9, [%d3];" READS
                     "fence.acq_rel.gpu; $ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("an acquire in the scope of its block", 2, 64,
            PRODUCER "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%d3], 1;" CONSUMER
                     "ld.acquire.<gpu|cta>.global.u32 %r9, [%d3];" READS
                     "$ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("release and acquire", 2, 64,
            PRODUCER "st.<release|relaxed>.gpu.global.u32 [%d3], 1;" CONSUMER
                     "ld.acquire.gpu.global.u32 %r9, [%d3];" READS "$ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("release and a relaxed load", 2, 64,
            PRODUCER "st.release.gpu.global.u32 [%d3], 1;" CONSUMER
                     "ld.<acquire|relaxed>.gpu.global.u32 %r9, [%d3];" READS
                     "$ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("volatile flags and membar, as before there were orders", 2, 64,
            PRODUCER "<membar.gl;|> st.volatile.global.u32 [%d3], 1;" CONSUMER
                     "ld.volatile.global.u32 %r9, [%d3];" READS
                     "membar.gl; $ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("a flag that is stored plainly", 2, 64,
            PRODUCER "fence.acq_rel.gpu; st.<relaxed.gpu.|>global.u32 [%d3], 1;" CONSUMER
                     "ld.acquire.gpu.global.u32 %r9, [%d3];" READS "$ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("the other threads have not met before the flag", 2, 64,
            "@!%p10 bra $consumer; st.global.u32 [%d1], %r1; <bar.sync 0;|> @!%p1 bra $end; fence.acq_rel.gpu; "
            "st.relaxed.gpu.global.u32 [%d3], 1;" CONSUMER "ld.acquire.gpu.global.u32 %r9, [%d3];" READS
            "$ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("the other threads have not met after the flag", 2, 64,
            PRODUCER "st.release.gpu.global.u32 [%d3], 1;" CONSUMER "ld.acquire.gpu.global.u32 %r9, [%d3];" READS
                     "$ready: <bar.sync 0;|> ld.global.u32 %r9, [%d1];"),
    between("the fence is another thread's", 2, 64,
            "@!%p10 bra $consumer; @%p1 st.global.u32 [%d1], 5; setp.eq.u32 %p5, %r1, 1; bar.sync 0; @<%p1|%p5> "
            "fence.acq_rel.gpu; bar.sync 0; @!%p1 bra $end; st.relaxed.gpu.global.u32 [%d3], 1;" CONSUMER
            "ld.acquire.gpu.global.u32 %r9, [%d3];" READS "ld.global.u32 %r9, [%d1]; $ready:"),
    between("another flag", 2, 64,
            PRODUCER "st.release.gpu.global.u32 [%d3], 1; st.relaxed.gpu.global.u32 [%d3+4], 1;" CONSUMER
                     "ld.acquire.gpu.global.u32 %r9, [%d3+<0|4>];" READS
                     "$ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("an acquire of another location", 2, 64,
            PRODUCER "st.release.gpu.global.u32 [%d3], 1;" CONSUMER
                     "ld.relaxed.gpu.global.u32 %r9, [%d3]; ld.acquire.gpu.global.u32 %r10, [%d3+<0|4>];" READS
                     "$ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("what is stored after the flag", 2, 64,
            PRODUCER "st.release.gpu.global.u32 [%d3], 1; st.global.u32 [%d2+<1024|0>], 3;" CONSUMER
                     "ld.acquire.gpu.global.u32 %r9, [%d3];" READS "$ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("from block to block to block", 3, 32,
            R"(@!%p1 bra $end; setp.eq.u32 %p5, %r20, 1; @%p5 bra $second; @!%p10 bra $third;
    st.global.u32 [%d2], 5; st.release.gpu.global.u32 [%d3], 1; bra $end;
$second: ld.<acquire|relaxed>.gpu.global.u32 %r9, [%d3]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $second;
    st.release.gpu.global.u32 [%d3+4], 1; bra $end;
$third: ld.acquire.gpu.global.u32 %r9, [%d3+4]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $third; ld.global.u32 %r9, [%d2];)"),
    between("a fence after the flag in the scope of its block", 2, 64,
            PRODUCER "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%d3], 1;" CONSUMER
                     "ld.relaxed.gpu.global.u32 %r9, [%d3];" READS
                     "fence.acq_rel.<gpu|cta>; $ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("a store between the fence and the flag", 2, 32,
            "@!%p1 bra $end; @!%p10 bra $again; <st.global.u32 [%d2], 5;|> fence.acq_rel.gpu; <|st.global.u32 [%d2], "
            "5;> st.relaxed.gpu.global.u32 [%d3], 1; bra $end; $again: ld.acquire.gpu.global.u32 %r9, [%d3];" READS
            "ld.global.u32 %r9, [%d2];"),
    between("the other lanes have not met before the flag", 2, 32,
            "@!%p10 bra $consumer; st.global.u32 [%d1], %r1; <bar.warp.sync -1;|> @!%p1 bra $end; "
            "st.release.gpu.global.u32 [%d3], 1;" CONSUMER "ld.acquire.gpu.global.u32 %r9, [%d3];" READS
            "$ready: bar.warp.sync -1; ld.global.u32 %r9, [%d1];"),
    between("the other lanes have not met after the flag", 2, 32,
            PRODUCER "st.release.gpu.global.u32 [%d3], 1;" CONSUMER "ld.acquire.gpu.global.u32 %r9, [%d3];" READS
                     "$ready: <bar.warp.sync -1;|> ld.global.u32 %r9, [%d1];"),
    between("a fence of a smaller scope after another", 2, 64,
            PRODUCER "<fence.acq_rel.gpu;|> fence.acq_rel.cta; st.relaxed.gpu.global.u32 [%d3], 1;" CONSUMER
                     "ld.acquire.gpu.global.u32 %r9, [%d3];" READS "$ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("a flag that another stores again, and adds to", 3, 32,
            R"(@!%p1 bra $end; setp.eq.u32 %p5, %r20, 1; @%p5 bra $second; @!%p10 bra $third;
    st.global.u32 [%d2], 5; st.release.gpu.global.u32 [%d3], 1; bra $end;
$second: ld.relaxed.gpu.global.u32 %r9, [%d3]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $second;
    <red.relaxed.gpu.global.add.u32 [%d3], 1;|st.relaxed.gpu.global.u32 [%d3], 2;> bra $end;
$third: ld.acquire.gpu.global.u32 %r9, [%d3]; setp.ne.u32 %p4, %r9, 2; @%p4 bra $third; ld.global.u32 %r9, [%d2];)"),
    between("a flag that is seen twice before the fence", 2, 64,
            R"(setp.eq.u32 %p3, %r2, 0; @!%p3 bra $end; setp.eq.u32 %p5, %r1, 0; @!%p10 bra $reader; @!%p5 bra $second;
    st.global.u32 [%d2], 5; st.release.gpu.global.u32 [%d3], 1; bra $end;
$second: ld.relaxed.gpu.global.u32 %r9, [%d3+4]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $second;
    st.global.u32 [%d2+4], 6; st.release.gpu.global.u32 [%d3], 2; bra $end;
$reader: @!%p5 bra $end;
$once: ld.relaxed.gpu.global.u32 %r9, [%d3]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $once; st.relaxed.gpu.global.u32 [%d3+4], 1;
$twice: ld.relaxed.gpu.global.u32 %r9, [%d3]; setp.ne.u32 %p4, %r9, 2; @%p4 bra $twice; <fence.acq_rel.gpu;|>
    ld.global.u32 %r9, [%d2]; ld.global.u32 %r9, [%d2+4];)"),
    between(
        "two warps have a flag each", 2, 64,
        R"(@!%p10 bra $reader; st.global.u32 [%d1], %r1; bar.warp.sync -1; @!%p2 bra $end; mad.wide.u32 %d5, %r3, 4, %d3;
    st.release.gpu.global.u32 [%d5], 1; bra $end;
$reader: @!%p1 bra $met;
$low: ld.acquire.gpu.global.u32 %r9, [%d3]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $low;
$high: ld.<acquire|relaxed>.gpu.global.u32 %r9, [%d3+4]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $high;
$met: bar.sync 0; ld.global.u32 %r9, [%d1];)"),
    between("two warps see a flag each, of two blocks", 3, 64,
            R"(setp.eq.u32 %p5, %r20, 2; @%p5 bra $reader; @!%p1 bra $end; mad.wide.u32 %d5, %r20, 4, %d3;
    mad.wide.u32 %d6, %r20, 4, %d2; st.global.u32 [%d6], 5; st.release.gpu.global.u32 [%d5], 1; bra $end;
$reader: @!%p2 bra $met; mad.wide.u32 %d5, %r3, 4, %d3;
$again: ld.acquire.gpu.global.u32 %r9, [%d5]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $again;
$met: <bar.sync 0;|bar.warp.sync -1;> ld.global.u32 %r9, [%d2]; ld.global.u32 %r9, [%d2+4];)"),
    between("from a block to another and back", 2, 64,
            R"(@!%p2 bra $end; setp.eq.u32 %p5, %r3, 0; @!%p10 bra $other; @!%p5 bra $back;
    st.global.u32 [%d2], 5; st.release.gpu.global.u32 [%d3], 1; bra $end;
$other: @!%p5 bra $end;
$there: ld.<acquire|relaxed>.gpu.global.u32 %r9, [%d3]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $there;
    st.release.gpu.global.u32 [%d3+4], 1; bra $end;
$back: ld.acquire.gpu.global.u32 %r9, [%d3+4]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $back; ld.global.u32 %r9, [%d2];)"),
    between("one lane knows more, and releases it", 2, 64,
            R"(@!%p10 bra $reader; st.global.u32 [%d1], %r1; mbarrier.arrive.shared.b64 _, [bar]; @!%p1 bra $over;
    <$wait bar, 0;|> st.release.gpu.global.u32 [%d3], 1; $over: bar.sync 0; bra $end;
$reader: @!%p1 bra $met;
$again: ld.acquire.gpu.global.u32 %r9, [%d3]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $again;
$met: bar.sync 0; ld.global.u32 %r9, [%d1];)"),
    between("what a copy reads is written after a flag", 2, 32,
            R"(@!%p1 bra $end; @!%p10 bra $again; cp.async.ca.shared.global [%r4+4], [%d2+4], 4; cp.async.wait_all;
    cp.async.ca.shared.global [%r4], [%d2], 4; <cp.async.wait_all;|>
    fence.acq_rel.gpu; <|cp.async.wait_all;> st.relaxed.gpu.global.u32 [%d3], 1; bra $end;
$again: ld.acquire.gpu.global.u32 %r9, [%d3]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $again; st.global.u32 [%d2], 5;)"),
};

constexpr Twins by_releases[] = {
    between("a fence serves several flags, of which one releases by itself", 2, 64,
            PRODUCER
            "<fence.acq_rel.gpu;|> st.release.gpu.global.u32 [%d3+4], 1; st.relaxed.gpu.global.u32 [%d3], 1;" CONSUMER
            "ld.acquire.gpu.global.u32 %r9, [%d3];" READS "$ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("a release, and a relaxed store after it", 2, 64,
            PRODUCER "st.<release|relaxed>.gpu.global.u32 [%d3], 1; st.relaxed.gpu.global.u32 [%d3], 2;" CONSUMER
                     "ld.acquire.gpu.global.u32 %r9, [%d3]; setp.ne.u32 %p4, %r9, 2; @%p4 bra $again; "
                     "$ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("what is stored between a release and a relaxed store there", 2, 64,
            PRODUCER "st.release.gpu.global.u32 [%d3], 1; st.global.u32 [%d2+<1024|0>], 3; st.relaxed.gpu.global.u32 "
                     "[%d3], 2;" CONSUMER
                     "ld.acquire.gpu.global.u32 %r9, [%d3]; setp.ne.u32 %p4, %r9, 2; @%p4 bra $again; "
                     "$ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("a flag of two words", 2, 64,
            PRODUCER "<fence.acq_rel.gpu;|> st.relaxed.gpu.global.v2.u32 [%d3], {%r7, %r7};" CONSUMER
                     "ld.acquire.gpu.global.u32 %r9, [%d3+4];" READS "$ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("a flag of eight bytes", 2, 64,
            PRODUCER "mov.u64 %d5, 0x100000001; st.<release|relaxed>.gpu.global.u64 [%d3], %d5;" CONSUMER
                     "ld.acquire.gpu.global.u64 %d5, [%d3]; cvt.u32.u64 %r9, %d5;" READS
                     "$ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("lanes store where one has counted and another warp has stored before", 1, 64,
            R"(setp.eq.u32 %p3, %r3, 1; setp.lt.u32 %p4, %r2, 2; and.pred %p5, %p3, %p4; mul.wide.u32 %d5, %r2, 4;
    add.u64 %d5, %d5, %d2; @%p5 st.global.u32 [%d5], 1; bar.sync 0; @%p3 bra $end; mov.u64 %d6, %d2; mov.u32 %r10, 0;
$loop: @%p1 red.global.add.u32 [%d6], 1; add.u64 %d6, %d6, 4; add.u32 %r10, %r10, 1; setp.lt.u32 %p6, %r10, 2;
    @%p6 bra $loop; <bar.warp.sync -1;|> @%p4 st.global.u32 [%d5], 7;)"),
    between("an atomic that acquires", 2, 64,
            PRODUCER "st.<release|relaxed>.gpu.global.u32 [%d3], 1;" CONSUMER
                     "atom.acquire.gpu.global.or.b32 %r9, [%d3], 0; " READS
                     "$ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
    between("a fence that is sequentially consistent", 2, 64,
            PRODUCER "<fence.sc.gpu;|> st.relaxed.sys.global.u32 [%d3], 1;" CONSUMER
                     "ld.relaxed.gpu.global.u32 %r9, [%d3];" READS
                     "fence.sc.gpu; $ready: bar.sync 0; ld.global.u32 %r9, [%d1];"),
};

constexpr Twins by_counters[] = {
    between("the last block reads what all have stored", 8, 32,
            R"(setp.eq.u32 %p3, %r1, 0; @!%p3 bra $end; mad.wide.u32 %d5, %r20, 4, %d2; st.global.u32 [%d5], %r20;
    <fence.acq_rel.gpu;|> atom.global.add.u32 %r9, [%d3], 1; setp.ne.u32 %p4, %r9, 7; @%p4 bra $end;
    fence.acq_rel.gpu; ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d2]; ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d2+16];)"),
    between("the last block has no fence", 8, 32,
            R"(setp.eq.u32 %p3, %r1, 0; @!%p3 bra $end; mad.wide.u32 %d5, %r20, 4, %d2; st.global.u32 [%d5], %r20;
    fence.acq_rel.gpu; atom.global.add.u32 %r9, [%d3], 1; setp.ne.u32 %p4, %r9, 7; @%p4 bra $end;
    <fence.acq_rel.gpu;|> ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d2];)"),
    between("the last block counts with acquire and release", 8, 32,
            R"(setp.eq.u32 %p3, %r1, 0; @!%p3 bra $end; mad.wide.u32 %d5, %r20, 4, %d2; st.global.u32 [%d5], %r20;
    atom.<acq_rel|relaxed>.gpu.global.add.u32 %r9, [%d3], 1; setp.ne.u32 %p4, %r9, 7; @%p4 bra $end;
    ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d2];)"),
    between("all threads of the last block read", 4, 64,
            R"(.shared .b32 last; st.global.u32 [%d4], %r20; <bar.sync 0;|> @!%p1 bra $met; fence.acq_rel.gpu;
    atom.global.add.u32 %r9, [%d3], 1; fence.acq_rel.gpu; st.shared.u32 [last], %r9;
$met: bar.sync 0; ld.shared.u32 %r9, [last]; setp.ne.u32 %p4, %r9, 3; @%p4 bra $end; ld.global.u32 %r10, [%d1];
    ld.global.u32 %r10, [%d1+256]; ld.global.u32 %r10, [%d1+512]; ld.global.u32 %r10, [%d1+768];)"),
    between("the blocks of a grid meet", 4, 64,
            R"(st.global.u32 [%d4], %r20; <bar.sync 0;|> @!%p1 bra $met; fence.acq_rel.gpu; red.global.add.u32 [%d3], 1;
$spin: ld.volatile.global.u32 %r9, [%d3]; setp.lt.u32 %p4, %r9, 4; @%p4 bra $spin; fence.acq_rel.gpu;
$met: bar.sync 0; xor.b32 %r10, %r21, 64; mad.wide.u32 %d5, %r10, 4, %d2; ld.global.u32 %r9, [%d5];)"),
    between("the blocks of a grid meet, and their threads do not wait", 4, 64,
            R"(st.global.u32 [%d4], %r20; bar.sync 0; @!%p1 bra $met; fence.acq_rel.gpu; red.global.add.u32 [%d3], 1;
$spin: ld.volatile.global.u32 %r9, [%d3]; setp.lt.u32 %p4, %r9, 4; @%p4 bra $spin; fence.acq_rel.gpu;
$met: <bar.sync 0;|> xor.b32 %r10, %r21, 64; mad.wide.u32 %d5, %r10, 4, %d2; ld.global.u32 %r9, [%d5];)"),
    between("a second round over the same words", 4, 32,
            R"(@!%p1 bra $end; mad.wide.u32 %d5, %r20, 4, %d2; xor.b32 %r10, %r20, 1; mad.wide.u32 %d6, %r10, 4, %d2;
    st.global.u32 [%d5], %r20; atom.acq_rel.gpu.global.add.u32 %r9, [%d3], 1;
$spin: ld.acquire.gpu.global.u32 %r9, [%d3]; setp.lt.u32 %p4, %r9, 4; @%p4 bra $spin;
    ld.global.u32 %r9, [%d6]; <atom.acq_rel.gpu.global.add.u32 %r9, [%d3+4], 1;
$again: ld.acquire.gpu.global.u32 %r9, [%d3+4]; setp.lt.u32 %p4, %r9, 4; @%p4 bra $again;|> st.global.u32 [%d5], 9;)"),
    between("a lock", 4, 32,
            R"(@!%p1 bra $end; $lock: atom.global.cas.b32 %r9, [%d3], 0, 1; setp.ne.u32 %p4, %r9, 0; @%p4 bra $lock;
    fence.acq_rel.gpu; ld.global.u32 %r9, [%d2]; add.u32 %r9, %r9, 1; st.global.u32 [%d2], %r9;
    <fence.acq_rel.gpu;|> atom.global.exch.b32 %r9, [%d3], 0;)"),
    between(
        "a lock that acquires nothing", 4, 32,
        R"(@!%p1 bra $end; $lock: atom.<acquire|relaxed>.gpu.global.cas.b32 %r9, [%d3], 0, 1; setp.ne.u32 %p4, %r9, 0; @%p4 bra $lock;
    ld.global.u32 %r9, [%d2]; add.u32 %r9, %r9, 1; st.global.u32 [%d2], %r9;
    st.release.gpu.global.u32 [%d3], 0;)"),
    between("blocks add to a word in their order", 4, 32,
            R"(@!%p1 bra $end; $turn: ld.acquire.gpu.global.u32 %r9, [%d3]; setp.ne.u32 %p4, %r9, %r20; @%p4 bra $turn;
    ld.global.u32 %r9, [%d2]; add.u32 %r9, %r9, 1; st.global.u32 [%d2], %r9;
    red.<release|relaxed>.gpu.global.add.u32 [%d3], 1;)"),
    between(
        "what each block has added before, by turns", 4, 32,
        R"(@!%p1 bra $end; <|st.global.u32 [%d2], 77;> $turn: ld.acquire.gpu.global.u32 %r9, [%d3]; setp.ne.u32 %p4, %r9, %r20; @%p4 bra $turn;
    ld.global.u32 %r9, [%d2]; add.u32 %r9, %r9, 1; st.global.u32 [%d2], %r9; st.release.gpu.global.u32 [%d3], %r9;
    add.u32 %r10, %r20, 1; st.release.gpu.global.u32 [%d3], %r10;)"),
    between(
        "those who count are of other blocks than the scope reaches", 2, 32,
        R"(@!%p1 bra $end; @!%p10 st.global.u32 [%d2], 5; fence.acq_rel.gpu; red.relaxed.gpu.global.add.u32 [%d3], 1; @!%p10 bra $end;
$again: ld.relaxed.gpu.global.u32 %r9, [%d3]; setp.ne.u32 %p4, %r9, 2; @%p4 bra $again; fence.acq_rel.<gpu|cluster>;
    ld.global.u32 %r9, [%d2];)"),
};

constexpr Twins in_shared_memory[] = {
    {"a flag in shared memory, in the scope of the block",
     R"(st.shared.u32 [%r5+1024], 0; bar.sync 0; setp.eq.u32 %p3, %r1, 32; @%p3 bra $reader; @!%p1 bra $end;
    st.shared.u32 [%r5], 5; st.<release|relaxed>.cta.shared.u32 [%r5+1024], 1; bra $end;
$reader: ld.acquire.cta.shared.u32 %r9, [%r5+1024]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $reader; ld.shared.u32 %r9, [%r5];)",
     64},
    {"a volatile flag in shared memory, and fences",
     R"(st.shared.u32 [%r5+1024], 0; bar.sync 0; setp.eq.u32 %p3, %r1, 32; @%p3 bra $reader; @!%p1 bra $end;
    st.shared.u32 [%r5], 5; membar.cta; st.volatile.shared.u32 [%r5+1024], 1; bra $end;
$reader: ld.volatile.shared.u32 %r9, [%r5+1024]; setp.eq.u32 %p4, %r9, 0; @%p4 bra $reader; <membar.cta;|>
    ld.shared.u32 %r9, [%r5];)",
     64},
    {"readers count, and who waits for them writes",
     R"(@%p1 st.shared.u32 [%r5+1024], 0; bar.sync 0; @%p1 bra $writer; setp.eq.u32 %p5, %r3, 0; @%p5 bra $end;
    ld.shared.u32 %r9, [%r5]; bar.warp.sync -1; @!%p2 bra $end;
    red.<release|relaxed>.cta.shared.add.u32 [%r5+1024], 1; bra $end;
$writer: ld.acquire.cta.shared.u32 %r9, [%r5+1024]; setp.ne.u32 %p4, %r9, 2; @%p4 bra $writer; st.shared.u32 [%r5], 5;)",
     96},
};

}  // namespace

TEST_CASE("races between blocks that a flag should order") {
    for (const Twins& each : by_flags) check(each);
}
TEST_CASE("races between blocks by one location and several stores to it") {
    for (const Twins& each : by_releases) check(each);
}
TEST_CASE("races between blocks that count", "[long]") {
    for (const Twins& each : by_counters) check(each);
}
TEST_CASE("flags in shared memory") {
    for (const Twins& each : in_shared_memory) check(each);
}
