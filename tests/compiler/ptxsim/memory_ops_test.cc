// Loads, stores, atomics, local and parameter space, calls, variables.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/compiler/ptxsim/snippet.h"

namespace regatta::ptxsim {
namespace {

std::vector<uint64_t> Out(const std::string& kernel, const SnippetInput& input,
                          LaunchReport* report = nullptr) {
  const auto out = RunSnippet(kernel, input, report);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *out : std::vector<uint64_t>(input.threads);
}

TEST(PtxMemoryTest, NarrowLoadsExtendBySign) {
  // a[t] holds bytes 0xF1..0xF8.
  SnippetInput input = {.a = {0xF8F7F6F5F4F3F2F1u}, .threads = 1};
  const auto load = [&](const std::string& text) {
    return Out(SnippetKernel("ld.param.u64 %d4, [pa];" + text), input)[0];
  };
  EXPECT_EQ(load("ld.global.u8 %r4, [%d4+2]; cvt.u64.u32 %d0, %r4;"), 0xF3u);
  EXPECT_EQ(load("ld.global.s8 %r4, [%d4+2]; cvt.u64.u32 %d0, %r4;"),
            0xFFFFFFF3u);
  EXPECT_EQ(load("ld.global.s8 %h4, [%d4]; cvt.u64.u16 %d0, %h4;"), 0xFFF1u);
  EXPECT_EQ(load("ld.global.u16 %h4, [%d4+4]; cvt.u64.u16 %d0, %h4;"), 0xF6F5u);
  EXPECT_EQ(load("ld.global.s16 %d0, [%d4+4];"), 0xFFFFFFFFFFFFF6F5u);
  EXPECT_EQ(
      load("ld.global.v2.u32 {%r4, %r5}, [%d4]; mov.b64 %d0, {%r5, %r4};"),
      0xF4F3F2F1F8F7F6F5u);
  EXPECT_EQ(load("ld.global.v4.u16 {%h4, %h5, %h6, %h7}, [%d4];"
                 "mov.b64 %d0, {%h7, %h6, %h5, %h4};"),
            0xF2F1F4F3F6F5F8F7u);
  EXPECT_EQ(load("add.s64 %d5, %d4, 100; ld.global.u8 %d0, [%d5+-97];"), 0xF4u);
  EXPECT_EQ(load("ld.u32 %r4, [%d4]; cvt.u64.u32 %d0, %r4;"), 0xF4F3F2F1u);
  EXPECT_EQ(load("ld.global.nc.L1::no_allocate.L2::128B.u32 %r4, [%d4];"
                 "cvt.u64.u32 %d0, %r4;"),
            0xF4F3F2F1u);
}

TEST(PtxMemoryTest, SharedMemoryStaticAndDynamic) {
  // Threads write into a static and a dynamic array and read their mirror.
  const std::string kernel =
      SnippetKernel(R"(
shl.b32 %r4, %r0, 2;
mov.u32 %r5, fixed; add.s32 %r6, %r5, %r4; st.shared.u32 [%r6], %r1;
mov.u32 %r7, moving; add.s32 %r8, %r7, %r4; st.shared.u32 [%r8], %r0;
bar.sync 0;
sub.s32 %r10, 63, %r0; shl.b32 %r10, %r10, 2;
add.s32 %r6, %r5, %r10; ld.shared.u32 %r11, [%r6];
add.s32 %r8, %r7, %r10; ld.shared.u32 %r12, [%r8];
ld.shared.u32 %r13, [fixed+8];
add.s32 %r11, %r11, %r13;
mov.b64 %d0, {%r11, %r12};
)",
                    ".shared .align 4 .b8 fixed[256];",
                    ".extern .shared .align 16 .b8 moving[];");
  SnippetInput input = {.threads = 64, .dynamic_shared_bytes = 256};
  for (int i = 0; i < 64; ++i) input.a.push_back(1000 + i);
  const auto out = Out(kernel, input);
  for (uint64_t i = 0; i < 64; ++i) {
    EXPECT_EQ(out[i], ((63 - i) << 32) | (1000 + 63 - i + 1002));
  }
}

TEST(PtxMemoryTest, GenericAddressesReachEverySpace) {
  const std::string kernel = SnippetKernel(
      R"(
mov.u64 %d4, shared_word; cvta.shared.u64 %d5, %d4; st.u32 [%d5], %r1;
mov.u64 %d6, local_word; cvta.local.u64 %d7, %d6; st.u32 [%d7+4], 7;
ld.local.u32 %r4, [local_word+4];
cvta.to.shared.u64 %d8, %d5; ld.shared.u32 %r5, [%d8];
isspacep.shared %p1, %d5; isspacep.local %p2, %d5;
selp.b32 %r6, 100, 0, %p1; selp.b32 %r7, 1000, 0, %p2;
add.s32 %r4, %r4, %r5; add.s32 %r4, %r4, %r6; add.s32 %r4, %r4, %r7;
cvt.u64.u32 %d0, %r4;
)",
      ".shared .align 4 .b32 shared_word; .local .align 8 .b8 local_word[16];");
  EXPECT_EQ(Out(kernel, {.a = {30}, .threads = 1})[0], 137u);
}

TEST(PtxMemoryTest, ModuleVariables) {
  const std::string kernel = SnippetKernel(R"(
ld.const.f32 %f4, [table+4]; cvt.rni.s32.f32 %r4, %f4;
ld.global.u16 %r5, [numbers+2];
mov.u64 %d4, numbers; cvta.global.u64 %d4, %d4; ld.u16 %r6, [%d4];
add.s32 %r4, %r4, %r5; add.s32 %r4, %r4, %r6;
st.global.u32 [count], %r4; ld.global.u32 %r7, [count];
cvt.u64.u32 %d0, %r7;
)",
                                           "", R"(
.const .align 4 .b8 table[8] = {0, 0, 128, 63, 0, 0, 0, 64};
.global .align 2 .u16 numbers[2] = {10, 0x64};
.global .align 4 .u32 count;
)");
  EXPECT_EQ(Out(kernel, {.threads = 1})[0], 112u);
}

TEST(PtxMemoryTest, CallsAreExpanded) {
  const std::string kernel = SnippetKernel(R"(
{
.param .b32 arg; .param .b32 result;
st.param.b32 [arg], %r1;
call.uni (result), triple, (arg);
ld.param.b32 %r4, [result];
}
setp.gt.u32 %p1, %r0, 1;
{
.param .b32 arg; .param .b32 result;
st.param.b32 [result], 5;
st.param.b32 [arg], %r4;
@%p1 call (result), triple, (arg);
ld.param.b32 %r5, [result];
}
cvt.u64.u32 %d0, %r5;
)",
                                           "", R"(
.func (.param .b32 r) triple(.param .b32 x)
{
.reg .b32 %r<4>; .reg .pred %p<2>;
ld.param.b32 %r1, [x];
setp.eq.s32 %p1, %r1, 30;
@%p1 bra SPECIAL;
mul.lo.s32 %r2, %r1, 3;
st.param.b32 [r], %r2;
ret;
SPECIAL:
st.param.b32 [r], -1;
ret;
}
)");
  const auto out = Out(kernel, {.a = {1, 2, 3, 10}, .threads = 4});
  EXPECT_EQ(out, (std::vector<uint64_t>{5, 5, 27, 0xFFFFFFFF}));
}

TEST(PtxMemoryTest, Atomics) {
  const auto run = [&](const std::string& text) {
    // All threads work on the first word of b, which holds 5; each gives back
    // the old value, and c[t] is its operand.
    SnippetInput input = {.b = {5}, .threads = 4};
    for (uint64_t i = 0; i < 4; ++i) input.c.push_back(i + 1);
    return Out(SnippetKernel("ld.param.u64 %d4, [pb]; mov.u32 %r4, 0;"
                             "bar.sync 0;" +
                             text +
                             "bar.sync 0; ld.global.u32 %r5, [%d4];"
                             "mov.b64 %d0, {%r4, %r5};"),
               input);
  };
  const auto old_of = [](uint64_t x) { return static_cast<uint32_t>(x); };
  auto out = run("atom.global.add.u32 %r4, [%d4], %r3;");
  EXPECT_EQ(out[3] >> 32, 15u);
  EXPECT_EQ(old_of(out[0]), 5u);
  EXPECT_EQ(old_of(out[3]), 11u);
  EXPECT_EQ(run("red.global.max.s32 [%d4], 9;")[0] >> 32, 9u);
  EXPECT_EQ(run("atom.global.cas.b32 %r4, [%d4], 5, %r3;")[0] >> 32, 1u);
  EXPECT_EQ(run("atom.global.inc.u32 %r4, [%d4], 6;")[0] >> 32, 2u);
  EXPECT_EQ(run("red.relaxed.gpu.global.add.f32 [%d4], 0f3F800000;")[0] >> 32,
            Bits(4.0f));  // the small integer 5 is a subnormal as a float
  EXPECT_EQ(run("atom.global.exch.b32 %r4, [%d4], %r3;")[0] >> 32, 4u);
}

TEST(PtxMemoryTest, ClockOnlyGrows) {
  const auto out = Run64(
      "mov.u64 %d4, %clock64; add.s32 %r4, %r4, 1; mov.u64 %d5, %clock64;"
      "sub.s64 %d9, %d5, %d4;",
      {.threads = 1});
  EXPECT_GT(static_cast<int64_t>(out[0]), 0);
}

TEST(PtxMemoryTest, CountersOfAccessPatterns) {
  struct Case {
    const char* offset;  // of thread %r0, into %r4
    const char* access;
    uint64_t wavefronts;
  };
  // Expected passes worked out by hand from 32 banks of 4 bytes.
  const Case cases[] = {
      {"shl.b32 %r4, %r0, 2;", "ld.shared.u32 %r5, [%r4];", 1},
      {"shl.b32 %r4, %r0, 3;", "ld.shared.u32 %r5, [%r4];", 2},
      {"shl.b32 %r4, %r0, 7;", "ld.shared.u32 %r5, [%r4];", 32},
      {"mov.u32 %r4, 64;", "ld.shared.u32 %r5, [%r4];", 1},
      {"shl.b32 %r4, %r0, 1;", "ld.shared.u16 %h5, [%r4];", 1},
      {"shl.b32 %r4, %r0, 3;", "ld.shared.u64 %d5, [%r4];", 2},
      {"shl.b32 %r4, %r0, 4;", "ld.shared.v4.u32 {%r5,%r6,%r7,%r8}, [%r4];", 4},
      {"mul.lo.s32 %r4, %r0, 132;", "ld.shared.u32 %r5, [%r4];", 1},
      {"shl.b32 %r4, %r0, 5;", "ld.shared.v4.u32 {%r5,%r6,%r7,%r8}, [%r4];", 8},
  };
  for (const Case& c : cases) {
    LaunchReport report;
    Out(SnippetKernel(std::string(c.offset) + c.access,
                      ".shared .align 16 .b8 s[4608];"),
        {}, &report);
    EXPECT_EQ(report.counters.shared_requests, 1u) << c.offset;
    EXPECT_EQ(report.counters.shared_wavefronts, c.wavefronts)
        << c.offset << c.access;
  }
}

TEST(PtxMemoryTest, CountersOfGlobalSectors) {
  // The harness itself loads a, b, c and stores out: 8 bytes a thread, so 8
  // sectors each.
  LaunchReport report;
  Out(SnippetKernel(""), {}, &report);
  EXPECT_EQ(report.counters.global_load_requests, 3u);
  EXPECT_EQ(report.counters.global_load_sectors, 24u);
  EXPECT_EQ(report.counters.global_store_sectors, 8u);
  EXPECT_EQ(report.counters.footprint_load_sectors, 24u);
  EXPECT_EQ(report.counters.footprint_store_sectors, 8u);
  // One word for all, then a stride of 64 bytes.
  Out(SnippetKernel("ld.param.u64 %d4, [pa]; ld.global.u32 %r4, [%d4];"), {},
      &report);
  EXPECT_EQ(report.counters.global_load_sectors, 25u);
  EXPECT_EQ(report.counters.footprint_load_sectors, 24u);
  Out(SnippetKernel("ld.param.u64 %d4, [pa]; shl.b32 %r4, %r0, 6;"
                    "cvt.u64.u32 %d5, %r4; add.s64 %d4, %d4, %d5;"
                    "setp.lt.u32 %p1, %r0, 4; @%p1 ld.global.u32 %r5, [%d4];"),
      {}, &report);
  EXPECT_EQ(report.counters.global_load_sectors, 28u);
}

TEST(PtxMemoryTest, DeviceMemoryChecksItsCallers) {
  DeviceMemory memory(1000);
  EXPECT_EQ(memory.Allocate(0).status().code(),
            absl::StatusCode::kInvalidArgument);
  const uint64_t a = memory.Allocate(600).value();
  EXPECT_EQ(a % 512, 0u);
  EXPECT_EQ(memory.Allocate(500).status().code(),
            absl::StatusCode::kResourceExhausted);
  std::vector<std::byte> bytes(16);
  EXPECT_TRUE(memory.Write(a + 584, bytes).ok());
  EXPECT_EQ(memory.Write(a + 585, bytes).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(memory.Read(a - 1, absl::MakeSpan(bytes)).code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(memory.Free(a + 1).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(memory.Free(a).ok());
  EXPECT_EQ(memory.Free(a).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(memory.Read(a, absl::MakeSpan(bytes)).code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(memory.used_bytes(), 0u);
  EXPECT_NE(memory.Allocate(600).value(), a);
}

}  // namespace
}  // namespace regatta::ptxsim
