// A builder's side of orders: queues them, builds on this machine's processors
// under the locks of its cores, signs the answers and hands out what was built
// by its digest. What was ordered before is answered from memory.
//
// Thread-safe.
#ifndef REGATTA_DEVICE_AGENT_REMOTE_ORDER_BUILDER_H_
#define REGATTA_DEVICE_AGENT_REMOTE_ORDER_BUILDER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/ed25519.h"
#include "base/unique_fd.h"
#include "device_agent/loop/build_peer.h"
#include "device_agent/measure/build_worker.h"
#include "device_agent/measure/core_locks.h"
#include "regatta/v1/fleet_service.pb.h"

namespace regatta {

class OrderBuilder : public BuildPeer {
 public:
  // Orders that wait for a slot; more are declined.
  static constexpr size_t kMaxWaiting = 64;
  // What is kept of earlier answers.
  static constexpr size_t kMaxKept = 256;
  static constexpr int64_t kMaxKeptBytes = int64_t{256} << 20;

  struct Slot {
    int cpu = 0;  // where it builds; locked during each build
    std::unique_ptr<BuildWorker> worker;
  };
  using Send = std::function<void(v1::AgentMessage)>;

  // Starts a thread for each slot. `name`: as the tracker knows this agent.
  // REQUIRES: `cores` outlives it; `send` may be called from any thread.
  OrderBuilder(SigningKey key, std::string name, std::vector<Slot> slots,
               const CoreLocks* cores, Send send);
  // Drops everything.
  ~OrderBuilder() override;

  void OnSession(const SessionState& state) override;
  void OnBuildMessage(const v1::TrackerMessage& message) override;

 private:
  struct Kept {
    std::string key;         // of its request
    v1::BuildAnswer answer;  // without order id
    std::shared_ptr<const UniqueFd> file;
    bool lasting = false;  // building it again would give the same
  };
  // Ids are the tracker's, and another begins to count anew: an order is known
  // by its session too.
  struct Order {
    v1::BuildOrder order;
    int64_t session = 0;
  };

  void Work(Slot& slot);
  // Waits for an order; false when this ends.
  bool TakeOrder(Order* order);
  // An error: nothing to answer, though others may have.
  absl::StatusOr<Kept> Build(const v1::BuildOrder& order, Slot& slot,
                             const std::function<bool()>& cancelled) const;
  void Carry(const Order& order, Slot& slot);
  // Unless whoever ordered it is gone.
  void Answer(const Order& order, v1::AgentMessage message);
  void Keep(Kept kept);
  // The answer with this key, or the one with this digest, as used just now.
  const Kept* FindKept(const std::string& key, const std::string& digest);
  bool Wanted(const Order& order);
  bool WantedLocked(const Order& order) const;
  static v1::AgentMessage Declined(const std::string& order_id,
                                   const std::string& why);
  void SendChunk(const v1::BlobAsk& ask);

  const SigningKey key_;
  const std::string name_;
  const CoreLocks* const cores_;
  const Send send_;
  std::vector<Slot> slots_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Order> waiting_;
  std::map<std::string, int64_t> building_;  // order id -> session
  std::list<Kept> kept_;                     // most recently used first
  int64_t kept_bytes_ = 0;
  int64_t session_ = 0;
  bool up_ = false;
  std::atomic<bool> ending_ = false;  // written with mutex_ held
  std::vector<std::thread> threads_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_REMOTE_ORDER_BUILDER_H_
