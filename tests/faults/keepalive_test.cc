// The agent's real client and a real tracker, for as long as the scale allows:
// an idle session and a busy one. Pings that came too often would end them.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random.h"
#include "device_agent/tracker_client.h"
#include "tests/support/process.h"
#include "tests/support/scale.h"
#include "tests/tracker/core_fixture.h"
#include "tracker/tracker_service.h"

namespace regatta::faults {
namespace {

// A session of an agent without devices; `closed` is what ended it.
struct Session {
  TrackerClient client;
  std::atomic<int> answers = 0;
  std::atomic<bool> ended = false;
  std::string why;  // once it ended

  Session(const std::string& tracker, const std::string& id)
      : client(tracker, nullptr) {
    client.Open({.on_message = [this](v1::TrackerMessage) { ++answers; },
                 .on_closed =
                     [this](absl::Status status) {
                       why = std::string(status.message());
                       ended = true;
                     }});
    v1::AgentMessage message;
    message.mutable_hello()->set_protocol_version(v1::PROTOCOL_VERSION_CURRENT);
    message.mutable_hello()->set_agent_id(id);
    message.mutable_hello()->set_instance_id("i");
    client.Send(message);
  }
  void Beat(int64_t sequence) {
    v1::AgentMessage message;
    message.mutable_heartbeat()->set_sequence(sequence);
    client.Send(message);
  }
};

TEST(Keepalive, SessionsThatIdleAndThatTalkLive) {
  // Nothing is said for so long in the idle one, nor expected.
  TrackerOptions options;
  options.suspect = options.lost = absl::Hours(24);
  const absl::Duration soak = absl::Seconds(30) * TestScale();
  if (TestScale() < 3) {
    GTEST_SKIP() << "an agent pings every 30 s: needs REGATTA_TEST_SCALE 3 or "
                    "more (120: an hour)";
  }
  MemoryFleetStore store;
  Random random(1);
  auto tracker =
      TrackerService::Start("127.0.0.1:0", options, RealClock(), random, store);
  ASSERT_TRUE(tracker.ok()) << tracker.status();
  Session idle((*tracker)->address(), "idle");
  Session busy((*tracker)->address(), "busy");
  const SteadyTime start = RealClock().Steady();
  int64_t beats = 0;
  while (RealClock().Steady() - start < soak && !idle.ended && !busy.ended) {
    busy.Beat(++beats);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  idle.Beat(1);
  EXPECT_TRUE(testing::WaitFor(absl::Seconds(5), [&] {
    return idle.answers >= 2 && busy.answers > beats;
  }));
  EXPECT_FALSE(idle.ended) << idle.why;
  EXPECT_FALSE(busy.ended) << busy.why;
  std::cout << absl::FormatDuration(RealClock().Steady() - start) << ", "
            << beats << " heartbeats\n";
}

}  // namespace
}  // namespace regatta::faults
