// Every kind of mistake, planted, must be found and named with its line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/compiler/ptxsim/snippet.h"

namespace regatta::ptxsim {
namespace {

using ::testing::HasSubstr;

// The line of the first statement that contains `text`.
int LineOf(const std::string& kernel, const std::string& text) {
  int line = 1;
  for (const auto& part : absl::StrSplit(kernel, '\n')) {
    if (std::string(part).find(text) != std::string::npos) return line;
    ++line;
  }
  return 0;
}

struct Planted {
  std::string body;
  std::string culprit;  // part of the line that must be named
  FaultKind kind;
  std::string detail;
  uint32_t threads = 64;
  std::string declarations = ".shared .align 16 .b8 s[1024];";
};

void Check(const Planted& planted) {
  const std::string kernel = SnippetKernel(planted.body, planted.declarations);
  const Fault fault = FaultOf(kernel, {.threads = planted.threads});
  EXPECT_EQ(FaultKindName(fault.kind), FaultKindName(planted.kind))
      << fault.ToString() << planted.body;
  EXPECT_EQ(fault.line, LineOf(kernel, planted.culprit)) << fault.ToString();
  EXPECT_THAT(fault.detail, HasSubstr(planted.detail)) << fault.ToString();
}

void ExpectClean(const std::string& body, uint32_t threads = 64) {
  const auto out =
      RunSnippet(SnippetKernel(body, ".shared .align 16 .b8 s[1024];"),
                 {.threads = threads});
  EXPECT_TRUE(out.ok()) << out.status() << body;
}

// Each thread writes its own word and reads its neighbour's, 32 threads on.
constexpr char kExchange[] = R"(
shl.b32 %r4, %r0, 2; xor.b32 %r5, %r4, 128;
st.shared.u32 [%r4], %r0;
BARRIER
ld.shared.u32 %r6, [%r5];
)";

std::string Exchange(const std::string& barrier) {
  std::string text = kExchange;
  return text.replace(text.find("BARRIER"), 7, barrier);
}

TEST(PtxFaultTest, RaceWithoutABarrier) {
  ExpectClean(Exchange("bar.sync 0;"));
  Check({Exchange(""), "st.shared.u32 [%r4]", FaultKind::kSharedRace,
         "no barrier after the read of ld.shared.u32 at line"});
  // A barrier of the warp alone does not help: the neighbour is in another.
  Check({Exchange("bar.warp.sync -1;"), "st.shared.u32 [%r4]",
         FaultKind::kSharedRace, "thread"});
  // Barriers of another number that the warps pass one after another neither.
  Check({Exchange("bar.arrive 3, 64;"), "st.shared.u32 [%r4]",
         FaultKind::kSharedRace, "thread"});
}

TEST(PtxFaultTest, RaceWithinAWarp) {
  const std::string text = R"(
shl.b32 %r4, %r0, 2; xor.b32 %r5, %r4, 4;
st.shared.u32 [%r4], %r0;
SYNC
ld.shared.u32 %r6, [%r5];
)";
  const auto with = [&](const std::string& sync) {
    std::string copy = text;
    return copy.replace(copy.find("SYNC"), 4, sync);
  };
  ExpectClean(with("bar.warp.sync -1;"));
  Check({with(""), "ld.shared.u32 %r6", FaultKind::kSharedRace,
         "no barrier after the write of st.shared.u32"});
}

TEST(PtxFaultTest, WritesThatOverwriteWhatIsStillRead) {
  // The barrier at the end of a loop body is missing: the next round's store
  // races with this round's load.
  const std::string text = R"(
mov.u32 %r7, 0; shl.b32 %r4, %r0, 2; xor.b32 %r5, %r4, 128;
LOOP:
st.shared.u32 [%r4], %r7;
bar.sync 0;
ld.shared.u32 %r6, [%r5];
END
add.s32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, 3; @%p1 bra LOOP;
)";
  const auto with = [&](const std::string& end) {
    std::string copy = text;
    return copy.replace(copy.find("END"), 3, end);
  };
  ExpectClean(with("bar.sync 0;"));
  Check({with(""), "ld.shared.u32 %r6", FaultKind::kSharedRace, "write of"});
}

TEST(PtxFaultTest, TwoStoresToOnePlace) {
  Check({"st.shared.u32 [s], %r0;", "st.shared.u32 [s]", FaultKind::kSharedRace,
         "write of"});
  ExpectClean("setp.eq.u32 %p1, %r0, 5; @%p1 st.shared.u32 [s], %r0;");
  // Neighbouring bytes are not one place; atomics do not race with each other.
  ExpectClean("cvt.u16.u32 %h4, %r0; st.shared.u8 [%r0], %h4;");
  ExpectClean("red.shared.add.u32 [s], %r0;", 32);
  Check({"red.shared.add.u32 [s], %r0;\n ld.shared.u32 %r4, [s];",
         "ld.shared.u32 %r4", FaultKind::kSharedRace, "red.shared.add.u32"});
}

TEST(PtxFaultTest, GlobalRaceWithinABlock) {
  Check({"ld.param.u64 %d4, [pa];\n st.global.u32 [%d4], %r0;",
         "st.global.u32 [%d4]", FaultKind::kGlobalRace, "write"});
}

// Kernels of several blocks: the snippet harness has one.
LaunchReport RunBlocks(const std::string& body, uint32_t blocks) {
  const auto module = PtxModule::Parse(absl::StrCat(
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .u64 p, .param .u64 q) {\n.reg .b32 %r<16>; "
      ".reg .b64 %d<16>; .reg .pred %p<4>;\n.shared .align 4 .b8 s[4];\n"
      "ld.param.u64 %d0, [p]; ld.param.u64 %d1, [q];\n"
      "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r0, 4;\n"
      "setp.eq.u32 %p0, %r1, 0;\n",
      body, "\nret;\n}\n"));
  EXPECT_TRUE(module.ok()) << module.status();
  DeviceMemory memory;
  const uint64_t p = memory.Allocate(4096).value();
  const uint64_t q = memory.Allocate(4096).value();
  EXPECT_TRUE(memory.Fill(p, 4096, std::byte{0}).ok());
  EXPECT_TRUE(memory.Fill(q, 4096, std::byte{0}).ok());
  const auto report = RunKernel(*module,
                                {.entry = "k",
                                 .grid = {blocks, 1, 1},
                                 .group = {32, 1, 1},
                                 .arguments = {p, q}},
                                memory);
  EXPECT_TRUE(report.ok()) << report.status();
  return *report;
}

TEST(PtxFaultTest, GlobalRacesBetweenBlocks) {
  const auto expect_race = [](const std::string& body) {
    const LaunchReport report = RunBlocks(body, 4);
    ASSERT_TRUE(report.fault.has_value()) << body;
    EXPECT_EQ(FaultKindName(report.fault->kind), "global_race");
    EXPECT_EQ(report.fault->block.x, 1u);
    EXPECT_THAT(report.fault->detail, HasSubstr("of block number 0"));
  };
  expect_race("@%p0 st.global.u32 [%d0], %r0;");
  expect_race(
      "add.s64 %d3, %d0, %d2; @%p0 st.global.u32 [%d3+4], %r0;\n"
      "@%p0 ld.global.u32 %r4, [%d3];");
  EXPECT_FALSE(
      RunBlocks("add.s64 %d3, %d0, %d2; @%p0 st.global.u32 [%d3], %r0;", 4)
          .fault.has_value());
  EXPECT_FALSE(RunBlocks("red.global.add.u32 [%d0], 1;", 4).fault.has_value());
}

// Blocks write partial results; the last one to count itself adds them up.
TEST(PtxFaultTest, AtomicsWithFencesOrderBlocks) {
  const std::string body = R"(
add.s64 %d3, %d0, %d2; @%p0 st.global.u32 [%d3], %r0;
FENCE
@!%p0 bra END;
atom.global.add.u32 %r4, [%d1], 1;
setp.ne.u32 %p1, %r4, 3; @%p1 bra END;
ld.global.u32 %r5, [%d0+8];
END:
)";
  const auto with = [&](const std::string& fence) {
    std::string copy = body;
    return copy.replace(copy.find("FENCE"), 5, fence);
  };
  const LaunchReport ordered = RunBlocks(with("membar.gl;"), 4);
  EXPECT_FALSE(ordered.fault.has_value()) << ordered.fault->ToString();
  const LaunchReport raced = RunBlocks(with(""), 4);
  ASSERT_TRUE(raced.fault.has_value());
  EXPECT_EQ(FaultKindName(raced.fault->kind), "global_race");
  EXPECT_EQ(raced.fault->instruction, "ld.global.u32");
}

TEST(PtxFaultTest, OutOfBounds) {
  Check({"shl.b32 %r4, %r0, 5;\n st.shared.u32 [%r4], %r0;",
         "st.shared.u32 [%r4]", FaultKind::kSharedOutOfBounds,
         "4 bytes at 0x400 of shared memory of 1024 bytes"});
  Check({"ld.param.u64 %d4, [pa];\n ld.global.u32 %r4, [%d4+512];",
         "ld.global.u32 %r4", FaultKind::kGlobalOutOfBounds,
         "offset 512 of the buffer of 512"});
  Check({"ld.param.u64 %d4, [pa];\n ld.global.u32 %r4, [%d4+-4];",
         "ld.global.u32 %r4", FaultKind::kGlobalOutOfBounds, "4 before the"});
  Check({"mov.u64 %d4, 64;\n ld.u32 %r4, [%d4];", "ld.u32 %r4",
         FaultKind::kGlobalOutOfBounds, "near no device buffer"});
  Check({"st.local.u32 [l+16], %r0;", "st.local.u32",
         FaultKind::kLocalOutOfBounds, "of 16 bytes", 64,
         ".local .align 4 .b8 l[16];"});
  Check({"mov.u64 %d4, s; cvta.shared.u64 %d4, %d4;\n ld.u32 %r4, [%d4+1024];",
         "ld.u32 %r4", FaultKind::kSharedOutOfBounds, "1024 bytes"});
}

TEST(PtxFaultTest, FreedMemoryAndConstants) {
  const auto module = PtxModule::Parse(R"(.version 8.0
.target sm_80
.address_size 64
.const .align 4 .b32 fixed = 3;
.visible .entry read(.param .u64 p) {
.reg .b64 %d<4>; .reg .b32 %r<4>;
ld.param.u64 %d0, [p];
ld.global.u32 %r0, [%d0];
ret; }
.visible .entry write() {
.reg .b64 %d<4>;
mov.u64 %d0, fixed;
st.global.u32 [%d0], 4;
ret; }
)");
  ASSERT_TRUE(module.ok()) << module.status();
  DeviceMemory memory;
  const uint64_t p = memory.Allocate(64).value();
  ASSERT_TRUE(memory.Free(p).ok());
  auto report = RunKernel(*module, {.entry = "read", .arguments = {p}}, memory);
  ASSERT_TRUE(report.ok() && report->fault.has_value());
  EXPECT_THAT(report->fault->detail, HasSubstr("which was freed"));
  EXPECT_EQ(report->fault->line, 8);
  report = RunKernel(*module, {.entry = "write"}, memory);
  ASSERT_TRUE(report.ok() && report->fault.has_value());
  EXPECT_THAT(report->fault->detail, HasSubstr("no writable variable"));
}

TEST(PtxFaultTest, MisalignedVectors) {
  Check({"shl.b32 %r4, %r0, 3;\n ld.shared.v4.u32 {%r5,%r6,%r7,%r8}, [%r4];",
         "ld.shared.v4", FaultKind::kMisaligned,
         "16 bytes at 0x8, which is no multiple of 16"});
  Check({"ld.param.u64 %d4, [pa];\n ld.global.u64 %d5, [%d4+4];",
         "ld.global.u64 %d5", FaultKind::kMisaligned, "no multiple of 8"});
  Check(
      {"shl.b32 %r4, %r0, 3;\n"
       "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r4];",
       "ldmatrix", FaultKind::kMisaligned, "16 bytes at 0x8"});
}

constexpr char kCopy[] = R"(
ld.param.u64 %d4, [pa]; and.b32 %r4, %r0, 31; shl.b32 %r4, %r4, 4;
shr.u32 %r6, %r0, 5; shl.b32 %r6, %r6, 9; add.s32 %r5, %r4, %r6;
cvt.u64.u32 %d5, %r4; and.b64 %d5, %d5, 255; add.s64 %d4, %d4, %d5;
cp.async.cg.shared.global [%r5], [%d4], 16;
cp.async.commit_group;
)";

TEST(PtxFaultTest, AsyncCopies) {
  const std::string copy = kCopy;
  // Its own thread after its own wait.
  ExpectClean(copy + "cp.async.wait_group 0;\n ld.shared.u32 %r7, [%r5];");
  ExpectClean(copy + "cp.async.wait_all;\n ld.shared.u32 %r7, [%r5];");
  // Other threads need the barrier too.
  ExpectClean(copy +
              "cp.async.wait_group 0;\n bar.sync 0;\n"
              "xor.b32 %r8, %r5, 512; ld.shared.u32 %r7, [%r8];");
  Check({copy + "ld.shared.u32 %r7, [%r5];", "ld.shared.u32 %r7",
         FaultKind::kAsyncNotAwaited,
         "are still being copied by cp.async.cg.shared.global"});
  Check({copy + "bar.sync 0;\n ld.shared.u32 %r7, [%r5];", "ld.shared.u32 %r7",
         FaultKind::kAsyncNotAwaited, "being copied"});
  // One group may still be in flight, and it is this one.
  Check({copy + "cp.async.wait_group 1;\n ld.shared.u32 %r7, [%r5];",
         "ld.shared.u32 %r7", FaultKind::kAsyncNotAwaited, "being copied"});
  Check({copy +
             "cp.async.wait_group 0;\n"
             "xor.b32 %r8, %r5, 512; ld.shared.u32 %r7, [%r8];\n bar.sync 0;",
         "cp.async.cg", FaultKind::kSharedRace, "read of"});
  // A copy into what others may still read.
  Check({"ld.shared.u32 %r7, [s+512];\n" + copy, "cp.async.cg",
         FaultKind::kSharedRace, "no barrier after the read of"});
  Check({copy + "cp.async.ca.shared.global [%r5], [%d4], 16;", "cp.async.ca",
         FaultKind::kAsyncNotAwaited, "while one is under way"});
}

TEST(PtxFaultTest, CopiesLandOnlyAtTheWait) {
  // With races not looked for, the stale value is what a kernel sees.
  const std::string kernel = SnippetKernel(
      std::string("st.shared.u32 [%r4], 7; st.shared.u32 [s], 7;") +
          "ld.param.u64 %d4, [pa];"
          "cp.async.ca.shared.global [s], [%d4], 4; cp.async.commit_group;"
          "ld.shared.u32 %r5, [s]; cp.async.wait_group 0;"
          "ld.shared.u32 %r6, [s]; mov.b64 %d0, {%r5, %r6};",
      ".shared .align 16 .b8 s[1024];");
  const auto module = PtxModule::Parse(kernel);
  ASSERT_TRUE(module.ok()) << module.status();
  DeviceMemory memory;
  std::vector<Argument> arguments;
  for (int i = 0; i < 4; ++i) {
    const uint64_t buffer = memory.Allocate(8).value();
    ASSERT_TRUE(memory.WriteArray<uint64_t>(buffer, {uint64_t{42}}).ok());
    arguments.emplace_back(buffer);
  }
  uint64_t out;
  std::memcpy(&out, arguments[3].bytes().data(), 8);
  const auto report =
      RunKernel(*module, {.entry = "snippet", .arguments = arguments}, memory,
                {.find_shared_races = false});
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_FALSE(report->fault.has_value()) << report->fault->ToString();
  EXPECT_EQ(memory.ReadArray<uint64_t>(out, 1).value()[0],
            (uint64_t{42} << 32) | 7);
  EXPECT_EQ(report->counters.async_copy_bytes, 4u);
}

TEST(PtxFaultTest, BarriersThatNeverComplete) {
  Check({"setp.lt.u32 %p1, %r0, 7;\n @%p1 bar.sync 0;", "@%p1 bar.sync 0",
         FaultKind::kBarrierDivergence, "0xffffffff, only 0x7f are here"});
  Check(
      {"setp.lt.u32 %p1, %r0, 7; @%p1 bra A;\n bar.sync 1; bra B;\n"
       "A: bar.sync 2;\n B: mov.u32 %r4, 0;",
       "bar.sync 1", FaultKind::kBarrierDivergence,
       "0xffffffff, only 0xffffff80 are here"});
  Check(
      {"setp.lt.u32 %p1, %r0, 7; @%p1 bra A;\n barrier.sync 1; bra B;\n"
       "A: mov.u32 %r4, 1;\n B: mov.u32 %r4, 0;",
       "barrier.sync 1", FaultKind::kBarrierDivergence,
       "only lanes 0xffffff80 of the warp are here"});
  Check({"setp.lt.u32 %p1, %r0, 32;\n @%p1 bar.sync 1, 64;", "bar.sync 1, 64",
         FaultKind::kDeadlock, "1 of 2 warps are there"});
  Check(
      {"setp.lt.u32 %p1, %r0, 32; @%p1 bra A;\n bar.sync 1; bra B;\n"
       "A:\n bar.sync 2;\n B: mov.u32 %r4, 0;",
       "bar.sync 2", FaultKind::kDeadlock, "never completes"});
  Check({"bar.sync 0, 33;", "bar.sync 0, 33", FaultKind::kBarrierDivergence,
         "whole warps"});
  Check(
      {"setp.lt.u32 %p1, %r0, 7;\n @%p1 shfl.sync.idx.b32 %r4, %r0, 0, 31, -1;",
       "shfl.sync", FaultKind::kBarrierDivergence, "only 0x7f execute it"});
  Check(
      {"setp.lt.u32 %p1, %r0, 7; @!%p1 bra A;\n"
       "shfl.sync.idx.b32 %r4, %r0, 0, 31, -1;\n A: mov.u32 %r4, 1;",
       "shfl.sync", FaultKind::kBarrierDivergence,
       "only lanes 0x7f of the warp are here"});
  Check({"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [s];", "ldmatrix",
         FaultKind::kBarrierDivergence, "only lanes 0xffff of the warp", 16});
}

TEST(PtxFaultTest, EndlessLoopsAndTraps) {
  Check({"L:\n bra L;", "bra L", FaultKind::kTimeout,
         "more than 10000000 warp instructions"});
  Check({"setp.eq.u32 %p1, %r0, 40;\n @%p1 trap;", "@%p1 trap",
         FaultKind::kTrap, "stopped itself"});
}

TEST(PtxFaultTest, AWarpMayWaitForAnotherInALoop) {
  // Warp 0 spins until warp 1 has stored; both must get their turns.
  const auto out = RunSnippet(SnippetKernel(R"(
setp.ge.u32 %p1, %r0, 32; @%p1 bra STORE;
LOOP: atom.shared.add.u32 %r4, [s], 0; setp.ne.u32 %p2, %r4, 9; @%p2 bra LOOP;
bra END;
STORE: atom.shared.exch.b32 %r4, [s], 9;
END: mov.u64 %d0, 1;
)",
                                            ".shared .align 4 .b8 s[4];"),
                              {.threads = 64});
  EXPECT_TRUE(out.ok()) << out.status();
}

TEST(PtxFaultTest, AFaultNamesThreadAndBlock) {
  const Fault fault = FaultOf(
      SnippetKernel("setp.eq.u32 %p1, %r0, 37;\n @%p1 trap;"), {.threads = 64});
  EXPECT_EQ(fault.thread, (Dim3{37, 0, 0}));
  EXPECT_EQ(fault.block, (Dim3{0, 0, 0}));
  EXPECT_THAT(fault.ToString(), HasSubstr("trap at PTX line"));
  EXPECT_THAT(fault.ToString(), HasSubstr("thread (37,0,0)"));
}

}  // namespace
}  // namespace regatta::ptxsim
