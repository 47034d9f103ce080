// Results that the tracker has not acknowledged yet, kept across crashes.
//
// A result enters by Append, is durable after Sync, is handed out oldest first,
// and leaves by Forget once the tracker acknowledged it. A result that the disk
// refuses stays in memory, is handed out like any other, and is written again
// at the next Sync: holding it back would save nothing.
//
// File: 8 bytes of header, then records
//   u32 marker · u32 payload size · u8 type · u32 CRC-32 of size, type, payload
//   · payload                                       (little endian)
// CRC-32 is zlib's (Debian 12's abseil has no crc32c). A damaged record costs
// itself only: reading goes on at the next marker whose checksum holds. A torn
// tail, left by a crash in mid-write, is cut off. Forgets are records too, not
// synced on their own: a lost one only makes the agent send a result again,
// which the tracker answers as a duplicate. A full file takes none.
//
// Not thread-safe: one owner.
#ifndef REGATTA_DEVICE_AGENT_LOOP_SPOOL_H_
#define REGATTA_DEVICE_AGENT_LOOP_SPOOL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device_agent/loop/spool_storage.h"
#include "regatta/v1/fleet_service.pb.h"

namespace regatta {

struct SpoolLimits {
  // Of the file. Always holds, but for what Probe writes and takes back.
  int64_t max_bytes = int64_t{256} << 20;
  // Append says ResourceExhausted from here on. What it was given all the same
  // is kept, and written while max_bytes allow.
  int64_t max_results = 100'000;
  // Forgotten bytes that are not worth rewriting the file for.
  int64_t slack_bytes = int64_t{1} << 20;
};

// What opening found.
struct SpoolRecovery {
  int64_t results = 0;        // unacknowledged, to be delivered
  int64_t damaged = 0;        // stretches skipped in the middle of the file
  int64_t damaged_bytes = 0;  // in them
  int64_t torn_bytes = 0;     // cut off at the end
};

class Spool {
 public:
  // A place in the order of arrival. Grows; never used twice by one object.
  using Sequence = int64_t;

  // Reads what is there. FailedPrecondition when the file is no spool or of
  // another version (it is left untouched).
  static absl::StatusOr<std::unique_ptr<Spool>> Open(
      std::unique_ptr<SpoolStorage> storage, SpoolLimits limits);

  // Keeps the result whatever happens. An error says why it is, for now, in
  // memory only: the disk failed, or ResourceExhausted at the limits.
  absl::Status Append(const v1::SpooledResult& result);
  // OK: everything in the spool is durable.
  absl::Status Sync();
  // Whether the disk takes results, by writing and syncing as much as one of
  // many trials needs, and taking it back. OK: it does. Gives its own room back
  // before where nothing in it counts any more.
  absl::Status Probe();
  // Drops every copy of this attempt's result. Unknown ones are ignored.
  void Forget(const std::string& trial_id, int32_t attempt);

  // The oldest result at or after `from`; nullopt when there is none. A result
  // that can no longer be read is dropped, counted in unreadable() and skipped:
  // once its lease has run out it is measured again, as an attempt lost.
  struct Entry {
    Sequence sequence = 0;
    v1::SpooledResult result;
    int64_t bytes = 0;  // of the serialised result
  };
  std::optional<Entry> Next(Sequence from);
  // Assignments whose last result is here: nothing but the delivery remains.
  // At most `limit`, oldest first.
  std::vector<v1::HeldAssignment> Finished(size_t limit) const;
  // Whether the last result of this assignment is here.
  bool Ends(const std::string& assignment_id) const;
  // Whether there are results from `from` on and before `before`.
  bool HoldsAny(Sequence from, Sequence before) const {
    const auto first = entries_.lower_bound(from);
    return first != entries_.end() && first->first < before;
  }
  // Where the next result will be.
  Sequence end() const { return next_sequence_; }
  // Whether this very entry is still to be acknowledged.
  bool Holds(Sequence sequence) const { return entries_.contains(sequence); }

  int64_t count() const { return static_cast<int64_t>(entries_.size()); }
  // Share of the limits in use, 1 at the cap.
  double Fullness() const;
  // False while some result is in memory only.
  bool durable() const { return volatile_.empty() && !sync_failed_; }
  int64_t unreadable() const { return unreadable_; }
  const SpoolRecovery& recovery() const { return recovery_; }

 private:
  using Key = std::pair<std::string, int32_t>;  // trial id, attempt
  struct Place {
    int64_t offset = 0;  // of the record; -1: not in the file
    int64_t size = 0;    // of the record
    Key key;
    // Of the assignment that this result ends; "" for any other result.
    std::string ends_assignment;
    int64_t lease_epoch = 0;
    // Where it ends an assignment.
    std::string lease_proof;
    std::string device_id;
  };

  Spool(std::unique_ptr<SpoolStorage> storage, SpoolLimits limits)
      : storage_(std::move(storage)), limits_(limits) {}

  absl::Status Recover();
  // Takes one record that recovery found; false when its payload is no message.
  bool Replay(uint8_t type, std::string_view payload, int64_t offset,
              int64_t size);
  // Appends a whole record or leaves the file as it was, if the disk lets it.
  absl::Status Write(const std::string& record);
  absl::Status WriteVolatile();
  // Rewrites the file without what was forgotten, when that is worth it.
  void MaybeCompact();
  int64_t DeadBytes() const;
  absl::Status Compact();
  bool HasRoom(int64_t more_bytes) const;
  static Place PlaceOf(const v1::SpooledResult& result, int64_t offset,
                       int64_t size);
  void Insert(Sequence sequence, Place place);
  void Erase(Sequence sequence);

  const std::unique_ptr<SpoolStorage> storage_;
  const SpoolLimits limits_;
  std::map<Sequence, Place> entries_;
  std::multimap<Key, Sequence> by_key_;
  // Payloads that the file does not surely hold: written since the last good
  // Sync, or never.
  std::map<Sequence, std::string> volatile_;
  Sequence next_sequence_ = 1;
  int64_t file_bytes_ = 0;    // end of the last good record
  int64_t synced_bytes_ = 0;  // of them surely on disk
  int64_t live_bytes_ = 0;
  // After a rewrite that failed, for want of room most likely: not before the
  // file is this long again, which shows that there is room, or half as much is
  // to be kept as then.
  int64_t compact_at_ = 0;
  int64_t failed_live_bytes_ = 0;
  bool header_good_ = true;
  bool tail_dirty_ = false;   // bytes beyond file_bytes_ to be cut off
  bool sync_failed_ = false;  // the file's recent bytes are not to be trusted
  int64_t unreadable_ = 0;
  SpoolRecovery recovery_;
};

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_LOOP_SPOOL_H_
