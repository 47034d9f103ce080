#include "client/cli/jobs_file.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/decimal.h"
#include "base/json_reason.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "compiler/ops/op.h"
#include "nlohmann/json.hpp"
#include "proto/outcome_names.h"
#include "proto/policy_limits.h"
#include "server/search/search_strategy.h"

namespace regatta::cli {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxBytes = size_t{16} << 20;
constexpr size_t kMaxTasks = 1000;
constexpr size_t kMaxNameBytes = 200;
// A document needs four. Printing a value, for a message, goes as deep as it.
constexpr int kMaxDepth = 32;
constexpr int64_t kMaxTrials = 1'000'000;

// At most 60 bytes of a value, for messages.
std::string Shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

// One object of the document with the place that leads to it.
class Object {
 public:
  Object(std::string file, std::string place, const Json& json)
      : file_(std::move(file)), place_(std::move(place)), json_(&json) {}

  // An object, and no fields but these.
  absl::Status Check(absl::Span<const char* const> fields) const {
    if (!json_->is_object()) {
      return Wrong("", absl::StrCat(Shown(*json_), " is no object"));
    }
    for (const auto& [name, value] : json_->items()) {
      if (std::none_of(fields.begin(), fields.end(),
                       [&](const char* field) { return name == field; })) {
        return Wrong(name, absl::StrCat("there is no such field; there are: ",
                                        absl::StrJoin(fields, ", ")));
      }
    }
    return absl::OkStatus();
  }
  // Null when the field is not there.
  const Json* Find(const char* field) const {
    const auto found = json_->find(field);
    return found == json_->end() ? nullptr : &*found;
  }
  absl::Status Wrong(std::string_view field, std::string_view what) const {
    const std::string dot = place_.empty() || field.empty() ? "" : ".";
    const std::string place = absl::StrCat(place_, dot, std::string(field));
    return absl::InvalidArgumentError(absl::StrCat(
        file_, ": ", place, place.empty() ? "" : ": ", std::string(what)));
  }
  Object Below(const std::string& field, const Json& json) const {
    return Object(file_, absl::StrCat(place_, place_.empty() ? "" : ".", field),
                  json);
  }

  // Each leaves `out` as it is when the field is not there.
  absl::Status Whole(const char* field, int64_t min, int64_t max,
                     int64_t* out) const {
    const Json* value = Find(field);
    if (value == nullptr) return absl::OkStatus();
    const bool fits =
        value->is_number_unsigned()
            ? value->get<uint64_t>() <= static_cast<uint64_t>(max) &&
                  static_cast<int64_t>(value->get<uint64_t>()) >= min
            : value->is_number_integer() && value->get<int64_t>() >= min &&
                  value->get<int64_t>() <= max;
    if (!fits) {
      return Wrong(field,
                   absl::StrCat(Shown(*value), " is no whole number from ", min,
                                " to ", max));
    }
    *out = value->get<int64_t>();
    return absl::OkStatus();
  }
  absl::Status Number(const char* field, double min, double max,
                      double* out) const {
    const Json* value = Find(field);
    if (value == nullptr) return absl::OkStatus();
    if (!value->is_number() || !(value->get<double>() >= min) ||
        !(value->get<double>() <= max)) {
      return Wrong(field, absl::StrCat(Shown(*value), " is no number from ",
                                       min, " to ", max));
    }
    *out = value->get<double>();
    return absl::OkStatus();
  }
  absl::Status Text(const char* field, std::string* out) const {
    const Json* value = Find(field);
    if (value == nullptr) return absl::OkStatus();
    if (!value->is_string()) {
      return Wrong(field, absl::StrCat(Shown(*value), " is no text"));
    }
    *out = value->get<std::string>();
    return absl::OkStatus();
  }

 private:
  std::string file_;
  std::string place_;  // "tasks[3]"; "" for the document
  const Json* json_;
};

// Of a task or of the job: `{"trials": 100, "until_gain": 30}`.
template <typename Request>
absl::Status ReadBudget(const Object& owner, Request* request) {
  const Json* value = owner.Find("budget");
  if (value == nullptr) return absl::OkStatus();
  const Object budget = owner.Below("budget", *value);
  RETURN_IF_ERROR(budget.Check({"trials", "minutes", "until_gain"}));
  int64_t trials = 0;
  double minutes = 0, gain = 0;
  RETURN_IF_ERROR(budget.Whole("trials", 1, kMaxTrials, &trials));
  RETURN_IF_ERROR(budget.Number("minutes", 0.01, 1e5, &minutes));
  RETURN_IF_ERROR(budget.Number("until_gain", 0.1, 1e5, &gain));
  if (trials > 0 && minutes > 0) {
    return budget.Wrong("", "trials and minutes are both given; one bounds");
  }
  if (value->empty()) {
    return budget.Wrong("", "is empty; give trials, minutes or until_gain");
  }
  request->set_trials(trials);
  request->set_minutes(minutes);
  request->set_until_gain_percent(gain);
  return absl::OkStatus();
}

template <typename Request>
absl::Status ReadWeight(const Object& owner, Request* request) {
  double weight = 1;
  RETURN_IF_ERROR(owner.Number("weight", 0.001, 1000, &weight));
  request->set_weight(weight);
  return absl::OkStatus();
}

absl::Status ReadClasses(const Object& owner, v1::TaskRequest* task) {
  const Json* value = owner.Find("device_classes");
  if (value == nullptr) return absl::OkStatus();
  if (!value->is_array() || value->empty()) {
    return owner.Wrong("device_classes",
                       "is no list of classes; leave it out for every "
                       "registered real class");
  }
  std::set<std::string> seen;
  for (size_t i = 0; i < value->size(); ++i) {
    const std::string field = absl::StrCat("device_classes[", i, "]");
    const Json& name = (*value)[i];
    if (!name.is_string() || name.get<std::string>().empty()) {
      return owner.Wrong(field, absl::StrCat(Shown(name), " is no class"));
    }
    if (!seen.insert(name.get<std::string>()).second) {
      return owner.Wrong(field, absl::StrCat(Shown(name), " is there twice"));
    }
    task->add_device_classes(name.get<std::string>());
  }
  return absl::OkStatus();
}

absl::Status ReadTask(const Object& object, v1::TaskRequest* task,
                      std::string* symbol, std::string* workload_key) {
  RETURN_IF_ERROR(object.Check({"workload", "weight", "device_classes",
                                "threads", "cache", "budget", "symbol"}));
  RETURN_IF_ERROR(object.Text("symbol", symbol));
  if (object.Find("workload") == nullptr) {
    return object.Wrong("workload", "is missing");
  }
  std::string text;
  RETURN_IF_ERROR(object.Text("workload", &text));
  auto workload = ParseWorkload(text);
  if (!workload.ok()) {
    const absl::string_view message = workload.status().message();
    return object.Wrong("workload", {message.data(), message.size()});
  }
  task->set_workload(workload->text);
  *workload_key = workload->key;
  RETURN_IF_ERROR(ReadWeight(object, task));
  RETURN_IF_ERROR(ReadClasses(object, task));
  int64_t threads = 1;
  RETURN_IF_ERROR(object.Whole("threads", 1, kMaxThreads, &threads));
  task->mutable_policy()->set_threads(static_cast<int32_t>(threads));
  std::string cache = "warm";
  RETURN_IF_ERROR(object.Text("cache", &cache));
  const auto state = ParseCacheState(cache);
  if (!state) {
    return object.Wrong("cache",
                        absl::StrCat("'", cache, "' is neither warm nor cold"));
  }
  task->mutable_policy()->set_cache(*state);
  return ReadBudget(object, task);
}

absl::Status ReadSettings(const Object& object, v1::SubmitJobRequest* request) {
  std::string name;
  RETURN_IF_ERROR(object.Text("name", &name));
  if (name.size() > kMaxNameBytes) {
    return object.Wrong("name",
                        absl::StrCat("has ", name.size(), " bytes; at most ",
                                     kMaxNameBytes, " are kept"));
  }
  request->set_name(name);
  int64_t priority = 0;
  RETURN_IF_ERROR(object.Whole("priority", -100, 100, &priority));
  request->set_priority(static_cast<int32_t>(priority));
  double deadline = 0;
  RETURN_IF_ERROR(object.Number("deadline_minutes", 0.01, 1e5, &deadline));
  request->set_deadline_minutes(deadline);
  std::string strategy(SearchStrategies().front().name);
  RETURN_IF_ERROR(object.Text("strategy", &strategy));
  if (FindSearchStrategy(strategy) == nullptr) {
    std::vector<std::string> names;
    for (const StrategyInfo& info : SearchStrategies()) {
      names.emplace_back(info.name);
    }
    return object.Wrong(
        "strategy", absl::StrCat("'", strategy, "' does not exist; there are: ",
                                 absl::StrJoin(names, ", ")));
  }
  request->set_strategy(strategy);
  if (const Json* seed = object.Find("seed"); seed != nullptr) {
    if (!seed->is_number_unsigned()) {
      return object.Wrong(
          "seed", absl::StrCat(Shown(*seed), " is no whole number from 0 to ",
                               UINT64_MAX));
    }
    request->set_seed(seed->get<uint64_t>());
    request->set_has_seed(true);
  }
  if (const Json* fresh = object.Find("fresh"); fresh != nullptr) {
    if (!fresh->is_boolean()) {
      return object.Wrong("fresh",
                          absl::StrCat(Shown(*fresh), " is not true or false"));
    }
    request->set_fresh(fresh->get<bool>());
  }
  RETURN_IF_ERROR(ReadWeight(object, request));
  return ReadBudget(object, request);
}

absl::Status ReadTasks(const std::string& file, const Object& document,
                       v1::SubmitJobRequest* request,
                       std::vector<std::string>* symbols) {
  const Json* tasks = document.Find("tasks");
  if (tasks == nullptr) return document.Wrong("tasks", "is missing");
  if (!tasks->is_array() || tasks->empty()) {
    return document.Wrong("tasks", "is no list of tasks, at least one");
  }
  if (tasks->size() > kMaxTasks) {
    return document.Wrong("tasks", absl::StrCat("has ", tasks->size(),
                                                " tasks; at most ", kMaxTasks));
  }
  std::vector<std::string> seen;
  for (size_t i = 0; i < tasks->size(); ++i) {
    const std::string place = absl::StrCat("tasks[", i, "]");
    v1::TaskRequest* task = request->add_tasks();
    std::string symbol, workload_key;
    RETURN_IF_ERROR(ReadTask(Object(file, place, (*tasks)[i]), task, &symbol,
                             &workload_key));
    if (symbols != nullptr) symbols->push_back(std::move(symbol));
    v1::TaskRequest key;
    // The same mathematics may be written in several ways.
    key.set_workload(workload_key);
    *key.mutable_policy() = task->policy();
    *key.mutable_device_classes() = task->device_classes();
    std::sort(key.mutable_device_classes()->begin(),
              key.mutable_device_classes()->end());
    seen.push_back(key.SerializeAsString());
    const auto first = std::find(seen.begin(), seen.end(), seen.back());
    if (first + 1 != seen.end()) {
      return document.Wrong(
          place, absl::StrCat("repeats tasks[", first - seen.begin(), "]"));
    }
  }
  return absl::OkStatus();
}

// "line 3, column 7" of a byte counted from 1.
std::string LineOf(std::string_view text, size_t byte) {
  const std::string_view before =
      text.substr(0, std::min(text.size(), byte > 0 ? byte - 1 : 0));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n');
  const size_t column =
      before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return absl::StrCat("line ", line, ", column ", column);
}

// JSON text with spaces for its strings, as long as before.
std::string WithoutStrings(std::string_view text) {
  std::string rest(text);
  bool in_string = false;
  for (size_t i = 0; i < rest.size(); ++i) {
    const bool escapes = in_string && rest[i] == '\\';
    if (rest[i] == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      continue;
    }
    rest[i] = ' ';
    if (escapes && i + 1 < rest.size()) rest[++i] = ' ';
  }
  return rest;
}

// The first byte, counted from 1, of a number that a double cannot hold.
// REQUIRES: there is one; all before it is JSON.
size_t OverflowAt(std::string_view text) {
  constexpr std::string_view kNumber = "+-.0123456789Ee";
  const std::string rest = WithoutStrings(text);
  for (size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] != '-' && !absl::ascii_isdigit(rest[i])) continue;
    const size_t end =
        std::min(rest.find_first_not_of(kNumber, i), rest.size());
    double value = 0;
    if (!ParseDecimal(std::string_view(rest).substr(i, end - i), &value)) {
      return i + 1;
    }
    i = end - 1;
  }
  return rest.size();
}

// The first byte, counted from 1, of lists and objects that are nested too
// deep.
std::optional<size_t> TooDeepAt(std::string_view text) {
  const std::string rest = WithoutStrings(text);
  int depth = 0;
  for (size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '[' || rest[i] == '{') {
      if (++depth > kMaxDepth) return i + 1;
    } else if (rest[i] == ']' || rest[i] == '}') {
      --depth;
    }
  }
  return std::nullopt;
}

// The document; a repeated field, of which the library keeps one, is an error.
absl::StatusOr<Json> ParseDocument(const std::string& file,
                                   std::string_view text) {
  if (const auto deep = TooDeepAt(text)) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": ", LineOf(text, *deep),
        ": lists and objects are nested more than ", kMaxDepth, " deep here"));
  }
  std::vector<std::set<std::string>> fields;
  std::string repeated;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) {
      fields.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      fields.pop_back();
    } else if (event == Json::parse_event_t::key &&
               !fields.back().insert(value.get<std::string>()).second &&
               repeated.empty()) {
      repeated = value.get<std::string>();
    }
    return true;
  };
  try {
    Json document = Json::parse(text, watch);
    if (!repeated.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          file, ": the field \"", repeated, "\" stands twice in one object"));
    }
    return document;
  } catch (const Json::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": ", LineOf(text, error.byte),
                     ": this is no JSON: ", ToAbsl(JsonReason(error.what()))));
  } catch (const Json::out_of_range&) {
    // The library does not say where.
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": ", LineOf(text, OverflowAt(text)),
                     ": this number is too large"));
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": this is no JSON: ", ToAbsl(JsonReason(error.what()))));
  }
}

}  // namespace

absl::StatusOr<v1::SubmitJobRequest> ParseJobsFile(
    const std::string& file, std::string_view text,
    std::vector<std::string>* symbols) {
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": has more than ", kMaxBytes >> 20, " MiB"));
  }
  ASSIGN_OR_RETURN(const Json json, ParseDocument(file, text));
  const Object document(file, "", json);
  RETURN_IF_ERROR(
      document.Check({"name", "priority", "deadline_minutes", "weight",
                      "strategy", "seed", "fresh", "budget", "tasks"}));
  v1::SubmitJobRequest request;
  RETURN_IF_ERROR(ReadSettings(document, &request));
  RETURN_IF_ERROR(ReadTasks(file, document, &request, symbols));
  const auto open =
      std::count_if(request.tasks().begin(), request.tasks().end(),
                    [](const v1::TaskRequest& task) {
                      return task.trials() == 0 && task.minutes() == 0;
                    });
  if (request.trials() > 0 && request.trials() < open) {
    return document.Wrong(
        "budget.trials",
        absl::StrCat(request.trials(), " for ", open,
                     " tasks together; each needs one at least"));
  }
  return request;
}

absl::StatusOr<v1::SubmitJobRequest> ReadJobsFile(
    const std::string& path, std::vector<std::string>* symbols) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (file) {
    text.resize(kMaxBytes + 1);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": cannot be read: ", strerror(errno)));
  }
  return ParseJobsFile(path, text, symbols);
}

}  // namespace regatta::cli
