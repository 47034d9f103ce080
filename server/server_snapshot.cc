#include "server/server_snapshot.h"

#include <utility>

#include "base/status_macros.h"
#include "server/query/snapshot_writer.h"

namespace regatta {

absl::StatusOr<std::string> WriteServerSnapshot(
    const TuningLog& log, const JobManager& jobs,
    const std::function<absl::StatusOr<Target>(const Target&)>& complete,
    const std::function<absl::StatusOr<std::string>(const Target&)>&
        compiler_version,
    const GivesBinary& gives_binary, const UpkeepProgress& progress) {
  SnapshotOptions options;
  const auto fleet = jobs.fleet();
  for (const auto& [name, known] : jobs.KnownClasses()) {
    SnapshotClass entry;
    entry.name = name;
    entry.target = known.target;
    entry.simulated = known.simulated;
    entry.measure_protocol = jobs.MeasureProtocol(name);
    if (const ClassView* view = fleet->Find(name)) entry.cores = view->cores;
    options.classes.push_back(std::move(entry));
  }
  ASSIGN_OR_RETURN(options.compiler_version, compiler_version(Target()));
  options.make_target = MakeTargetWith(complete, compiler_version);
  options.gives_binary = gives_binary;
  options.progress = progress;
  return WriteSnapshot(log, options);
}

}  // namespace regatta
