// FleetStore in one file, DIR/fleet.jsonl: a header line with format and epoch,
// then one JSON object per change or event; the last one of an agent or a
// device counts. Opening writes a compacted file anew (write, fsync, rename,
// fsync the folder) with the next epoch; changes are appended and synced.
//
// Beside it DIR/lease.key (0600), the secret of leases, made when missing.
//
// A last line without its newline is a write that a crash cut short; it was
// never promised and is dropped. Anything else that cannot be read is
// DATA_LOSS, and the file is left as it is.
#ifndef REGATTA_TRACKER_FILE_FLEET_STORE_H_
#define REGATTA_TRACKER_FILE_FLEET_STORE_H_

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "tracker/fleet_store.h"

namespace regatta {

class FileFleetStore : public FleetStore {
 public:
  // Creates `dir` when missing. FailedPrecondition: another tracker has it
  // open, or the file is of a newer version. DataLoss: corrupt, names the line.
  // Other errors name the path and what the system said.
  static absl::StatusOr<std::unique_ptr<FileFleetStore>> Open(
      const std::string& dir);
  ~FileFleetStore() override;

  int64_t tracker_epoch() const override { return epoch_; }
  const std::string& lease_secret() const override { return lease_secret_; }
  std::vector<KnownAgent> Agents() const override;
  absl::Status Put(absl::Span<const KnownAgent> agents) override;
  absl::Status Forget(const std::string& agent_id) override;
  std::vector<v1::DeviceStanding> Devices() const override;
  absl::Status PutDevices(absl::Span<const v1::DeviceStanding> devices,
                          absl::Span<const v1::DeviceEvent> events) override;
  absl::Status ForgetDevice(const std::string& device_id) override;
  const std::deque<v1::DeviceEvent>& Events() const override { return events_; }

 private:
  explicit FileFleetStore(std::string dir) : dir_(std::move(dir)) {}
  absl::Status Lock();
  absl::Status Load();
  absl::Status LoadSecret();
  // What is wrong with the line, or "".
  std::string LoadLine(std::string_view line);
  // Files of format 1 knew no approval: what they list was trusted.
  void ApproveAll();
  // Writes everything anew and appends to that file from then on.
  absl::Status Rewrite();
  absl::Status Append(const std::string& lines);

  std::string dir_;
  int lock_fd_ = -1;
  UniqueFd fd_;
  int64_t bytes_ = 0;
  int64_t compact_at_ = 0;  // rewritten when it has grown to this
  // An append failed and may have left half a line: rewrite before the next.
  bool torn_ = false;
  int64_t epoch_ = 0;
  std::string lease_secret_;
  std::map<std::string, KnownAgent> agents_;
  std::map<std::string, v1::DeviceStanding> devices_;
  std::deque<v1::DeviceEvent> events_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_FILE_FLEET_STORE_H_
