// Targets of processors that only /proc/cpuinfo tells of.
#include "device_agent/build/processor_target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

const char kV2[] = "sse sse2 pni ssse3 sse4_1 sse4_2 popcnt";
const char kV3[] = "avx avx2 bmi1 bmi2 f16c fma abm movbe";
const char kV4[] = "avx512f avx512bw avx512cd avx512dq avx512vl";

std::string X86(const std::string& vendor, int family, int model,
                const std::string& flags) {
  return absl::StrCat("processor\t: 0\nvendor_id\t: ", vendor,
                      "\ncpu family\t: ", family, "\nmodel\t\t: ", model,
                      "\nmodel name\t: whatever\nflags\t\t: fpu ", flags,
                      "\nbugs\t\t:\n\n");
}

std::string Arm(const std::string& implementer, const std::string& part,
                const std::string& features) {
  return absl::StrCat("processor\t: 0\nFeatures\t: ", features,
                      "\nCPU implementer\t: ", implementer,
                      "\nCPU architecture: 8\nCPU variant\t: 0x0\n"
                      "CPU part\t: ",
                      part, "\nCPU revision\t: 0\n\n");
}

absl::StatusOr<Target> Of(const std::string& architecture,
                          const std::string& cpuinfo) {
  v1::DescribeRequest request;
  request.mutable_processor()->set_architecture(architecture);
  request.mutable_processor()->set_cpuinfo(cpuinfo);
  return ProcessorTarget(request);
}

TEST(ProcessorTarget, NamesProcessorsAsLlvmDoes) {
  const std::string v3 = absl::StrCat(kV2, " ", kV3);
  const std::string v4 = absl::StrCat(v3, " ", kV4);
  const struct {
    std::string architecture, cpuinfo, mcpu;
  } cases[] = {
      {"x86_64", X86("AuthenticAMD", 25, 17, v4), "znver4"},
      {"x86_64", X86("AuthenticAMD", 25, 33, v3), "znver3"},
      {"x86_64", X86("AuthenticAMD", 23, 49, v3), "znver2"},
      {"x86_64", X86("GenuineIntel", 6, 63, v3), "haswell"},
      {"x86_64", X86("GenuineIntel", 6, 85, v4), "skylake-avx512"},
      {"x86_64", X86("GenuineIntel", 6, 85, v4 + " avx512_vnni"),
       "cascadelake"},
      {"x86_64", X86("GenuineIntel", 6, 143, v4), "sapphirerapids"},
      // Newer or stranger than the table: by what it can do.
      {"x86_64", X86("GenuineIntel", 99, 1, v4), "x86-64-v4"},
      {"x86_64", X86("CentaurHauls", 6, 15, v3), "x86-64-v3"},
      {"x86_64", X86("GenuineIntel", 6, 999, kV2), "x86-64-v2"},
      {"x86_64", X86("GenuineIntel", 6, 999, "sse sse2"), "x86-64"},
      {"aarch64", Arm("0x41", "0xd03", "fp asimd"), "cortex-a53"},
      {"aarch64", Arm("0x41", "0xd0b", "fp asimd asimddp"), "cortex-a76"},
      {"arm64", Arm("0x41", "0xd0c", "fp asimd"), "neoverse-n1"},
      {"aarch64", Arm("0x99", "0x999", "fp asimd"), "generic"},
      {"riscv64", "processor\t: 0\nisa\t: rv64imafdc\n", "generic-rv64"},
  };
  for (const auto& test : cases) {
    const auto target = Of(test.architecture, test.cpuinfo);
    ASSERT_TRUE(target.ok()) << test.mcpu << ": " << target.status();
    EXPECT_EQ(target->mcpu, test.mcpu);
    EXPECT_EQ(target->triple,
              (test.architecture == "arm64" ? "aarch64" : test.architecture) +
                  "-linux-gnu");
    EXPECT_GT(target->vector_registers, 0);
  }
}

TEST(ProcessorTarget, WhatAVirtualMachineHidesIsLeftOut) {
  // A Zen 4 whose host shows AVX2 alone.
  const auto target = Of("x86_64", X86("AuthenticAMD", 25, 17,
                                       absl::StrCat(kV2, " ", kV3, " sse4a")));
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->mcpu, "znver4");
  EXPECT_EQ(target->vector_bits, 256);
  EXPECT_TRUE(std::find(target->features.begin(), target->features.end(),
                        "-avx512f") != target->features.end())
      << target->ToString();
  EXPECT_TRUE(std::find(target->features.begin(), target->features.end(),
                        "-avx2") == target->features.end());
  // An ARM processor without vectors to show.
  const auto arm = Of("aarch64", Arm("0x41", "0xd0b", "fp"));
  ASSERT_TRUE(arm.ok()) << arm.status();
  EXPECT_NE(arm->ToString().find("-neon"), std::string::npos)
      << arm->ToString();
}

TEST(ProcessorTarget, WhatTellsNothingIsTheLeastOfItsArchitecture) {
  for (const std::string& cpuinfo :
       {std::string(), std::string("\n\n:::\nflags"), std::string(5000, ':')}) {
    const auto target = Of("x86_64", cpuinfo);
    ASSERT_TRUE(target.ok()) << target.status();
    EXPECT_EQ(target->mcpu, "x86-64");
  }
  EXPECT_TRUE(Of("aarch64", "").ok());
}

TEST(ProcessorTarget, WhatIsNoProcessorsIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(Of("z80", "").status()));
  v1::DescribeRequest request;
  request.set_target("opencl,max_group=64");
  EXPECT_TRUE(absl::IsInvalidArgument(ProcessorTarget(request).status()));
  request.set_target("cpu,triple=aarch64-linux-gnu,mcpu=cortex-a76");
  EXPECT_TRUE(ProcessorTarget(request).ok());
}

}  // namespace
}  // namespace regatta
