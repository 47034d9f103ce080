// Which results a tracker acknowledges, read off the wire of plain-text
// sessions.
//
// Thread-safe.
#ifndef REGATTA_TESTS_CHAOS_ACK_TAP_H_
#define REGATTA_TESTS_CHAOS_ACK_TAP_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "tests/support/fault_proxy.h"
#include "tests/support/grpc_messages.h"

namespace regatta::testing {

class AckTap {
 public:
  // For the proxy between agents and their tracker. `this` outlives it.
  FaultProxy::Tap Tap();

  // Trials whose results the tracker said were stored, now or before; without
  // those of canaries.
  std::set<std::string> stored() const;
  int64_t acks() const;      // of those, as often as they were said
  int64_t rejected() const;  // results never to be sent again
  int64_t unread() const;    // messages that are not a TrackerMessage

 private:
  // With the mutex held.
  void ReadMessage(std::string_view bytes);

  mutable std::mutex mutex_;
  std::map<int64_t, GrpcMessages> sessions_;  // by the proxy's connection
  std::set<std::string> stored_;
  int64_t acks_ = 0, rejected_ = 0, unread_ = 0;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_CHAOS_ACK_TAP_H_
