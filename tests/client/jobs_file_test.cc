// The job document: what it may say, and what is said of what it may not.
#include "client/cli/jobs_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace regatta::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kFull[] = R"json({
  "name": "nightly", "priority": -3, "weight": 2.5, "strategy": "random",
  "seed": 18446744073709551615, "fresh": true,
  "budget": {"trials": 600, "until_gain": 30},
  "tasks": [
    {"workload": "matmul( m=64, n=64, k=64 )", "weight": 2,
     "device_classes": ["a-2c", "b-4c"], "threads": 2, "cache": "cold",
     "budget": {"minutes": 1.5}},
    {"workload": "softmax(rows=8,cols=64)"}
  ]
})json";

TEST(JobsFile, ReadsEveryField) {
  const auto request = ParseJobsFile("jobs.json", kFull);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->name(), "nightly");
  EXPECT_EQ(request->priority(), -3);
  EXPECT_EQ(request->weight(), 2.5);
  EXPECT_EQ(request->strategy(), "random");
  EXPECT_TRUE(request->has_seed());
  EXPECT_EQ(request->seed(), UINT64_MAX);
  EXPECT_TRUE(request->fresh());
  EXPECT_EQ(request->trials(), 600);
  EXPECT_EQ(request->until_gain_percent(), 30);
  ASSERT_EQ(request->tasks_size(), 2);
  const v1::TaskRequest& first = request->tasks(0);
  EXPECT_EQ(first.workload(), "matmul(m=64,n=64,k=64)");
  EXPECT_EQ(first.weight(), 2);
  ASSERT_EQ(first.device_classes_size(), 2);
  EXPECT_EQ(first.device_classes(1), "b-4c");
  EXPECT_EQ(first.policy().threads(), 2);
  EXPECT_EQ(first.policy().cache(), v1::CACHE_STATE_COLD);
  EXPECT_EQ(first.minutes(), 1.5);
  EXPECT_EQ(first.trials(), 0);
  const v1::TaskRequest& second = request->tasks(1);
  EXPECT_EQ(second.device_classes_size(), 0);
  EXPECT_EQ(second.policy().threads(), 1);
  EXPECT_EQ(second.policy().cache(), v1::CACHE_STATE_WARM);
  EXPECT_EQ(second.weight(), 1);
  EXPECT_EQ(second.trials(), 0);
}

constexpr char kSoftmax[] =
    R"json({"workload": "softmax(rows=8,cols=64)"})json";

std::string Task(const std::string& fields) {
  return absl::StrCat("{\"tasks\": [", kSoftmax,
                      R"json(, {"workload": "matmul(m=64,n=64,k=64)", )json",
                      fields, "}]}");
}
std::string Job(const std::string& fields) {
  return absl::StrCat("{\"tasks\": [", kSoftmax, "], ", fields, "}");
}

struct Bad {
  std::string text;
  const char* words;
};

TEST(JobsFile, WhatIsWrongIsSaidWithItsPlace) {
  std::string many = R"({"tasks": [)";
  for (int i = 0; i <= 1000; ++i) {
    absl::StrAppend(&many, i > 0 ? "," : "",
                    "{\"workload\": \"softmax(rows=", i + 1, ",cols=8)\"}");
  }
  many += "]}";
  const Bad kBad[] = {
      {"", "line 1, column 1: this is no JSON"},
      {"   \n\n", "this is no JSON"},
      {"{\"tasks\": [\n  {\"workload\": \"soft", "line 2, column"},
      {"[]", "jobs.json: [] is no object"},
      {"null", "null is no object"},
      {"{}", "tasks: is missing"},
      {R"({"tasks": []})", "tasks: is no list of tasks, at least one"},
      {R"({"tasks": {}})", "tasks: is no list of tasks"},
      {R"({"tasks": [3]})", "tasks[0]: 3 is no object"},
      {R"({"tasks": [{}]})", "tasks[0].workload: is missing"},
      {many, "tasks: has 1001 tasks; at most 1000"},
      {Task(R"("thread": 4)"), "tasks[1].thread: there is no such field"},
      {Task(R"("threads": "four")"),
       "tasks[1].threads: \"four\" is no whole number from 1 to 1024"},
      {Task(R"("threads": 0)"), "tasks[1].threads: 0 is no whole number"},
      {Task(R"("threads": 1.5)"), "tasks[1].threads: 1.5 is no whole number"},
      {Task(R"("threads": 99999999999999999999)"), "tasks[1].threads: "},
      {Task(R"("threads": -1)"), "tasks[1].threads: -1 is no whole number"},
      {Task(R"("threads": null)"), "tasks[1].threads: null is no whole number"},
      {Task(R"("cache": "hot")"), "tasks[1].cache: 'hot' is neither"},
      {Task(R"("weight": 0)"), "tasks[1].weight: 0 is no number from 0.001"},
      {Task(R"("weight": -1)"), "tasks[1].weight: -1 is no number"},
      {Task(R"("weight": NaN)"), "this is no JSON"},
      {Task(R"("weight": 1e999)"), "this number is too large"},
      {Task(R"("weight": "2")"), "tasks[1].weight: \"2\" is no number"},
      {Task(R"("device_classes": [])"), "tasks[1].device_classes: is no list"},
      {Task(R"("device_classes": "a")"), "tasks[1].device_classes: is no list"},
      {Task(R"("device_classes": ["a", 3])"),
       "tasks[1].device_classes[1]: 3 is no class"},
      {Task(R"("device_classes": ["a", "a"])"),
       "tasks[1].device_classes[1]: \"a\" is there twice"},
      {Task(R"("budget": 100)"), "tasks[1].budget: 100 is no object"},
      {Task(R"("budget": {})"), "tasks[1].budget: is empty"},
      {Task(R"("budget": {"trials": 0})"),
       "tasks[1].budget.trials: 0 is no whole number from 1 to 1000000"},
      {Task(R"("budget": {"trials": 5, "minutes": 1})"),
       "tasks[1].budget: trials and minutes are both given"},
      {Task(R"("budget": {"until_gain": -5})"),
       "tasks[1].budget.until_gain: -5 is no number"},
      {Task(R"("budget": {"hours": 1})"),
       "tasks[1].budget.hours: there is no such field"},
      {Task(R"json("workload": "softmax(rows=8,cols=8)")json"),
       "the field \"workload\" stands twice"},
      {R"json({"tasks": [{"workload": "matmull(m=1)"}]})json",
       "tasks[0].workload: "},
      {R"json({"tasks": [{"workload": 7}]})json",
       "tasks[0].workload: 7 is no text"},
      {R"json({"tasks": [{"workload": "softmax(rows=8,cols=64)"},
                         {"workload": "softmax( cols=64, rows=8 )"}]})json",
       "tasks[1]: repeats tasks[0]"},
      // The same mathematics, in other words and names.
      {R"json({"tasks": [
          {"workload": "matmul(m=8,n=8,k=8)", "device_classes": ["a", "b"]},
          {"workload": "R[y,x] = sum(z) P[y,z] * Q[z,x] where y=8, x=8, z=8",
           "device_classes": ["b", "a"]}]})json",
       "tasks[1]: repeats tasks[0]"},
      {Job(R"("priority": 101)"), "priority: 101 is no whole number from -100"},
      {Job(R"("priority": "high")"), "priority: \"high\" is no whole number"},
      {Job(R"("seed": -1)"), "seed: -1 is no whole number from 0"},
      {Job(R"("seed": 1.5)"), "seed: 1.5 is no whole number"},
      {Job(R"("fresh": 1)"), "fresh: 1 is not true or false"},
      {Job(R"("strategy": "annealing")"), "strategy: 'annealing' does not"},
      {Job(R"("minutes": 5)"), "minutes: there is no such field; there are: "},
      {Job(absl::StrCat("\"name\": \"", std::string(201, 'x'), "\"")),
       "name: has 201 bytes"},
      {Job("\"name\": \"\xff\xfe\""), "this is no JSON"},
      {Job(R"("budget": {"trials": 1}, "name": "x"} trailing)"),
       "this is no JSON"},
      {R"json({"budget": {"trials": 1},
               "tasks": [{"workload": "softmax(rows=8,cols=64)"},
                         {"workload": "softmax(rows=9,cols=64)"}]})json",
       "budget.trials: 1 for 2 tasks together"},
      {std::string((16 << 20) + 1, ' '), "has more than 16 MiB"},
      {"\n {\"a\": \"[[[[\", \"tasks\": " + std::string(100'000, '['),
       "line 2, column 56: lists and objects are nested more than 32 deep"},
      {"{\"a\": " + std::string(31, '[') + std::string(31, ']') + "}",
       "a: there is no such field"},
      // Quotes and backslashes that are escaped end no string.
      {"{\"a\": \"\\\"" + std::string(40, '[') + "\\\\\"}",
       "a: there is no such field"},
      {R"json({"name": "\" 1e999 \\", "weight": 1e999})json",
       "line 1, column 35: this number is too large"},
      {R"json({"name": "1e999", "seed": -1e3,
 "weight": 1e999})json",
       "line 2, column 12: this number is too large"},
  };
  for (const Bad& bad : kBad) {
    const auto request = ParseJobsFile("jobs.json", bad.text);
    EXPECT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument)
        << bad.words;
    const std::string message(request.status().message());
    EXPECT_THAT(message, StartsWith("jobs.json: "));
    EXPECT_THAT(message, HasSubstr(bad.words));
    EXPECT_LT(message.size(), 2000u);
  }
}

TEST(JobsFile, AFileThatCannotBeReadIsNamed) {
  const auto missing = ReadJobsFile("/nowhere/jobs.json");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("/nowhere/jobs.json: cannot be read: No such file"));
  EXPECT_FALSE(ReadJobsFile(::testing::TempDir()).ok());
}

TEST(JobsFile, IsReadFromAFile) {
  const std::string path = ::testing::TempDir() + "/regatta_jobs_file.json";
  std::ofstream(path) << kFull;
  const auto request = ReadJobsFile(path);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->tasks_size(), 2);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace regatta::cli
