// Generated OpenCL C under Oclgrind, an OpenCL device that watches every
// access: no races, nothing out of bounds; and planted faults are found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/compiler/device_cases.h"
#include "tests/compiler/device_programs.h"
#include "tests/compiler/device_support.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

class OpenClRaces : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v oclgrind-kernel >/dev/null 2>&1") != 0) {
      GTEST_SKIP() << "no oclgrind-kernel here: install oclgrind";
    }
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~OpenClRaces() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // What Oclgrind says of the program's only kernel; "" for nothing.
  std::string Complaints(const loop::Program& program) {
    const Module module = BuildFor(program, CompleteTargetOf("opencl"));
    EXPECT_EQ(module.kernels.size(), 1u);
    if (module.kernels.size() != 1) return "no kernel";
    const ModuleKernel& kernel = module.kernels[0];
    std::ofstream(folder_ + "/kernel.cl") << module.loadable;
    std::string sizes;
    for (const bool groups : {false, true}) {
      for (size_t d = 0; d < 3; ++d) {
        const bool given = d < kernel.grid.size();
        absl::StrAppend(&sizes, d == 0 ? "" : " ",
                        (given ? kernel.group[d] : 1) *
                            (given && !groups ? kernel.grid[d] : 1));
      }
      sizes += "\n";
    }
    std::ofstream sim(folder_ + "/kernel.sim");
    sim << "kernel.cl\n" << kernel.entry << "\n" << sizes;
    for (const int argument : kernel.arguments) {
      sim << "<size=" << module.buffers[argument].bytes << " fill=1 uchar>\n";
    }
    sim.close();
    const std::string command =
        absl::StrCat("cd ", folder_,
                     " && oclgrind-kernel --data-races --max-errors 3 "
                     "kernel.sim 2>&1");
    FILE* pipe = popen(command.c_str(), "r");
    EXPECT_NE(pipe, nullptr);
    std::string said;
    char block[4096];
    while (const size_t n = fread(block, 1, sizeof(block), pipe)) {
      said.append(block, n);
    }
    EXPECT_EQ(pclose(pipe), 0) << said;
    return said;
  }

  std::string folder_ = testing::TempDir() + "regatta-oclgrind-XXXXXX";
};

TEST_F(OpenClRaces, GeneratedKernelsAreClean) {
  const std::set<std::string> chosen = {"RaggedMatmul_f32", "Matmul_f16",
                                        "Transpose_bf16",   "Transpose_i8",
                                        "RowSums",          "Maps_f32"};
  size_t ran = 0;
  for (const DeviceCase& c : DeviceCases()) {
    if (chosen.count(c.name) == 0) continue;
    EXPECT_EQ(Complaints(c.program), "") << c.name;
    ++ran;
  }
  EXPECT_EQ(ran, chosen.size());
}

TEST_F(OpenClRaces, MissingBarriersAreFound) {
  TiledMatmul matmul{.m = 16, .n = 16, .k = 16};
  EXPECT_EQ(Complaints(matmul.Emit()), "");
  matmul.first_barrier = false;
  EXPECT_THAT(Complaints(matmul.Emit()), HasSubstr("Read-write data race"));
  matmul.first_barrier = true;
  matmul.second_barrier = false;
  EXPECT_THAT(Complaints(matmul.Emit()), HasSubstr("Read-write data race"));
}

}  // namespace
}  // namespace regatta
