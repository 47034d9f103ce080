// The supervisor with shell scripts for daemons.
#include "client/cli/supervisor.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "tests/support/process.h"

namespace regatta::cli {
namespace {

using ::regatta::testing::ChildrenOf;
using ::regatta::testing::ProcessesWith;
using ::regatta::testing::ReadFile;
using ::regatta::testing::TempDir;
using ::regatta::testing::WaitFor;
using ::regatta::testing::WriteFile;

constexpr absl::Duration kLimit = absl::Seconds(20);

bool Never() { return false; }

class SupervisorTest : public ::testing::Test {
 protected:
  // A daemon that is `body`, ready as soon as DIR/NAME.ready is there.
  DaemonSpec Script(const std::string& name, const std::string& body) {
    const std::string program = dir_.path() + "/" + name;
    WriteFile(program, absl::StrCat("#!/bin/sh\ncd ", dir_.path(), "\n", body));
    chmod(program.c_str(), 0755);
    const std::string ready = program + ".ready";
    return {.name = name,
            .program = program,
            .arguments = {},
            .log_path = program + ".log",
            .ready = [ready] { return std::filesystem::exists(ready); }};
  }

  // Runs until SIGTERM, then notes its name in DIR/stopped. One that is killed
  // leaves a sleep of a second behind at most.
  DaemonSpec Patient(const std::string& name) {
    return Script(
        name, absl::StrCat("trap 'kill $!; echo ", name,
                           " >>stopped; exit 0' TERM\n"
                           "echo x >>",
                           name, ".starts\ntouch ", name,
                           ".ready\nwhile :; do sleep 1 & wait $!; done\n"));
  }

  pid_t PidOf(const std::string& name) {
    const auto pids = ChildrenOf(getpid(), dir_.path() + "/" + name);
    return pids.size() == 1 ? pids[0] : -1;
  }

  TempDir dir_;
  std::vector<std::string> events_;
  Supervisor supervisor_{RealClock()};
};

TEST_F(SupervisorTest, StopsInReverseOrderAndLeavesNothing) {
  for (const char* name : {"one", "two", "three"}) {
    ASSERT_TRUE(supervisor_.Start(Patient(name), Never).ok());
    EXPECT_GT(PidOf(name), 0) << "a direct child";
  }
  supervisor_.StopAll();
  EXPECT_EQ(ReadFile(dir_.path() + "/stopped"), "three\ntwo\none\n");
  EXPECT_TRUE(ProcessesWith(dir_.path()).empty());
}

TEST_F(SupervisorTest, RestartsWhatWasKilled) {
  ASSERT_TRUE(supervisor_.Start(Patient("one"), Never).ok());
  const pid_t before = PidOf("one");
  ASSERT_GT(before, 0);
  kill(before, SIGKILL);
  const std::string starts = dir_.path() + "/one.starts";
  EXPECT_TRUE(WaitFor(kLimit, [&] {
    supervisor_.Tend([&](const std::string& e) { events_.push_back(e); });
    return ReadFile(starts) == "x\nx\n";
  }));
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_NE(events_[0].find("one ended (signal 9)"), std::string::npos)
      << events_[0];
  EXPECT_NE(PidOf("one"), before);
}

TEST_F(SupervisorTest, WhatDiesBeforeItIsReadyIsAnErrorWithItsLastLogLine) {
  WriteFile(dir_.path() + "/bad.log", "a line of an earlier run\n");
  const absl::Status status = supervisor_.Start(
      Script("bad", "echo first\necho 'port 1 is taken' >&2\necho\nexit 3\n"),
      Never);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.message().find("bad did not start: port 1 is taken"),
            absl::string_view::npos)
      << status;
}

TEST_F(SupervisorTest, ASilentDeathIsNotExplainedByAnEarlierRun) {
  WriteFile(dir_.path() + "/bad.log", "a line of an earlier run\n");
  const absl::Status status =
      supervisor_.Start(Script("bad", "exit 3\n"), Never);
  EXPECT_EQ(status.message().find("earlier"), absl::string_view::npos)
      << status;
  EXPECT_NE(status.message().find("exit code 3"), absl::string_view::npos)
      << status;
}

TEST_F(SupervisorTest, AMissingProgramIsNamed) {
  DaemonSpec spec = Script("gone", "");
  spec.program = dir_.path() + "/no-such-program";
  const absl::Status status = supervisor_.Start(spec, Never);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("no-such-program"), absl::string_view::npos)
      << status;
}

TEST_F(SupervisorTest, ALogIsBoundedWhileItsDaemonGoesOnWriting) {
  DaemonSpec spec = Script(
      "talker",
      "touch talker.ready\ni=0\nwhile [ $i -lt 400 ]; do i=$((i+1)); echo "
      "\"line $i\"; done\ntouch talker.spoke\n"
      "while [ ! -e go ]; do sleep 0.05; done\necho after\n"
      "trap 'exit 0' TERM\nwhile :; do sleep 0.1; done\n");
  spec.log_limit = 1000;
  WriteFile(spec.log_path + ".1", "of long ago\n");
  ASSERT_TRUE(supervisor_.Start(spec, Never).ok());
  const std::string path = dir_.path();
  ASSERT_TRUE(WaitFor(
      kLimit, [&] { return std::filesystem::exists(path + "/talker.spoke"); }));
  const std::string before = ReadFile(spec.log_path);
  const auto note = [&](const std::string& e) { events_.push_back(e); };
  supervisor_.Tend(note);
  EXPECT_EQ(ReadFile(spec.log_path + ".1"), before);
  EXPECT_EQ(ReadFile(spec.log_path), "");
  EXPECT_TRUE(before.ends_with("line 400\n")) << before;
  WriteFile(path + "/go", "");
  EXPECT_TRUE(WaitFor(kLimit, [&] {
    supervisor_.Tend(note);
    return ReadFile(spec.log_path) == "after\n";
  }));
  EXPECT_EQ(ReadFile(spec.log_path + ".1"), before) << "below its limit";
  EXPECT_TRUE(events_.empty()) << events_[0];
}

TEST_F(SupervisorTest, ALogThatCannotBeWrittenIsNamed) {
  DaemonSpec spec = Patient("one");
  spec.log_path = dir_.path() + "/none/one.log";
  const absl::Status status = supervisor_.Start(spec, Never);
  EXPECT_NE(status.message().find("/none/one.log"), absl::string_view::npos)
      << status;
  EXPECT_TRUE(ProcessesWith(dir_.path()).empty());
}

TEST_F(SupervisorTest, StoppingWhileADaemonComesUpIsNoticed) {
  EXPECT_TRUE(absl::IsCancelled(supervisor_.Start(
      Script("slow", "exec sleep 1000\n"), [] { return true; })));
  supervisor_.StopAll();
  EXPECT_TRUE(ProcessesWith(dir_.path()).empty());
}

TEST_F(SupervisorTest, DaemonsEndWithTheirSupervisorHoweverItEnds) {
  const DaemonSpec spec = Patient("one");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Supervisor own(RealClock());
    if (own.Start(spec, Never).ok()) kill(getpid(), SIGKILL);
    _exit(1);
  }
  int wait_status = 0;
  ASSERT_EQ(waitpid(child, &wait_status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(wait_status)) << "the daemon did not start";
  EXPECT_TRUE(
      WaitFor(kLimit, [&] { return ProcessesWith(dir_.path()).empty(); }));
  EXPECT_EQ(ReadFile(dir_.path() + "/stopped"), "one\n") << "by SIGTERM";
}

TEST(LastLine, IsTheLastThatIsNotEmpty) {
  const TempDir dir;
  const std::string path = dir.path() + "/log";
  EXPECT_EQ(LastLine(path), "");
  WriteFile(path, "one\ntwo\n\n\n");
  EXPECT_EQ(LastLine(path), "two");
  EXPECT_EQ(LastLine(path, 4), "two");
  EXPECT_EQ(LastLine(path, 8), "");
}

}  // namespace
}  // namespace regatta::cli
