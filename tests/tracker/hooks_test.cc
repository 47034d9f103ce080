// What runs a power hook, and what tells the webhook.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/tracker/core_fixture.h"
#include "tracker/power_runner.h"
#include "tracker/webhook.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

TEST(PowerRunner, RunsProgramsWithoutAShellAndKillsThoseThatHang) {
  const std::string file = absl::StrCat("/tmp/regatta_power_", getpid());
  std::filesystem::remove(file);
  EXPECT_TRUE(
      RunPowerCommand({{"/usr/bin/touch", file}, ""}, absl::Seconds(10)).ok());
  EXPECT_TRUE(std::filesystem::remove(file));
  EXPECT_THAT(
      std::string(
          RunPowerCommand({{"/bin/false"}, ""}, absl::Seconds(10)).message()),
      HasSubstr("/bin/false ended with exit code 1"));
  EXPECT_THAT(
      std::string(
          RunPowerCommand({{"/nowhere/pdu"}, ""}, absl::Seconds(10)).message()),
      HasSubstr("cannot start /nowhere/pdu"));
  EXPECT_EQ(RunPowerCommand({{"/bin/sleep", "60"}, ""}, absl::Milliseconds(100))
                .code(),
            absl::StatusCode::kDeadlineExceeded);
  // What it prints goes into no log raw, and not without end.
  EXPECT_EQ(
      RunPowerCommand(
          {{"/bin/sh", "-c", "printf 'no session\\n\\033[2J' >&2; exit 3"}, ""},
          absl::Seconds(10))
          .message(),
      "/bin/sh ended with exit code 3, having said \"no "
      "session\\n\\x1b[2J\"");
  // The bytes that are no text are written out: the reason is a message's.
  EXPECT_EQ(
      RunPowerCommand(
          {{"/bin/sh", "-c", "printf '\\377 \\303\\251 \\303'; exit 3"}, ""},
          absl::Seconds(10))
          .message(),
      "/bin/sh ended with exit code 3, having said \"\\xff \xc3\xa9 "
      "\\xc3\"");
  // The 200th byte is the first of a character.
  EXPECT_EQ(
      RunPowerCommand(
          {{"/bin/sh", "-c", "printf '%0199d\\303\\251 more' 0; exit 3"}, ""},
          absl::Seconds(10))
          .message(),
      "/bin/sh ended with exit code 3, having said \"" + std::string(199, '0') +
          "...\"");
  const absl::Status talker = RunPowerCommand(
      {{"/bin/sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' y; exit 3"}, ""},
      absl::Seconds(20));
  EXPECT_EQ(talker.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(talker.message()), HasSubstr("yyy...\""));
  EXPECT_LT(talker.message().size(), 300u);
  // A dollar sign is a dollar sign.
  EXPECT_TRUE(RunPowerCommand({{"/usr/bin/test", "$HOME", "=", "$HOME"}, ""},
                              absl::Seconds(10))
                  .ok());
}

TEST(Webhook, TriesAgainKeepsTheOrderAndDropsTheOldest) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> bodies;
  int calls = 0;
  bool open = false;
  Webhook hook(
      [&](const std::string& body) -> absl::Status {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return open; });
        // The first try of the first event fails.
        if (++calls == 1) return absl::UnavailableError("away");
        bodies.push_back(body);
        changed.notify_all();
        return absl::OkStatus();
      },
      absl::Milliseconds(1));
  v1::DeviceEvent event;
  event.set_device_id("d1");
  event.set_reason("a \"quoted\" reason");
  ::testing::internal::CaptureStderr();
  // One may be taken already; the queue holds 256 beside it.
  const int sent = static_cast<int>(Webhook::kMaxQueued) + 10;
  for (int i = 0; i < sent; ++i) {
    event.set_what(absl::StrCat("e", i));
    hook.Notify(event);
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("more than 256 events wait for the webhook"));
  EXPECT_EQ(log.find("more than"), log.rfind("more than")) << "once is enough";
  const int64_t dropped = hook.dropped();
  EXPECT_GE(dropped, 9);
  EXPECT_LE(dropped, 10);
  {
    std::unique_lock lock(mutex);
    open = true;
    changed.notify_all();
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(30), [&] {
      return std::ssize(bodies) == sent - dropped;
    }));
    EXPECT_THAT(bodies.back(), HasSubstr(absl::StrCat("e", sent - 1)));
    EXPECT_THAT(bodies.back(), HasSubstr("a \\\"quoted\\\" reason"));
  }
}

}  // namespace
}  // namespace regatta
