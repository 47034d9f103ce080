// A job of several tasks from a file, on a whole Regatta.
#include <gtest/gtest.h>

#include "tests/e2e/fleet.h"

namespace regatta::testing {
namespace {

const char kThreeTasks[] = R"json({
  "name": "several", "seed": 3, "budget": {"trials": 24},
  "tasks": [
    {"workload": "matmul(m=64,n=64,k=64)", "weight": 2},
    {"workload": "softmax(rows=32,cols=128)"},
    {"workload": "matmul(m=32,n=48,k=64)",
     "budget": {"trials": 60, "until_gain": 0.1}}
  ]
})json";

const char kUnknownClass[] = R"json({"tasks": [
  {"workload": "softmax(rows=32,cols=128)"},
  {"workload": "softmax(rows=32,cols=64)", "device_classes": ["none"]}
]})json";

const char kWrongType[] = R"json({"tasks": [
  {"workload": "softmax(rows=32,cols=128)", "threads": "two"}
]})json";

TEST(JobsFile, AJobOfSeveralTasksSharesTheBoard) {
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  const std::string file = fleet.dir() + "/jobs.json";
  WriteFile(file, kThreeTasks);
  // Some 90 trials, more where times are too noisy to show the gain at once.
  const Json job =
      fleet.Document({"tune", "--file", file}, absl::Minutes(4));
  EXPECT_EQ(job["state"], "done");
  EXPECT_EQ(job["name"], "several");
  ASSERT_EQ(job["tasks"].size(), 3u);
  EXPECT_EQ(job["tasks"][0]["trials"], 16);
  EXPECT_EQ(job["tasks"][1]["trials"], 8);
  EXPECT_EQ(job["tasks"][0]["ended_by"], "trials");
  for (const Json& task : job["tasks"]) {
    EXPECT_EQ(task["state"], "done");
    EXPECT_GT(task["device_ns"].get<int64_t>(), 0);
    EXPECT_TRUE(task["confirmed"].get<bool>()) << task;
  }
  const Json& third = job["tasks"][2];
  if (third["ended_by"] == "until_gain") {
    EXPECT_GE(third["speedup_interval"][0].get<double>(), 1.001);
  } else {
    EXPECT_EQ(third["trials"], 60);
  }
}

TEST(JobsFile, ABadOneIsRefusedAsAWhole) {
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  const std::string file = fleet.dir() + "/jobs.json";
  WriteFile(file, kUnknownClass);
  const ProcessResult refused = fleet.Run({"tune", "--file", file});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_NE(refused.err.find(file + ": tasks[1]: "), std::string::npos)
      << refused.err;
  WriteFile(file, kWrongType);
  const ProcessResult malformed = fleet.Run({"tune", "--file", file});
  EXPECT_EQ(malformed.exit_code, 2);
  EXPECT_NE(malformed.err.find(
                "tasks[0].threads: \"two\" is no whole number from 1 to 1024"),
            std::string::npos)
      << malformed.err;
  EXPECT_EQ(fleet.Document({"jobs"})["jobs"].size(), 0u);
  const ProcessResult resumed = fleet.Run({"resume", "1"});
  EXPECT_EQ(resumed.exit_code, 1);
  EXPECT_NE(resumed.err.find("no job 1"), std::string::npos) << resumed.err;
}

}  // namespace
}  // namespace regatta::testing
