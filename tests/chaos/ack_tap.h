// Which results a tracker acknowledges, read off the wire of plain-text
// sessions. Only frames of data are looked at (RFC 9113, 4.1 and 6.1), and in
// them gRPC's messages (length-prefixed): no compression is expected.
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
#include <utility>

#include "tests/support/fault_proxy.h"

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
  struct Session {
    std::string frames;                     // not yet a whole frame
    std::map<uint32_t, std::string> calls;  // not yet a whole message
  };
  // With the mutex held.
  void Read(Session* session);
  void ReadMessages(std::string* bytes);
  void ReadMessage(std::string_view bytes);

  mutable std::mutex mutex_;
  std::map<int64_t, Session> sessions_;  // by the proxy's connection
  std::set<std::string> stored_;
  int64_t acks_ = 0, rejected_ = 0, unread_ = 0;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_CHAOS_ACK_TAP_H_
