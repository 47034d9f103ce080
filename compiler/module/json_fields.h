// Reading JSON that a stranger may have written: every field is checked for
// presence, type and range, and an error names its path ("buffers[3].bytes").
#ifndef REGATTA_COMPILER_MODULE_JSON_FIELDS_H_
#define REGATTA_COMPILER_MODULE_JSON_FIELDS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace regatta {

// A JSON object with the path that leads to it. REQUIRES: the JSON outlives it.
class JsonFields {
 public:
  // InvalidArgument when `json` is no object. `path` ends with '.' or is empty.
  static absl::StatusOr<JsonFields> Of(const nlohmann::json& json,
                                       std::string path);

  absl::StatusOr<std::string> String(const char* field) const;
  absl::StatusOr<int64_t> Int(const char* field, int64_t min,
                              int64_t max) const;
  absl::StatusOr<std::vector<int64_t>> Ints(const char* field, int64_t min,
                                            int64_t max) const;
  absl::StatusOr<std::vector<JsonFields>> Objects(const char* field) const;

  absl::Status Error(const char* field, std::string_view message) const;

 private:
  JsonFields(const nlohmann::json& json, std::string path)
      : json_(&json), path_(std::move(path)) {}
  absl::StatusOr<const nlohmann::json*> Find(const char* field) const;
  absl::StatusOr<const nlohmann::json*> FindArray(const char* field) const;

  const nlohmann::json* json_;
  std::string path_;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_MODULE_JSON_FIELDS_H_
