// What is refused, with which words; and that no text, however broken, does
// harm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "tests/compiler/ptxsim/snippet.h"
#include "tests/support/scale.h"

namespace regatta::ptxsim {
namespace {

using ::testing::HasSubstr;

void ExpectRefused(const std::string& body, const std::string& message) {
  const auto module = PtxModule::Parse(SnippetKernel(body));
  ASSERT_FALSE(module.ok()) << body;
  EXPECT_EQ(module.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(module.status().message()), HasSubstr(message));
}

TEST(PtxParserTest, UnknownThingsAreNamed) {
  // The snippet stands at line 21.
  ExpectRefused("\nfrob.u32 %r1, %r2;", "PTX line 22: frob.u32: opcode 'frob'");
  ExpectRefused("add.s32.wild %r1, %r2, %r3;", "modifier .wild");
  ExpectRefused("add.s32 %r1, %r2;", "has 2 operands, needs 3");
  ExpectRefused("add.s32 %r1, %r2, %r99;", "%r99 is not supported");
  ExpectRefused("add.s32 %r1, %r2, %d1;", "a register of type .b64");
  ExpectRefused("add.f32 %f1, %f2, 1;", "an integer where a float");
  ExpectRefused("add.q32 %r1, %r2, %r3;", "needs a type");
  ExpectRefused("mul.s32 %r1, %r2, %r3;", ".lo, .hi or .wide");
  ExpectRefused("bra NOWHERE;", "no label NOWHERE");
  ExpectRefused("call nobody;", "function nobody has no body");
  ExpectRefused("mov.u32 %r1, undeclared;", "'undeclared' is not declared");
  ExpectRefused("@%r1 add.s32 %r1, %r2, %r3;", "%r1 is no predicate");
  ExpectRefused("ld.shared.v2.u32 {%r1}, [0];", "as many registers");
  ExpectRefused("bar.sync 16;", "there are 16 barriers");
  ExpectRefused("cp.async.cg.shared.global [0], [%d1], 8;", "16 bytes");
  ExpectRefused("wgmma.fence.sync.aligned;", "opcode 'wgmma'");
  ExpectRefused(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r1,%r2}, {%f1,%f2,%f3,%f4};",
      "operand 1 has 2 registers, needs 4");
  ExpectRefused(".frob x;", "directive .frob");
  ExpectRefused("add.s32 %r1, %r2, 99999999999999999999;", "is no number");
  ExpectRefused("\x01", "character code 1");
}

TEST(PtxParserTest, ModulesWithoutWhatTheyNeed) {
  EXPECT_FALSE(PtxModule::Parse("").ok());
  EXPECT_FALSE(PtxModule::Parse(".version 8.0\n.target other\n").ok());
  EXPECT_FALSE(
      PtxModule::Parse(".version 8.0\n.target sm_80\n.address_size 32").ok());
  const auto recursive = PtxModule::Parse(
      ".version 8.0\n.target sm_80\n.func f() { call f; ret; }\n"
      ".entry k() { call f; ret; }\n");
  ASSERT_FALSE(recursive.ok());
  EXPECT_THAT(std::string(recursive.status().message()),
              HasSubstr("recursion"));
}

TEST(PtxParserTest, HugeDeclarationsTakeNoMemory) {
  const std::string head = ".version 8.0\n.target sm_80\n";
  const auto refused = [&](const std::string& text) {
    const auto module = PtxModule::Parse(head + text);
    return module.ok() ? std::string() : std::string(module.status().message());
  };
  EXPECT_THAT(refused(".global .b8 a[60000000]; .global .b8 b[60000000];"),
              HasSubstr("too large"));
  EXPECT_THAT(refused(".global .b64 a[100000][100000][100000];"),
              HasSubstr("too large"));
  EXPECT_THAT(refused(".entry k() { .reg .b32 %r<4000000000>; ret; }"),
              HasSubstr("number of registers"));
  EXPECT_THAT(refused(".entry k() { .local .b8 l[1000000]; ret; }"),
              HasSubstr("local memory"));
  EXPECT_THAT(refused(".entry k() { .shared .b8 s[1000000]; ret; }"),
              HasSubstr("static shared memory"));
}

TEST(PtxParserTest, RangesOfRegisters) {
  const auto parses = [](const std::string& statement) {
    return PtxModule::Parse(
               ".version 8.0\n.target sm_80\n.entry k() {\n"
               ".reg .b32 %a<3>, b1, %c12<2>; { .reg .b64 %a<2>;\n" +
               statement + " } ret; }")
        .ok();
  };
  EXPECT_TRUE(parses("mov.b32 %a2, b1;"));  // of the outer range
  EXPECT_TRUE(parses("mov.b64 %a1, 0;"));   // of the inner one
  EXPECT_FALSE(parses("mov.b32 %a1, b1;"));
  EXPECT_FALSE(parses("mov.b32 %a3, b1;"));
  EXPECT_FALSE(parses("mov.b32 %a02, b1;"));
  EXPECT_FALSE(parses("mov.b32 %a, b1;"));
  EXPECT_TRUE(parses("mov.b32 b1, %c121;"));
  EXPECT_FALSE(parses("mov.b32 b1, %c122;"));
}

TEST(PtxParserTest, EntriesAreDescribed) {
  const auto module = PtxModule::Parse(R"(
.version 8.0
.target sm_86
.address_size 64
.extern .shared .align 128 .b8 dynamic[];
.visible .entry one(.param .u64 .ptr .global .align 16 p, .param .u8 q,
                    .param .align 8 .b8 s[24])
.maxntid 16, 8, 1
.minnctapersm 2
{
  .shared .align 4 .b8 fixed[20];
  .local .align 8 .b8 frame[40];
  .reg .b64 %d<2>;
  .loc 1 5 3
  .pragma "nounroll";
  mov.u64 %d0, dynamic;
  ret;
}
.entry two() { ret; }
)");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(module->target_sm(), 86);
  ASSERT_EQ(module->entries().size(), 2u);
  const PtxModule::EntryInfo* one = module->FindEntry("one");
  ASSERT_NE(one, nullptr);
  ASSERT_EQ(one->parameters.size(), 3u);
  EXPECT_EQ(one->parameters[1].offset, 8u);
  EXPECT_EQ(one->parameters[2].offset, 16u);
  EXPECT_EQ(one->parameter_bytes, 40u);
  EXPECT_EQ(one->max_threads, 128u);
  EXPECT_EQ(one->static_shared_bytes, 128u);
  EXPECT_TRUE(one->dynamic_shared);
  EXPECT_EQ(one->local_bytes, 48u);
  EXPECT_FALSE(module->FindEntry("two")->dynamic_shared);
  EXPECT_EQ(module->FindEntry("three"), nullptr);
}

TEST(PtxParserTest, LaunchesThatNoGpuWouldTake) {
  const auto module = PtxModule::Parse(
      ".version 8.0\n.target sm_80\n.entry k(.param .u32 n) .maxntid 64\n"
      "{ ret; }\n.entry exact() .reqntid 32, 2, 1 { ret; }\n");
  ASSERT_TRUE(module.ok()) << module.status();
  DeviceMemory memory;
  const auto code = [&](const Launch& launch) {
    return RunKernel(*module, launch, memory).status().code();
  };
  using enum absl::StatusCode;
  EXPECT_EQ(code({.entry = "k", .group = {64, 1, 1}, .arguments = {1}}), kOk);
  EXPECT_EQ(code({.entry = "other"}), kNotFound);
  EXPECT_EQ(code({.entry = "k", .group = {65, 1, 1}, .arguments = {1}}),
            kInvalidArgument);
  EXPECT_EQ(code({.entry = "k", .group = {0, 1, 1}, .arguments = {1}}),
            kInvalidArgument);
  EXPECT_EQ(code({.entry = "k", .grid = {1, 70000, 1}, .arguments = {1}}),
            kInvalidArgument);
  EXPECT_EQ(code({.entry = "k"}), kInvalidArgument);
  EXPECT_EQ(code({.entry = "k", .arguments = {uint64_t{1}}}), kInvalidArgument);
  EXPECT_EQ(
      code({.entry = "k", .dynamic_shared_bytes = 1 << 20, .arguments = {1}}),
      kInvalidArgument);
  EXPECT_EQ(code({.entry = "exact", .group = {32, 2, 1}}), kOk);
  EXPECT_EQ(code({.entry = "exact", .group = {64, 1, 1}}), kInvalidArgument);
}

// A kernel with something of everything, to be mutated.
std::string Everything() {
  return SnippetKernel(
      R"(
mov.u32 %r4, s; shl.b32 %r5, %r0, 4; add.s32 %r4, %r4, %r5;
ld.param.u64 %d4, [pa]; cvta.to.global.u64 %d4, %d4;
cp.async.ca.shared.global [%r4], [%d4], 8; cp.async.commit_group;
cp.async.wait_group 0; bar.sync 0;
ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r6, %r7}, [%r4];
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f4,%f5,%f6,%f7}, {%r6,%r7},
  {%r6}, {%f4,%f5,%f6,%f7};
L: add.f32 %f4, %f4, 0f3F800000; setp.lt.f32 %p1, %f4, 0f41200000;
@%p1 bra L;
{ .reg .b32 t; mov.b64 {t, %r8}, %d1; mov.u32 %r8, t; }
{ .param .b32 arg; st.param.b32 [arg], %r8; call f, (arg); }
shfl.sync.bfly.b32 %r9|%p2, %r8, 16, 31, -1;
st.local.v2.u32 [l+8], {%r8, %r9}; ld.local.u32 %r9, [l+12];
atom.global.add.u32 %r10, [count], 1;
tab: .branchtargets M, N;
and.b32 %r11, %r0, 1; brx.idx %r11, tab;
M: cvt.rn.f16.f32 %h4, %f4; bra N;
N: ex2.approx.ftz.f32 %f5, %f4; prmt.b32 %r9, %r9, %r8, 0x5410;
)",
      ".shared .align 16 .b8 s[1024]; .local .align 8 .b8 l[16];",
      R"(.global .align 4 .u32 count = 3;
.const .align 4 .b8 table[8] = {1, 2, 3};
.func f(.param .b32 x) { .reg .b32 %r<2>; ld.param.b32 %r1, [x]; ret; }
)");
}

// Bytes changed, ranges deleted, copied and swapped for pieces of the language.
std::string Mutate(std::string text, Random& random) {
  static constexpr const char* kPieces[] = {"{",
                                            "}",
                                            "[",
                                            "]",
                                            "(",
                                            ")",
                                            ";",
                                            ",",
                                            ".",
                                            "%",
                                            "-1",
                                            "0x",
                                            "@!%p1 ",
                                            ".b64",
                                            ".v4",
                                            ".param",
                                            "4294967296",
                                            "\"",
                                            "/*",
                                            "|",
                                            "<999999999>",
                                            "[18446744073709551615]",
                                            ".align 4096",
                                            "bra L;",
                                            "call f, (arg);",
                                            "\0",
                                            ".reg .pred %q<3>;",
                                            "%d3",
                                            "ret;",
                                            "+",
                                            "0f7FFFFFFF",
                                            "mov.b64 "};
  const int changes = 1 + static_cast<int>(random.Below(3));
  for (int i = 0; i < changes && !text.empty(); ++i) {
    const size_t at = random.Below(text.size());
    const size_t length =
        random.Below(std::min<size_t>(40, text.size() - at)) + 1;
    switch (random.Below(6)) {
      case 0:
        text[at] = static_cast<char>(random.Next());
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(random.Below(text.size()), text.substr(at, length));
        break;
      case 3:
        text.insert(at, kPieces[random.Below(std::size(kPieces))]);
        break;
      case 4:
        text.resize(std::max(at, text.size() - 200));
        break;
      case 5: {  // another number
        const size_t digit = text.find_first_of("0123456789", at);
        if (digit < text.size()) text[digit] = char('0' + random.Below(10));
      }
    }
  }
  return text;
}

TEST(PtxParserTest, MutatedTextNeverCrashes) {
  const std::string text = Everything();
  ASSERT_TRUE(PtxModule::Parse(text).ok()) << PtxModule::Parse(text).status();
  Random random(2024);
  int parsed = 0;
  const int count = Scaled(4000);
  for (int i = 0; i < count; ++i) {
    const auto module = PtxModule::Parse(Mutate(text, random));
    if (!module.ok()) {
      EXPECT_FALSE(module.status().message().empty());
      continue;
    }
    // What still parses must also run to some end: a report or a status.
    ++parsed;
    DeviceMemory memory;
    std::vector<Argument> arguments;
    for (int p = 0; p < 4; ++p) {
      arguments.emplace_back(memory.Allocate(256).value());
    }
    (void)RunKernel(
        *module,
        {.entry = "snippet", .group = {32, 1, 1}, .arguments = arguments},
        memory, {.instruction_limit = 20000});
  }
  EXPECT_GT(parsed, count / 100);
}

}  // namespace
}  // namespace regatta::ptxsim
