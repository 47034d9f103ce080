// The tuning log that a `regatta log` command works on: a server's, or a file
// that no server holds.
#ifndef REGATTA_CLIENT_CLI_LOG_ACCESS_H_
#define REGATTA_CLIENT_CLI_LOG_ACCESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "storage/log_upkeep.h"

namespace regatta::cli {

// Methods are as those of TuningLog and LogUpkeep. Not thread-safe.
class LogAccess {
 public:
  virtual ~LogAccess() = default;

  // "the server at 127.0.0.1:7470" or the file's path.
  virtual std::string Place() const = 0;
  virtual absl::StatusOr<int64_t> Check(
      const std::function<void(const LogFinding&)>& visit,
      const UpkeepProgress& progress) = 0;
  virtual absl::StatusOr<int64_t> RebuildBest() = 0;
};

// --server and --log, which exclude one another.
struct LogFlags {
  ServerFlags server;
  std::string log;
};
void AddLogFlags(CLI::App* command, LogFlags* flags);

enum class LogUse { kRead, kWrite };

// The file of --log, else the server. FailedPrecondition: the file is held
// (says by whom) or is not there; a file is never made. A server that is not
// there is noticed with the first call, and its error says what to do.
absl::StatusOr<std::unique_ptr<LogAccess>> OpenLog(const LogFlags& flags,
                                                   LogUse use);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_LOG_ACCESS_H_
