// Snapshots of a log that a server holds, and what is built from them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/e2e/fleet.h"

namespace regatta::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kWorkload[] = "matmul(m=96,n=80,k=64)";
constexpr char kJobs[] = R"json({"tasks": [
  {"workload": "matmul(m=96,n=80,k=64)", "symbol": "tuned"},
  {"workload": "softmax(rows=7,cols=33)"}]})json";

TEST(Snapshot, AnswersAndCompilesAsTheServerThatWroteIt) {
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  TempDir dir;
  const std::string file = dir.path() + "/best.rgs";
  EXPECT_EQ(fleet.Document(
                {"tune", kWorkload, "--trials", "8", "--seed", "3"})["state"],
            "done");
  const Json written = fleet.Document({"log", "snapshot", "-o", file});
  EXPECT_EQ(written["answers"], 1);
  const std::string bytes = ReadFile(file);
  fleet.Document({"log", "snapshot", "-o", file});
  EXPECT_EQ(ReadFile(file), bytes);

  Json served = fleet.Document({"best", kWorkload});
  const auto regatta = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), Program("regatta"));
    return RunProcess(arguments);
  };
  const ProcessResult asked =
      regatta({"best", kWorkload, "--snapshot", file, "--json"});
  ASSERT_EQ(asked.exit_code, 0) << asked.err;
  Json answered = Json::parse(asked.out);
  EXPECT_EQ(served["grade"], "exact");
  served.erase("age_s");
  answered.erase("age_s");
  EXPECT_EQ(answered, served);

  WriteFile(dir.path() + "/jobs.json", kJobs);
  const Json from_server = fleet.Document(
      {"compile", "--file", dir.path() + "/jobs.json", "-o",
       dir.path() + "/server.so", "--header", dir.path() + "/kernels.h"});
  const std::string header = ReadFile(dir.path() + "/kernels.h");
  const ProcessResult built =
      regatta({"compile", "--file", dir.path() + "/jobs.json", "-o",
               dir.path() + "/snapshot.so", "--header",
               dir.path() + "/kernels.h", "--snapshot", file});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  EXPECT_EQ(from_server["functions"][0]["grade"], "exact");
  EXPECT_EQ(from_server["functions"][1]["grade"], "default");
  EXPECT_EQ(ReadFile(dir.path() + "/server.so"),
            ReadFile(dir.path() + "/snapshot.so"));
  EXPECT_EQ(ReadFile(dir.path() + "/kernels.h"), header);
}

}  // namespace
}  // namespace regatta::testing
