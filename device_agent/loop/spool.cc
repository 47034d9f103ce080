#include "device_agent/loop/spool.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "device_agent/loop/spool_record.h"

namespace regatta {

absl::StatusOr<std::unique_ptr<Spool>> Spool::Open(
    std::unique_ptr<SpoolStorage> storage, SpoolLimits limits) {
  std::unique_ptr<Spool> spool(new Spool(std::move(storage), limits));
  RETURN_IF_ERROR(Annotate(spool->Recover(), "opening the result spool"));
  return spool;
}

absl::Status Spool::Recover() {
  ASSIGN_OR_RETURN(const int64_t size, storage_->Size());
  ASSIGN_OR_RETURN(const std::string header,
                   storage_->Read(0, std::min(size, kSpoolHeaderBytes)));
  if (size < kSpoolHeaderBytes &&
      kSpoolHeader.substr(0, header.size()) == header) {
    // New, or a crash cut the very first write short.
    RETURN_IF_ERROR(storage_->Truncate(0));
    RETURN_IF_ERROR(storage_->Append(kSpoolHeader));
    RETURN_IF_ERROR(storage_->Sync());
    file_bytes_ = synced_bytes_ = kSpoolHeaderBytes;
    return absl::OkStatus();
  }
  header_good_ = header == kSpoolHeader;
  if (!header_good_ && header.substr(0, 6) == kSpoolHeader.substr(0, 6) &&
      header.size() > 7 && header[7] == '\n') {
    return absl::FailedPreconditionError(absl::StrCat(
        "the file is of format ", header.substr(6, 1), ", this agent writes ",
        std::string(kSpoolHeader.substr(6, 1)),
        "; use the release that wrote it"));
  }
  ASSIGN_OR_RETURN(const SpoolScan scan,
                   ScanSpool(*storage_, std::min(size, kSpoolHeaderBytes), size,
                             [this](const SpoolRecord& record, int64_t offset) {
                               return Replay(record.type, record.payload,
                                             offset, record.size);
                             }));
  if (!header_good_ && scan.records == 0) {
    return absl::FailedPreconditionError(
        "the file is no result spool; move it away");
  }
  file_bytes_ = synced_bytes_ = scan.end;
  recovery_ = {count(), scan.damaged, scan.damaged_bytes, size - scan.end};
  if (!header_good_) {
    ++recovery_.damaged;
    recovery_.damaged_bytes += kSpoolHeaderBytes;
  }
  if (recovery_.torn_bytes > 0) {
    RETURN_IF_ERROR(storage_->Truncate(file_bytes_));
    RETURN_IF_ERROR(storage_->Sync());
  }
  if (!header_good_) RETURN_IF_ERROR(Compact());
  if (recovery_.damaged > 0 || recovery_.torn_bytes > 0) {
    LOG(kWarning) << "result spool: skipped " << recovery_.damaged
                  << " damaged stretches (" << recovery_.damaged_bytes
                  << " bytes), cut off " << recovery_.torn_bytes
                  << " torn bytes at the end; what was in them is measured "
                     "again";
  }
  return absl::OkStatus();
}

bool Spool::Replay(uint8_t type, std::string_view payload, int64_t offset,
                   int64_t size) {
  const int length = static_cast<int>(payload.size());
  if (type == kSpoolResult) {
    v1::SpooledResult result;
    if (!result.ParseFromArray(payload.data(), length)) return false;
    Insert(next_sequence_++, PlaceOf(result, offset, size));
    return true;
  }
  if (type == kSpoolForget) {
    v1::TrialAck forget;
    if (!forget.ParseFromArray(payload.data(), length)) return false;
    const auto [first, last] =
        by_key_.equal_range({forget.trial_id(), forget.attempt()});
    std::vector<Sequence> gone;
    for (auto it = first; it != last; ++it) gone.push_back(it->second);
    for (const Sequence sequence : gone) Erase(sequence);
    return true;
  }
  return false;
}

bool Spool::HasRoom(int64_t more_bytes) const {
  return file_bytes_ + more_bytes <= limits_.max_bytes &&
         count() < limits_.max_results;
}

absl::Status Spool::Append(const v1::SpooledResult& result) {
  std::string payload = result.SerializeAsString();
  const std::string record = FrameSpoolRecord(kSpoolResult, payload);
  const auto size = static_cast<int64_t>(record.size());
  if (!HasRoom(size) && DeadBytes() >= limits_.slack_bytes && !sync_failed_) {
    // A failure shows again as a full spool.
    Compact().IgnoreError();
  }
  absl::Status status;
  Place place = PlaceOf(result, -1, size);
  if (!HasRoom(size)) {
    status = absl::ResourceExhaustedError(
        absl::StrCat("the result spool is full: ", count(), " results, ",
                     live_bytes_, " bytes"));
  } else if (!sync_failed_) {
    status = Write(record);
    if (status.ok()) place.offset = file_bytes_ - size;
  }
  const Sequence sequence = next_sequence_++;
  Insert(sequence, std::move(place));
  volatile_.emplace(sequence, std::move(payload));
  return status;
}

absl::Status Spool::Write(const std::string& record) {
  if (tail_dirty_) {
    RETURN_IF_ERROR(storage_->Truncate(file_bytes_));
    tail_dirty_ = false;
  }
  if (absl::Status status = storage_->Append(record); !status.ok()) {
    tail_dirty_ = !storage_->Truncate(file_bytes_).ok();
    return status;
  }
  file_bytes_ += static_cast<int64_t>(record.size());
  return absl::OkStatus();
}

absl::Status Spool::WriteVolatile() {
  if (sync_failed_) {
    // What a failed sync left in the file may look right and be nowhere: all of
    // it is written anew.
    RETURN_IF_ERROR(storage_->Truncate(synced_bytes_));
    file_bytes_ = synced_bytes_;
    tail_dirty_ = false;
    for (const auto& [sequence, payload] : volatile_) {
      entries_.at(sequence).offset = -1;
    }
    sync_failed_ = false;
  }
  for (const auto& [sequence, payload] : volatile_) {
    Place& place = entries_.at(sequence);
    if (place.offset >= 0) continue;
    if (file_bytes_ + place.size > limits_.max_bytes) {
      return absl::ResourceExhaustedError("the result spool is full");
    }
    RETURN_IF_ERROR(Write(FrameSpoolRecord(kSpoolResult, payload)));
    place.offset = file_bytes_ - place.size;
  }
  return absl::OkStatus();
}

absl::Status Spool::Sync() {
  if (durable()) return absl::OkStatus();
  const absl::Status written = WriteVolatile();
  if (sync_failed_) return written;
  if (absl::Status status = storage_->Sync(); !status.ok()) {
    sync_failed_ = true;
    return status;
  }
  synced_bytes_ = file_bytes_;
  std::erase_if(volatile_, [this](const auto& item) {
    return entries_.at(item.first).offset >= 0;
  });
  return written;
}

absl::Status Spool::Probe() {
  // The block that the file ends in has room even on a full disk, so this is
  // longer. After a crash it reads as the forgetting of an unknown result.
  constexpr size_t kProbeBytes = 64 << 10;
  v1::TrialAck nothing;
  nothing.set_trial_id(std::string(kProbeBytes, '-'));
  if (entries_.empty() && DeadBytes() > 0) RETURN_IF_ERROR(Compact());
  const int64_t end = file_bytes_;
  RETURN_IF_ERROR(
      Write(FrameSpoolRecord(kSpoolForget, nothing.SerializeAsString())));
  const absl::Status synced = storage_->Sync();
  file_bytes_ = end;
  tail_dirty_ = !storage_->Truncate(end).ok();
  // What else was written since the last Sync may be nowhere now.
  sync_failed_ = sync_failed_ || !synced.ok();
  if (synced.ok()) compact_at_ = 0;
  return synced;
}

void Spool::Forget(const std::string& trial_id, int32_t attempt) {
  const auto [first, last] = by_key_.equal_range({trial_id, attempt});
  std::vector<Sequence> gone;
  bool on_disk = false;
  for (auto it = first; it != last; ++it) {
    gone.push_back(it->second);
    on_disk = on_disk || entries_.at(it->second).offset >= 0;
  }
  for (const Sequence sequence : gone) Erase(sequence);
  if (on_disk && !sync_failed_) {
    v1::TrialAck forget;
    forget.set_trial_id(trial_id);
    forget.set_attempt(attempt);
    const std::string record =
        FrameSpoolRecord(kSpoolForget, forget.SerializeAsString());
    // Not noted, the result goes out once more after a restart; nothing is
    // lost.
    if (file_bytes_ + static_cast<int64_t>(record.size()) <=
        limits_.max_bytes) {
      if (absl::Status status = Write(record); !status.ok()) {
        LOG(kWarning) << "result spool: " << status.message();
      }
    }
  }
  MaybeCompact();
}

int64_t Spool::DeadBytes() const {
  // live_bytes_ also counts what is in memory only, which is rare and small.
  return file_bytes_ - kSpoolHeaderBytes - live_bytes_;
}

void Spool::MaybeCompact() {
  const int64_t dead = DeadBytes();
  if (dead < limits_.slack_bytes || dead < live_bytes_) return;
  // With nothing to keep it is but a truncation, which needs no room.
  const bool backs_off =
      file_bytes_ < compact_at_ && live_bytes_ > failed_live_bytes_ / 2;
  if (!entries_.empty() && (sync_failed_ || backs_off)) return;
  if (absl::Status status = Compact(); !status.ok()) {
    // The old file is still good. Not at every acknowledgement again.
    compact_at_ = file_bytes_ + limits_.slack_bytes;
    failed_live_bytes_ = live_bytes_;
    LOG(kWarning) << "result spool: compaction: " << status.message();
  }
}

absl::Status Spool::Compact() {
  // What is not synced yet is written again from memory at the next Sync.
  const auto kept = [this](Sequence sequence, const Place& place) {
    return place.offset >= 0 && !volatile_.contains(sequence);
  };
  std::vector<SpoolStorage::Range> ranges;
  for (const auto& [sequence, place] : entries_) {
    if (kept(sequence, place)) ranges.push_back({place.offset, place.size});
  }
  if (ranges.empty() && header_good_) {
    RETURN_IF_ERROR(storage_->Truncate(kSpoolHeaderBytes));
  } else {
    RETURN_IF_ERROR(storage_->Keep(kSpoolHeader, ranges));
  }
  header_good_ = true;
  file_bytes_ = kSpoolHeaderBytes;
  for (auto& [sequence, place] : entries_) {
    const bool in_file = kept(sequence, place);
    place.offset = in_file ? file_bytes_ : -1;
    if (in_file) file_bytes_ += place.size;
  }
  synced_bytes_ = file_bytes_;
  tail_dirty_ = false;
  compact_at_ = 0;
  return absl::OkStatus();
}

std::optional<Spool::Entry> Spool::Next(Sequence from) {
  for (auto it = entries_.lower_bound(from); it != entries_.end();) {
    const Sequence sequence = it->first;
    const Place& place = it->second;
    Entry entry{sequence, {}, place.size - kSpoolRecordOverhead};
    if (const auto held = volatile_.find(sequence); held != volatile_.end()) {
      CHECK(entry.result.ParseFromString(held->second));
      return entry;
    }
    const absl::StatusOr<std::string> bytes =
        storage_->Read(place.offset, place.size);
    const std::optional<SpoolRecord> record =
        bytes.ok() ? ParseSpoolRecord(*bytes) : std::nullopt;
    if (record.has_value() &&
        entry.result.ParseFromArray(record->payload.data(),
                                    static_cast<int>(record->payload.size()))) {
      return entry;
    }
    LOG(kError) << "result spool: the result of trial " << place.key.first
                << " can no longer be read ("
                << (bytes.ok() ? "damaged" : bytes.status().message())
                << "); once its lease has run out it is measured again, as "
                   "an attempt lost";
    ++unreadable_;
    ++it;
    Erase(sequence);
  }
  return std::nullopt;
}

std::vector<v1::HeldAssignment> Spool::Finished(size_t limit) const {
  std::vector<v1::HeldAssignment> finished;
  for (const auto& [sequence, place] : entries_) {
    if (place.ends_assignment.empty()) continue;
    if (finished.size() == limit) break;
    v1::HeldAssignment& held = finished.emplace_back();
    held.set_assignment_id(place.ends_assignment);
    held.set_attempt(place.key.second);
    held.set_lease_epoch(place.lease_epoch);
    held.set_lease_proof(place.lease_proof);
    held.set_device_id(place.device_id);
    held.set_started(true);
  }
  return finished;
}

bool Spool::Ends(const std::string& assignment_id) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return entry.second.ends_assignment == assignment_id;
  });
}

double Spool::Fullness() const {
  return std::max(
      static_cast<double>(live_bytes_) / static_cast<double>(limits_.max_bytes),
      static_cast<double>(count()) / static_cast<double>(limits_.max_results));
}

Spool::Place Spool::PlaceOf(const v1::SpooledResult& result, int64_t offset,
                            int64_t size) {
  Place place;
  place.offset = offset;
  place.size = size;
  place.key = {result.result().spec().trial_id(), result.result().attempt()};
  if (result.last()) {
    place.ends_assignment = result.assignment_id();
    place.lease_proof = result.lease_proof();
    place.device_id = result.result().device_id();
  }
  place.lease_epoch = result.result().lease_epoch();
  return place;
}

void Spool::Insert(Sequence sequence, Place place) {
  live_bytes_ += place.size;
  by_key_.emplace(place.key, sequence);
  entries_.emplace(sequence, std::move(place));
}

void Spool::Erase(Sequence sequence) {
  const auto it = entries_.find(sequence);
  CHECK(it != entries_.end()) << sequence;
  const auto [first, last] = by_key_.equal_range(it->second.key);
  for (auto key = first; key != last; ++key) {
    if (key->second == sequence) {
      by_key_.erase(key);
      break;
    }
  }
  live_bytes_ -= it->second.size;
  volatile_.erase(sequence);
  entries_.erase(it);
}

}  // namespace regatta
