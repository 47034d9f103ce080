// Best-known answers from a tuning log file that no server holds.
#ifndef REGATTA_CLIENT_CLI_LOG_QUESTION_H_
#define REGATTA_CLIENT_CLI_LOG_QUESTION_H_

#include <string>

#include "absl/status/statusor.h"
#include "regatta/v1/tuning_service.pb.h"

namespace regatta::cli {

// The answer that a server on this log alone would give. FailedPrecondition
// when there is no such file, a server holds it, or the class has fewer cores
// than asked; NotFound when the log has no such class, listing those that it
// has.
absl::StatusOr<v1::BestAnswer> AskLogFile(const std::string& path,
                                          const v1::BestRequest& request);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_LOG_QUESTION_H_
