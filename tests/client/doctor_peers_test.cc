// What `regatta doctor` makes of servers and webhooks that take its
// connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/listening_socket.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "client/cli/doctor/doctor.h"
#include "tests/client/doctor_findings.h"
#include "tests/support/process.h"
#include "tracker/config/http_post.h"

namespace regatta::cli {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;
using testing::WriteFile;

// Takes connections on a port of 127.0.0.1, answers each with `answer`, and
// keeps it open; "": says nothing.
class Receiver {
 public:
  explicit Receiver(std::string answer)
      : listening_(*ListenOn("127.0.0.1:0")),
        answer_(std::move(answer)),
        thread_([this] { Run(); }) {}
  ~Receiver() {
    ending_ = true;
    thread_.join();
  }
  std::string address() const { return AddressesOf(listening_)[0]; }
  // What came; after the peer has had its answer.
  std::string got() const {
    std::lock_guard lock(mutex_);
    return got_;
  }

 private:
  void Run() {
    std::vector<UniqueFd> open;
    while (!ending_) {
      pollfd wait = {listening_.fds[0].get(), POLLIN, 0};
      if (poll(&wait, 1, 20) != 1) continue;
      UniqueFd fd(accept(wait.fd, nullptr, nullptr));
      if (!answer_.empty()) Answer(fd.get());
      open.push_back(std::move(fd));
    }
  }
  void Answer(int fd) {
    char bytes[4096];
    std::string text;
    while (text.find('}') == text.npos) {
      const ssize_t size = read(fd, bytes, sizeof bytes);
      if (size <= 0) return;
      text.append(bytes, static_cast<size_t>(size));
    }
    {
      std::lock_guard lock(mutex_);
      got_ = text;
    }
    EXPECT_EQ(WriteAll(fd, answer_), 0);
  }

  Listening listening_;
  const std::string answer_;
  std::atomic<bool> ending_ = false;
  mutable std::mutex mutex_;
  std::string got_;
  std::thread thread_;
};

TEST(Doctor, AServerThatTakesConnectionsAndSaysNothingIsNamedInTime) {
  Receiver silent("");
  DoctorOptions options;
  options.server.server = silent.address();
  const SteadyTime began = RealClock().Steady();
  const auto findings = ExamineServer(options);
  EXPECT_LT(RealClock().Steady() - began, absl::Seconds(25));
  ASSERT_EQ(findings.size(), 1u);
  ExpectSound(findings);
  EXPECT_EQ(findings[0].level, Level::kFail);
  EXPECT_THAT(findings[0].what, HasSubstr("the server hangs"));
  EXPECT_THAT(findings[0].what, HasSubstr(silent.address()));
}

std::vector<Finding> ExamineFleetText(const std::string& text) {
  TempDir folder;
  DoctorOptions options;
  options.fleet_config = folder.path() + "/fleet.json";
  WriteFile(options.fleet_config, text);
  std::vector<Finding> findings = ExamineFleetFile(options);
  ExpectSound(findings);
  return findings;
}

Finding ExamineHookAt(const std::string& url) {
  return *Get(ExamineFleetText("{\"webhook\": \"" + url + "\"}"), "webhook");
}

TEST(DoctorOfTheFleetsFile, AMistakeIsNamedWithItsPlace) {
  EXPECT_EQ(ExamineFleetFile(DoctorOptions())[0].level, Level::kOk);
  for (const char* text :
       {"{\"webhook\": \"https://h/\"}", "", "{\"webhok\": 1}"}) {
    const auto findings = ExamineFleetText(text);
    ASSERT_EQ(findings.size(), 1u) << text;
    EXPECT_EQ(findings[0].level, Level::kFail) << text;
    EXPECT_THAT(findings[0].what, HasSubstr("/fleet.json: ")) << text;
  }
  const auto hooks = ExamineFleetText(
      R"({"boards": {"b1": {"power": {"unit": "u", "cycle": ["/bin/sh"]}},
                     "b2": {"power": {"unit": "u", "cycle": ["/no/pdu"]}}}})");
  EXPECT_EQ(Get(hooks, "power hooks")->level, Level::kFail);
  EXPECT_THAT(Get(hooks, "power hooks")->what,
              HasSubstr("of b2: /no/pdu: No such file"));
  EXPECT_EQ(Get(hooks, "webhook")->level, Level::kOk);
}

TEST(DoctorOfTheFleetsFile, TheWebhookIsTried) {
  if (!HttpAvailable()) GTEST_SKIP() << "built without cpp-httplib";
  {
    Receiver good("HTTP/1.1 204 No Content\r\n\r\n");
    const Finding took = ExamineHookAt("http://" + good.address() + "/x?key=s");
    EXPECT_EQ(took.level, Level::kOk) << took.what;
    EXPECT_THAT(took.what, HasSubstr("/x took a test event in "));
    EXPECT_THAT(good.got(), HasSubstr("POST /x?key=s HTTP/1.1"));
    EXPECT_THAT(good.got(), HasSubstr("\"what\":\"test\""));
  }
  {
    Receiver bad("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    const Finding said = ExamineHookAt("http://" + bad.address() + "/x");
    EXPECT_EQ(said.level, Level::kFail);
    EXPECT_THAT(said.what, HasSubstr("/x answered 404"));
    EXPECT_THAT(said.remedy, HasSubstr("correct 'webhook' in "));
  }
  Receiver silent("");
  const SteadyTime began = RealClock().Steady();
  const Finding hangs = ExamineHookAt("http://" + silent.address() + "/x");
  EXPECT_LT(RealClock().Steady() - began, absl::Seconds(15));
  EXPECT_EQ(hangs.level, Level::kFail);
  EXPECT_THAT(hangs.what, HasSubstr("/x did not answer within 5s"));
  EXPECT_THAT(hangs.remedy, HasSubstr("restart what receives it"));
  EXPECT_EQ(ExamineHookAt("http://127.0.0.1:1/x").level, Level::kFail);
}

}  // namespace
}  // namespace regatta::cli
