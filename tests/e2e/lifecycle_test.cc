// Coming up, going on after restarts, going down.
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "tests/e2e/fleet.h"

namespace regatta::testing {
namespace {

TEST(Lifecycle, SigtermStopsEverythingCleanly) {
  auto fleet = std::make_unique<Fleet>();
  ASSERT_TRUE(fleet->Ready());
  const std::string dir = fleet->dir();
  const ProcessResult result = fleet->Stop();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(ProcessesWith(dir).empty());
  EXPECT_FALSE(std::filesystem::exists(dir + "/address"));
  EXPECT_TRUE(std::filesystem::exists(dir + "/tuning.db"));
}

TEST(Lifecycle, ADetachedJobGoesOnAfterTheServerRestarts) {
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  const Json submitted = fleet.Document(
      {"tune", "matmul(m=64,n=64,k=64)", "--trials", "30", "--detach"});
  EXPECT_EQ(submitted["job"], 1);
  const pid_t server = fleet.DaemonPid("server");
  ASSERT_GT(server, 0);
  kill(server, SIGKILL);
  EXPECT_TRUE(WaitFor(absl::Seconds(120), [&] {
    const ProcessResult result = fleet.Run({"jobs", "1", "--json"});
    return result.exit_code == 0 &&
           Json::parse(result.out)["state"] == "done";
  })) << fleet.Logs();
}

TEST(Lifecycle, CtrlCInTuneDetachesAndCancelEndsTheJob) {
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  auto tune = fleet.Start(
      {"tune", "matmul(m=64,n=64,k=64)", "--trials", "100000"});
  // Once the board has proven itself.
  ASSERT_TRUE(WaitFor(absl::Seconds(30), [&] {
    return fleet.Run({"jobs", "1"}).exit_code == 0 && fleet.TrialsOf(1) > 0;
  }));
  tune->Signal(SIGINT);
  const ProcessResult detached = tune->Wait(absl::Seconds(10));
  EXPECT_EQ(detached.exit_code, 0);
  EXPECT_NE(detached.err.find("job 1 goes on"), std::string::npos)
      << detached.err;
  EXPECT_EQ(fleet.Document({"jobs", "1"})["state"], "running");
  EXPECT_EQ(fleet.Run({"cancel", "1"}).exit_code, 0);
  EXPECT_TRUE(WaitFor(absl::Seconds(10), [&] {
    const ProcessResult result = fleet.Run({"jobs", "1", "--json"});
    return result.exit_code == 1 &&
           Json::parse(result.out)["state"] == "cancelled";
  }));
  // An ended job cannot be ended again.
  const ProcessResult again = fleet.Run({"cancel", "1"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.err.find("cancelled"), std::string::npos) << again.err;
}

TEST(Lifecycle, WithoutAnAgentThereIsNoBoardToTuneOn) {
  Fleet fleet({"--no-agent"});
  ASSERT_TRUE(WaitFor(absl::Seconds(20), [&] {
    return fleet.Run({"devices"}).exit_code == 0;
  })) << fleet.Logs();
  EXPECT_TRUE(fleet.Document({"devices"})["devices"].empty());
  const ProcessResult tune =
      fleet.Run({"tune", "matmul(m=4,n=4,k=4)", "--trials", "1", "--json"});
  EXPECT_EQ(tune.exit_code, 1);
  EXPECT_TRUE(tune.out.empty());
  EXPECT_NE(tune.err.find("board"), std::string::npos) << tune.err;
}

// What `up` says when it cannot start: code 1 and a message with `text`.
void ExpectRefusal(const std::vector<std::string>& arguments,
                   const std::string& text) {
  std::vector<std::string> argv = {Program("regatta"), "up"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  const ProcessResult result = RunProcess(argv, {}, absl::Seconds(40));
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
  EXPECT_TRUE(result.out.empty()) << result.out;
}

TEST(Lifecycle, ATakenPortIsAnError) {
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  TempDir dir;
  const std::string state = dir.path() + "/new";
  ExpectRefusal({"--dir", state, "--listen", fleet.server()}, fleet.server());
  EXPECT_FALSE(std::filesystem::exists(state)) << "it left its folder behind";
}

TEST(Lifecycle, ASecondUpInOneFolderIsAnError) {
  Fleet fleet;
  ASSERT_TRUE(fleet.Ready());
  ExpectRefusal({"--dir", fleet.dir(), "--listen", "127.0.0.1:0"}, fleet.dir());
}

TEST(Lifecycle, AFolderThatCannotBeWrittenIsAnError) {
  ExpectRefusal({"--dir", "/proc/regatta", "--listen", "127.0.0.1:0"},
                "/proc/regatta");
  TempDir dir;
  WriteFile(dir.path() + "/file", "x");
  ExpectRefusal({"--dir", dir.path() + "/file", "--listen", "127.0.0.1:0"},
                dir.path() + "/file");
}

TEST(Lifecycle, ALogOfANewerVersionIsRefusedUntouched) {
  TempDir dir;
  {
    Fleet fleet({"--no-agent"});
    ASSERT_TRUE(WaitFor(absl::Seconds(20),
                        [&] { return !fleet.server().empty(); }));
    fleet.Stop();
    std::filesystem::copy(fleet.dir() + "/tuning.db", dir.path());
  }
  const std::string path = dir.path() + "/tuning.db";
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "PRAGMA user_version = 999", nullptr, nullptr,
                         nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  const std::string before = ReadFile(path);
  ExpectRefusal({"--dir", dir.path(), "--listen", "127.0.0.1:0"}, "999");
  EXPECT_EQ(ReadFile(path), before);
}

TEST(Lifecycle, ACorruptLogIsRefusedUntouched) {
  TempDir dir;
  const std::string path = dir.path() + "/tuning.db";
  WriteFile(path, std::string(8192, 'z'));
  ExpectRefusal({"--dir", dir.path(), "--listen", "127.0.0.1:0"}, path);
  EXPECT_EQ(ReadFile(path), std::string(8192, 'z'));
}

}  // namespace
}  // namespace regatta::testing
