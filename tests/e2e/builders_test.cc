// A measure-only board and builders as real processes: tuning without a
// compiler on the board, with a builder killed in the middle.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/fleet.h"
#include "tests/support/libraries.h"

namespace regatta::testing {
namespace {

const char kWorkload[] = "matmul(m=64,n=64,k=64)";

class Builders : public ::testing::Test {
 protected:
  Builders() : fleet_({"--no-agent"}) {
    EXPECT_TRUE(WaitFor(absl::Seconds(20), [&] {
      return !fleet_.server().empty();
    })) << fleet_.Logs();
    tracker_ = fleet_.tracker();
  }
  ~Builders() override {
    for (const auto& agent : agents_) agent->Signal(SIGTERM);
    for (const auto& agent : agents_) agent->Wait(absl::Seconds(10));
  }

  std::string State(const std::string& name) const {
    return absl::StrCat(state_.path(), "/", name);
  }
  std::string KeyOf(const std::string& name) const {
    const ProcessResult printed =
        RunProcess({Program("regatta-agent"), "--print-builder-key", "--state",
                    State(name)},
                   {}, absl::Seconds(20));
    EXPECT_EQ(printed.exit_code, 0) << printed.err;
    return std::string(absl::StripAsciiWhitespace(printed.out));
  }
  Process& Start(const std::string& name, std::vector<std::string> arguments) {
    std::vector<std::string> argv = {Program("regatta-agent"),
                                     "--tracker",
                                     tracker_,
                                     "--id",
                                     name,
                                     "--state",
                                     State(name)};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    agents_.push_back(std::make_unique<Process>(argv, Environment{}));
    return *agents_.back();
  }
  Process& StartBuilder(const std::string& name) {
    return Start(name, {"--role", "builder"});
  }
  Process& StartBoard(const std::vector<std::string>& keys,
                      std::vector<std::string> arguments = {}) {
    arguments.push_back("--measure-only");
    for (const std::string& key : keys) {
      arguments.insert(arguments.end(), {"--trust-builder", key});
    }
    return Start("board", std::move(arguments));
  }
  bool AwaitBoard() {
    return WaitFor(absl::Seconds(60), [&] {
      const ProcessResult result = fleet_.Run({"devices", "--json"});
      if (result.exit_code != 0) return false;
      const Json devices = Json::parse(result.out)["devices"];
      // By then the server has heard of it too.
      return !devices.empty() && devices[0]["health"] != "probing";
    });
  }
  // A device of this kind on a board that only measures: all of its trials'
  // modules, and the reference that its results are compared with, are the
  // builder's. `arguments`: of the board.
  void ExpectDeviceIsBuiltFor(const std::string& kind,
                              std::vector<std::string> arguments) {
    const std::string key = KeyOf("first");
    StartBuilder("first");
    StartBoard({key}, std::move(arguments));
    ASSERT_TRUE(AwaitBoard()) << fleet_.Logs();
    const Json devices = fleet_.Document({"devices"})["devices"];
    ASSERT_EQ(devices.size(), 1u) << devices.dump(1);
    EXPECT_EQ(devices[0]["kind"], kind);
    EXPECT_EQ(devices[0]["measure_only"], true);
    EXPECT_EQ(devices[0]["builder"], "first");
    const std::string device_class = devices[0]["device_class"];

    const Json job =
        fleet_.Document({"tune", kWorkload, "--trials", "4", "--seed", "3",
                         "--device-class", device_class},
                        absl::Seconds(240));
    ASSERT_EQ(job["state"], "done") << job.dump(1) << fleet_.Logs();
    const std::vector<Json> timed = Timed();
    ASSERT_GE(timed.size(), 3u);
    for (const Json& record : timed) {
      EXPECT_EQ(record["device_class"], device_class);
      EXPECT_EQ(record["builder"], "first ed25519:" + key);
    }
    const Json best =
        fleet_.Document({"best", kWorkload, "--device-class", device_class});
    EXPECT_EQ(best["grade"], "exact") << best.dump(1);
  }
  // Records of the board's trials that were timed.
  std::vector<Json> Timed() const {
    std::vector<Json> timed;
    const Json document = fleet_.Document({"records", kWorkload});
    for (const Json& record : document["records"]) {
      if (record["outcome"] == "ok") timed.push_back(record);
    }
    return timed;
  }

  Fleet fleet_;
  TempDir state_;
  std::string tracker_;
  std::vector<std::unique_ptr<Process>> agents_;
};

TEST_F(Builders, ABoardWithoutACompilerIsTunedWhileABuilderIsKilled) {
  const std::string first = KeyOf("first"), second = KeyOf("second");
  ASSERT_EQ(first.size(), 64);
  ASSERT_NE(first, second);
  Process& doomed = StartBuilder("first");
  StartBoard({first, second});
  ASSERT_TRUE(AwaitBoard()) << fleet_.Logs();
  const Json listed = fleet_.Document({"devices"});
  ASSERT_EQ(listed["devices"].size(), 1) << listed.dump(1);
  EXPECT_EQ(listed["devices"][0]["measure_only"], true);
  EXPECT_EQ(listed["devices"][0]["builder"], "first");
  ASSERT_EQ(listed["builders"].size(), 1) << listed.dump(1);
  EXPECT_EQ(listed["builders"][0]["key"], first);

  const auto tune = fleet_.Start(
      {"tune", kWorkload, "--trials", "20", "--seed", "4", "--json"});
  ASSERT_TRUE(WaitFor(absl::Seconds(60), [&] {
    return fleet_.TrialsOf(1) >= 3;
  })) << fleet_.Logs();
  doomed.Signal(SIGKILL);
  doomed.Wait(absl::Seconds(10));
  StartBuilder("second");
  const ProcessResult ended = tune->Wait(absl::Seconds(120));
  ASSERT_EQ(ended.exit_code, 0) << ended.err << fleet_.Logs();
  const Json job = Json::parse(ended.out);
  EXPECT_EQ(job["state"], "done") << job.dump(1);
  EXPECT_EQ(job["tasks"][0]["trials"], 20);

  std::set<std::string> builders;
  const std::vector<Json> timed = Timed();
  ASSERT_GT(timed.size(), 5u);
  for (const Json& record : timed) {
    builders.insert(record["builder"].get<std::string>());
  }
  EXPECT_EQ(builders, (std::set<std::string>{"first ed25519:" + first,
                                             "second ed25519:" + second}));
  // The same code as whoever builds here makes of the same schedules.
  for (size_t i = 0; i < timed.size(); i += timed.size() / 3) {
    const std::string schedule = timed[i]["schedule"];
    const Json here =
        fleet_.Document({"run", kWorkload, "--schedule", schedule, "--threads",
                         absl::StrCat(timed[i]["threads"].get<int>())});
    EXPECT_EQ(here["binary_hash"], timed[i]["binary_hash"]) << schedule;
  }
  const Json best = fleet_.Document({"best", kWorkload});
  EXPECT_EQ(best["grade"], "exact") << best.dump(1);
}

TEST_F(Builders, AnOpenClDeviceOfABoardWithoutACompilerIsTuned) {
  if (!HasLibrary({"libOpenCL.so.1"})) {
    GTEST_SKIP() << "no OpenCL here: install pocl-opencl-icd";
  }
  ExpectDeviceIsBuiltFor("opencl", {"--devices", "opencl"});
}

TEST_F(Builders, ACudaDeviceOfABoardWithoutACompilerIsTuned) {
  if (const std::string missing = MissingNvrtc(); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
  ExpectDeviceIsBuiltFor("cuda", {"--devices", "cuda", "--cuda-driver",
                                  REGATTA_LIB_DIR "/libregatta-cuda-sim.so"});
}

TEST_F(Builders, ABoardRunsNothingOfABuilderThatItDoesNotName) {
  const std::string named = KeyOf("absent");
  StartBuilder("stranger");
  Process& board = StartBoard({named});
  ASSERT_TRUE(WaitFor(absl::Seconds(30), [&] {
    return !fleet_.Document({"devices"})["builders"].empty() &&
           fleet_.Logs().find("agent board is here") != std::string::npos;
  })) << fleet_.Logs();
  // It is not even described by one, and says whom it waits for and who is
  // here.
  Json seen;
  EXPECT_TRUE(WaitFor(absl::Seconds(30), [&] {
    const Json devices = fleet_.Document({"devices"})["devices"];
    if (devices.size() == 1) seen = devices[0];
    return !seen.is_null() &&
           seen["obstacle"].dump().find("stranger") != std::string::npos;
  })) << seen.dump(1);
  EXPECT_EQ(seen["id"], "board");
  EXPECT_EQ(seen["state"], "waiting");
  EXPECT_TRUE(seen["device_class"].is_null()) << seen.dump(1);
  EXPECT_EQ(seen["obstacle"].get<std::string>().find(
                "waiting for a builder: no builder with key " +
                named.substr(0, 16) + "... is online; online are stranger "),
            0u)
      << seen.dump(1);
  const ProcessResult doctor = fleet_.Run({"doctor", "--device", "board"});
  EXPECT_NE(doctor.out.find("online are stranger"), std::string::npos)
      << doctor.out << doctor.err;
  board.Signal(SIGTERM);
  EXPECT_EQ(board.Wait(absl::Seconds(10)).exit_code, 0);
}

TEST_F(Builders, WrongFlagsSayWhatIsWrong) {
  const struct {
    std::vector<std::string> arguments;
    std::string says;
  } cases[] = {
      {{"--measure-only"}, "--trust-builder"},
      {{"--measure-only", "--trust-builder", "abc"}, "64 hexadecimal digits"},
      {{"--measure-only", "--role", "builder", "--trust-builder",
        std::string(64, 'a')},
       "--measure-only"},
      {{"--role", "cook"}, "cook"},
      {{"--target", "opencl"}, "kind cpu"},
      {{"--target", "cpu,triple=sparcv9-linux-gnu"}, "sparcv9"},
  };
  for (const auto& test : cases) {
    Process& agent = Start("wrong", test.arguments);
    const ProcessResult ended = agent.Wait(absl::Seconds(20));
    EXPECT_EQ(ended.exit_code, 2) << ended.err;
    EXPECT_NE(ended.err.find(test.says), std::string::npos) << ended.err;
  }
}

}  // namespace
}  // namespace regatta::testing
