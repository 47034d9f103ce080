// The tuning log that a `regatta log` command works on: a server's, or a file
// that no server holds.
#ifndef REGATTA_CLIENT_CLI_LOG_ACCESS_H_
#define REGATTA_CLIENT_CLI_LOG_ACCESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "client/cli/rate_progress.h"
#include "regatta/v1/log_service.pb.h"
#include "storage/log_upkeep.h"

namespace regatta::cli {

// Methods are as those of TuningLog and LogUpkeep. Not thread-safe.
class LogAccess {
 public:
  virtual ~LogAccess() = default;

  // "the server at 127.0.0.1:7470" or the file's path.
  virtual std::string Place() const = 0;
  virtual absl::StatusOr<LogCheck> Check(
      const std::function<void(const LogFinding&)>& visit,
      const UpkeepProgress& progress) = 0;
  virtual absl::StatusOr<int64_t> RebuildBest(
      const UpkeepProgress& progress) = 0;
  // The bytes of a snapshot file. `progress` hears of answers. `rebuild`:
  // schedules that another compiler measured are built first, to see whether
  // this one gives the same binaries. InvalidArgument of a server's log, where
  // the server sees to that.
  virtual absl::StatusOr<std::string> Snapshot(
      bool rebuild, const UpkeepProgress& progress) = 0;
  // Calls `data` with the bytes of a copy of the log, in order. An error of
  // `data` ends it and is returned.
  virtual absl::Status Backup(
      const std::function<absl::Status(std::string_view bytes)>& data,
      const UpkeepProgress& progress) = 0;
  // False from `visit`: stop, and OK.
  virtual absl::Status Export(
      const std::function<bool(const v1::LogEntry&)>& visit) = 0;
  // One verdict per entry.
  virtual absl::StatusOr<std::vector<v1::ImportVerdict>> Import(
      const std::string& name, std::vector<v1::LogEntry> entries) = 0;
};

// Shows progress on `display`, which outlives it, and stops the work once a
// signal came (stop_signal.h).
UpkeepProgress ShowOn(RateProgress& display);

// --server and --log, which exclude one another.
struct LogFlags {
  ServerFlags server;
  std::string log;
};
void AddLogFlags(CLI::App* command, LogFlags* flags);

// kCreate: to import; a file that is missing is made once there is something to
// store.
enum class LogUse { kRead, kWrite, kCreate };

// The file of --log, else the server. FailedPrecondition: the file is held
// (says by whom) or is not there. A server that is not
// there is noticed with the first call, and its error says what to do.
absl::StatusOr<std::unique_ptr<LogAccess>> OpenLog(const LogFlags& flags,
                                                   LogUse use);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_LOG_ACCESS_H_
