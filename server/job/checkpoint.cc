#include "server/job/checkpoint.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/whole_number.h"
#include "nlohmann/json.hpp"

namespace regatta {
namespace {

using Json = nlohmann::json;

constexpr int kCheckpointVersion = 1;

// As text at once: there are thousands a second.
void PrintWorkTo(const WorkCheckpoint& work, std::string* out) {
  absl::StrAppend(out, "{\"kind\":", static_cast<int>(work.kind),
                  ",\"trials\":[");
  for (size_t i = 0; i < work.trials.size(); ++i) {
    const WorkCheckpoint::Trial& trial = work.trials[i];
    absl::StrAppend(out, i == 0 ? "" : ",", "[", trial.ordinal, ",",
                    Json(trial.schedule)
                        .dump(-1, ' ', false, Json::error_handler_t::replace),
                    ",", trial.incumbent_ns, "]");
  }
  out->append("]}");
}

void PrintTask(const TaskCheckpoint& task, std::string* out) {
  Json json = {{"target", task.target},
               {"compiler", task.compiler},
               {"simulated", task.simulated},
               {"phase", static_cast<int>(task.phase)},
               {"search_over", task.search_over},
               {"exhausted", task.exhausted},
               {"search_ms", task.search_ms},
               {"round_attempts", task.round_attempts},
               {"finalists", task.finalists},
               {"gain_probe", task.gain_probe},
               {"gain_asked_ns", task.gain_asked_ns},
               {"forgiven_below", task.forgiven_below}};
  if (task.round) {
    Json entries = Json::array();
    for (const RoundCheckpoint::Entry& entry : task.round->entries) {
      entries.push_back(
          {entry.trial_id, entry.schedule, static_cast<int>(entry.role)});
    }
    json["round"] = std::move(entries);
  }
  // Schedules and targets are ASCII; anything else is kept from throwing.
  out->append(json.dump(-1, ' ', false, Json::error_handler_t::replace));
  out->pop_back();  // its brace
  out->append(",\"in_flight\":[");
  for (size_t i = 0; i < task.in_flight.size(); ++i) {
    if (i > 0) out->push_back(',');
    PrintWorkTo(task.in_flight[i], out);
  }
  out->append("]}");
}

// These throw what the library throws; their callers catch.
WorkCheckpoint ParseWorkOf(const Json& json) {
  WorkCheckpoint work;
  work.kind = static_cast<v1::TrialKind>(WholeNumber(json.at("kind")));
  for (const Json& trial : json.at("trials")) {
    work.trials.push_back({WholeNumber(trial.at(0)),
                           trial.at(1).get<std::string>(),
                           WholeNumber(trial.at(2))});
  }
  return work;
}

TaskCheckpoint ParseTask(const Json& json) {
  TaskCheckpoint task;
  json.at("target").get_to(task.target);
  json.at("compiler").get_to(task.compiler);
  json.at("simulated").get_to(task.simulated);
  task.phase = static_cast<TaskPhase>(WholeNumber(json.at("phase")));
  json.at("search_over").get_to(task.search_over);
  json.at("exhausted").get_to(task.exhausted);
  task.search_ms = WholeNumber(json.at("search_ms"));
  task.round_attempts =
      static_cast<int>(WholeNumber(json.at("round_attempts")));
  json.at("finalists").get_to(task.finalists);
  // Not in those that an earlier release wrote.
  task.gain_probe = json.value("gain_probe", false);
  task.gain_asked_ns = WholeNumber(json.value("gain_asked_ns", Json(0)));
  task.forgiven_below = WholeNumber(json.value("forgiven_below", Json(0)));
  if (json.contains("round")) {
    task.round.emplace();
    for (const Json& entry : json.at("round")) {
      task.round->entries.push_back(
          {entry.at(0).get<std::string>(), entry.at(1).get<std::string>(),
           static_cast<RoundRole>(WholeNumber(entry.at(2)))});
    }
  }
  for (const Json& item : json.at("in_flight")) {
    WorkCheckpoint work = ParseWorkOf(item);
    if (!work.trials.empty()) task.in_flight.push_back(std::move(work));
  }
  return task;
}

}  // namespace

std::string_view TaskPhaseName(TaskPhase phase) {
  switch (phase) {
    case TaskPhase::kDefault:
      return "default";
    case TaskPhase::kSearch:
      return "search";
    case TaskPhase::kRace:
      return "race";
    case TaskPhase::kConfirm:
      return "confirm";
  }
  return "";
}

std::string PrintCheckpoint(absl::Span<const TaskCheckpoint> tasks) {
  std::string text =
      absl::StrCat("{\"version\":", kCheckpointVersion, ",\"tasks\":[");
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (i > 0) text.push_back(',');
    PrintTask(tasks[i], &text);
  }
  text.append("]}");
  return text;
}

std::string PrintWork(const WorkCheckpoint& work) {
  std::string text;
  PrintWorkTo(work, &text);
  return text;
}

absl::StatusOr<WorkCheckpoint> ParseWork(std::string_view text) {
  try {
    WorkCheckpoint work = ParseWorkOf(Json::parse(text));
    if (!work.trials.empty()) return work;
    return absl::DataLossError("work of a job has no trials");
  } catch (const Json::exception& error) {
    return absl::DataLossError(
        absl::StrCat("work of a job cannot be read: ", error.what()));
  }
}

absl::StatusOr<std::vector<TaskCheckpoint>> ParseCheckpoint(
    std::string_view text) {
  try {
    const Json json = Json::parse(text);
    const int64_t version = WholeNumber(json.at("version"));
    if (version != kCheckpointVersion) {
      return absl::DataLossError(absl::StrCat("a job's checkpoint has version ",
                                              version, "; this server writes ",
                                              kCheckpointVersion));
    }
    std::vector<TaskCheckpoint> tasks;
    for (const Json& task : json.at("tasks")) tasks.push_back(ParseTask(task));
    return tasks;
  } catch (const Json::exception& error) {
    return absl::DataLossError(
        absl::StrCat("a job's checkpoint cannot be read: ", error.what()));
  }
}

}  // namespace regatta
