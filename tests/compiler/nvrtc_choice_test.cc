// Which NVRTC compiles for which driver.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <string>

#include "compiler/codegen/compiler_version.h"
#include "compiler/codegen/cuda/nvrtc.h"
#include "compiler/compile.h"
#include "tests/compiler/device_support.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

// Each of these loads libraries, so each is a process of its own.
class NvrtcChoice : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// With a toolkit's folder in which there is an NVRTC 12.4 only.
[[noreturn]] void SayVersions() {
  setenv("CUDA_PATH", REGATTA_FAKE_CUDA, 1);
  std::cerr << cuda::NvrtcVersion(12) << ", " << cuda::NvrtcVersion(0) << ", "
            << CompilerVersion(CompleteTargetOf("cuda,driver=12")) << ", "
            << CheckTool(CompleteTargetOf("cuda,driver=12")) << ", "
            << CheckTool(CompleteTargetOf("cuda,mcpu=sm_90,driver=12"))
            << std::endl;
  _exit(0);
}

TEST_F(NvrtcChoice, ADriverOfCuda12GetsThatCompiler) {
  EXPECT_EXIT(SayVersions(), ::testing::ExitedWithCode(0),
              "^NVRTC 12\\.4, NVRTC 12\\.4, [0-9a-f]+/NVRTC 12\\.4, OK, "
              "UNAVAILABLE: NVRTC 12\\.4 does not compile for sm_90; it does "
              "for 80");
}

bool HasNvrtc12() {
  for (const char* name :
       {"libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so.12"}) {
    if (dlopen(name, RTLD_LAZY | RTLD_LOCAL) != nullptr) return true;
  }
  return false;
}

TEST_F(NvrtcChoice, WithoutTheRightOneItIsSaidWhatToInstall) {
  if (HasNvrtc12()) GTEST_SKIP() << "NVRTC 12 is installed here";
  const auto load = [] {
    unsetenv("CUDA_PATH");
    std::cerr << cuda::Nvrtc::Load(12).status() << std::endl;
    _exit(0);
  };
  EXPECT_EXIT(
      load(), ::testing::ExitedWithCode(0),
      "the board's driver is of CUDA 12 .*no NVRTC 12 here.*install the "
      "package cuda-nvrtc of a CUDA 12 toolkit");
}

// The system would find another of the same name: the broken one is let go.
TEST_F(NvrtcChoice, OneThatDoesNotStartIsPassedOver) {
  setenv("LD_LIBRARY_PATH", REGATTA_FAKE_CUDA "/lib64", 1);
  const auto load = [] {
    setenv("CUDA_PATH", REGATTA_BROKEN_CUDA, 1);
    std::cerr << cuda::NvrtcVersion(12) << std::endl;
    _exit(0);
  };
  EXPECT_EXIT(load(), ::testing::ExitedWithCode(0), "^NVRTC 12\\.4");
  unsetenv("LD_LIBRARY_PATH");
}

TEST_F(NvrtcChoice, EveryOneThatWasTriedIsSaidWithTheReason) {
  if (HasNvrtc12()) GTEST_SKIP() << "NVRTC 12 is installed here";
  const auto load = [](const char* path, const char* version) {
    setenv("CUDA_PATH", path, 1);
    setenv("FAKE_NVRTC", version, 1);
    std::cerr << cuda::Nvrtc::Load(12).status() << std::endl;
    _exit(0);
  };
  EXPECT_EXIT(load(REGATTA_BROKEN_CUDA, "12.4"), ::testing::ExitedWithCode(0),
              "UNAVAILABLE: .*no NVRTC 12 here \\(" REGATTA_BROKEN_CUDA
              "/lib64/libnvrtc.so.12: does not start: fake \\(11\\).*there is "
              "no " REGATTA_BROKEN_CUDA "/lib64/libnvrtc.so.*install");
  // As old as the tool is documented not to be.
  EXPECT_EXIT(load(REGATTA_FAKE_CUDA, "11.8"), ::testing::ExitedWithCode(0),
              "UNAVAILABLE: .*/libnvrtc.so.12: NVRTC 11\\.8 is older than CUDA "
              "12.*install");
}

// The loader would kill the process that opens it.
TEST_F(NvrtcChoice, OneThatIsCutOffIsSaidToBeDamaged) {
  if (HasNvrtc12()) GTEST_SKIP() << "NVRTC 12 is installed here";
  const std::string folder = ::testing::TempDir() + "cut-cuda";
  std::filesystem::create_directories(folder + "/lib64");
  const std::string library = folder + "/lib64/libnvrtc.so.12";
  std::filesystem::copy_file(REGATTA_FAKE_CUDA "/lib64/libnvrtc.so.12", library,
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(library, 1000);
  const auto load = [&] {
    setenv("CUDA_PATH", folder.c_str(), 1);
    std::cerr << cuda::Nvrtc::Load(12).status() << std::endl;
    _exit(0);
  };
  EXPECT_EXIT(load(), ::testing::ExitedWithCode(0),
              "UNAVAILABLE: .*no NVRTC 12 here.*/cut-cuda/lib64/libnvrtc.so.12 "
              "is damaged: it has 1000 bytes");
  std::filesystem::remove_all(folder);
}

TEST_F(NvrtcChoice, WhatIsPassedOverIsKnown) {
  setenv("LD_LIBRARY_PATH", REGATTA_FAKE_CUDA "/lib64", 1);
  const auto load = [](const char* path) {
    setenv("CUDA_PATH", path, 1);
    const auto nvrtc = cuda::Nvrtc::Load(12);
    std::cerr << (nvrtc.ok() ? (*nvrtc)->passed_over() : "none") << std::endl;
    _exit(0);
  };
  EXPECT_EXIT(load(REGATTA_BROKEN_CUDA), ::testing::ExitedWithCode(0),
              "^CUDA_PATH, " REGATTA_BROKEN_CUDA
              ", has no NVRTC that is used; " REGATTA_BROKEN_CUDA
              "/lib64/libnvrtc.so.12: does not start: fake \\(11\\)");
  EXPECT_EXIT(load("/nowhere"), ::testing::ExitedWithCode(0),
              "^CUDA_PATH, /nowhere, has no NVRTC that is used");
  EXPECT_EXIT(load(REGATTA_FAKE_CUDA), ::testing::ExitedWithCode(0), "^\n");
  unsetenv("LD_LIBRARY_PATH");
}

TEST(CudaDrivers, OnlyOlderOnesStandInTheTarget) {
  EXPECT_EQ(CompleteTargetOf("cuda,driver=13"), CompleteTargetOf("cuda"));
  for (const char* unknown : {"14", "99"}) {
    EXPECT_THAT(StatusText(CompleteTarget(
                    *ParseTarget(absl::StrCat("cuda,driver=", unknown)))),
                HasSubstr(absl::StrCat("driver=", unknown,
                                       ": known are drivers of CUDA 12 to 13; "
                                       "leave it out for a later one")));
  }
  // A board's driver may be newer than what is known here.
  EXPECT_EQ(LimitingDriver("cuda", 12), 12);
  EXPECT_EQ(LimitingDriver("cuda", 13), 0);
  EXPECT_EQ(LimitingDriver("cuda", 99), 0);
  EXPECT_EQ(LimitingDriver("opencl", 3), 3);
  EXPECT_THAT(CompleteTargetOf("cuda,driver=12").ToString(),
              HasSubstr(",driver=12"));
  EXPECT_THAT(StatusText(CompleteTarget(*ParseTarget("cuda,driver=11"))),
              HasSubstr("drivers of CUDA 12 and later"));
  for (const char* other : {"opencl,driver=12", "cpu,driver=12"}) {
    EXPECT_FALSE(CompleteTarget(*ParseTarget(other)).ok()) << other;
  }
}

}  // namespace
}  // namespace regatta
