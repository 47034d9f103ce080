// Code for ARM processors: what their targets say, which instructions the loops
// are made of, and what it computes under QEMU, against the interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/random.h"
#include "compiler/codegen/code_generator.h"
#include "compiler/codegen/llvm/llvm_code_generator.h"
#include "compiler/compile.h"
#include "compiler/lower/lower.h"
#include "compiler/ops/op.h"
#include "gmock/gmock.h"
#include "tests/compiler/arm_program.h"
#include "tests/compiler/module_support.h"
#include "tests/compiler/status_text.h"
#include "tests/support/scale.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

TEST(ArmTarget, ProcessorsHaveTheProductsOfTheirArchitecture) {
  // By Arm's manuals of the processors: dot products come with Armv8.4 or as an
  // extension of 8.2, matrix products with Armv8.6.
  const std::map<std::string, std::vector<std::string>> expected = {
      {"cortex-a53", {}},
      {"cortex-a55", {"i8x4"}},
      {"cortex-a72", {}},
      {"cortex-a76", {"i8x4"}},
      {"neoverse-n1", {"i8x4"}},
      {"neoverse-n2", {"bf16x2x2x4", "i8x2x2x8", "i8x4"}},
      {"neoverse-v1", {"bf16x2x2x4", "i8x2x2x8", "i8x4"}},
      {"neoverse-v2", {"bf16x2x2x4", "i8x2x2x8", "i8x4"}}};
  for (const ArmProcessor& processor : ArmProcessors()) {
    const Target target = ArmTarget(processor.mcpu);
    EXPECT_EQ(target.vector_bits, 128) << processor.mcpu;
    EXPECT_EQ(target.vector_registers, 32) << processor.mcpu;
    EXPECT_EQ(target.products, expected.at(processor.mcpu)) << processor.mcpu;
    EXPECT_EQ(*ParseTarget(target.ToString()), target);
  }
}

TEST(ArmTarget, WhatAProcessorLacksIsRefused) {
  const CodeGenerator& generator = *FindCodeGenerator("cpu");
  const auto complete = [&](const std::string& rest) {
    return generator.Complete(
        *ParseTarget("cpu,triple=aarch64-linux-gnu," + rest));
  };
  const auto typo = complete("mcpu=cortex-a735");
  ASSERT_FALSE(typo.ok());
  EXPECT_THAT(StatusText(typo), HasSubstr("cortex-a73"));
  const auto lacking = complete("mcpu=cortex-a53,products=i8x4");
  ASSERT_FALSE(lacking.ok());
  EXPECT_THAT(StatusText(lacking), HasSubstr("products=i8x4; it has none"));
  const auto without = complete("mcpu=cortex-a76,features=-dotprod");
  ASSERT_STATUS_OK(without);
  EXPECT_TRUE(without->products.empty());
  const auto with = complete("mcpu=cortex-a53,features=+dotprod");
  ASSERT_STATUS_OK(with);
  EXPECT_EQ(with->products, std::vector<std::string>{"i8x4"});
}

// Loops with a block of products for a processor that has no such instruction
// are refused before LLVM sees them: LLVM would end the process.
TEST(ArmTarget, ABlockOfProductsNeedsItsInstruction) {
  const auto workload = ParseWorkload("matmul(m=8,n=8,k=8,dtype=i8)");
  ASSERT_STATUS_OK(workload);
  const auto space = CreateSpace(*workload, ArmTarget("cortex-a76"), 1);
  ASSERT_STATUS_OK(space);
  const auto lowered = LowerProgram(space->Emit(space->Default()));
  ASSERT_STATUS_OK(lowered);
  const auto assembly = EmitAssembly(*lowered, ArmTarget("cortex-a53"), "k");
  EXPECT_EQ(assembly.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(StatusText(assembly), HasSubstr("cortex-a53 has no such"));
  EXPECT_TRUE(EmitAssembly(*lowered, ArmTarget("neoverse-v1"), "k").ok());
}

std::string AssemblyOf(const std::string& text, const Target& target,
                       const std::string& schedule = "") {
  const auto workload = ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << StatusText(workload);
  const auto space = CreateSpace(*workload, target, 1);
  EXPECT_TRUE(space.ok()) << StatusText(space);
  Schedule chosen = space->Default();
  if (!schedule.empty()) chosen = *space->Parse(schedule);
  const auto lowered = LowerProgram(space->Emit(chosen));
  EXPECT_TRUE(lowered.ok()) << StatusText(lowered);
  const auto assembly = EmitAssembly(*lowered, target, "k");
  EXPECT_TRUE(assembly.ok()) << StatusText(assembly);
  return assembly.ok() ? *assembly : "";
}

// Instructions by mnemonic in the loop without loops inside it that has the
// most of `mnemonic`; "spill" counts vectors on the stack, "lane" instructions
// with a lane of a register as an operand.
std::map<std::string, int> HottestLoop(const std::string& assembly,
                                       const std::string& mnemonic) {
  const std::vector<std::string> lines = absl::StrSplit(assembly, '\n');
  std::map<std::string, int> best;
  for (size_t end = 0; end < lines.size(); ++end) {
    static const std::regex kBranch("\t(b\\.\\w+|cbn?z)\t.*(\\.LBB\\w+)");
    std::smatch branch;
    if (!std::regex_match(lines[end], branch, kBranch)) continue;
    std::map<std::string, int> counts;
    for (size_t i = end + 1; i-- > 0;) {
      if (lines[i].rfind(".LBB", 0) == 0) {
        const bool own = lines[i].rfind(branch[2].str() + ":", 0) == 0;
        if (own && counts[mnemonic] > best[mnemonic]) best = counts;
        break;
      }
      const std::vector<std::string> words = absl::StrSplit(lines[i], '\t');
      if (words.size() < 2) continue;
      ++counts[words[1]];
      static const std::regex kSpill("\t(ld|st)\\w*\t[qd]\\d.*\\[sp.*");
      if (std::regex_match(lines[i], kSpill)) ++counts["spill"];
      static const std::regex kLane(".*\\.(s|h|4b)\\[\\d\\]");
      if (std::regex_match(lines[i], kLane)) ++counts["lane"];
    }
  }
  return best;
}

std::string Show(const std::map<std::string, int>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    absl::StrAppend(&text, name, ":", count, " ");
  }
  return text;
}

bool Has(const Target& target, const std::string& form) {
  return std::count(target.products.begin(), target.products.end(), form) > 0;
}

// The loops that compute products of bytes, by what the processor has for them.
TEST(ArmCode, BytesAreMultipliedByWhatTheProcessorHas) {
  for (const char* text :
       {"matmul(m=64,n=64,k=64,dtype=i8)", "matmul(m=240,n=240,k=240,dtype=i8)",
        "dense(m=64,n=64,k=64,dtype=i8,out_dtype=i8)",
        "conv2d(n=1,h=14,w=14,ci=32,co=32,kh=3,kw=3,pad=1,dtype=i8,"
        "out_dtype=i8)",
        "conv2d(n=1,h=14,w=14,ci=32,co=32,kh=3,kw=3,pad=1,dtype=i8,"
        "layout=NCHW)"}) {
    for (const ArmProcessor& processor : ArmProcessors()) {
      const Target target = ArmTarget(processor.mcpu);
      const std::string assembly = AssemblyOf(text, target);
      const std::string what = absl::StrCat(processor.mcpu, " ", text);
      const auto sdot = HottestLoop(assembly, "sdot");
      const auto smmla = HottestLoop(assembly, "smmla");
      const auto wide = HottestLoop(assembly, "smlal");
      if (Has(target, "i8x4")) {
        const auto& loop = smmla.size() > sdot.size() ? smmla : sdot;
        EXPECT_TRUE(loop.count("sdot") || loop.count("smmla")) << what;
        EXPECT_EQ(loop.count("spill"), 0u) << what << ": " << Show(loop);
        for (const char* slow : {"\tsmull\t", "\tsmlal\t", "\tmla\t"}) {
          EXPECT_EQ(assembly.find(slow), std::string::npos) << what << slow;
        }
      } else {
        for (const char* missing : {"sdot", "smmla", "bfmmla", "usdot"}) {
          EXPECT_EQ(assembly.find(missing), std::string::npos) << what;
        }
        EXPECT_GE(wide.at("smlal"), 8) << what << ": " << Show(wide);
        EXPECT_LT(wide.count("mla") ? wide.at("mla") : 0, wide.at("smlal") / 2)
            << what << ": " << Show(wide);
        EXPECT_EQ(wide.count("spill"), 0u) << what << ": " << Show(wide);
      }
    }
  }
}

TEST(ArmCode, FloatsAreMultipliedByLanesWithoutSpills) {
  for (const ArmProcessor& processor : ArmProcessors()) {
    for (const char* text :
         {"matmul(m=96,n=96,k=96)", "matmul(m=240,n=240,k=240)"}) {
      const auto loop =
          HottestLoop(AssemblyOf(text, ArmTarget(processor.mcpu)), "fmla");
      const int total = loop.count("fmla") ? loop.at("fmla") : 0;
      EXPECT_GE(total, 16) << processor.mcpu << ": " << Show(loop);
      EXPECT_GE(loop.count("lane") ? loop.at("lane") : 0, total * 3 / 4)
          << processor.mcpu << ": " << Show(loop);
      EXPECT_EQ(loop.count("spill"), 0u)
          << processor.mcpu << ": " << Show(loop);
    }
  }
}

// --- Under QEMU ---

// What products of several elements, tails of all kinds and epilogues meet.
const char* const kProducts[] = {
    "matmul(m=17,n=35,k=29,dtype=i8)",
    "matmul(m=1,n=37,k=20,dtype=i8)",
    "matmul(m=40,n=24,k=64,dtype=i8)",
    "matmul(m=17,n=35,k=29,dtype=bf16)",
    "matmul(m=24,n=16,k=40,dtype=bf16,out_dtype=f32)",
    "matmul(m=19,n=21,k=33,dtype=f16)",
    "matmul(m=19,n=21,k=33)",
    "dense(m=13,n=22,k=19,dtype=i8,out_dtype=i8,activation=relu)",
    "batch_matmul(b=3,m=7,n=21,k=13,dtype=i8)",
    "conv2d(n=1,h=8,w=7,ci=5,co=7,kh=3,kw=3,pad=1,dtype=i8,out_dtype=i8)",
    "conv2d(n=2,h=9,w=6,ci=8,co=12,kh=3,kw=2,stride=2,pad=1,dtype=i8)",
    "conv2d(n=1,h=7,w=11,ci=6,co=9,kh=3,kw=3,pad=1,dtype=i8,layout=NCHW)",
    "conv2d(n=1,h=6,w=6,ci=16,co=10,kh=1,kw=1,dtype=bf16)",
    ("C[j,i] = sum(k) A[k,i] * B[k,j] where i=14, j=18, k=21, A=i8[21,14], "
     "B=i8[21,18], C=i32[18,14]"),
};

class ArmQemu : public testing::TestWithParam<ArmProcessor> {};
INSTANTIATE_TEST_SUITE_P(Arm, ArmQemu, testing::ValuesIn(ArmProcessors()),
                         [](const auto& info) {
                           std::string name = info.param.mcpu;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// One processor's program: modules of schedules, and what they should make.
class Runs {
 public:
  explicit Runs(const ArmProcessor& processor)
      : processor_(processor), target_(ArmTarget(processor.mcpu)) {}

  // The default schedule and `random` others.
  void Add(const std::string& text, int schedules, uint64_t seed) {
    const auto workload = ParseWorkload(text);
    ASSERT_STATUS_OK(workload) << text;
    if (workload->Flops() > 1e6) return;
    const int threads = 1 + static_cast<int>(seed % 2);
    const auto space = CreateSpace(*workload, target_, threads);
    ASSERT_STATUS_OK(space);
    Random random(seed);
    std::vector<Schedule> chosen = {space->Default()};
    while (static_cast<int>(chosen.size()) < schedules) {
      const auto schedule = space->Sample(random);
      ASSERT_TRUE(schedule.has_value()) << text;
      chosen.push_back(*schedule);
    }
    const auto inputs = FullRangeInputs(*workload, seed);
    const auto expected = Interpret(*workload, inputs);
    for (const Schedule& schedule : chosen) {
      const std::string printed = space->Print(schedule);
      const auto module =
          Compile(*space, printed, absl::StrCat("k", cases_.size()));
      ASSERT_STATUS_OK(module) << text << " " << printed;
      program_.Add(*module, *workload, inputs);
      cases_.push_back({*workload, expected, printed});
    }
  }

  void Check() {
    ASSERT_EQ(program_.Run(processor_.qemu), 0);
    for (size_t i = 0; i < cases_.size(); ++i) {
      ExpectNear(cases_[i].workload, program_.Outputs(i), cases_[i].expected,
                 absl::StrCat(processor_.mcpu, " ", cases_[i].schedule));
    }
    std::printf("%s: %zu modules right under qemu -cpu %s\n",
                processor_.mcpu.c_str(), cases_.size(),
                processor_.qemu.c_str());
  }

 private:
  struct Case {
    Workload workload;
    std::vector<TensorValues> expected;
    std::string schedule;
  };
  const ArmProcessor processor_;
  const Target target_;
  ArmProgram program_;
  std::vector<Case> cases_;
};

TEST_P(ArmQemu, RandomSchedulesOfProductsAgreeWithTheInterpreter) {
  if (const std::string missing = ArmProgramsMissing(); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
  Runs runs(GetParam());
  uint64_t seed = 1;
  for (const char* text : kProducts) {
    runs.Add(text, 1 + Scaled(2), ++seed);
    if (HasFatalFailure()) return;
  }
  runs.Check();
}

// Every operator and type: the samples take turns among the processors, or, at
// larger scales, run on all of them.
TEST_P(ArmQemu, EveryOperatorAgreesWithTheInterpreter) {
  if (const std::string missing = ArmProgramsMissing(); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
  const auto& all = ArmProcessors();
  const size_t self = std::find_if(all.begin(), all.end(),
                                   [](const ArmProcessor& p) {
                                     return p.mcpu == GetParam().mcpu;
                                   }) -
                      all.begin();
  Runs runs(GetParam());
  size_t turn = 0;
  for (const Op& op : Ops()) {
    for (const std::string& sample : op.samples) {
      if (turn++ % all.size() != self && Scaled(1) == 1) continue;
      runs.Add(sample, Scaled(1), turn + 1);
      if (HasFatalFailure()) return;
    }
  }
  runs.Check();
}

// That QEMU tells processors apart: a check of the checks above.
TEST(ArmCode, DotProductsEndAProcessThatLacksThem) {
  if (const std::string missing = ArmProgramsMissing(); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
  const auto workload = ParseWorkload("matmul(m=8,n=8,k=8,dtype=i8)");
  ASSERT_STATUS_OK(workload);
  const auto space = CreateSpace(*workload, ArmTarget("cortex-a76"), 1);
  ASSERT_STATUS_OK(space);
  const auto module = Compile(*space, space->Print(space->Default()), "k");
  ASSERT_STATUS_OK(module);
  ArmProgram program;
  program.Add(*module, *workload, FullRangeInputs(*workload, 1));
  constexpr int kIllegalInstruction = 4;
  EXPECT_EQ(program.Run("cortex-a76"), 0);
  EXPECT_EQ(program.Run("cortex-a53"), 128 + kIllegalInstruction);
}

}  // namespace
}  // namespace regatta
