// A job over links that reset, or are late and narrow: real daemons with a
// proxy between the boards and the tracker.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random.h"
#include "compiler/space/space.h"
#include "device_agent/tracker_client.h"
#include "tests/faults/fault_fleet.h"
#include "tests/fleet_sim/sim_world.h"
#include "tests/support/fault_proxy.h"
#include "tests/support/scale.h"

namespace regatta::faults {
namespace {

using fleet_sim::SimWorld;
using fleet_sim::WorldCounts;
using testing::FaultProxy;
using testing::WaitFor;
using Json = nlohmann::json;

const char kWorkload[] = "matmul(m=64,n=64,k=64)";

// Cuts to be made, one to a connection. A connection that ends before its byte
// comes, as those of boards that find a busy machine silent do, leaves its cut
// to another. Used on the proxy's thread, but for `done`.
struct Sweep {
  std::deque<FaultProxy::CutPoint> left;
  struct Planned {
    FaultProxy::CutPoint cut;
    int64_t seen = 0;  // bytes in its direction
  };
  std::map<int64_t, Planned> planned;  // by connection
  std::atomic<int> done = 0;

  std::optional<FaultProxy::CutPoint> Plan(int64_t connection) {
    if (left.empty()) return std::nullopt;
    planned[connection] = {left.front()};
    left.pop_front();
    return planned[connection].cut;
  }
  void Saw(int64_t connection, FaultProxy::Direction direction,
           std::string_view bytes) {
    const auto found = planned.find(connection);
    if (found == planned.end()) return;
    Planned& one = found->second;
    if (!bytes.empty()) {
      if (direction == one.cut.direction) {
        one.seen += static_cast<int64_t>(bytes.size());
      }
      return;
    }
    if (one.seen >= one.cut.bytes) {
      ++done;
    } else {
      left.push_back(one.cut);
    }
    planned.erase(found);
  }
};

class LinkFaultsTest : public ::testing::Test {
 protected:
  void Start(const FaultTimes& times, FaultProxy::Tap tap = {}) {
    fleet_ = std::make_unique<FaultFleet>(times);
    auto proxy = FaultProxy::Start(fleet_->tracker_address(), std::move(tap));
    ASSERT_TRUE(proxy.ok()) << proxy.status();
    proxy_ = *std::move(proxy);
  }
  // A real board "a" behind the proxy.
  void StartBoard() {
    fleet_->StartAgent("a", UsableCores().front(), proxy_->address());
    ASSERT_TRUE(fleet_->Becomes("a", "presence", "online")) << fleet_->Said();
  }
  // Boards behind the proxy, with the agent's client, loop and spool, that
  // measure nothing; built for as the real board `like` is.
  void StartWorld(const Json& like, int boards) {
    std::vector<v1::Hello> hellos;
    for (int i = 0; i < boards; ++i) {
      v1::Hello hello;
      hello.set_agent_id(absl::StrCat("link-", i));
      hello.set_boot_id("boot");
      hello.set_compiler_version(like["compiler_version"].get<std::string>());
      hello.set_space("cpu");
      hello.set_space_version(kSpaceVersion);
      v1::DeviceInfo& device = *hello.add_devices();
      device.set_device_id(hello.agent_id());
      device.set_device_class(kFaultsClass);
      device.set_target(like["target"].get<std::string>());
      device.set_cores(1);
      device.set_cpu_list("0");
      device.set_health("ok");
      device.set_credit(2);
      hellos.push_back(std::move(hello));
    }
    fleet_sim::WorldOptions options;
    options.habits.trial = absl::Seconds(1.5);
    options.habits.failures = 0;  // canaries among them
    world_ = std::make_unique<SimWorld>(
        options, std::move(hellos), [address = proxy_->address()](size_t) {
          return std::make_unique<TrackerClient>(address, nullptr);
        });
    world_->Start();
  }

  std::unique_ptr<FaultFleet> fleet_;
  std::unique_ptr<FaultProxy> proxy_;
  std::unique_ptr<SimWorld> world_;
};

// 27. A connection carries handshake, Hello, heartbeats and results within the
// first 4 KiB each way: what breaks after any byte of it is tried on, in both
// directions, 64 bytes of each at scale 1, all of them at 64.
TEST_F(LinkFaultsTest, ResetsAfterAnyNumberOfBytesConverge) {
  constexpr int kBytes = 4096;
  const int offsets = std::min(kBytes, Scaled(64));
  const int boards = std::min(256, Scaled(16));
  const int trials = std::min(3000, Scaled(200));
  const auto sweep = std::make_shared<Sweep>();
  Start({.heartbeat = 200, .suspect = 30'000, .lost = 60'000, .lease = 60'000},
        [sweep](int64_t connection, FaultProxy::Direction direction,
                std::string_view bytes) {
          sweep->Saw(connection, direction, bytes);
        });
  StartBoard();
  const Json like = fleet_->Device("a");
  ASSERT_EQ(fleet_->daemons().Stop("a"), "");

  std::vector<FaultProxy::CutPoint> cuts;
  for (int i = 0; i < offsets; ++i) {
    for (const auto direction : {FaultProxy::Direction::kToTarget,
                                 FaultProxy::Direction::kFromTarget}) {
      cuts.push_back({direction, 1 + i * (kBytes / offsets)});
    }
  }
  // Or no board would ever get past its handshake at first.
  Random random(27);
  for (size_t i = cuts.size(); i > 1; --i) {
    std::swap(cuts[i - 1], cuts[random.Below(i)]);
  }
  const int total = static_cast<int>(cuts.size());
  sweep->left.assign(cuts.begin(), cuts.end());
  proxy_->CutNewcomers(
      [sweep](int64_t connection) { return sweep->Plan(connection); });
  const SteadyTime start = RealClock().Steady();
  StartWorld(like, boards);
  fleet_->Tune(kWorkload, trials);
  int seen = 0;
  SteadyTime moved = start;
  // Boards grow in number up to scale 16, cuts up to 64.
  const absl::Duration limit =
      absl::Minutes(2) * std::max(1.0, TestScale() / 8);
  EXPECT_TRUE(WaitFor(limit,
                      [&] {
                        const SteadyTime now = RealClock().Steady();
                        if (seen != sweep->done) {
                          seen = sweep->done;
                          moved = now;
                        } else if (now - moved > absl::Seconds(20)) {
                          // What is left needs newcomers.
                          proxy_->Cut();
                          moved = now;
                        }
                        return seen == total;
                      }))
      << seen << " of " << total;
  const double seconds = absl::ToDoubleSeconds(RealClock().Steady() - start);
  const WorldCounts counts = world_->Counts();
  std::cout << seen << " resets, " << counts.connects << " connections of "
            << boards << " boards within " << seconds << " s\n";
  // No sooner than 0.1 s after the last one.
  EXPECT_LE(static_cast<double>(counts.connects), boards * (1 + 10 * seconds));

  EXPECT_TRUE(WaitFor(absl::Seconds(60), [&] {
    return world_->Counts().welcomed == boards;
  })) << world_->Counts().welcomed;
  EXPECT_TRUE(WaitFor(absl::Seconds(100), [&] {
    const Json job = fleet_->Job();
    return !job.is_null() && job["state"] == "done";
  })) << fleet_->Job();
  EXPECT_TRUE(WaitFor(absl::Seconds(20), [&] {
    const WorldCounts now = world_->Counts();
    return now.spooled == 0 && now.held == 0;
  }));
  world_->Stop();
  for (const std::string& promise : world_->ledger().broken()) {
    ADD_FAILURE() << promise;
  }
  const auto listed = fleet_->Run({"records", kWorkload, "--json"});
  ASSERT_EQ(listed.exit_code, 0) << listed.err;
  const Json records = Json::parse(listed.out)["records"];
  std::set<std::string> stored;
  for (const Json& record : records) {
    stored.insert(record["trial"].get<std::string>());
  }
  int finished = 0;
  for (const std::string& trial : world_->ledger().FinishedTrials()) {
    if (trial.starts_with("~")) continue;  // canaries, which nobody stores
    ++finished;
    EXPECT_TRUE(stored.contains(trial)) << trial << " is not in the log";
  }
  EXPECT_GE(finished, trials);
  fleet_->ExpectDone(FaultFleet::Losses::kNone);
}

// 28
TEST_F(LinkFaultsTest, ALateAndNarrowLinkIsBorne) {
  Start({.heartbeat = 1000, .suspect = 4000, .lost = 60'000, .lease = 60'000});
  StartBoard();
  fleet_->Tune(kWorkload, 15);
  ASSERT_TRUE(fleet_->AwaitTrials(2)) << fleet_->Said();
  const int64_t before = proxy_->counts().accepted;
  proxy_->Throttle(125'000);  // 1 Mbit/s
  const SteadyTime start = RealClock().Steady();
  for (int i = 0; RealClock().Steady() - start < absl::Seconds(8) * TestScale();
       ++i) {
    proxy_->Delay(absl::Milliseconds(100 + 100 * (i % 5)));
    const std::string presence = fleet_->Field("a", "presence");
    if (!presence.empty()) EXPECT_EQ(presence, "online");
  }
  EXPECT_EQ(proxy_->counts().accepted, before) << "the stream lives";
  fleet_->ExpectDone(FaultFleet::Losses::kNone);
}

}  // namespace
}  // namespace regatta::faults
