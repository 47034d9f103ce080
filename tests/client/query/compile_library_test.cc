// `regatta log snapshot`, `best --snapshot` and `compile --file` with the real
// program, on a planted log.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "compiler/compile.h"
#include "tests/server/query/planted_log.h"
#include "tests/support/process.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using testing::ProcessResult;
using testing::ReadFile;
using testing::RunProcess;

class CompileFile : public ::testing::Test {
 protected:
  CompileFile() {
    auto log = OpenTuningLog(Path("log.db"));
    CHECK(log.ok()) << log.status();
    testing::PlantLog(**log, CompilerVersion(Target()));
  }
  std::string Path(const std::string& name) const {
    return absl::StrCat(dir_.path(), "/", name);
  }
  ProcessResult Regatta(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     std::string(REGATTA_PROGRAM_DIR) + "/regatta");
    return RunProcess(arguments);
  }
  void TakeSnapshot() {
    const ProcessResult result =
        Regatta({"log", "snapshot", "--log", Path("log.db"), "-o",
                 Path("best.rgs"), "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto json = nlohmann::json::parse(result.out);
    EXPECT_EQ(json["answers"], 9);
    EXPECT_EQ(json["workloads"], 9);
  }
  // For this machine, where the code is to run.
  static std::string HostText() { return HostTarget()->ToString(); }

  testing::TempDir dir_;
};

constexpr char kJobs[] = R"json({
  "name": "both", "budget": {"trials": 10},
  "tasks": [
    {"workload": "matmul(m=64,n=64,k=64)", "weight": 2},
    {"workload": "matmul(m=128,n=64,k=64)", "symbol": "second", "threads": 2},
    {"workload": "C[i,j] = sum(k) A[i,k] * B[k,j] where i=33, j=17, k=9",
     "symbol": "odd", "threads": 2}
  ]})json";

TEST_F(CompileFile, BestAnswersFromASnapshotAsFromTheLog) {
  TakeSnapshot();
  const std::string first = ReadFile(Path("best.rgs"));
  TakeSnapshot();
  EXPECT_EQ(ReadFile(Path("best.rgs")), first);
  const std::vector<std::string> ask = {"best", "matmul(m=64,n=64,k=64)",
                                        "--device-class", testing::kClassA,
                                        "--json"};
  auto from_log = ask, from_snapshot = ask;
  from_log.insert(from_log.end(), {"--log", Path("log.db")});
  from_snapshot.insert(from_snapshot.end(), {"--snapshot", Path("best.rgs")});
  const ProcessResult log = Regatta(from_log);
  const ProcessResult snapshot = Regatta(from_snapshot);
  ASSERT_EQ(log.exit_code, 0) << log.err;
  auto a = nlohmann::json::parse(log.out);
  auto b = nlohmann::json::parse(snapshot.out);
  for (auto* document : {&a, &b}) document->erase("age_s");
  EXPECT_EQ(a, b);
  EXPECT_EQ(a["grade"], "exact");
  from_log.insert(from_log.end(), {"--snapshot", Path("best.rgs")});
  EXPECT_EQ(Regatta(from_log).exit_code, 2);
}

TEST_F(CompileFile, BuildsOneLibraryReproduciblyThatComputes) {
  TakeSnapshot();
  testing::WriteFile(Path("jobs.json"), kJobs);
  const auto compile = [&](const std::string& output) {
    return Regatta({"compile", "--file", Path("jobs.json"), "--snapshot",
                    Path("best.rgs"), "--target", HostText(), "-o",
                    Path(output), "--header", Path("kernels.h"), "--json"});
  };
  const ProcessResult result = compile("one.so");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string header = ReadFile(Path("kernels.h"));
  ASSERT_EQ(compile("two.so").exit_code, 0);
  EXPECT_EQ(ReadFile(Path("one.so")), ReadFile(Path("two.so")));
  EXPECT_EQ(ReadFile(Path("kernels.h")), header);
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json["functions"].size(), 3u);
  EXPECT_EQ(json["functions"][0]["function"], "matmul_m64_n64_k64");
  EXPECT_EQ(json["functions"][2]["function"], "odd");
  for (const char* text :
       {"int matmul_m64_n64_k64(", "int second(", "int odd_ws(",
        "odd_workspace_bytes", " * schedule  ", " * chosen    "}) {
    EXPECT_THAT(header, HasSubstr(text));
  }

  void* library = dlopen(Path("one.so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  struct Case {
    const char* name;
    int m, n, k;
  };
  for (const Case& c : {Case{"matmul_m64_n64_k64", 64, 64, 64},
                        Case{"second", 128, 64, 64}, Case{"odd", 33, 17, 9}}) {
    using Kernel = int (*)(const float*, const float*, float*);
    const auto kernel = reinterpret_cast<Kernel>(dlsym(library, c.name));
    ASSERT_NE(kernel, nullptr) << c.name;
    EXPECT_NE(dlsym(library, absl::StrCat(c.name, "_workspace_bytes").c_str()),
              nullptr);
    std::vector<float> a(c.m * c.k), b(c.k * c.n), out(c.m * c.n, -1);
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3;
    for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) - 2;
    ASSERT_EQ(kernel(a.data(), b.data(), out.data()), 0);
    for (int i = 0; i < c.m; ++i) {
      for (int j = 0; j < c.n; ++j) {
        float sum = 0;  // small whole numbers: exact
        for (int k = 0; k < c.k; ++k) sum += a[i * c.k + k] * b[k * c.n + j];
        ASSERT_EQ(out[i * c.n + j], sum) << c.name << " " << i << " " << j;
      }
    }
  }
  EXPECT_EQ(dlsym(library, "regatta_parallel_for"), nullptr);
  dlclose(library);
  const ProcessResult needed = RunProcess({"readelf", "-d", Path("one.so")});
  const std::vector<std::string> lines = absl::StrSplit(needed.out, '\n');
  for (const std::string& line : lines) {
    if (line.find("(NEEDED)") == std::string::npos) continue;
    EXPECT_TRUE(line.find("libc.so") != std::string::npos ||
                line.find("libm.so") != std::string::npos)
        << line;
  }
}

TEST_F(CompileFile, ADifferentClassForTwoTasksIsRefused) {
  TakeSnapshot();
  testing::WriteFile(Path("jobs.json"), R"json({"tasks": [
    {"workload": "matmul(m=64,n=64,k=64)", "device_classes": ["znver4-2c"]},
    {"workload": "softmax(rows=32,cols=512)",
     "device_classes": ["neoverse-n1-4c"]}]})json");
  const ProcessResult result =
      Regatta({"compile", "--file", Path("jobs.json"), "--snapshot",
               Path("best.rgs"), "-o", Path("lib.so")});
EXPECT_EQ(result.exit_code, 2);
EXPECT_THAT(result.err, HasSubstr("tasks[1].device_classes"));
EXPECT_EQ(ReadFile(Path("lib.so")), "");
}

TEST_F(CompileFile, BadUsageIsSaidAndWritesNothing) {
  testing::WriteFile(Path("jobs.json"), kJobs);
  testing::WriteFile(Path("clash.json"), R"json({"tasks": [
    {"workload": "matmul(m=64,n=64,k=64)"},
    {"workload": "matmul(m=64, n=64, k=64)", "device_classes": ["a"]}
    ]})json");
  struct Case {
  std::vector<std::string> arguments;
  int code;
  const char* words;
};
const std::string log = Path("log.db"), out = Path("lib.so");
for (const Case& c : std::vector<Case>{
         {{"compile", "-o", out}, 2, "give a workload"},
         {{"compile", "matmul(m=4,n=4,k=4)", "--file", Path("jobs.json"), "-o",
           out},
          2,
          "exclude one another"},
         {{"compile", "--file", Path("jobs.json"), "-o", Path("lib.o")},
          2,
          "must end in .so"},
         {{"compile", "--file", Path("clash.json"), "--log", log, "--target",
           HostText(), "-o", out},
          2,
          "tasks[0] would both export"},
         {{"compile", "--file", Path("none.json"), "-o", out}, 1, "none.json"},
         {{"compile", "--file", Path("jobs.json"), "--snapshot", log, "-o",
           out},
          1,
          "not a snapshot"},
         {{"log", "snapshot", "--log", Path("none.db"), "-o", out},
          1,
          "none.db"},
         {{"log", "snapshot", "--log", log, "-o", "/nowhere/best.rgs"},
          1,
          "/nowhere/best.rgs"}}) {
  const ProcessResult result = Regatta(c.arguments);
  EXPECT_EQ(result.exit_code, c.code) << result.err;
  EXPECT_THAT(result.err, HasSubstr(c.words));
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(ReadFile(out), "");
}
}

}  // namespace
}  // namespace regatta
