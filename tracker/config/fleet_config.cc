#include "tracker/config/fleet_config.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json_reason.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tracker/config/http_url.h"

namespace regatta {
namespace {

using nlohmann::json;

template <typename... Parts>
absl::Status Bad(const std::string& where, const Parts&... parts) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, where.empty() ? "" : ": ", parts...));
}

std::string Under(const std::string& where, const std::string& name) {
  return where.empty() ? name : absl::StrCat(where, ".", name);
}

absl::Status CheckObject(const json& value, const std::string& where,
                         const std::vector<std::string>& known) {
  if (!value.is_object()) return Bad(where, "must be an object");
  for (const auto& [name, unused] : value.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return Bad(where, "no '", name,
                 "' is known here; there are: ", absl::StrJoin(known, ", "));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadText(const json& value, const std::string& where,
                      std::string* text) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
    return Bad(where, "must be a text that is not empty");
  }
  *text = value.get<std::string>();
  return absl::OkStatus();
}

absl::Status ReadTexts(const json& value, const std::string& where,
                       std::vector<std::string>* texts) {
  if (!value.is_array() || value.empty()) {
    return Bad(where, "must be a list of texts that is not empty");
  }
  for (const json& one : value) {
    RETURN_IF_ERROR(ReadText(one, where, &texts->emplace_back()));
  }
  return absl::OkStatus();
}

absl::Status ReadBool(const json& object, const char* name,
                      const std::string& where, bool* out) {
  const auto found = object.find(name);
  if (found == object.end()) return absl::OkStatus();
  if (!found->is_boolean()) {
    return Bad(Under(where, name), "must be true or false");
  }
  *out = found->get<bool>();
  return absl::OkStatus();
}

absl::Status CheckUrl(const std::string& url, const std::string& where) {
  if (absl::Status status = ParseHttpUrl(url).status(); !status.ok()) {
    return Annotate(status, where);
  }
  return absl::OkStatus();
}

absl::Status ReadAutoApprove(const json& value, AutoApprove* approve) {
  const std::string where = "auto_approve";
  RETURN_IF_ERROR(
      CheckObject(value, where, {"all", "local", "classes", "labels"}));
  RETURN_IF_ERROR(ReadBool(value, "all", where, &approve->all));
  RETURN_IF_ERROR(ReadBool(value, "local", where, &approve->local));
  for (const auto& [name, set] : {std::pair{"classes", &approve->classes},
                                  std::pair{"labels", &approve->labels}}) {
    const auto found = value.find(name);
    if (found == value.end()) continue;
    std::vector<std::string> texts;
    RETURN_IF_ERROR(ReadTexts(*found, Under(where, name), &texts));
    set->insert(texts.begin(), texts.end());
  }
  for (const std::string& label : approve->labels) {
    if (label.find('=') == std::string::npos || label.front() == '=') {
      return Bad("auto_approve.labels", "'", label, "' must be NAME=VALUE");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadCommand(const json& power, const char* name,
                         const std::string& where, PowerCommand* command) {
  const auto found = power.find(name);
  if (found == power.end()) return absl::OkStatus();
  const std::string here = Under(where, name);
  if (found->is_string()) {
    RETURN_IF_ERROR(ReadText(*found, here, &command->url));
    return CheckUrl(command->url, here);
  }
  RETURN_IF_ERROR(ReadTexts(*found, here, &command->argv));
  if (command->argv[0].front() != '/') {
    return Bad(here, "'", command->argv[0],
               "' must be the whole path of a program");
  }
  return absl::OkStatus();
}

absl::Status ReadPower(const json& value, const std::string& where,
                       PowerHook* hook) {
  RETURN_IF_ERROR(CheckObject(value, where, {"unit", "off", "on", "cycle"}));
  if (!value.contains("unit")) return Bad(where, "'unit' is missing");
  RETURN_IF_ERROR(ReadText(value["unit"], Under(where, "unit"), &hook->unit));
  RETURN_IF_ERROR(ReadCommand(value, "off", where, &hook->off));
  RETURN_IF_ERROR(ReadCommand(value, "on", where, &hook->on));
  RETURN_IF_ERROR(ReadCommand(value, "cycle", where, &hook->cycle));
  if (hook->cycle.empty() && (hook->off.empty() || hook->on.empty())) {
    return Bad(where, "must have 'cycle', or both 'off' and 'on'");
  }
  return absl::OkStatus();
}

absl::Status ReadNumber(const json& object, const char* name,
                        const std::string& where, double low, double high,
                        double* out) {
  const auto found = object.find(name);
  if (found == object.end()) return absl::OkStatus();
  if (!found->is_number() || found->get<double>() < low ||
      found->get<double>() > high) {
    return Bad(Under(where, name), "must be a number from ", low, " to ", high);
  }
  *out = found->get<double>();
  return absl::OkStatus();
}

absl::Status ReadUser(const json& value, const std::string& where,
                      UserConfig* user) {
  RETURN_IF_ERROR(CheckObject(value, where, {"weight", "most_percent"}));
  RETURN_IF_ERROR(
      ReadNumber(value, "weight", where, 0.001, 1000, &user->weight));
  return ReadNumber(value, "most_percent", where, 1, 100, &user->most_percent);
}

absl::Status ReadBoard(const json& value, const std::string& where,
                       BoardConfig* board) {
  RETURN_IF_ERROR(CheckObject(value, where, {"labels", "power"}));
  if (const auto labels = value.find("labels"); labels != value.end()) {
    if (!labels->is_object()) {
      return Bad(Under(where, "labels"), "must be an object");
    }
    for (const auto& [name, text] : labels->items()) {
      RETURN_IF_ERROR(ReadText(text, Under(Under(where, "labels"), name),
                               &board->labels[name]));
    }
  }
  if (const auto power = value.find("power"); power != value.end()) {
    RETURN_IF_ERROR(
        ReadPower(*power, Under(where, "power"), &board->power.emplace()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FleetConfig> ParseFleetConfig(std::string_view text) {
  json document;
  try {
    std::vector<std::set<std::string>> names;  // of the objects that are open
    std::string twice;
    const auto notice = [&](int, json::parse_event_t event, json& parsed) {
      if (event == json::parse_event_t::object_start) names.emplace_back();
      if (event == json::parse_event_t::object_end) names.pop_back();
      if (event == json::parse_event_t::key &&
          !names.back().insert(parsed.get<std::string>()).second) {
        twice = parsed.get<std::string>();
      }
      return true;
    };
    document = json::parse(text, notice);
    if (!twice.empty()) return Bad("", "'", twice, "' stands twice");
  } catch (const json::exception& error) {
    return Bad("", "no JSON: ", std::string(JsonReason(error.what())));
  }
  RETURN_IF_ERROR(CheckObject(document, "",
                              {"auto_approve", "webhook", "users", "boards"}));
  FleetConfig config;
  if (const auto found = document.find("auto_approve");
      found != document.end()) {
    RETURN_IF_ERROR(ReadAutoApprove(*found, &config.auto_approve));
  }
  if (const auto found = document.find("webhook"); found != document.end()) {
    RETURN_IF_ERROR(ReadText(*found, "webhook", &config.webhook));
    RETURN_IF_ERROR(CheckUrl(config.webhook, "webhook"));
  }
  if (const auto found = document.find("users"); found != document.end()) {
    if (!found->is_object()) return Bad("users", "must be an object");
    for (const auto& [name, user] : found->items()) {
      if (name.empty()) return Bad("users", "one of them has no name");
      RETURN_IF_ERROR(
          ReadUser(user, Under("users", name), &config.users[name]));
    }
  }
  if (const auto found = document.find("boards"); found != document.end()) {
    if (!found->is_object()) return Bad("boards", "must be an object");
    for (const auto& [id, board] : found->items()) {
      if (id.empty()) return Bad("boards", "one of them has no id");
      RETURN_IF_ERROR(
          ReadBoard(board, Under("boards", id), &config.boards[id]));
    }
  }
  return config;
}

absl::StatusOr<FleetConfig> ReadFleetConfig(const std::string& path) {
  std::error_code unsaid;
  if (std::filesystem::is_directory(path, unsaid)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is a folder; name the file"));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path, ": ", strerror(errno)));
  }
  std::stringstream text;
  text << file.rdbuf();
  auto config = ParseFleetConfig(text.str());
  if (!config.ok()) return Annotate(config.status(), path);
  return config;
}

}  // namespace regatta
