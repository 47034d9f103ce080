// What was done that needs a right, and what was refused, in a file that is
// only appended to: one line of JSON (v1::AuditEntry) each.
//
// A flood cannot fill the disk, nor push out what was there before: refusals,
// and failures, that are alike (who, from, what, why; ports apart) are one line
// at once and, at the end of their minute, one with the count of the rest.
// There are at most 60 lines of refusals a minute, others are counted together;
// and at most 60 of what one caller did, others are counted for that caller. At
// 64 MiB the file is renamed to PATH.1 and so on to PATH.4, the oldest of which
// goes.
//
// Lines reach the disk within seconds (Tick), not before the call is answered.
//
// Thread-safe.
#ifndef REGATTA_PROTO_SECURITY_AUDIT_LOG_H_
#define REGATTA_PROTO_SECURITY_AUDIT_LOG_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "regatta/v1/security_service.pb.h"

namespace regatta {

struct AuditLimits {
  int refusals_per_minute = 60;
  int done_per_minute = 60;  // by one caller
  int64_t max_file_bytes = int64_t{64} << 20;
  int old_files = 4;
};

class AuditLog {
 public:
  // `daemon` stands in every line. FailedPrecondition names the path and the
  // system's reason. `clock` outlives it.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(
      const std::string& path, const std::string& daemon, const Clock& clock,
      const AuditLimits& limits = {});
  // Keeps nothing.
  static std::unique_ptr<AuditLog> Nowhere(const Clock& clock);
  ~AuditLog();  // as Tick, whatever the time

  // Something privileged, done or failed: `result` is "ok" or what went wrong.
  void Did(const std::string& who, const std::string& from,
           const std::string& what, const std::string& result);
  // Something that was not allowed.
  void Refused(const std::string& who, const std::string& from,
               const std::string& what, const std::string& why);
  // To be called every few seconds: writes what was counted, syncs.
  void Tick();

  // The newest, oldest first, of this file and of those before it.
  absl::StatusOr<std::vector<v1::AuditEntry>> Newest(size_t limit) const;

 private:
  AuditLog(std::string path, std::string daemon, const Clock& clock,
           const AuditLimits& limits, UniqueFd fd, int64_t bytes)
      : path_(std::move(path)),
        daemon_(std::move(daemon)),
        clock_(clock),
        limits_(limits),
        fd_(std::move(fd)),
        bytes_(bytes) {}
  v1::AuditEntry Entry(const std::string& who, const std::string& from,
                       const std::string& what,
                       const std::string& result) const;
  // REQUIRES: mutex_.
  void Write(const v1::AuditEntry& entry);
  void Turn();
  void BeginMinute();  // if the last one is over
  void EndMinute();
  // Whether one like it was written this minute; counts it then.
  bool CountAlike(const std::string& key);
  // The newest lines, `limit` or more where there are, by file, newest first.
  absl::StatusOr<std::vector<std::string>> NewestBytes(size_t limit) const;

  const std::string path_;
  const std::string daemon_;
  const Clock& clock_;
  const AuditLimits limits_;
  mutable std::mutex mutex_;
  UniqueFd fd_;
  int64_t bytes_;
  bool unsynced_ = false;
  bool failing_ = false;  // the last write failed, and was complained about
  SteadyTime minute_;     // began
  int lines_ = 0;         // of refusals, this minute
  struct Alike {
    v1::AuditEntry entry;
    int64_t more = 0;  // than the line that was written
  };
  std::map<std::string, Alike> alike_;
  int64_t others_ = 0;  // refusals beyond the limit
  struct Caller {
    int lines = 0;
    int64_t more = 0;  // beyond the limit
  };
  std::map<std::string, Caller> callers_;  // of what was done this minute
  SteadyTime turn_not_before_;             // after a turn that failed
};

}  // namespace regatta

#endif  // REGATTA_PROTO_SECURITY_AUDIT_LOG_H_
