// A board's orders to builders: sends them over the agent's session, sends them
// again over the next one or to the next builder, fetches what was built chunk
// by chunk, going on where a try before was cut off, and lets nothing through
// that no trusted builder signed for just this request.
//
// Thread-safe; any number of orders wait at once.
#ifndef REGATTA_DEVICE_AGENT_REMOTE_ORDER_DESK_H_
#define REGATTA_DEVICE_AGENT_REMOTE_ORDER_DESK_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "device_agent/loop/build_peer.h"
#include "regatta/v1/fleet_service.pb.h"

namespace regatta {

class OrderDesk : public BuildPeer {
 public:
  struct Options {
    std::vector<std::string> trusted;  // public keys
    // An order ends after this, whatever it waits for.
    absl::Duration limit = absl::Minutes(2);
    // Between two tries, and for one chunk.
    absl::Duration retry = absl::Milliseconds(500);
    absl::Duration chunk_limit = absl::Seconds(20);
  };
  struct Delivery {
    v1::BuildResponse response;
    UniqueFd file;        // sealed; invalid where the answer has none
    std::string builder;  // as Environment.builder
  };
  using Send = std::function<void(v1::AgentMessage)>;
  using Cancelled = std::function<bool()>;

  // REQUIRES: `clock` outlives it. `send` may be called from any thread.
  OrderDesk(Options options, const Clock* clock, Send send);

  // Blocks. `order`: all but its id and limit. Cancelled as soon as `cancelled`
  // (may be empty) says so; PermissionDenied, InvalidArgument or DataLoss when
  // what came is not to be trusted; FailedPrecondition when the tracker relays
  // nothing; DeadlineExceeded, with the last reason, when no builder answered.
  absl::StatusOr<Delivery> Order(v1::BuildOrder order,
                                 const Cancelled& cancelled);

  void OnSession(const SessionState& state) override;
  void OnBuildMessage(const v1::TrackerMessage& message) override;

  // Waits for at most `limit` until HeartbeatAck.builders_change is not `seen`
  // and returns it; `seen` when nothing changed or `cancelled` said so.
  int64_t AwaitChange(int64_t seen, absl::Duration limit,
                      const Cancelled& cancelled);
  // Answers that were refused: wrong signature, key, digest or size.
  int64_t refused() const;

 private:
  using Inbox = std::deque<v1::TrackerMessage>;
  struct Try {
    std::string id;
    SteadyTime deadline;
    const Cancelled* cancelled;
    int64_t session = 0;  // in which it is made
  };

  // Until a session that relays is there.
  absl::Status AwaitSession(const std::string& why, Try& current);
  // The next message about the order. Unavailable: the session ended.
  absl::StatusOr<v1::TrackerMessage> Receive(const Try& current,
                                             SteadyTime until);
  // What an earlier try got of a file before it was cut off.
  struct Partial {
    std::string digest;  // that the whole file has
    std::string bytes;
  };
  absl::StatusOr<Delivery> TryOnce(const v1::BuildOrder& order,
                                   const Try& current, Partial* partial);
  absl::StatusOr<UniqueFd> Fetch(const v1::BuildAnswer& answer,
                                 const Try& current, Partial* partial);
  absl::StatusOr<std::string> FetchChunk(const v1::BuildAnswer& answer,
                                         int64_t offset, const Try& current);
  // Says why orders wait, once for each reason.
  void NoteWait(const std::string& why);
  // Waits for a moment, until woken.
  void WaitABit(std::unique_lock<std::mutex>& lock);
  absl::Status Refuse(const absl::Status& why);
  void SendEnd(const std::string& order_id);

  const Options options_;
  const Clock* const clock_;
  const Send send_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  SessionState session_;
  int64_t session_number_ = 0;
  int64_t last_order_ = 0;
  int64_t refused_ = 0;
  std::string noted_wait_;                // "": orders are answered
  std::map<std::string, Inbox> inboxes_;  // of open orders
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_REMOTE_ORDER_DESK_H_
