#include "compiler/module/json_fields.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

// Whole and in range; JSON numbers beyond int64 arrive as unsigned or double.
bool ReadInt(const nlohmann::json& json, int64_t min, int64_t max,
             int64_t& value) {
  if (!json.is_number_integer()) return false;
  if (json.is_number_unsigned() &&
      json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    return false;
  }
  value = json.get<int64_t>();
  return value >= min && value <= max;
}

std::string Range(int64_t min, int64_t max) {
  return absl::StrCat("a whole number from ", min, " to ", max);
}

}  // namespace

absl::StatusOr<JsonFields> JsonFields::Of(const nlohmann::json& json,
                                          std::string path) {
  if (!json.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat("module: description",
                                                   path.empty() ? "" : " at ",
                                                   path, " is no JSON object"));
  }
  return JsonFields(json, std::move(path));
}

absl::Status JsonFields::Error(const char* field,
                               std::string_view message) const {
  return absl::InvalidArgumentError(absl::StrCat(
      "module: field '", path_, field, "' ", std::string(message)));
}

absl::StatusOr<const nlohmann::json*> JsonFields::Find(
    const char* field) const {
  const auto it = json_->find(field);
  if (it == json_->end()) return Error(field, "is missing");
  return &*it;
}

absl::StatusOr<const nlohmann::json*> JsonFields::FindArray(
    const char* field) const {
  ASSIGN_OR_RETURN(const nlohmann::json* json, Find(field));
  if (!json->is_array()) return Error(field, "must be a list");
  return json;
}

absl::StatusOr<std::string> JsonFields::String(const char* field) const {
  ASSIGN_OR_RETURN(const nlohmann::json* json, Find(field));
  if (!json->is_string()) return Error(field, "must be a text");
  return json->get<std::string>();
}

absl::StatusOr<int64_t> JsonFields::Int(const char* field, int64_t min,
                                        int64_t max) const {
  ASSIGN_OR_RETURN(const nlohmann::json* json, Find(field));
  int64_t value = 0;
  if (!ReadInt(*json, min, max, value)) {
    return Error(field, absl::StrCat("must be ", Range(min, max)));
  }
  return value;
}

absl::StatusOr<std::vector<int64_t>> JsonFields::Ints(const char* field,
                                                      int64_t min,
                                                      int64_t max) const {
  ASSIGN_OR_RETURN(const nlohmann::json* json, FindArray(field));
  std::vector<int64_t> values;
  for (const nlohmann::json& element : *json) {
    int64_t value = 0;
    if (!ReadInt(element, min, max, value)) {
      return Error(field,
                   absl::StrCat("must be a list; element ", values.size(),
                                " must be ", Range(min, max)));
    }
    values.push_back(value);
  }
  return values;
}

absl::StatusOr<std::vector<JsonFields>> JsonFields::Objects(
    const char* field) const {
  ASSIGN_OR_RETURN(const nlohmann::json* json, FindArray(field));
  std::vector<JsonFields> objects;
  for (size_t i = 0; i < json->size(); ++i) {
    ASSIGN_OR_RETURN(JsonFields object,
                     Of((*json)[i], absl::StrCat(path_, field, "[", i, "].")));
    objects.push_back(std::move(object));
  }
  return objects;
}

}  // namespace regatta
