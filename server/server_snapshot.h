// A snapshot of a server's log, with what the server knows of its fleet.
#ifndef REGATTA_SERVER_SERVER_SNAPSHOT_H_
#define REGATTA_SERVER_SERVER_SNAPSHOT_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"
#include "server/job/job_manager.h"
#include "server/query/rebuilds.h"
#include "storage/tuning_log.h"

namespace regatta {

// As WriteSnapshot; the functions as in BestRequestContext.
absl::StatusOr<std::string> WriteServerSnapshot(
    const TuningLog& log, const JobManager& jobs,
    const std::function<absl::StatusOr<Target>(const Target&)>& complete,
    const std::function<absl::StatusOr<std::string>(const Target&)>&
        compiler_version,
    const GivesBinary& gives_binary, const UpkeepProgress& progress);

}  // namespace regatta

#endif  // REGATTA_SERVER_SERVER_SNAPSHOT_H_
