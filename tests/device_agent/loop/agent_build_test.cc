// What an agent's session carries about builds, and devices that follow.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/device_agent/loop/agent_loop_harness.h"

namespace regatta {
namespace {

class AgentBuildTest : public AgentLoopTest {
 protected:
  void Welcomed(bool relays) {
    ConnectAtOnce();
    v1::TrackerMessage message = WelcomeMessage();
    message.mutable_welcome()->set_relays_builds(relays);
    Receive(message);
  }
  void Order() {
    v1::AgentMessage message;
    message.mutable_build_order()->set_order_id("1");
    loop_->OnBuildMessage(message);
    Collect();
  }
  int64_t Orders() const {
    return std::count_if(sent_.begin(), sent_.end(),
                         [](const auto& m) { return m.has_build_order(); });
  }
};

TEST_F(AgentBuildTest, OrdersGoToTrackersThatRelayThemOnly) {
  Order();
  EXPECT_EQ(Orders(), 0);  // no session
  Welcomed(/*relays=*/false);
  ASSERT_EQ(sessions_.size(), 1u);
  EXPECT_TRUE(sessions_[0].up);
  EXPECT_FALSE(sessions_[0].relays_builds);
  Order();
  EXPECT_EQ(Orders(), 0);
  loop_->OnDisconnected(absl::UnavailableError("gone"));
  connected_ = false;
  Collect();
  ASSERT_EQ(sessions_.size(), 2u);
  EXPECT_FALSE(sessions_[1].up);
  Welcomed(/*relays=*/true);
  EXPECT_TRUE(sessions_.back().relays_builds);
  Order();
  EXPECT_EQ(Orders(), 1);
}

TEST_F(AgentBuildTest, MessagesAboutBuildsAreHandedOn) {
  Welcomed(true);
  v1::TrackerMessage message;
  message.mutable_build_answer()->set_order_id("7");
  Receive(message);
  message.mutable_blob_chunk()->set_order_id("8");
  Receive(message);
  ASSERT_EQ(builds_.size(), 2u);
  EXPECT_EQ(builds_[0].build_answer().order_id(), "7");
  EXPECT_EQ(builds_[1].blob_chunk().order_id(), "8");
}

TEST_F(AgentBuildTest, AChangeOfBuildersIsToldOnce) {
  Welcomed(true);
  for (const int64_t change : {5, 5, 6}) {
    Pass(absl::Seconds(12));
    v1::TrackerMessage message;
    for (const v1::AgentMessage& sent : sent_) {
      if (sent.has_heartbeat()) {
        message.mutable_heartbeat_ack()->set_sequence(
            sent.heartbeat().sequence());
      }
    }
    message.mutable_heartbeat_ack()->set_builders_change(change);
    Receive(message);
  }
  ASSERT_EQ(sessions_.size(), 3u);
  EXPECT_EQ(sessions_[0].builders_change, 0);
  EXPECT_EQ(sessions_[1].builders_change, 5);
  EXPECT_EQ(sessions_[2].builders_change, 6);
  EXPECT_TRUE(sessions_[2].up);
}

TEST_F(AgentBuildTest, DevicesThatFollowAreToldAndGreetedWithAfterwards) {
  AgentLoop::Options options;
  options.hello = TestHello();
  options.hello.clear_devices();
  options.hello.set_devices_follow(true);
  loop_ = std::make_unique<AgentLoop>(options, &clock_, Random(3),
                                      spool_.get());
  Welcomed(true);
  const auto greeting = [&] {
    v1::Hello last;
    for (const v1::AgentMessage& sent : sent_) {
      if (sent.has_hello()) last = sent.hello();
    }
    return last;
  };
  EXPECT_TRUE(greeting().devices_follow());
  EXPECT_EQ(greeting().devices_size(), 0);
  loop_->OnDevices({TestHello().devices(0)});
  Collect();
  ASSERT_TRUE(sent_.back().has_device_update());
  EXPECT_EQ(sent_.back().device_update().devices_size(), 1);
  loop_->OnDisconnected(absl::UnavailableError("gone"));
  connected_ = false;
  Welcomed(true);
  EXPECT_FALSE(greeting().devices_follow());
  EXPECT_EQ(greeting().devices_size(), 1);
}

}  // namespace
}  // namespace regatta
