// The text of launchers, whatever the modules hold.
#include "compiler/launcher/launcher_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/launcher/launcher.h"
#include "compiler/module/cuda_binary.h"
#include "tests/compiler/print_params.h"
#include "tests/compiler/sample_module.h"
#include "tests/compiler/status_text.h"
#include "tests/support/process.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

// A device's module with names that C and the launcher use themselves.
Module HostileModule() {
  Module module = SampleModule();
  module.name = "k";
  module.schedule = "a schedule */ #error \n#error";
  module.buffers[0].name = "handle";
  module.buffers[1].name = "tensors";
  module.buffers[2].name = "k_launch";
  module.kernels = {
      {.entry = "k_0",
       .arguments = {0, 1, 3},
       .grid = {2, 70000},
       .group = {32, 4},
       .shared_bytes = 100'000},
      {.entry = "k_1", .arguments = {3, 2}, .grid = {1}, .group = {64}}};
  module.host_sequence = {0, 1, 0};
  return module;
}

class EveryLauncher : public ::testing::TestWithParam<Launcher> {
 protected:
  static std::vector<LauncherFile> Write(const std::vector<Module>& modules,
                                         const std::string& loadable) {
    LauncherRequest request{
        .file = "my-k", .name = "my_k", .loadable = loadable};
    for (const Module& module : modules) {
      request.functions.push_back({&module, "exact", "why */ not"});
    }
    const auto files = GetParam().write(request);
    EXPECT_TRUE(files.ok()) << StatusText(files);
    return files.ok() ? *files : std::vector<LauncherFile>{};
  }
  // Lines that need every escape, and one that is longer than a literal may be.
  static std::string Code() {
    const std::string text = absl::StrCat(
        "// \"quoted\" \\ ?"
        "?/ \t end\n",
        std::string(9000, 'x'), "\nlast");
    return GetParam().kind == "cuda"
               ? SerializeCudaBinary({.arch = "sm_80",
                                      .cubin = "\x7f"
                                               "ELF+cubin",
                                      .ptx = text})
               : text;
  }
};

TEST_P(EveryLauncher, IsStrictCAndCxxWhateverItsModulesAreCalled) {
  Module second = HostileModule();
  second.name = "other";
  const auto files = Write({HostileModule(), second}, Code());
  ASSERT_EQ(files.size(), GetParam().extensions.size());
  const testing::TempDir dir;
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(files[i].extension, GetParam().extensions[i]);
    testing::WriteFile(absl::StrCat(dir.path(), "/my-k", files[i].extension),
                       files[i].bytes);
  }
  for (const char* compiler : {REGATTA_C_COMPILER " -std=c99",
                               REGATTA_CXX_COMPILER " -std=c++17 -x c++"}) {
    const testing::ProcessResult result = testing::RunProcess(
        {"/bin/sh", "-c",
         absl::StrCat(
             "cd '", dir.path(), "' && ", compiler,
             " -Wall -Wextra -pedantic -Werror -fsyntax-only my-k.c")});
    EXPECT_EQ(result.exit_code, 0) << compiler << "\n" << result.err;
  }
}

TEST_P(EveryLauncher, DescribesWhatACallerMustKnow) {
  const auto files = Write({HostileModule()}, Code());
  ASSERT_FALSE(files.empty());
  for (const char* part :
       {"int my_k_open(my_k_handle **handle", "void my_k_close(",
        "const char *my_k_message(int code);",
        "int k_launch(my_k_handle *handle",
        "int k(my_k_handle *handle, const uint16_t *handle_, const int8_t "
        "*tensors_, float *k_launch_)",
        "f16[3,4] (IEEE binary16 bits), 24 bytes", "matmul(m=3,n=5,k=4)",
        "exact: why * / not", "has 128 bytes of workspace",
        "One thread at a time may use a handle"}) {
    EXPECT_THAT(files[0].bytes, HasSubstr(part));
  }
}

// Kernels in the order of calls, with everything that a launch needs.
TEST_P(EveryLauncher, ListsLaunchesInOrder) {
  const auto files = Write({HostileModule()}, Code());
  ASSERT_GE(files.size(), 2u);
  EXPECT_THAT(
      files[1].bytes,
      HasSubstr("    {\"k_0\", {2u, 70000u, 1u}, {32u, 4u, 1u}, "
                "100000u, 0, 3},\n"
                "    {\"k_1\", {1u, 1u, 1u}, {64u, 1u, 1u}, 0u, 3, 2},\n"
                "    {\"k_0\", {2u, 70000u, 1u}, {32u, 4u, 1u}, "
                "100000u, 5, 3},\n"));
  EXPECT_THAT(files[1].bytes, HasSubstr("{0, 4, 3, 0, 3}, /* k */"));
  EXPECT_THAT(files[1].bytes,
              HasSubstr("{128u, 1, 0, 0, 0}, /* workspace packed */"));
}

INSTANTIATE_TEST_SUITE_P(Launchers, EveryLauncher,
                         ::testing::ValuesIn(Launchers().begin(),
                                             Launchers().end()),
                         [](const auto& info) {
                           return std::string(info.param.kind);
                         });

TEST(LauncherText, WordsAreLittleEndianAndPadded) {
  EXPECT_EQ(WordsOfBytes("w", std::string("\x01\x02\0\0\0\0\0\x80\xff", 9)),
            "static const uint64_t w[] = {\n    0x8000000000000201u, "
            "0x00000000000000ffu,\n};\n");
}

TEST(LauncherText, LinesKeepEveryCharacter) {
  EXPECT_EQ(LinesOfText("t", "a\tb\n\"\\?\nend"),
            "static const char *const t[] = {\n    \"a\\tb\\n\",\n    "
            "\"\\\"\\\\\\?\\n\",\n    \"end\",\n};\n");
}

TEST(LauncherText, CodeOfAnotherKindIsRefused) {
  LauncherRequest request{.file = "k", .name = "k", .loadable = "source"};
  EXPECT_FALSE(FindLauncher("cuda")->write(request).ok());
  EXPECT_EQ(FindLauncher("cpu"), nullptr);
}

}  // namespace
}  // namespace regatta
