#include "client/cli/log_question.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "client/cli/host_class.h"
#include "compiler/compile.h"
#include "server/query/best_request.h"
#include "storage/tuning_log.h"

namespace regatta::cli {

absl::StatusOr<v1::BestAnswer> AskLogFile(const std::string& path,
                                          const v1::BestRequest& request) {
  OpenOptions options;
  options.create = false;
  options.read_only = true;
  auto opened = OpenTuningLog(path, options);
  if (absl::IsNotFound(opened.status())) {
    return absl::FailedPreconditionError(opened.status().message());
  }
  ASSIGN_OR_RETURN(auto log, std::move(opened));
  ASSIGN_OR_RETURN(std::vector<std::string> classes, log->DeviceClasses(true));
  auto host = DescribeHost();

  BestRequestContext context;
  context.log = log.get();
  context.complete = CompleteTarget;
  context.compiler_version = [](const Target& target) {
    return absl::StatusOr<std::string>(CompilerVersion(target));
  };
  context.check_class = [&](const std::string& name,
                            int threads) -> absl::Status {
    if (std::find(classes.begin(), classes.end(), name) == classes.end()) {
      return absl::NotFoundError(absl::StrCat(
          "no device class '", name, "' in ", path, "; it has ",
          classes.empty() ? "none" : absl::StrJoin(classes, ", ")));
    }
    // A log does not say how many cores another class has.
    if (host.ok() && name == host->device_class && threads > host->cores) {
      return absl::FailedPreconditionError(
          absl::StrCat("--threads ", threads, ": a board of class ", name,
                       " has ", host->cores, " cores"));
    }
    return absl::OkStatus();
  };
  context.target_of_class =
      [&](const std::string& name) -> std::optional<std::string> {
    if (!host.ok() || name != host->device_class) return std::nullopt;
    return host->target.ToString();
  };
  context.now_unix_ms = absl::ToUnixMillis(RealClock().Wall());
  return AnswerBestRequest(context, request);
}

}  // namespace regatta::cli
