// The job document of `regatta tune --file` and `regatta compile --file`: a job
// of several tasks, in JSON.
// Its format is in docs/cli.md.
#ifndef REGATTA_CLIENT_CLI_JOBS_FILE_H_
#define REGATTA_CLIENT_CLI_JOBS_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "regatta/v1/tuning_service.pb.h"

namespace regatta::cli {

// The request that the text asks for, workloads in their normal form.
// InvalidArgument names file, place and what is wrong:
// "jobs.json: tasks[3].threads: 0 is no whole number from 1 to 1024". Unknown
// and repeated fields are errors. Each task's `symbol`, the C function that
// `compile` makes of it, goes to `symbols` when that is not null, "" where the
// task has none.
absl::StatusOr<v1::SubmitJobRequest> ParseJobsFile(
    const std::string& file, std::string_view text,
    std::vector<std::string>* symbols = nullptr);
// Of the file at `path`. FailedPrecondition when it cannot be read.
absl::StatusOr<v1::SubmitJobRequest> ReadJobsFile(
    const std::string& path, std::vector<std::string>* symbols = nullptr);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_JOBS_FILE_H_
