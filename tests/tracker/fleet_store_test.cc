// The tracker's own file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tracker/file_fleet_store.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

class FileFleetStoreTest : public ::testing::Test {
 protected:
  FileFleetStoreTest() {
    char name[] = "/tmp/regatta_fleet_XXXXXX";
    dir_ = mkdtemp(name);
  }
  ~FileFleetStoreTest() override { std::filesystem::remove_all(dir_); }

  std::string File() const { return dir_ + "/fleet.jsonl"; }
  std::string Read() const {
    std::ifstream file(File());
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void Write(const std::string& text) const { std::ofstream(File()) << text; }
  std::unique_ptr<FileFleetStore> MustOpen() {
    auto store = FileFleetStore::Open(dir_);
    EXPECT_TRUE(store.ok()) << store.status().message();
    return store.ok() ? std::move(*store) : nullptr;
  }
  static KnownAgent MakeAgent(const std::string& id) {
    KnownAgent agent;
    agent.agent_id = id;
    agent.holds_leases = true;
    agent.last_seen_unix_ms = 1234567890123;
    agent.compiler_version = "c1";
    v1::DeviceInfo device;
    device.set_device_id("d-" + id);
    device.set_device_class("znver4-2c");
    device.set_memory_bytes(int64_t{1} << 40);
    agent.devices.push_back(device);
    return agent;
  }

  std::string dir_;
};

TEST_F(FileFleetStoreTest, TheEpochGrowsWithEveryStart) {
  for (int64_t epoch = 1; epoch <= 3; ++epoch) {
    EXPECT_EQ(MustOpen()->tracker_epoch(), epoch);
  }
}

TEST_F(FileFleetStoreTest, AgentsComeBackAsTheyWereLastPut) {
  {
    auto store = MustOpen();
    ASSERT_TRUE(store->Put({MakeAgent("a"), MakeAgent("b")}).ok());
    KnownAgent changed = MakeAgent("a");
    changed.holds_leases = false;
    changed.lost = true;
    ASSERT_TRUE(store->Put({changed}).ok());
    ASSERT_TRUE(store->Forget("b").ok());
  }
  const auto agents = MustOpen()->Agents();
  ASSERT_EQ(agents.size(), 1u);
  EXPECT_EQ(agents[0].agent_id, "a");
  EXPECT_FALSE(agents[0].holds_leases);
  EXPECT_TRUE(agents[0].lost);
  EXPECT_EQ(agents[0].last_seen_unix_ms, 1234567890123);
  ASSERT_EQ(agents[0].devices.size(), 1u);
  EXPECT_EQ(agents[0].devices[0].device_id(), "d-a");
  EXPECT_EQ(agents[0].devices[0].memory_bytes(), int64_t{1} << 40);
}

TEST_F(FileFleetStoreTest, AWriteCutShortAnywhereLosesOnlyItself) {
  {
    auto store = MustOpen();
    ASSERT_TRUE(store->Put({MakeAgent("a")}).ok());
  }
  const std::string before = Read();
  {
    auto store = MustOpen();
    ASSERT_TRUE(store->Put({MakeAgent("b")}).ok());
  }
  const std::string whole = Read();
  // The compacted file has its own epoch; the cut starts after what was
  // there before the second Put.
  const size_t begin = whole.rfind('\n', whole.size() - 2) + 1;
  for (size_t cut = begin; cut < whole.size(); cut += 7) {
    Write(whole.substr(0, cut));
    const auto agents = MustOpen()->Agents();
    ASSERT_EQ(agents.size(), 1u) << "cut at byte " << cut;
    EXPECT_EQ(agents[0].agent_id, "a");
  }
}

TEST_F(FileFleetStoreTest, ACorruptFileIsNamedAndLeftAlone) {
  {
    auto store = MustOpen();
    ASSERT_TRUE(store->Put({MakeAgent("a")}).ok());
  }
  std::string text = Read();
  for (const std::string& bad :
       {std::string("garbage\n"), text + "{\"agent\":7}\n",
        std::string("{\"tracker_epoch\":1}\n"), text.substr(0, 5),
        std::string("")}) {
    Write(bad);
    const auto store = FileFleetStore::Open(dir_);
    ASSERT_FALSE(store.ok()) << bad;
    EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(store.status().message()), HasSubstr(File()));
    EXPECT_EQ(Read(), bad);
  }
}

TEST_F(FileFleetStoreTest, AFileOfANewerVersionIsRefused) {
  Write("{\"format\":3,\"tracker_epoch\":5}\n");
  const auto store = FileFleetStore::Open(dir_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("format 3"));
}

TEST_F(FileFleetStoreTest, DevicesAndTheirHistoryComeBack) {
  v1::DeviceStanding standing;
  standing.set_device_id("d1");
  standing.set_trust(v1::TRUST_QUARANTINED);
  standing.mutable_trust_standing()->set_reason("odd \"times\"");
  (*standing.mutable_labels())["rack"] = "2";
  v1::DeviceStanding gone;
  gone.set_device_id("d2");
  v1::DeviceEvent event;
  event.set_device_id("d1");
  event.set_what("quarantine");
  {
    auto store = MustOpen();
    ASSERT_TRUE(store->PutDevices({standing, gone}, {event, event}).ok());
    ASSERT_TRUE(store->ForgetDevice("d2").ok());
  }
  auto store = MustOpen();
  ASSERT_EQ(store->Devices().size(), 1u);
  EXPECT_EQ(store->Devices()[0].SerializeAsString(),
            standing.SerializeAsString());
  EXPECT_EQ(store->Events().size(), 2u);
  EXPECT_EQ(store->Events()[1].what(), "quarantine");
}

TEST_F(FileFleetStoreTest, OnlyTheLatestEventsAreKept) {
  v1::DeviceEvent event;
  event.set_what("first");
  std::vector<v1::DeviceEvent> many(FleetStore::kKeptEvents);
  many.back().set_what("last");
  {
    auto store = MustOpen();
    ASSERT_TRUE(store->PutDevices({}, {event}).ok());
    ASSERT_TRUE(store->PutDevices({}, many).ok());
    EXPECT_EQ(store->Events().size(), FleetStore::kKeptEvents);
    EXPECT_EQ(store->Events().front().what(), "");
  }
  auto store = MustOpen();
  EXPECT_EQ(store->Events().size(), FleetStore::kKeptEvents);
  EXPECT_EQ(store->Events().back().what(), "last");
}

TEST_F(FileFleetStoreTest, BoardsOfAFileBeforeApprovalAreApproved) {
  Write(
      "{\"format\":1,\"tracker_epoch\":5}\n"
      "{\"agent\":\"a\",\"holds_leases\":false,\"lost\":false,"
      "\"last_seen_unix_ms\":9,\"agent_version\":\"\","
      "\"compiler_version\":\"c1\",\"sandbox\":\"\","
      "\"devices\":[{\"deviceId\":\"d-a\"}]}\n");
  auto store = MustOpen();
  ASSERT_EQ(store->Devices().size(), 1u);
  EXPECT_EQ(store->Devices()[0].device_id(), "d-a");
  EXPECT_EQ(store->Devices()[0].agent_id(), "a");
  EXPECT_EQ(store->Devices()[0].trust(), v1::TRUST_UNKNOWN);
}

TEST_F(FileFleetStoreTest, WhatItWritesIsItsOwnersAlone) {
  const auto mode = [](const std::string& file) {
    struct stat info = {};
    EXPECT_EQ(stat(file.c_str(), &info), 0) << file;
    return info.st_mode & 0777;
  };
  const mode_t mask = umask(0);
  MustOpen().reset();
  for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
    EXPECT_EQ(mode(entry.path()), 0600u) << entry.path();
  }
  // Opened to others, it stays so through every start.
  ASSERT_EQ(chmod(File().c_str(), 0640), 0);
  MustOpen().reset();
  EXPECT_EQ(mode(File()), 0640u);
  umask(mask);
}

TEST_F(FileFleetStoreTest, TwoTrackersDoNotShareAFolder) {
  const auto first = MustOpen();
  const auto second = FileFleetStore::Open(dir_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(dir_));
}

TEST_F(FileFleetStoreTest, AFolderThatCannotBeMadeIsNamed) {
  const auto store = FileFleetStore::Open("/proc/none/x");
  ASSERT_FALSE(store.ok());
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("/proc/none/x"));
}

}  // namespace
}  // namespace regatta
