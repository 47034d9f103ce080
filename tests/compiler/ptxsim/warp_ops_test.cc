// Divergence, barriers, and exchange between the lanes of a warp.
#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tests/compiler/ptxsim/snippet.h"

namespace regatta::ptxsim {
namespace {

SnippetInput Counting(uint32_t threads = 32) {
  SnippetInput input = {.threads = threads};
  for (uint64_t i = 0; i < threads; ++i) input.a.push_back(100 + i);
  return input;
}

TEST(PtxWarpTest, ShufflesWithinSegments) {
  const auto shuffle = [&](const std::string& text) {
    return Run32("shfl.sync." + text +
                     "; selp.b32 %r4, 1000, 0, %p1;"
                     "add.s32 %r9, %r9, %r4;",
                 Counting());
  };
  // 1000 is added where the source lane lies within the segment.
  const auto expect = [&](const std::vector<uint32_t>& out, auto from) {
    for (int lane = 0; lane < 32; ++lane) {
      const int source = from(lane);
      EXPECT_EQ(out[lane], source >= 0 ? 1100u + source : 100u + lane) << lane;
    }
  };
  expect(shuffle("idx.b32 %r9|%p1, %r1, 5, 31, -1"), [](int) { return 5; });
  expect(shuffle("bfly.b32 %r9|%p1, %r1, 3, 31, -1"),
         [](int lane) { return lane ^ 3; });
  expect(shuffle("down.b32 %r9|%p1, %r1, 2, 31, -1"),
         [](int lane) { return lane + 2 < 32 ? lane + 2 : -1; });
  // Segments of 8: mask 0x18 in bits 8 to 12.
  expect(shuffle("down.b32 %r9|%p1, %r1, 2, 6175, -1"),
         [](int lane) { return lane % 8 + 2 < 8 ? lane + 2 : -1; });
  expect(shuffle("up.b32 %r9|%p1, %r1, 3, 6144, -1"),
         [](int lane) { return lane % 8 >= 3 ? lane - 3 : -1; });
  expect(shuffle("idx.b32 %r9|%p1, %r1, 2, 6175, -1"),
         [](int lane) { return lane / 8 * 8 + 2; });
}

TEST(PtxWarpTest, VotesAndMatches) {
  const auto odd = "and.b32 %r4, %r0, 1; setp.ne.u32 %p1, %r4, 0;";
  EXPECT_EQ(Run32(absl::StrCat(odd, "vote.sync.ballot.b32 %r9, %p1, -1;"),
                  Counting())[7],
            0xAAAAAAAAu);
  EXPECT_EQ(
      Run32(absl::StrCat(odd,
                         "vote.sync.all.pred %p2, %p1, -1;"
                         "vote.sync.any.pred %p3, !%p1, -1;"
                         "vote.sync.uni.pred %p4, %p1, -1;"
                         "selp.b32 %r4, 1, 0, %p2; selp.b32 %r5, 2, 0, %p3;"
                         "selp.b32 %r6, 4, 0, %p4; add.s32 %r9, %r4, %r5;"
                         "add.s32 %r9, %r9, %r6;"),
            Counting())[0],
      2u);
  EXPECT_EQ(Run32("shr.u32 %r4, %r0, 3; match.any.sync.b32 %r9, %r4, -1;",
                  Counting())[17],
            0x00FF0000u);
  EXPECT_EQ(Run32("redux.sync.add.s32 %r9, %r0, -1;", Counting())[0], 496u);
  EXPECT_EQ(Run32("redux.sync.max.u32 %r9, %r0, -1;", Counting())[0], 31u);
  EXPECT_EQ(Run32("setp.gt.u32 %p1, %r0, 11; mov.u32 %r9, 0;"
                  "@%p1 activemask.b32 %r9;",
                  Counting())[20],
            0xFFFFF000u);
}

TEST(PtxWarpTest, BranchesDivergeAndMeet) {
  // Each lane counts to its own number; then all meet in a shuffle.
  const std::string body = R"(
mov.u32 %r4, 0; mov.u32 %r5, 0;
LOOP:
setp.ge.u32 %p1, %r4, %r0;
@%p1 bra DONE;
add.s32 %r4, %r4, 1; add.s32 %r5, %r5, %r4;
bra LOOP;
DONE:
shfl.sync.bfly.b32 %r9, %r5, 1, 31, -1;
)";
  const auto out = Run32(body, Counting());
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t n = lane ^ 1;
    EXPECT_EQ(out[lane], n * (n + 1) / 2);
  }
}

TEST(PtxWarpTest, TableBranches) {
  const auto out = Run32(R"(
and.b32 %r4, %r0, 3;
targets: .branchtargets A, B, C, A;
brx.idx %r4, targets;
A: mov.u32 %r9, 10; bra.uni END;
B: mov.u32 %r9, 20; bra.uni END;
C: mov.u32 %r9, 30;
END:
)",
                         Counting());
  const uint32_t want[] = {10, 20, 30, 10};
  for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], want[lane % 4]);
}

TEST(PtxWarpTest, LabelsAndRegistersHaveScopes) {
  const auto out = Run32(R"(
mov.u32 %r9, 0;
{ .reg .b32 %r9; mov.u32 %r9, 77; bra OUT; mov.u32 %r9, 78; OUT: }
{ .reg .pred q; setp.eq.u32 q, %r0, 3; @!q bra OUT; mov.u32 %r9, 5; OUT: }
)",
                         Counting());
  EXPECT_EQ(out[2], 0u);
  EXPECT_EQ(out[3], 5u);
}

TEST(PtxWarpTest, BarriersReduceOverTheBlock) {
  const auto out = Run32(R"(
setp.lt.u32 %p1, %r0, 70;
bar.red.popc.u32 %r4, 0, %p1;
bar.red.and.pred %p2, 0, %p1;
bar.red.or.pred %p3, 1, !%p1;
selp.b32 %r5, 1000, 0, %p2; selp.b32 %r6, 10000, 0, %p3;
add.s32 %r9, %r4, %r5; add.s32 %r9, %r9, %r6;
)",
                         Counting(128));
  for (uint32_t value : out) EXPECT_EQ(value, 10070u);
}

TEST(PtxWarpTest, NamedBarriersJoinSomeWarps) {
  // Warps 0 and 1 exchange through shared memory behind barrier 1; warps 2 and
  // 3 produce, arrive at barrier 2 and go on, and warp 0 waits for them there.
  LaunchReport report;
  const auto out = RunSnippet(SnippetKernel(R"(
shl.b32 %r4, %r0, 2; st.shared.u32 [%r4], %r0;
setp.ge.u32 %p1, %r0, 64; @%p1 bra PRODUCER;
bar.sync 1, 64;
xor.b32 %r5, %r4, 128; ld.shared.u32 %r9, [%r5];
setp.ge.u32 %p2, %r0, 32; @%p2 bra END;
bar.sync 2, 96;
ld.shared.u32 %r6, [%r4+256]; add.s32 %r9, %r9, %r6;
bra END;
PRODUCER:
bar.arrive 2, 96;
mov.u32 %r9, 1;
END:
cvt.u64.u32 %d0, %r9;
)",
                                            ".shared .align 4 .b8 s[512];"),
                              Counting(128), &report);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[3], 35u + 67u);
  EXPECT_EQ((*out)[40], 8u);
  EXPECT_EQ((*out)[100], 1u);
  EXPECT_EQ(report.counters.barriers, 2u);
}

TEST(PtxWarpTest, LanesThatLeftAreNotWaitedFor) {
  const auto out = RunSnippet(SnippetKernel(R"(
ld.param.u64 %d4, [po]; add.s64 %d4, %d4, %x0; mov.u64 %d5, 9;
setp.ge.u32 %p1, %r0, 40; @%p1 st.global.u64 [%d4], %d5; @%p1 ret;
bar.sync 0;
bar.warp.sync -1;
mov.u64 %d0, 3;
)"),
                              Counting(128));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[39], 3u);
  EXPECT_EQ((*out)[40], 9u);
  EXPECT_EQ((*out)[127], 9u);
}

TEST(PtxWarpTest, SpecialRegisters) {
  EXPECT_EQ(Run32("mov.u32 %r9, %laneid;", Counting(64))[40], 8u);
  EXPECT_EQ(Run32("mov.u32 %r9, %warpid;", Counting(64))[40], 1u);
  EXPECT_EQ(Run32("mov.u32 %r9, %ntid.x;", Counting(64))[0], 64u);
  EXPECT_EQ(Run32("mov.u32 %r9, %lanemask_lt;", Counting(64))[40], 0xFFu);
  EXPECT_EQ(Run32("mov.u32 %r9, %nctaid.z;", Counting(64))[40], 1u);
}

TEST(PtxWarpTest, CountsWhatRan) {
  LaunchReport report;
  const auto out = RunSnippet(SnippetKernel(R"(
setp.lt.u32 %p1, %r0, 8;
@%p1 fma.rn.f32 %f4, %f1, %f2, %f3;
fma.rn.f32 %f4, %f1, %f2, %f3;
@%p1 bra SKIP;
add.s32 %r4, %r4, 1;
SKIP:
)"),
                              Counting(64), &report);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(report.counters.Of(InstructionClass::kFma), 4u);
  EXPECT_EQ(report.counters.thread_fmas, 8u + 64u);
  EXPECT_EQ(report.counters.divergent_branches, 1u);
}

}  // namespace
}  // namespace regatta::ptxsim
