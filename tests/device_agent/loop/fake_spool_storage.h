// A spool's file in memory, with power failures and disk errors on demand.
#ifndef REGATTA_TESTS_DEVICE_AGENT_LOOP_FAKE_SPOOL_STORAGE_H_
#define REGATTA_TESTS_DEVICE_AGENT_LOOP_FAKE_SPOOL_STORAGE_H_

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device_agent/loop/spool_storage.h"

namespace regatta {

// Outlives the storages opened on it, as a disk outlives processes.
struct FakeDisk {
  std::string content;    // as the running system sees it
  std::string durable;    // as it would be after a loss of power
  int64_t fail_at = -1;   // the Nth operation from now fails, counted from 0
  bool broken = false;    // every write and sync fails
  int64_t capacity = -1;  // bytes; what does not fit is not written
  bool rewrites_fail = false;  // no room for a second file
  // The content is what is durable and more behind it.
  bool grown = false;
  int64_t operations = 0;
  int64_t syncs = 0;

  // Whether this operation is to fail.
  bool Fails() {
    ++operations;
    if (fail_at >= 0 && fail_at-- == 0) return true;
    return broken;
  }
  void SyncContent() {
    if (grown) {
      durable.append(content, durable.size());
    } else {
      durable = content;
    }
    grown = true;
  }
  // The power goes: of what was not synced only a prefix may be left. (The
  // process's own death loses nothing: just open the disk again.)
  void LosePower(size_t unsynced_bytes_kept) {
    if (content.size() > durable.size() &&
        content.compare(0, durable.size(), durable) == 0) {
      content.resize(
          std::min(content.size(), durable.size() + unsynced_bytes_kept));
    } else {
      content = durable;
    }
    durable = content;
    grown = true;
  }
};

class FakeSpoolStorage : public SpoolStorage {
 public:
  explicit FakeSpoolStorage(FakeDisk* disk) : disk_(disk) {}

  absl::StatusOr<int64_t> Size() override {
    return static_cast<int64_t>(disk_->content.size());
  }
  absl::StatusOr<std::string> Read(int64_t offset, int64_t size) override {
    const auto total = static_cast<int64_t>(disk_->content.size());
    if (offset + size > total) return absl::OutOfRangeError("past the end");
    return disk_->content.substr(static_cast<size_t>(offset),
                                 static_cast<size_t>(size));
  }
  absl::Status Append(std::string_view bytes) override {
    if (disk_->Fails()) {
      disk_->content.append(bytes.substr(0, bytes.size() / 2));
      return absl::ResourceExhaustedError("no space left on the fake disk");
    }
    if (disk_->capacity >= 0 && disk_->content.size() + bytes.size() >
                                    static_cast<size_t>(disk_->capacity)) {
      return absl::ResourceExhaustedError("the fake disk is full");
    }
    disk_->content.append(bytes);
    return absl::OkStatus();
  }
  absl::Status Sync() override {
    ++disk_->syncs;
    if (disk_->Fails()) return absl::InternalError("fake sync failed");
    disk_->SyncContent();
    return absl::OkStatus();
  }
  absl::Status Truncate(int64_t size) override {
    if (disk_->Fails()) return absl::InternalError("fake truncate failed");
    disk_->content.resize(static_cast<size_t>(size));
    disk_->grown = false;
    return absl::OkStatus();
  }
  absl::Status Keep(std::string_view head,
                    const std::vector<Range>& ranges) override {
    if (disk_->Fails() || disk_->rewrites_fail) {
      return absl::ResourceExhaustedError("fake rewrite failed");
    }
    std::string fresh(head);
    for (const Range& range : ranges) {
      fresh += disk_->content.substr(static_cast<size_t>(range.offset),
                                     static_cast<size_t>(range.size));
    }
    disk_->content = disk_->durable = fresh;
    disk_->grown = true;
    return absl::OkStatus();
  }

 private:
  FakeDisk* const disk_;
};

}  // namespace regatta

#endif  // REGATTA_TESTS_DEVICE_AGENT_LOOP_FAKE_SPOOL_STORAGE_H_
