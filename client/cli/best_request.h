// The question that `best` and `compile` put to the server.
#ifndef REGATTA_CLIENT_CLI_BEST_REQUEST_H_
#define REGATTA_CLIENT_CLI_BEST_REQUEST_H_

#include <string>

#include "absl/status/statusor.h"
#include "regatta/v1/tuning_service.pb.h"

namespace regatta::cli {

// `device_class`, or this host's class when it is empty. InvalidArgument when
// the host's class cannot be told.
absl::StatusOr<std::string> ClassOrHost(const std::string& device_class);

// What to tell a person whose question was answered with `error`: without
// --device-class, an unknown class means that this host is none of the boards,
// which is bad usage.
absl::Status ExplainClassError(const absl::Status& error,
                               const std::string& given_class);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_BEST_REQUEST_H_
