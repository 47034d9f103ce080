// What servers are told of devices: a snapshot, then what changed; and how they
// notice that something is missing.
#include "proto/fleet_mirror.h"
#include "tests/support/seeds.h"
#include "tests/tracker/core_fixture.h"
#include "tests/tracker/fleet_watch.h"
#include "tests/tracker/silence.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

v1::DeviceStatus MakeStatus(const std::string& id, const std::string& name,
                            int credit = 1) {
  v1::DeviceStatus status;
  status.mutable_info()->set_device_id(id);
  status.mutable_info()->set_device_class(name);
  status.mutable_info()->set_credit(credit);
  return status;
}

v1::FleetChange Changed(int64_t sequence, v1::DeviceStatus device) {
  v1::FleetChange change;
  change.set_sequence(sequence);
  *change.add_devices() = std::move(device);
  return change;
}

TEST(FleetMirror, TakesASnapshotInPartsThenChanges) {
  FleetMirror mirror;
  std::vector<v1::FleetChange> parts = SnapshotOf(
      {MakeStatus("a", "x"), MakeStatus("b", "x"), MakeStatus("c", "y")}, 1);
  ASSERT_THAT(parts, SizeIs(3));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(mirror.whole()) << i;
    EXPECT_TRUE(mirror.TakeChanged().empty()) << "nothing counts before all is";
    parts[i].set_sequence(1 + i);
    ASSERT_TRUE(mirror.Apply(parts[i]).ok());
  }
  EXPECT_TRUE(mirror.whole());
  EXPECT_EQ(mirror.TakeChanged(), (std::set<std::string>{"x", "y"}));
  // From one class into another; and away.
  ASSERT_TRUE(mirror.Apply(Changed(4, MakeStatus("c", "x", 7))).ok());
  EXPECT_EQ(mirror.TakeChanged(), (std::set<std::string>{"x", "y"}));
  EXPECT_THAT(mirror.OfClass("y"), SizeIs(0));
  EXPECT_EQ(mirror.OfClass("x").at("c").info().credit(), 7);
  v1::FleetChange gone;
  gone.set_sequence(5);
  gone.add_gone_device_ids("a");
  gone.add_gone_device_ids("never there");
  ASSERT_TRUE(mirror.Apply(gone).ok());
  EXPECT_THAT(mirror.OfClass("x"), SizeIs(2));
}

TEST(FleetMirror, NoticesWhatIsMissingOnceAndStartsOver) {
  FleetMirror mirror;
  // A stream that begins without a snapshot is waited for in silence.
  EXPECT_TRUE(mirror.Apply(Changed(3, MakeStatus("z", "x"))).ok());
  EXPECT_FALSE(mirror.whole());
  v1::FleetChange whole = SnapshotOf({MakeStatus("a", "x")}, 1 << 20)[0];
  whole.set_sequence(4);
  ASSERT_TRUE(mirror.Apply(whole).ok());
  const absl::Status gap = mirror.Apply(Changed(6, MakeStatus("b", "x")));
  EXPECT_EQ(gap.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(gap.message(), HasSubstr("message 6"));
  EXPECT_THAT(gap.message(), HasSubstr("where 5 was due"));
  EXPECT_FALSE(mirror.whole());
  EXPECT_THAT(mirror.OfClass("x"), SizeIs(1)) << "as it was before the gap";
  EXPECT_TRUE(mirror.Apply(Changed(7, MakeStatus("c", "x"))).ok()) << "once";
  whole.set_sequence(8);
  ASSERT_TRUE(mirror.Apply(whole).ok());
  EXPECT_TRUE(mirror.whole());
  // The same again, and the end of a snapshot that never began.
  EXPECT_FALSE(mirror.Apply(Changed(8, MakeStatus("d", "x"))).ok());
  ASSERT_TRUE(mirror.Apply(whole).ok());
  v1::FleetChange last = whole;
  last.set_sequence(9);
  last.set_snapshot(v1::SNAPSHOT_PART_LAST);
  EXPECT_FALSE(mirror.Apply(last).ok());
}

TEST(FleetMirror, AFleetOfNobodyIsASnapshotToo) {
  const std::vector<v1::FleetChange> parts = SnapshotOf({}, 1000);
  ASSERT_THAT(parts, SizeIs(1));
  EXPECT_EQ(parts[0].snapshot(), v1::SNAPSHOT_PART_WHOLE);
  FleetMirror mirror;
  ASSERT_TRUE(mirror.Apply(parts[0]).ok());
}

class FleetNewsTest : public CoreTest {
 protected:
  std::vector<v1::FleetChange> Changes(StreamId server) {
    std::vector<v1::FleetChange> found;
    for (const auto& e : servers_[server].events) {
      if (e.has_fleet_change()) found.push_back(e.fleet_change());
    }
    servers_[server].events.clear();
    return found;
  }
  // Something that happens to a fleet.
  void Happen(Random& random) {
    const std::string id = absl::StrCat(random.Below(6));
    const std::string name = random.Below(2) == 0 ? "x" : "y";
    switch (random.Below(8)) {
      case 0:
      case 1:
        boards_[id] = Connect(MakeHello(
            "a" + id,
            {MakeDevice("d" + id, 1 + static_cast<int>(random.Below(3)), name),
             MakeDevice("e" + id, 1, "x")},
            absl::StrCat("i", random.Below(3))));
        break;
      case 2:
        if (boards_.contains(id)) Disconnect(boards_[id]);
        break;
      case 3: {  // without its second device
        v1::Hello hello = MakeHello("a" + id, {MakeDevice("d" + id, 1, name)});
        hello.set_boot_id(absl::StrCat("boot", random.Below(3)));
        boards_[id] = Connect(hello);
        break;
      }
      case 4: {
        v1::AgentMessage message;
        *message.mutable_device_update()->add_devices() =
            MakeDevice("d" + id, 2, name);
        message.mutable_device_update()->mutable_devices(0)->set_health(
            random.Below(2) == 0 ? "ok" : "draining: hot");
        if (boards_.contains(id)) Say(boards_[id], message);
        break;
      }
      case 5: {
        v1::ControlDevicesRequest request;
        request.set_command(random.Below(2) == 0 ? v1::DEVICE_COMMAND_QUARANTINE
                                                 : v1::DEVICE_COMMAND_RELEASE);
        request.set_reason("to see");
        request.set_by("ann");
        request.mutable_devices()->add_device_ids("d" + id);
        core_->ControlDevices(request).IgnoreError();
        Drain();
        break;
      }
      default:
        Wait(absl::Milliseconds(500) * static_cast<double>(random.Below(80)));
    }
  }

  std::map<std::string, SessionId> boards_;
};

TEST_F(FleetNewsTest, ASnapshotThenWhatChanged) {
  ConnectBoard("1");
  ConnectBoard("2");
  Wait(absl::Seconds(1));
  const StreamId server = Attach();
  std::vector<v1::FleetChange> changes = Changes(server);
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].snapshot(), v1::SNAPSHOT_PART_WHOLE);
  EXPECT_EQ(changes[0].sequence(), 1);
  EXPECT_EQ(changes[0].devices_size(), 2);
  ConnectBoard("3");
  changes = Changes(server);
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].snapshot(), v1::SNAPSHOT_PART_NONE);
  EXPECT_EQ(changes[0].sequence(), 2);
  ASSERT_EQ(changes[0].devices_size(), 1);
  EXPECT_EQ(changes[0].devices(0).info().device_id(), "d3");
  // No more often than the interval, then all of it.
  const SessionId four = ConnectBoard("4");
  Connect(MakeHello("a1", {}));
  EXPECT_THAT(Changes(server), SizeIs(0));
  Wait(absl::Milliseconds(500));
  changes = Changes(server);
  ASSERT_THAT(changes, SizeIs(2));
  ASSERT_EQ(changes[0].devices_size(), 1);
  EXPECT_EQ(changes[0].devices(0).info().device_id(), "d4");
  ASSERT_EQ(changes[1].gone_device_ids_size(), 1);
  EXPECT_EQ(changes[1].gone_device_ids(0), "d1");
  EXPECT_EQ(changes[1].sequence(), 4);
  // Heartbeats and work are nobody's news.
  Submit(server, {MakeWork(7, 0)});
  Beat(four);
  Wait(absl::Seconds(2));
  EXPECT_THAT(Changes(server), SizeIs(0));
  v1::DispatchRequest request;
  request.mutable_ask_fleet();
  Ask(server, request);
  changes = Changes(server);
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].snapshot(), v1::SNAPSHOT_PART_WHOLE);
  EXPECT_EQ(changes[0].sequence(), 5);
  EXPECT_EQ(changes[0].devices_size(), 3);
  // A stream of its own begins anew.
  changes = Changes(Attach());
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].sequence(), 1);
}

TEST_F(FleetNewsTest, AlargeFleetComesInParts) {
  for (int i = 0; i < 40; ++i) {
    v1::DeviceInfo device = MakeDevice(absl::StrCat("d", i));
    device.set_marketing_name(std::string(50'000, 'x'));
    Connect(MakeHello(absl::StrCat("a", i), {device}));
  }
  const std::vector<v1::FleetChange> parts = Changes(Attach());
  EXPECT_THAT(parts, SizeIs(4)) << "2 MB, half of one each";
  FleetMirror mirror;
  for (const v1::FleetChange& part : parts) {
    EXPECT_LT(part.ByteSizeLong(), 600u << 10);
    ASSERT_TRUE(mirror.Apply(part).ok());
  }
  EXPECT_EQ(Difference(mirror, core_->ListDevices()), "");
}

// Whatever happens, the changes add up to what a snapshot says; a server that
// missed some notices, asks and is right again.
TEST_F(FleetNewsTest, ChangesAddUpToTheSnapshot) {
  const SeedRange seeds = SeedsToRun(60);
  std::optional<Silence> silence;
  if (!seeds.single) silence.emplace();
  int gaps = 0;
  for (uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    Random random(seed);
    store_ = MemoryFleetStore();
    boards_.clear();
    Restart();
    const StreamId server = Attach();
    FleetMirror exact, lossy;
    for (int step = 0; step < 60; ++step) {
      Happen(random);
      if (random.Below(10) != 0) continue;
      Wait(absl::Seconds(1));  // so that nothing is untold
      for (const v1::FleetChange& change : Changes(server)) {
        ASSERT_TRUE(exact.Apply(change).ok()) << ReplayCommand(seed);
        if (random.Below(4) == 0) continue;  // lost
        gaps += lossy.Apply(change).ok() ? 0 : 1;
      }
      core_->CheckIndices();
      ASSERT_EQ(Difference(exact, core_->ListDevices()), "")
          << ReplayCommand(seed);
      v1::DispatchRequest request;
      request.mutable_ask_fleet();
      Ask(server, request);
      for (const v1::FleetChange& change : Changes(server)) {
        ASSERT_TRUE(exact.Apply(change).ok()) << ReplayCommand(seed);
        ASSERT_TRUE(lossy.Apply(change).ok()) << ReplayCommand(seed);
      }
      for (const FleetMirror* mirror : {&exact, &lossy}) {
        ASSERT_EQ(Difference(*mirror, core_->ListDevices()), "")
            << ReplayCommand(seed);
      }
    }
  }
  if (seeds.count() >= 20) EXPECT_GT(gaps, 10) << "nothing was ever missed";
}

}  // namespace
}  // namespace regatta
