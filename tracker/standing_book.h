// What is decided about every device: its DeviceStanding, the deadline of its
// operator state on the tracker's own clock, and what is to be made durable.
//
// An operator's command is durable before it counts (Commit); what the tracker
// decides by itself counts at once and is written with the next Flush.
//
// Not thread-safe.
#ifndef REGATTA_TRACKER_STANDING_BOOK_H_
#define REGATTA_TRACKER_STANDING_BOOK_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "regatta/v1/device_control.pb.h"
#include "tracker/fleet_store.h"
#include "tracker/indexed_map.h"

namespace regatta {

class StandingBook {
 public:
  using Standings = IndexedMap<std::string, v1::DeviceStanding>;

  // Takes up what the store has. The references outlive the book.
  StandingBook(const Clock& clock, FleetStore& store);

  const Standings& all() const { return standings_; }
  // Null: not known.
  const v1::DeviceStanding* Find(std::string_view device_id) const;

  // The tracker's own decision. `what` "" leaves no event.
  void Set(v1::DeviceStanding standing, const std::string& device_class,
           const std::string& what, const std::string& reason);
  // An event of a class or a device, without a change.
  void Note(const std::string& device_id, const std::string& device_class,
            const std::string& what, const std::string& reason);
  // Makes all of it durable, then counts it. An error changes nothing.
  absl::Status Commit(std::vector<v1::DeviceStanding> standings,
                      std::vector<v1::DeviceEvent> events);
  // Makes what Set and Note left durable; nothing to do is OK.
  absl::Status Flush();
  void Forget(const std::string& device_id);

  // Events since the last call.
  std::vector<v1::DeviceEvent> TakeNews() { return std::exchange(news_, {}); }

  // Devices whose operator state has come to its end.
  std::vector<std::string> Due() const;
  // Devices that are draining.
  const std::set<std::string>& draining() const { return draining_; }
  // Devices whose standing was set or forgotten since the last call.
  std::set<std::string> TakeTouched() { return std::exchange(touched_, {}); }
  // CHECKs what is kept beside the standings against them.
  void CheckIndices() const;
  // Moves every deadline: this process was stalled.
  void ExtendAll(absl::Duration stall);

  // Those that `wanted` takes, the latest `limit`, oldest first; what is not
  // flushed yet included.
  std::vector<v1::DeviceEvent> Events(
      const std::function<bool(const v1::DeviceEvent&)>& wanted,
      size_t limit) const;

 private:
  void Take(v1::DeviceStanding standing);
  void AddNews(const v1::DeviceEvent& event);
  int64_t WallMs() const { return absl::ToUnixMillis(clock_.Wall()); }

  const Clock& clock_;
  FleetStore& store_;
  Standings standings_;
  std::map<std::string, SteadyTime, std::less<>> deadlines_;
  std::set<std::string> draining_;
  std::set<std::string> touched_;
  std::set<std::string> dirty_;
  std::vector<v1::DeviceEvent> unwritten_;
  std::vector<v1::DeviceEvent> news_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_STANDING_BOOK_H_
