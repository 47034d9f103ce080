// Best-known requests as clients send them: checked, resolved to a target and
// answered. What depends on the fleet is handed in, so the command line answers
// from a file by the same rules.
#ifndef REGATTA_SERVER_QUERY_BEST_REQUEST_H_
#define REGATTA_SERVER_QUERY_BEST_REQUEST_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"
#include "regatta/v1/tuning_service.pb.h"
#include "storage/tuning_log.h"

namespace regatta {

// One thread and warm caches where not said. InvalidArgument names the field.
absl::StatusOr<v1::Policy> NormalisePolicy(const v1::Policy& policy);

struct BestRequestContext {
  const TuningLog* log = nullptr;
  std::function<absl::StatusOr<Target>(const Target&)> complete;
  std::function<absl::StatusOr<std::string>(const Target&)> compiler_version;
  // Refuses a class that does not exist or has too few cores. Null: any will
  // do.
  std::function<absl::Status(const std::string& device_class, int threads)>
      check_class;
  // Target text of a class. Null or absent: looked for in the workload's rows.
  std::function<std::optional<std::string>(const std::string& device_class)>
      target_of_class;
  std::function<bool(const std::string& device_class)> is_simulated;
  std::function<std::string(const std::string& device_class)> measure_protocol;
  int64_t now_unix_ms = 0;
};

// InvalidArgument names the field; NotFound for a class whose target nothing
// tells. See AnswerBest for the grades.
absl::StatusOr<v1::BestAnswer> AnswerBestRequest(
    const BestRequestContext& context, const v1::BestRequest& request);

}  // namespace regatta

#endif  // REGATTA_SERVER_QUERY_BEST_REQUEST_H_
