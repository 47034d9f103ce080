// The server's view of the fleet by changes and by snapshots; and what a job
// has out, row by row in the log.
#include "server/job/fleet_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "proto/outcome_names.h"
#include "tests/server/support/server_world.h"
#include "tests/support/scale.h"

namespace regatta {
namespace {

using testing::kClass;
using testing::ServerWorld;

v1::DeviceStatus RandomDevice(int id, Random& random) {
  v1::DeviceStatus device;
  v1::DeviceInfo& info = *device.mutable_info();
  info.set_device_id(absl::StrCat("d", id));
  info.set_device_class(absl::StrCat("class", random.Below(4)));
  info.set_target(absl::StrCat("target", random.Below(3)));
  info.set_cores(1 + static_cast<int>(random.Below(3)));
  info.set_simulated(random.Below(3) == 0);
  info.set_credit(static_cast<int>(random.Below(4)));
  info.set_peak_flops_per_s(static_cast<double>(random.Below(100)));
  info.set_memory_bytes(static_cast<int64_t>(random.Below(100)));
  info.set_has_noise_floor(random.Below(2) == 0);
  info.set_noise_floor(0.01 * static_cast<double>(random.Below(5)));
  device.set_presence(static_cast<v1::Presence>(1 + random.Below(4)));
  device.set_compiler_version(absl::StrCat("c", random.Below(2)));
  if (random.Below(4) == 0) device.set_obstacle("drained by ann");
  device.mutable_standing()->set_trust(
      random.Below(4) == 0 ? v1::TRUST_PENDING : v1::TRUST_HEALTHY);
  return device;
}

// Everything that the view says.
std::string Say(const FleetView& view) {
  std::string said = absl::StrCat(view.known());
  for (const std::string& name : view.Classes()) {
    const ClassView& c = *view.Find(name);
    absl::StrAppend(&said, "\n", name, " ", c.target, " ", c.cores, c.simulated,
                    " ", c.peak_flops_per_s, " ", c.memory_bytes, " ",
                    c.devices, "/", c.present, "/", c.online, " ", c.obstacle,
                    " ", view.Obstacle(name, "c1"));
    for (const auto& target : c.targets) absl::StrAppend(&said, " t ", target);
    for (const auto& target : c.approved_targets) {
      absl::StrAppend(&said, " a ", target);
    }
    for (const auto& [compiler, credit] : c.credit) {
      absl::StrAppend(&said, " ", compiler, "=", credit);
    }
  }
  for (int i = 0; i < 12; ++i) {
    const auto noise = view.NoiseFloor(absl::StrCat("d", i));
    absl::StrAppend(&said, " ", noise ? *noise : -1);
  }
  for (const auto& name : view.PresentRealClasses()) {
    absl::StrAppend(&said, " ", name);
  }
  return said;
}

TEST(FleetView, ChangesAddUpToTheSnapshot) {
  for (int seed = 1; seed <= Scaled(50); ++seed) {
    Random random(static_cast<uint64_t>(seed));
    std::map<std::string, v1::DeviceStatus> devices;
    FleetMirror mirror;
    v1::FleetChange first = SnapshotOf({}, 1)[0];
    first.set_sequence(1);
    ASSERT_TRUE(mirror.Apply(first).ok());
    FleetView view = FleetView().With(mirror, mirror.TakeChanged());
    for (int step = 2; step < 40; ++step) {
      v1::FleetChange change;
      change.set_sequence(step);
      std::set<std::string> told;
      for (uint64_t i = random.Below(4); i > 0; --i) {
        const int id = static_cast<int>(random.Below(12));
        const std::string name = absl::StrCat("d", id);
        if (!told.insert(name).second) continue;
        if (random.Below(4) == 0) {
          change.add_gone_device_ids(name);
          devices.erase(name);
        } else {
          devices[name] = *change.add_devices() = RandomDevice(id, random);
        }
      }
      ASSERT_TRUE(mirror.Apply(change).ok());
      view = view.With(mirror, mirror.TakeChanged());
      std::vector<v1::DeviceStatus> all;
      for (const auto& [name, device] : devices) all.push_back(device);
      FleetMirror whole;
      for (v1::FleetChange& part : SnapshotOf(std::move(all), 1 << 20)) {
        ASSERT_TRUE(whole.Apply(part).ok());
      }
      ASSERT_EQ(Say(view), Say(FleetView().With(whole, whole.TakeChanged())))
          << "seed " << seed << ", step " << step;
    }
  }
}

TEST(FleetView, AServerThatMissedAChangeAsksOnceAndKeepsItsView) {
  ServerWorld world;
  const auto before = world.jobs().fleet();
  ASSERT_NE(before->Find(kClass), nullptr);
  v1::FleetChange change;
  change.set_sequence(7);
  change.add_devices()->mutable_info()->set_device_class("another");
  world.jobs().OnFleetChange(change);
  change.set_sequence(8);
  world.jobs().OnFleetChange(change);
  EXPECT_EQ(world.fleet().asked(), 1);
  EXPECT_EQ(world.jobs().fleet(), before);
  world.fleet().SendFleet();  // whole
  EXPECT_NE(world.jobs().fleet(), before);
  change.set_sequence(1);
  change.mutable_devices(0)->mutable_info()->set_device_id("new");
  world.jobs().OnFleetChange(change);
  EXPECT_NE(world.jobs().fleet()->Find("another"), nullptr);
  EXPECT_NE(world.jobs().fleet()->Find(kClass), nullptr) << "not touched";
  EXPECT_EQ(world.fleet().asked(), 1);
}

TEST(JobWork, TheLogHasARowOfWhatIsOutAndNoneInTheEnd) {
  ServerWorld world;
  const int64_t job = world.Submit(world.Request("matmul(m=64,n=64,k=64)", 30));
  const auto stored = [&] {
    std::set<std::string> ids;
    const auto found = world.plain_log().GetJob(job);
    EXPECT_TRUE(found.ok()) << found.status();
    for (const TuningLog::JobWork& row : found->work) {
      ids.insert(absl::StrCat(job, "/", row.task, "/", row.number));
    }
    return ids;
  };
  int compared = 0;
  for (int i = 0; i < 400 && !IsEnded(world.Job(job).state()); ++i) {
    // Whatever a board may hold is known to a server that starts now.
    const auto ids = stored();
    for (const auto& [id, work] : world.fleet().held()) {
      EXPECT_TRUE(ids.contains(id)) << id;
      ++compared;
    }
    // Rows of what has ended go when the next work is written down: at most
    // as many as were out at once.
    const int64_t ended = absl::c_count_if(ids, [&](const std::string& id) {
      return !world.fleet().held().contains(id);
    });
    EXPECT_LE(ended, 4) << "beside " << world.fleet().held().size();
    world.Turn();
    if (i % 20 == 19) world.Restart();
  }
  EXPECT_TRUE(IsEnded(world.Job(job).state()));
  EXPECT_GT(compared, 30);
  EXPECT_TRUE(stored().empty());
}

}  // namespace
}  // namespace regatta
