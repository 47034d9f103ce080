#include "proto/security/connection_gate.h"

#include <set>
#include <vector>

#include "absl/strings/str_join.h"

namespace regatta {
namespace {

constexpr absl::Duration kWindow = absl::Minutes(1);
constexpr absl::Duration kBackOffInterval = absl::Seconds(1);
constexpr size_t kMaxNamed = 4;

}  // namespace

ConnectionGate::Verdict ConnectionGate::Arrived(const std::string& peer,
                                                const std::string& address,
                                                bool loopback, SteadyTime now) {
  // The port is in use again before the end of the last one was noticed.
  Ended(peer, now);
  if (open() >= limits_.max_connections) return Verdict::kFull;
  if (unproven_ >= limits_.max_unproven) return Verdict::kUnproven;
  auto known = addresses_.find(address);
  if (known != addresses_.end()) {
    Address& state = known->second;
    Prune(state, now);
    if (state.unproven >= limits_.max_unproven_per_address) {
      return Verdict::kUnproven;
    }
    const bool backs_off = !loopback || limits_.back_off_loopback;
    if (backs_off && static_cast<int>(state.failures.size()) >=
                         limits_.failures_per_minute) {
      if (now - state.taken < kBackOffInterval) return Verdict::kBackOff;
      state.taken = now;
    }
  }
  Address& state = addresses_[address];
  state.loopback = loopback;
  ++state.unproven;
  ++unproven_;
  ++unproven_from_[address];
  connections_[peer] = {.address = address, .proven = false, .who = ""};
  return Verdict::kTake;
}

void ConnectionGate::Proven(const std::string& peer, const std::string& who) {
  const auto found = connections_.find(peer);
  if (found == connections_.end() || found->second.proven) return;
  Connection& connection = found->second;
  connection.proven = true;
  connection.who = who;
  --unproven_;
  --addresses_[connection.address].unproven;
  Less(&unproven_from_, connection.address);
  ++proven_from_[who][connection.address];
}

void ConnectionGate::Less(Count* count, const std::string& address) {
  const auto found = count->find(address);
  if (found != count->end() && --found->second == 0) count->erase(found);
}

std::string ConnectionGate::From(const std::string& who) const {
  std::vector<const Count*> counts = {&unproven_from_};
  if (const auto proven = proven_from_.find(who);
      proven != proven_from_.end()) {
    counts.push_back(&proven->second);
  }
  std::set<std::string> addresses;
  for (const Count* count : counts) {
    for (const auto& [address, connections] : *count) {
      addresses.insert(address);
      if (addresses.size() > kMaxNamed) return "one of several addresses";
    }
  }
  return absl::StrJoin(addresses, " or ");
}

std::string ConnectionGate::Ended(const std::string& peer, SteadyTime now) {
  const auto found = connections_.find(peer);
  if (found == connections_.end()) return "";
  std::string failed;
  if (found->second.proven) {
    const auto proven = proven_from_.find(found->second.who);
    Less(&proven->second, found->second.address);
    if (proven->second.empty()) proven_from_.erase(proven);
  } else {
    failed = found->second.address;
    Less(&unproven_from_, failed);
    --unproven_;
    Address& state = addresses_[failed];
    --state.unproven;
    state.failures.push_back(now);
    if (static_cast<int>(state.failures.size()) > limits_.failures_per_minute) {
      state.failures.pop_front();
    }
  }
  connections_.erase(found);
  return failed;
}

void ConnectionGate::Prune(Address& address, SteadyTime now) {
  while (!address.failures.empty() &&
         now - address.failures.front() >= kWindow) {
    address.failures.pop_front();
  }
}

void ConnectionGate::Tick(SteadyTime now) {
  for (auto it = addresses_.begin(); it != addresses_.end();) {
    Prune(it->second, now);
    const bool forget = it->second.unproven == 0 && it->second.failures.empty();
    it = forget ? addresses_.erase(it) : std::next(it);
  }
}

}  // namespace regatta
