// Best-known requests as clients send them: checked, resolved to a target and
// answered. What depends on the fleet is handed in, so the command line answers
// from a file by the same rules.
#ifndef REGATTA_SERVER_QUERY_BEST_REQUEST_H_
#define REGATTA_SERVER_QUERY_BEST_REQUEST_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"
#include "regatta/v1/tuning_service.pb.h"
#include "server/query/best_memo.h"
#include "server/query/rebuilds.h"
#include "storage/best_source.h"

namespace regatta {

// One thread and warm caches where not said. InvalidArgument names the field.
absl::StatusOr<v1::Policy> NormalisePolicy(const v1::Policy& policy);

// A workload that a source knows by its text.
struct KnownWorkload {
  std::string key;
  std::string text;
};

struct BestRequestContext {
  const BestSource* source = nullptr;
  BestMemo* memo = nullptr;  // null: nothing is kept
  std::function<absl::StatusOr<Target>(const Target&)> complete;
  std::function<absl::StatusOr<std::string>(const Target&)> compiler_version;
  // Refuses a class that does not exist or has too few cores. Null: any will
  // do.
  std::function<absl::Status(const std::string& device_class, int threads)>
      check_class;
  // Target text of a class. Null or absent: the facts of the source's classes.
  std::function<std::optional<std::string>(const std::string& device_class)>
      target_of_class;
  // Beside the classes whose name says so (proto/device_class.h). Null: none.
  std::function<bool(const std::string& device_class)> is_simulated;
  // Null or empty: the facts of the source's classes.
  std::function<std::string(const std::string& device_class)> measure_protocol;
  // The facts of a class, absent where the source has none. Null: asked of the
  // source each time.
  std::function<std::optional<ClassFacts>(const std::string& device_class)>
      facts_of_class;
  // A text that needs no parsing. Null or absent: it is parsed.
  std::function<std::optional<KnownWorkload>(std::string_view text)>
      find_workload;
  // See BestContext; `taken_target` of a class.
  std::string taken_by;
  std::function<std::string(const std::string& device_class)> taken_target;
  GivesBinary gives_binary;  // see BestContext
  int64_t now_unix_ms = 0;
};

// InvalidArgument names the field; NotFound for a class whose target nothing
// tells. See AnswerBest for the grades.
absl::StatusOr<v1::BestAnswer> AnswerBestRequest(
    const BestRequestContext& context, const v1::BestRequest& request);

}  // namespace regatta

#endif  // REGATTA_SERVER_QUERY_BEST_REQUEST_H_
