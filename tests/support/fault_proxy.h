// A TCP proxy on loopback that breaks on demand, as networks do: for tests
// that put it between an agent or a client and a daemon.
//
// Faults act on connections that there are and on those that come. What is held
// back is not lost: when the fault ends it goes on, as TCP would send it again
// after an outage. A connection that was cut stays cut.
//
// Thread-safe: any thread may set faults while a thread of the proxy forwards.
#ifndef REGATTA_TESTS_SUPPORT_FAULT_PROXY_H_
#define REGATTA_TESTS_SUPPORT_FAULT_PROXY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace regatta::testing {

class FaultProxy {
 public:
  enum class Direction { kToTarget, kFromTarget };

  // Sees all bytes that come from one side of a connection, in order, before
  // any fault is done to them. Called on the proxy's thread; must not call the
  // proxy. `connection` counts from 1. No bytes: the connection is over.
  using Tap = std::function<void(int64_t connection, Direction direction,
                                 std::string_view bytes)>;

  // Listens on a free port of 127.0.0.1 and forwards every connection to one of
  // its own to `target`, HOST:PORT with a numeric host. A target that refuses
  // is a reset of the newcomer. InvalidArgument for a target that is no
  // address; Internal names the call that failed.
  static absl::StatusOr<std::unique_ptr<FaultProxy>> Start(
      const std::string& target, Tap tap = {});
  ~FaultProxy();  // resets what there is
  FaultProxy(const FaultProxy&) = delete;

  std::string address() const;  // "127.0.0.1:PORT"

  // Resets (RST) all connections that there are, on both ends.
  void Cut();
  // Resets each connection, once, after so many further bytes in a direction.
  void CutAfter(Direction direction, int64_t bytes);
  // Resets connections that come from now on after so many bytes in a
  // direction, as `plan` says of their numbers; those without an answer stay.
  // Called as a Tap is. An empty plan ends it.
  struct CutPoint {
    Direction direction = Direction::kToTarget;
    int64_t bytes = 0;
  };
  using CutPlan = std::function<std::optional<CutPoint>(int64_t connection)>;
  void CutNewcomers(CutPlan plan);
  // Newcomers are reset; who is connected stays.
  void Refuse(bool on);
  // Half-open: connections stay, newcomers are taken, and nothing is forwarded
  // in this direction. In both: nobody hears of the other's end either.
  void Hold(Direction direction, bool on);
  // What comes from now on is forwarded so much later, in each direction.
  void Delay(absl::Duration delay);
  // Bytes per second of each connection and direction; 0: as fast as it goes.
  void Throttle(int64_t bytes_per_s);
  // Turns over the lowest bit of the next byte that comes.
  void CorruptByte(Direction direction);
  // Ends all faults; what was held goes on.
  void Heal();

  struct Counts {
    int64_t accepted = 0;         // connections, ever
    int64_t open = 0;             // now
    int64_t reset = 0;            // by the proxy
    int64_t to_target_bytes = 0;  // forwarded
    int64_t from_target_bytes = 0;
    int64_t corrupted = 0;  // bytes
  };
  Counts counts() const;

 private:
  class Pump;
  class Connection;
  class Loop;
  explicit FaultProxy(std::unique_ptr<Loop> loop);

  const std::unique_ptr<Loop> loop_;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_SUPPORT_FAULT_PROXY_H_
