// A job over a link that resets, or is late and narrow: real daemons with a
// proxy between the agent and the tracker.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "tests/faults/fault_fleet.h"
#include "tests/support/fault_proxy.h"

namespace regatta::faults {
namespace {

using testing::FaultProxy;
using testing::WaitFor;

const char kWorkload[] = "matmul(m=64,n=64,k=64)";

class LinkFaultsTest : public ::testing::Test {
 protected:
  // A board "a" behind the proxy, with a job under way.
  void Start(const FaultTimes& times, int trials) {
    fleet_ = std::make_unique<FaultFleet>(times);
    auto proxy = FaultProxy::Start(fleet_->tracker_address());
    ASSERT_TRUE(proxy.ok()) << proxy.status();
    proxy_ = *std::move(proxy);
    fleet_->StartAgent("a", UsableCores().front(), proxy_->address());
    ASSERT_TRUE(fleet_->Becomes("a", "presence", "online")) << fleet_->Said();
    fleet_->Tune(kWorkload, trials);
    ASSERT_TRUE(fleet_->AwaitTrials(2)) << fleet_->Said();
  }

  std::unique_ptr<FaultFleet> fleet_;
  std::unique_ptr<FaultProxy> proxy_;
};

// 27
TEST_F(LinkFaultsTest, ResetsAfterAnyNumberOfBytesConverge) {
  Start({.lost = 30'000, .lease = 30'000}, /*trials=*/40);
  const int64_t before = proxy_->counts().accepted;
  const SteadyTime start = RealClock().Steady();
  for (const int64_t bytes : {1, 24, 300, 1000, 4096}) {
    for (const auto direction : {FaultProxy::Direction::kToTarget,
                                 FaultProxy::Direction::kFromTarget}) {
      const int64_t resets = proxy_->counts().reset;
      proxy_->CutAfter(direction, bytes);
      EXPECT_TRUE(WaitFor(absl::Seconds(20), [&] {
        return proxy_->counts().reset >= resets + 2;
      })) << bytes;
      proxy_->Heal();
    }
  }
  // No sooner than 0.1 s after the last one.
  const double seconds = absl::ToDoubleSeconds(RealClock().Steady() - start);
  const int64_t connections = proxy_->counts().accepted - before;
  std::cout << connections << " connections within " << seconds << " s\n";
  EXPECT_LE(static_cast<double>(connections), 10 * seconds + 1);
  EXPECT_TRUE(fleet_->Becomes("a", "presence", "online"));
  fleet_->ExpectDone(FaultFleet::Losses::kNone);
}

// 28
TEST_F(LinkFaultsTest, ALateAndNarrowLinkIsBorne) {
  Start({.heartbeat = 1000, .suspect = 4000, .lost = 60'000, .lease = 60'000},
        /*trials=*/15);
  const int64_t before = proxy_->counts().accepted;
  proxy_->Throttle(125'000);  // 1 Mbit/s
  const SteadyTime start = RealClock().Steady();
  for (int i = 0; RealClock().Steady() - start < absl::Seconds(8); ++i) {
    proxy_->Delay(absl::Milliseconds(100 + 100 * (i % 5)));
    const std::string presence = fleet_->Field("a", "presence");
    if (!presence.empty()) EXPECT_EQ(presence, "online");
  }
  EXPECT_EQ(proxy_->counts().accepted, before) << "the stream lives";
  fleet_->ExpectDone(FaultFleet::Losses::kNone);
}

}  // namespace
}  // namespace regatta::faults
