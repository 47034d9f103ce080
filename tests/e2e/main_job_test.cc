// Register a board, tune, record, query, compile, call from C.
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "tests/e2e/fleet.h"

namespace regatta::testing {
namespace {

const char kWorkload[] = "matmul(m=96,n=80,k=64)";

// A C program that calls `name` on a 96x80x64 product and checks it.
std::string CheckProgram(const std::string& name) {
  return absl::StrCat(R"(
#include <math.h>
#include <pthread.h>
#include ")", name, R"(.h"
static float A[96*64], B[64*80];
static void *call(void *out) {
  for (int n = 0; n < 50; ++n) if ()", name, R"((A, B, out)) return out;
  return 0;
}
int main(void) {
  for (int i = 0; i < 96*64; ++i) A[i] = (float)(i % 17 - 8);
  for (int i = 0; i < 64*80; ++i) B[i] = (float)(i % 13 - 6);
  static float C[2][96*80];
  static char workspace[1 << 22] __attribute__((aligned(64)));
  if ()", name, R"(_workspace_bytes > sizeof workspace) return 3;
  if ()", name, R"(_ws(A, B, C[0], workspace)) return 4;
  if ()", name, R"((0, B, C[0]) == 0) return 5;
  pthread_t other;
  pthread_create(&other, 0, call, C[0]);
  if (call(C[1])) return 6;
  void *failed;
  pthread_join(other, &failed);
  if (failed) return 7;
  for (int t = 0; t < 2; ++t)
    for (int i = 0; i < 96; ++i)
      for (int j = 0; j < 80; ++j) {
        double s = 0;
        for (int k = 0; k < 64; ++k) s += (double)A[i*64+k] * B[k*80+j];
        if (s != C[t][i*80+j]) return 2;
      }
  return 0;
}
)");
}

void CallFromC(const std::string& dir, const std::string& name) {
  WriteFile(dir + "/t.c", CheckProgram(name));
  const ProcessResult cc =
      RunProcess({"cc", "-O1", "-Wall", "-Werror", dir + "/t.c", "-o",
                  dir + "/t", dir + "/lib.so", "-lm", "-lpthread",
                  "-Wl,-rpath," + dir});
  ASSERT_EQ(cc.exit_code, 0) << cc.err;
  EXPECT_EQ(RunProcess({dir + "/t"}).exit_code, 0);
}

TEST(MainJob, TunesRecordsAnswersAndCompiles) {
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());

  const Json devices = fleet.Document({"devices"});
  ASSERT_EQ(devices["devices"].size(), 1);
  const std::string device_class = devices["devices"][0]["device_class"];

  const Json job = fleet.Document(
      {"tune", kWorkload, "--trials", "25", "--seed", "7", "--name", "first"});
  EXPECT_EQ(job["state"], "done");
  const Json task = job["tasks"][0];
  EXPECT_EQ(task["workload"], kWorkload);
  EXPECT_EQ(task["device_class"], device_class);
  EXPECT_EQ(task["threads"], 1);
  EXPECT_EQ(task["cache"], "warm");
  EXPECT_EQ(task["trials"], 25);
  EXPECT_EQ(task["reused"], 0);
  EXPECT_GT(task["default_ns"].get<int64_t>(), 0);
  EXPECT_GT(task["best_ns"].get<int64_t>(), 0);
  EXPECT_GE(task["speedup"].get<double>(), 1.0);

  // One row per trial; at least the default, the candidates and a comparison.
  const Json records = fleet.Document({"records", kWorkload})["records"];
  std::set<std::string> trials;
  int candidates = 0;
  for (const Json& record : records) {
    trials.insert(record["trial"].get<std::string>());
    candidates += record["kind"] == "candidate";
    EXPECT_NE(record["outcome"], "wrong_result") << record;
  }
  EXPECT_EQ(trials.size(), records.size());
  EXPECT_EQ(candidates, 25);
  EXPECT_GT(records.size(), 26);

  const Json best = fleet.Document({"best", kWorkload});
  EXPECT_EQ(best["grade"], "exact");
  EXPECT_EQ(best["schedule"], task["schedule"]);
  EXPECT_EQ(best["boards"], 1);
  EXPECT_LE(best["interval_ns"][0], best["time_ns"]);
  EXPECT_GE(best["interval_ns"][1], best["time_ns"]);
  // Another policy is another key.
  EXPECT_NE(fleet.Document({"best", kWorkload, "--cache", "cold"})["grade"],
            "exact");
  const ProcessResult required = fleet.Run(
      {"best", "matmul(m=96,n=80,k=65)", "--require", "exact", "--json"});
  EXPECT_EQ(required.exit_code, 3) << required.err;
  EXPECT_FALSE(Json::parse(required.out)["differing_field"].is_null());

  TempDir out;
  const Json compiled = fleet.Document(
      {"compile", kWorkload, "-o", out.path() + "/lib.so", "--header",
       out.path() + "/k.h"});
  EXPECT_EQ(compiled["grade"], "exact");
  EXPECT_EQ(compiled["schedule"], task["schedule"]);
  CallFromC(out.path(), "k");
  // The same schedule and compiler give the same bytes.
  fleet.Document({"compile", kWorkload, "-o", out.path() + "/again.so",
                  "--header", out.path() + "/k.h"});
  EXPECT_EQ(ReadFile(out.path() + "/lib.so"),
            ReadFile(out.path() + "/again.so"));

  // The log's file answers too, once no server holds it.
  const ProcessResult held =
      fleet.Run({"compile", kWorkload, "--log", fleet.dir() + "/tuning.db",
                 "-o", out.path() + "/held.so"});
  EXPECT_EQ(held.exit_code, 1);
  EXPECT_NE(held.err.find("tuning.db"), std::string::npos) << held.err;
  EXPECT_EQ(fleet.Stop().exit_code, 0);
  const ProcessResult offline =
      fleet.Run({"compile", kWorkload, "--log", fleet.dir() + "/tuning.db",
                 "-o", out.path() + "/off.so", "--header",
                 out.path() + "/k.h", "--json"});
  ASSERT_EQ(offline.exit_code, 0) << offline.err;
  EXPECT_EQ(Json::parse(offline.out)["schedule"], task["schedule"]);
  EXPECT_EQ(ReadFile(out.path() + "/lib.so"), ReadFile(out.path() + "/off.so"));
}

TEST(MainJob, ASecondJobStartsFromTheLogAndAFreshOneDoesNot) {
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  const std::string workload = "softmax(rows=16,cols=100)";
  fleet.Document({"tune", workload, "--trials", "12", "--seed", "1"});
  const Json second =
      fleet.Document({"tune", workload, "--trials", "6", "--seed", "1"});
  EXPECT_EQ(second["tasks"][0]["trials"], 6);
  EXPECT_GE(second["tasks"][0]["reused"], 12);

  std::set<std::string> schedules;
  int candidates = 0;
  const Json records = fleet.Document({"records", workload})["records"];
  for (const Json& record : records) {
    if (record["kind"] != "candidate") continue;
    ++candidates;
    schedules.insert(record["schedule"].get<std::string>());
  }
  EXPECT_EQ(candidates, 18);
  EXPECT_EQ(schedules.size(), 18) << "a schedule was measured again";

  const Json fresh = fleet.Document(
      {"tune", workload, "--trials", "6", "--seed", "1", "--fresh"});
  EXPECT_EQ(fresh["tasks"][0]["reused"], 0);
  EXPECT_EQ(fresh["tasks"][0]["trials"], 6);
}

TEST(MainJob, ASpaceSmallerThanTheBudgetIsExhausted) {
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  const Json job = fleet.Document(
      {"tune", "matmul(m=1,n=1,k=1)", "--trials", "100000"},
      absl::Seconds(200));
  EXPECT_EQ(job["state"], "exhausted");
  EXPECT_LT(job["tasks"][0]["trials"], 100000);
}

TEST(MainJob, ATypedExpressionIsTunedLikeAnOperator) {
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  const std::string expression =
      "C[i,j] = sum(k) A[i,k] * B[k,j]; D[i,j] = max(C[i,j] + bias[j], 0) "
      "where i=33, j=47, k=29, dtype=f32";
  const Json job =
      fleet.Document({"tune", expression, "--trials", "8", "--seed", "2"});
  EXPECT_EQ(job["state"], "done");
  EXPECT_EQ(fleet.Document({"best", expression})["grade"], "exact");
}

TEST(MainJob, RunNeedsNoDaemon) {
  TempDir home;
  const ProcessResult result =
      RunProcess({Program("regatta"), "run", "matmul(m=65,n=33,k=17)", "--json"},
                 {"REGATTA_SERVER=127.0.0.1:1", "HOME=" + home.path()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(document["verified"], true);
  EXPECT_GT(document["time_ns"].get<int64_t>(), 0);
  EXPECT_GT(document["gflops"].get<double>(), 0);
  EXPECT_FALSE(document["schedule"].get<std::string>().empty());
}

}  // namespace
}  // namespace regatta::testing
