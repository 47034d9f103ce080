// 36: large modules on their way from a builder to a board, over real
// connections and the real tracker: what shares the link with them, and links
// that break in the middle.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/memory_file.h"
#include "base/random.h"
#include "device_agent/loop/agent_runtime.h"
#include "device_agent/remote/build_seal.h"
#include "device_agent/tracker_client.h"
#include "tests/device_agent/loop/fake_spool_storage.h"
#include "tests/device_agent/remote/wire.h"
#include "tests/support/fault_proxy.h"
#include "tests/support/idle_runner.h"
#include "tests/support/process.h"
#include "tests/support/scale.h"
#include "tests/tracker/core_fixture.h"
#include "tracker/tracker_service.h"

namespace regatta::faults {
namespace {

using testing::FaultProxy;

constexpr absl::Duration kHeartbeat = absl::Milliseconds(200);

// An agent's connection, with a look at how long heartbeats wait for answers.
class TimedConnection : public TrackerConnection {
 public:
  explicit TimedConnection(const std::string& tracker)
      : client_(tracker, nullptr) {}

  void Open(Callbacks callbacks) override {
    auto heard = std::move(callbacks.on_message);
    callbacks.on_message = [this, heard](v1::TrackerMessage message) {
      if (message.has_heartbeat_ack()) {
        std::lock_guard lock(mutex_);
        const auto sent = sent_.find(message.heartbeat_ack().sequence());
        if (sent != sent_.end()) {
          longest_ = std::max(longest_, RealClock().Steady() - sent->second);
          ++answered_;
          sent_.erase(sent);
        }
      }
      heard(std::move(message));
    };
    client_.Open(std::move(callbacks));
  }
  void Send(v1::AgentMessage message) override {
    if (message.has_heartbeat()) {
      std::lock_guard lock(mutex_);
      sent_[message.heartbeat().sequence()] = RealClock().Steady();
    }
    client_.Send(std::move(message));
  }
  void Close(absl::Duration linger) override { client_.Close(linger); }

  int answered() const {
    std::lock_guard lock(mutex_);
    return answered_;
  }
  absl::Duration longest() const {
    std::lock_guard lock(mutex_);
    return longest_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<int64_t, SteadyTime> sent_;
  int answered_ = 0;
  absl::Duration longest_;
  TrackerClient client_;
};

// The agent's loop with a connection and no work.
class Agent {
 public:
  Agent(v1::Hello hello, const std::string& tracker) : connection_(tracker) {
    hello.set_boot_id("boot");
    hello.set_instance_id("i");
    AgentLoop::Options options;
    options.hello = std::move(hello);
    runtime_ = std::make_unique<AgentRuntime>(
        options, &RealClock(), Random(1),
        *Spool::Open(std::make_unique<FakeSpoolStorage>(&disk_), SpoolLimits{}),
        &connection_);
  }
  void Start(BuildPeer* peer) {
    runtime_->SetBuildPeer(peer);
    runtime_->Start(&runner_);
  }
  void Stop() { runtime_->Stop(); }
  std::function<void(v1::AgentMessage)> Sender() {
    return [this](v1::AgentMessage message) {
      runtime_->SendBuildMessage(std::move(message));
    };
  }
  const TimedConnection& connection() const { return connection_; }

 private:
  FakeDisk disk_;
  IdleRunner runner_;
  TimedConnection connection_;
  std::unique_ptr<AgentRuntime> runtime_;
};

std::string RandomBytes(size_t count) {
  Random random(36);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Below(256));
  return bytes;
}

class TransferFaults : public ::testing::Test {
 protected:
  // A tracker, a builder that builds `module` whatever is asked, and a board
  // behind a proxy.
  void Start(std::string module) {
    module_ = std::move(module);
    TrackerOptions options;
    options.heartbeat = kHeartbeat;
    auto tracker = TrackerService::Start("127.0.0.1:0", options, RealClock(),
                                         random_, store_);
    ASSERT_TRUE(tracker.ok()) << tracker.status();
    tracker_ = *std::move(tracker);
    auto proxy = FaultProxy::Start(tracker_->address());
    ASSERT_TRUE(proxy.ok()) << proxy.status();
    proxy_ = *std::move(proxy);

    v1::Hello hello;
    hello.set_agent_id("builder");
    hello.mutable_builder()->set_public_key(key_.public_key());
    hello.mutable_builder()->set_slots(1);
    v1::KindReach& kind =
        *hello.mutable_builder()->mutable_reach()->add_kinds();
    kind.set_kind("cpu");
    kind.set_compiler_version("c1");
    kind.add_architectures("aarch64");
    builder_ = std::make_unique<Agent>(hello, tracker_->address());
    std::vector<OrderBuilder::Slot> slots;
    slots.push_back(
        {0, std::make_unique<FakeBuildWorker>([this](const v1::BuildRequest&) {
           ++builds_;
           return FakeBuildWorker::Module(module_);
         })});
    order_builder_ = std::make_unique<OrderBuilder>(
        key_, "builder", std::move(slots), &locks_, builder_->Sender());
    builder_->Start(order_builder_.get());

    v1::Hello board;
    board.set_agent_id("board");
    board.add_trusted_builders(key_.public_key());
    board.set_devices_follow(true);
    board_ = std::make_unique<Agent>(board, proxy_->address());
    OrderDesk::Options desk;
    desk.trusted = {key_.public_key()};
    desk.limit = absl::Minutes(5);
    desk_ = std::make_unique<OrderDesk>(desk, &RealClock(), board_->Sender());
    board_->Start(desk_.get());
  }
  ~TransferFaults() override {
    for (Agent* agent : {board_.get(), builder_.get()}) {
      if (agent != nullptr) agent->Stop();
    }
    order_builder_.reset();
  }

  absl::StatusOr<OrderDesk::Delivery> Order() {
    v1::BuildOrder order;
    order.set_kind("cpu");
    order.set_architecture("aarch64");
    order.set_compiler_version("c1");
    v1::BuildRequest request;
    request.mutable_module()->set_workload("matmul(m=4,n=4,k=4)");
    order.set_request(request.SerializeAsString());
    return desk_->Order(std::move(order), {});
  }
  void ExpectWhole(const absl::StatusOr<OrderDesk::Delivery>& delivery) {
    ASSERT_TRUE(delivery.ok()) << delivery.status();
    const auto mapped = MappedFile::Map(delivery->file.get());
    ASSERT_TRUE(mapped.ok()) << mapped.status();
    EXPECT_TRUE(mapped->bytes() == module_) << "bytes differ";
    EXPECT_EQ(builds_, 1);
    EXPECT_EQ(desk_->refused(), 0);
  }

  const SigningKey key_ = SigningKey::Generate();
  const testing::TempDir folder_;
  const CoreLocks locks_{folder_.path()};
  std::string module_;
  std::atomic<int> builds_ = 0;
  MemoryFleetStore store_;
  Random random_{1};
  std::unique_ptr<TrackerService> tracker_;
  std::unique_ptr<FaultProxy> proxy_;
  std::unique_ptr<Agent> builder_, board_;
  std::unique_ptr<OrderBuilder> order_builder_;
  std::unique_ptr<OrderDesk> desk_;
};

// The largest module that there may be, at REGATTA_TEST_SCALE 4, over a link on
// which it takes half a minute: a heartbeat's answer waits for a chunk of 128
// KiB at the most.
TEST_F(TransferFaults, ALargeModuleOnANarrowLinkDelaysNoHeartbeatByASecond) {
  const int64_t bytes =
      std::min(kMaxBlobBytes, static_cast<int64_t>(TestScale() * (16 << 20)));
  Start(RandomBytes(static_cast<size_t>(bytes)));
  ASSERT_TRUE(testing::WaitFor(
      absl::Seconds(10), [&] { return board_->connection().answered() > 0; }));
  proxy_->Throttle(int64_t{2} << 20);
  const int before = board_->connection().answered();
  const SteadyTime start = RealClock().Steady();
  ExpectWhole(Order());
  const absl::Duration took = RealClock().Steady() - start;
  const int beats = board_->connection().answered() - before;
  std::cout << bytes << " bytes in " << absl::FormatDuration(took) << ", "
            << beats << " heartbeats, the longest answer after "
            << absl::FormatDuration(board_->connection().longest()) << "\n";
  EXPECT_GE(took, 0.9 * absl::Seconds(bytes) / (2 << 20));
  EXPECT_GE(beats, took / kHeartbeat / 2);
  EXPECT_LE(board_->connection().longest(), absl::Seconds(1));
  EXPECT_EQ(proxy_->counts().accepted, 1) << "the stream lives";
}

// What came before a cut need not come again.
TEST_F(TransferFaults, AModuleGoesOnWhereItWasCut) {
  constexpr int64_t kChunk = 128 << 10;
  const int cuts = Scaled(8);
  // Enough for what every connection but the last may bring.
  const int64_t bytes = cuts * 3 * kChunk;
  Start(RandomBytes(static_cast<size_t>(bytes)));
  ASSERT_TRUE(testing::WaitFor(
      absl::Seconds(10), [&] { return board_->connection().answered() > 0; }));
  proxy_->CutNewcomers(
      [cuts, random = Random(4),
       planned = 0](int64_t) mutable -> std::optional<FaultProxy::CutPoint> {
        if (planned++ >= cuts) return std::nullopt;
        // Some fall before a whole chunk, others at any byte of a later one.
        return FaultProxy::CutPoint{
            FaultProxy::Direction::kFromTarget,
            kChunk / 2 + static_cast<int64_t>(random.Below(2 * kChunk))};
      });
  const int64_t resets = proxy_->counts().reset;
  proxy_->Cut();
  const int64_t before = proxy_->counts().from_target_bytes;
  ExpectWhole(Order());
  EXPECT_EQ(proxy_->counts().reset, resets + 1 + cuts);
  // A chunk that was under way at each cut came in vain.
  const int64_t came = proxy_->counts().from_target_bytes - before;
  std::cout << came << " bytes for " << bytes << " over " << cuts << " cuts\n";
  EXPECT_LE(came, bytes + (cuts + 1) * (kChunk + 8192));
}

}  // namespace
}  // namespace regatta::faults
