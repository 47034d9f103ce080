// The names of a library's functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "client/cli/compile_library.h"
#include "client/cli/jobs_file.h"

namespace regatta::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> NamesOf(const std::string& tasks,
                                 const std::string& launcher = "") {
  std::vector<std::string> symbols;
  const auto job =
      ParseJobsFile("jobs.json", R"({"tasks": [)" + tasks + "]}", &symbols);
  EXPECT_TRUE(job.ok()) << job.status();
  if (!job.ok()) return {""};
  EXPECT_EQ(symbols.size(), static_cast<size_t>(job->tasks_size()));
  const auto names = FunctionNames(*job, symbols, "jobs.json", launcher);
  if (names.ok()) return *names;
  EXPECT_TRUE(absl::IsInvalidArgument(names.status()));
  return {std::string(names.status().message())};
}

TEST(FunctionNames, AreGivenOrMadeOfTheWorkloadAndPolicy) {
  EXPECT_THAT(NamesOf(R"json({"workload": "matmul(m=8,n=8,k=16)"},
                     {"workload": "matmul(m=8,n=8,k=16)", "threads": 2},
                     {"workload": "matmul(m=8,n=8,k=16)", "cache": "cold"},
                     {"workload": "matmul(m=8,n=8,k=8)",
                      "symbol": "mine"})json"),
              ElementsAre("matmul_m8_n8_k16", "matmul_m8_n8_k16_t2",
                          "matmul_m8_n8_k16_cold", "mine"));
  const auto names =
      NamesOf(R"json({"workload": "B[i] = max(A[i], 0) where i=8"})json");
  EXPECT_THAT(names[0], ::testing::StartsWith("elementwise_"));
}

TEST(FunctionNames, RefuseClashesByNameAndPlace) {
  std::string error = NamesOf(R"json({"workload": "matmul(m=8,n=8,k=16)"},
                                     {"workload": "softmax(rows=4,cols=4)"},
                                     {"workload": "matmul(m=8, n=8, k=16)",
                                      "device_classes": ["a"]})json")[0];
  EXPECT_THAT(error, HasSubstr("jobs.json: tasks[2]"));
  EXPECT_THAT(error, HasSubstr("tasks[0] would both export matmul_m8_n8_k16"));
  // One function's workspace twin is another's name.
  error = NamesOf(R"json({"workload": "matmul(m=8,n=8,k=16)", "symbol": "a"},
                         {"workload": "softmax(rows=4,cols=4)",
                          "symbol": "a_ws"})json")[0];
  EXPECT_THAT(error, HasSubstr("both export a_ws"));
  for (const char* bad :
       {"int", "main", "_init", "_k", "malloc", "2fast", "a-b", "a.b", "a/b"}) {
    error = NamesOf(absl::StrCat(
        R"json({"workload": "softmax(rows=4,cols=4)", "symbol": ")json", bad,
        R"json("})json"))[0];
    EXPECT_THAT(error, HasSubstr("tasks[0]")) << bad;
    EXPECT_THAT(error, HasSubstr(bad));
  }
}

}  // namespace
}  // namespace regatta::cli
