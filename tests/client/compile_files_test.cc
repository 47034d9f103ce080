// The files of `regatta compile`: what -o names, and what is written for
// devices.
#include "client/cli/compile_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "client/cli/documents.h"
#include "storage/tuning_log.h"
#include "tests/support/process.h"

namespace regatta::cli {
namespace {

using ::regatta::testing::ProcessResult;
using ::regatta::testing::ReadFile;
using ::regatta::testing::RunProcess;
using ::regatta::testing::TempDir;
using ::regatta::testing::WriteFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(const std::string& output, const std::string& header = "") {
  const auto files = CompileFiles::Named(output, header);
  EXPECT_FALSE(files.ok()) << output;
  return std::string(files.status().message());
}

TEST(CompileFiles, TheOutputsNameGivesTheForm) {
  const auto shared = CompileFiles::Named("out/my-lib.so", "");
  ASSERT_TRUE(shared.ok());
  EXPECT_TRUE(shared->is_shared());
  EXPECT_EQ(shared->header(), "out/my-lib.h");
  EXPECT_EQ(shared->name(), "my_lib");
  const auto object = CompileFiles::Named("a.o", "b.h");
  ASSERT_TRUE(object.ok());
  EXPECT_FALSE(object->is_shared());
  EXPECT_EQ(object->name(), "b");
  const auto launcher = CompileFiles::Named("out.d/my-k", "");
  ASSERT_TRUE(launcher.ok());
  EXPECT_TRUE(launcher->is_launcher());
  EXPECT_EQ(launcher->header(), "out.d/my-k.h");
  EXPECT_EQ(launcher->name(), "my_k");
}

TEST(CompileFiles, NamesThatGiveNoFormAreRefused) {
  EXPECT_THAT(ErrorOf("k.txt"), HasSubstr(".so"));
  EXPECT_THAT(ErrorOf("k.txt"), HasSubstr("cuda, opencl"));
  for (const char* bad : {"", "k/", "k.", "k\"", "k\nx", "a b", "k.cl"}) {
    EXPECT_THAT(ErrorOf(bad), HasSubstr("-o ")) << bad;
  }
  EXPECT_THAT(ErrorOf("int"), HasSubstr("a word of C"));
  EXPECT_THAT(ErrorOf("k.so", "k.so"), HasSubstr("the file of -o"));
  EXPECT_THAT(ErrorOf("k", "h.h"), HasSubstr("k.h, beside the launcher"));
}

TEST(CompileFiles, TheFormMustBeTheTargets) {
  const auto library = CompileFiles::Named("k.so", "");
  EXPECT_TRUE(library->CheckKind("cpu").ok());
  EXPECT_THAT(std::string(library->CheckKind("cuda").message()),
              HasSubstr(".h, .c, .cu, .cubin, .ptx"));
  const auto launcher = CompileFiles::Named("k", "");
  EXPECT_TRUE(launcher->CheckKind("opencl").ok());
  EXPECT_THAT(std::string(launcher->CheckKind("cpu").message()),
              HasSubstr(".so"));
}

// The real program with a log that holds nothing.
class CompileForDevices : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(OpenTuningLog(log_).ok()); }

  ProcessResult Compile(std::vector<std::string> more) {
    std::vector<std::string> arguments = {REGATTA_PROGRAM_DIR "/regatta",
                                          "compile", "--log", log_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProcess(arguments, {"REGATTA_SERVER=127.0.0.1:1"},
                      absl::Seconds(30));
  }
  std::string Out(const std::string& name) { return dir_.path() + "/" + name; }
  void ExpectNothingWritten() {
    for (const char* name : {"k.h", "k.c", "k.cl", "k.so"}) {
      EXPECT_FALSE(std::filesystem::exists(Out(name))) << name;
    }
  }

  TempDir dir_;
  std::string log_ = dir_.path() + "/tuning.db";
};

const char kMatmul[] = "matmul(m=8,n=8,k=8)";

TEST_F(CompileForDevices, WritesTheLauncherAndTheCode) {
  const std::vector<std::string> arguments = {
      kMatmul, "--target", "opencl,max_group=64", "-o", Out("k"), "--json"};
  const ProcessResult result = Compile(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(document["grade"], "default");
  EXPECT_EQ(document["function"], "k");
  EXPECT_EQ(document["header"], Out("k.h"));
  EXPECT_THAT(document["files"].get<std::vector<std::string>>(),
              ElementsAre(Out("k.h"), Out("k.c"), Out("k.cl")));
  EXPECT_THAT(ReadFile(Out("k.h")), HasSubstr("int k_launch(k_handle *handle"));
  EXPECT_THAT(ReadFile(Out("k.cl")), HasSubstr("__kernel"));
  const std::string before = ReadFile(Out("k.c"));
  ASSERT_EQ(Compile(arguments).exit_code, 0);
  EXPECT_EQ(ReadFile(Out("k.c")), before);
}

TEST_F(CompileForDevices, PutsEveryTaskIntoOneLauncher) {
  WriteFile(Out("jobs.json"),
            R"json({"tasks": [{"workload": "matmul(m=8,n=8,k=8)"},
                              {"workload": "softmax(rows=4,cols=40)",
                               "symbol": "soft"}]})json");
  const std::vector<std::string> arguments = {
      "--file", Out("jobs.json"), "--target", "opencl",
      "-o",     Out("k"),         "--json"};
  const ProcessResult result = Compile(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(document["functions"].size(), 2u);
  EXPECT_GT(document["functions"][1]["workspace_bytes"], 0);
  EXPECT_EQ(document["files"].size(), 3u);
  const std::string header = ReadFile(Out("k.h"));
  EXPECT_THAT(header, HasSubstr("int matmul_m8_n8_k8(k_handle *handle, "));
  EXPECT_THAT(header, HasSubstr("int soft_launch(k_handle *handle, "));
}

TEST_F(CompileForDevices, WrongNamesAreRefusedAndNothingIsWritten) {
  const std::string target = "opencl";
  ProcessResult result =
      Compile({kMatmul, "--target", target, "-o", Out("k.so")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("kind opencl gives no library"));
  result = Compile(
      {kMatmul, "--target", "cpu,triple=x86_64-linux-gnu", "-o", Out("k")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("kind cpu gives a library"));
  WriteFile(Out("jobs.json"),
            absl::StrCat(R"({"tasks": [{"workload": ")", kMatmul,
                         R"(", "symbol": "k_open"}]})"));
  result =
      Compile({"--file", Out("jobs.json"), "--target", target, "-o", Out("k")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("names that begin with k_ are"));
  ExpectNothingWritten();
}

// Whatever kind the target turns out to be of.
TEST_F(CompileForDevices, NoFileOfALauncherReplacesATuningLog) {
  for (const char* name : {"k.h", "k.cubin"}) {
    const std::string other = Out(name);
    ASSERT_TRUE(OpenTuningLog(other).ok());
    const ProcessResult result =
        Compile({kMatmul, "--target", "opencl", "-o", Out("k")});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr("a tuning log"));
    EXPECT_TRUE(OpenTuningLog(other).ok());
    std::filesystem::remove(other);
  }
  ExpectNothingWritten();
}

TEST_F(CompileForDevices, AFolderThatCannotBeWrittenGetsNoFile) {
  const ProcessResult result =
      Compile({kMatmul, "--target", "opencl", "-o", Out("none/k")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("none/k.h"));
}

}  // namespace
}  // namespace regatta::cli
