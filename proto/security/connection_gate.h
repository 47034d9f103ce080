// Which new connections a daemon takes: bounds on all of them, on those that
// have not made a single allowed call yet ("unproven": half-open, scanners,
// random bytes, people without a certificate), and patience with addresses
// whose connections keep ending like that.
//
// A state machine with the time passed in; the listener around it knows the
// sockets. Not thread-safe.
#ifndef REGATTA_PROTO_SECURITY_CONNECTION_GATE_H_
#define REGATTA_PROTO_SECURITY_CONNECTION_GATE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"

namespace regatta {

struct GateLimits {
  int max_connections = 20'000;
  int max_unproven = 4'096;
  int max_unproven_per_address = 1'024;
  // An address with so many failures within the last minute gets one connection
  // a second until the minute is over.
  int failures_per_minute = 20;
  // Local users share one address, and could lock out one another.
  bool back_off_loopback = false;
};

class ConnectionGate {
 public:
  enum class Verdict { kTake, kFull, kUnproven, kBackOff };

  explicit ConnectionGate(const GateLimits& limits) : limits_(limits) {}

  // A connection came: `peer` is address and port, unique among those open. Not
  // taken: it is forgotten at once.
  Verdict Arrived(const std::string& peer, const std::string& address,
                  bool loopback, SteadyTime now);
  // It made a call that was allowed, of `who`.
  void Proven(const std::string& peer, const std::string& who);
  // It ended. A failure if it was not proven: its address; "" otherwise.
  std::string Ended(const std::string& peer, SteadyTime now);
  // Forgets addresses without a failure in the last minute.
  void Tick(SteadyTime now);

  // Where something that `who` did, or somebody who is not known yet (""), must
  // have come from: the address, or those that it can be, of all connections
  // that are unproven or proven by `who`.
  std::string From(const std::string& who) const;

  int open() const { return static_cast<int>(connections_.size()); }
  int unproven() const { return unproven_; }
  size_t addresses() const { return addresses_.size(); }

 private:
  struct Connection {
    std::string address;
    bool proven = false;
    std::string who;  // once proven
  };
  struct Address {
    int unproven = 0;
    bool loopback = false;
    std::deque<SteadyTime> failures;  // at most failures_per_minute kept
    SteadyTime taken;                 // last one while backing off
  };
  using Count = std::map<std::string, int>;  // of connections, by address
  void Prune(Address& address, SteadyTime now);
  static void Less(Count* count, const std::string& address);

  const GateLimits limits_;
  std::map<std::string, Connection> connections_;
  std::map<std::string, Address> addresses_;
  int unproven_ = 0;
  Count unproven_from_;
  std::map<std::string, Count> proven_from_;  // by who
};

}  // namespace regatta

#endif  // REGATTA_PROTO_SECURITY_CONNECTION_GATE_H_
