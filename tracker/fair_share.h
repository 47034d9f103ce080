// A resource divided among competitors in proportion to their weights, when
// what a turn costs is known only after it: start-time fair queueing (Goyal,
// Vin and Cheng, SIGCOMM 1996), with an estimate charged at the start of a turn
// and put right at its end.
//
// A competitor that comes, or comes back after it was away for longer than the
// grace, starts level with the least-served of those that are there: with
// neither a debt nor credit for the time before. Within the grace it keeps its
// place, so that the gap between a result and the next request costs nothing.
//
// Not thread-safe.
#ifndef REGATTA_TRACKER_FAIR_SHARE_H_
#define REGATTA_TRACKER_FAIR_SHARE_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "absl/time/time.h"
#include "base/check.h"
#include "base/clock.h"

namespace regatta {

template <typename Key>
class FairShare {
 public:
  static constexpr absl::Duration kGrace = absl::Seconds(2);

  // Where a competitor stands; the least goes first. Among equals the one whose
  // last turn is longest ago.
  using Place = std::pair<double, int64_t>;

  // A unit of the competitor waits from now on. True: competitors that were
  // away for longer than the grace were forgotten.
  bool Join(const Key& key, double weight, SteadyTime now) {
    bool forgot = false;
    auto found = accounts_.find(key);
    if (found != accounts_.end() && Away(found->second, now)) {
      accounts_.erase(found);
      found = accounts_.end();
      forgot = true;
    }
    if (found == accounts_.end()) {
      forgot |= std::erase_if(accounts_, [&](const auto& a) {
                  return Away(a.second, now);
                }) > 0;
      Account account;
      account.served = Least();
      account.turn = ++turns_;
      found = accounts_.emplace(key, account).first;
    }
    found->second.weight = weight > 0 ? weight : 1;
    ++found->second.units;
    return forgot;
  }
  // One of its units neither waits nor runs any more. REQUIRES: it joined.
  void Leave(const Key& key, SteadyTime now) {
    Account& account = Find(key);
    CHECK(account.units > 0) << "left more often than it joined";
    if (--account.units == 0) account.left = now;
  }
  // A turn begins. REQUIRES: the competitor is there.
  void Start(const Key& key) { Find(key).turn = ++turns_; }
  // Used (or, when negative, given back); in units of the resource.
  void Charge(const Key& key, double used) {
    const auto found = accounts_.find(key);
    if (found == accounts_.end()) return;
    found->second.served += used / found->second.weight;
  }
  // REQUIRES: the competitor is there.
  Place PlaceOf(const Key& key) const {
    const Account& account = accounts_.at(key);
    return {account.served, account.turn};
  }
  bool Knows(const Key& key) const { return accounts_.contains(key); }
  bool Empty() const { return accounts_.empty(); }

 private:
  struct Account {
    double weight = 1;
    double served = 0;  // used, by weight
    int64_t turn = 0;   // number of its last turn
    int64_t units = 0;  // that wait or run
    SteadyTime left;    // when the last of them ended
  };
  static bool Away(const Account& account, SteadyTime now) {
    return account.units == 0 && now - account.left > kGrace;
  }
  Account& Find(const Key& key) {
    const auto found = accounts_.find(key);
    CHECK(found != accounts_.end()) << "never joined";
    return found->second;
  }
  double Least() const {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [key, account] : accounts_) {
      least = std::min(least, account.served);
    }
    return accounts_.empty() ? 0 : least;
  }

  std::map<Key, Account> accounts_;
  int64_t turns_ = 0;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_FAIR_SHARE_H_
