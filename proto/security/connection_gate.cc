#include "proto/security/connection_gate.h"

namespace regatta {
namespace {

constexpr absl::Duration kWindow = absl::Minutes(1);
constexpr absl::Duration kBackOffInterval = absl::Seconds(1);

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
  connections_[peer] = {address, /*proven=*/false};
  return Verdict::kTake;
}

void ConnectionGate::Proven(const std::string& peer) {
  const auto found = connections_.find(peer);
  if (found == connections_.end() || found->second.proven) return;
  found->second.proven = true;
  --unproven_;
  --addresses_[found->second.address].unproven;
}

std::string ConnectionGate::Ended(const std::string& peer, SteadyTime now) {
  const auto found = connections_.find(peer);
  if (found == connections_.end()) return "";
  std::string failed;
  if (!found->second.proven) {
    failed = found->second.address;
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
