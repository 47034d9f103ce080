#include "client/cli/doctor/device.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/cli/doctor/judge.h"
#include "client/cli/format.h"
#include "proto/device_health.h"
#include "proto/outcome_names.h"

namespace regatta::cli {
namespace {

// Of A/A times: gains below it cannot be told.
constexpr double kNoisy = 0.03;

Finding ExaminePresence(const v1::DeviceStatus& device) {
  const std::string what =
      absl::StrCat(PresenceName(device.presence()), ", heard ",
                   FormatSpan(device.last_seen_ms()), " ago");
  switch (device.presence()) {
    case v1::PRESENCE_ONLINE:
      return {Level::kOk, "presence", what, ""};
    case v1::PRESENCE_SUSPECT:
    case v1::PRESENCE_REBOOTING:
      return {Level::kWarn, "presence", what, "wait, or look at its cable"};
    default:
      return {Level::kFail, "presence", what,
              "on the board: systemctl status regatta-agent; with a power "
              "hook: regatta device power-cycle " +
                  device.info().device_id() + " --reason lost"};
  }
}

std::string RemedyOf(const v1::DeviceStatus& device) {
  const std::string& id = device.info().device_id();
  switch (device.standing().trust()) {
    case v1::TRUST_PENDING:
      return "regatta device approve " + id;
    case v1::TRUST_QUARANTINED:
    case v1::TRUST_BROKEN:
      return "regatta device history " + id + "; regatta device release " + id;
    default:
      break;
  }
  return device.standing().operator_state() == v1::OPERATOR_STATE_NORMAL
             ? ""
             : "regatta device resume " + id;
}

Finding ExamineWork(const v1::DeviceStatus& device) {
  const std::string states = absl::StrCat(
      device.state(), ", trust ", TrustName(device.standing().trust()),
      ", operator ", OperatorStateName(device.standing().operator_state()));
  if (device.obstacle().empty()) {
    return {Level::kOk, "work", states, ""};
  }
  const v1::Trust trust = device.standing().trust();
  const bool bad = trust == v1::TRUST_QUARANTINED || trust == v1::TRUST_BROKEN;
  return {bad ? Level::kFail : Level::kWarn, "work",
          absl::StrCat(states, ": gets no work, for it is ", device.obstacle()),
          RemedyOf(device)};
}

Finding ExamineCanary(const v1::DeviceStatus& device) {
  const int failures = device.standing().canary_failures();
  if (failures > 0) {
    return {Level::kWarn, "canary",
            absl::StrCat(failures, " round(s) in a row failed"),
            "regatta device history " + device.info().device_id()};
  }
  if (device.canary_passed_ms() > 0) {
    return {Level::kOk, "canary",
            "passed " + FormatSpan(device.canary_passed_ms()) + " ago", ""};
  }
  return {Level::kWarn, "canary",
          "none passed since the tracker started: it is proven before its next "
          "work",
          ""};
}

Finding ExamineVersions(const v1::DeviceStatus& device,
                        const v1::ListDevicesResponse& fleet) {
  const v1::PeerFacts& server = fleet.server();
  const std::string own = absl::StrCat("agent ", device.agent_version(), ", ",
                                       device.compiler_version().empty()
                                           ? "built for by nobody yet"
                                           : device.compiler_version());
  if (!device.compiler_version().empty() &&
      SourcesOf(device.compiler_version()) !=
          SourcesOf(server.compiler_version())) {
    return {
        Level::kFail, "versions",
        absl::StrCat(own, ", but the server has ", server.compiler_version(),
                     ": no work goes to the board"),
        "install the server's build there: deploy/install-agent"};
  }
  if (device.agent_version() != server.version()) {
    return {Level::kWarn, "versions",
            absl::StrCat(own, ", but the server is ", server.version()),
            "install the server's build there: deploy/install-agent"};
  }
  return {Level::kOk, "versions", own + ", as the server", ""};
}

Finding ExamineClock(const v1::DeviceStatus& device) {
  if (!device.has_clock_offset()) {
    return {Level::kWarn, "clock", "its agent does not tell its wall clock",
            "upgrade the agent: deploy/install-agent"};
  }
  const int64_t offset = device.clock_offset_ms();
  const std::string what = absl::StrCat("wall clock ", OffsetText(offset),
                                        " the tracker's when it connected");
  if (!IsSkewed(offset)) return {Level::kOk, "clock", what, ""};
  return {Level::kWarn, "clock",
          what +
              ": its certificate may not count, and dates of its records "
              "differ; times of kernels are not concerned",
          "on the board: timedatectl set-ntp true"};
}

Finding ExamineHealth(const v1::DeviceInfo& info) {
  if (IsHealthOk(info.health())) {
    return {Level::kOk, "health", "clock frequency is controlled", ""};
  }
  if (info.health() == "probing" || info.health().empty()) {
    return {Level::kOk, "health", "it is being measured", ""};
  }
  const std::string remedy = JudgeClocks(info.uncontrolled()).remedy;
  return {Level::kWarn, "health", info.health(),
          remedy.empty() ? "" : "on the board: " + remedy};
}

// Drift and throttling cost time, no results: they are done again.
Finding ExamineMeasuring(const v1::DeviceInfo& info) {
  return {Level::kOk, "measuring",
          absl::StrCat(info.sessions_closed(),
                       " measuring sessions closed by drift, ",
                       info.throttled_blocks(),
                       " blocks discarded as throttled since its agent "
                       "started"),
          ""};
}

Finding ExamineNoise(const v1::DeviceInfo& info) {
  if (!info.has_noise_floor()) {
    return {Level::kWarn, "noise",
            "not known: only a busy machine was seen so far",
            "take other work off the board"};
  }
  const std::string what = absl::StrFormat(
      "two timings of one kernel differ by %.2f %%", info.noise_floor() * 100);
  if (info.noise_floor() <= kNoisy) return {Level::kOk, "noise", what, ""};
  return {Level::kWarn, "noise", what + ": smaller gains cannot be told",
          "take other work off the board; fix its clock frequency"};
}

Finding ExamineLimits(const v1::DeviceStatus& device) {
  const v1::DeviceInfo& info = device.info();
  std::string what =
      absl::StrCat(info.cores(), " core(s) ", info.cpu_list(), ", ",
                   FormatBytes(info.memory_bytes()), " of memory, holds ",
                   device.running(), " of ", info.credit(), " assignments");
  if (device.measure_only() && device.builder().empty()) {
    return {Level::kFail, "limits",
            what +
                "; its modules come from builders, and none that fits is "
                "here",
            "start one that it trusts: regatta-agent --role builder "
            "(docs/builders.md)"};
  }
  return {Level::kOk, "limits", std::move(what), ""};
}

}  // namespace

std::vector<Finding> ExamineDevice(const v1::DeviceStatus& device,
                                   const v1::ListDevicesResponse& fleet) {
  std::vector<Finding> findings = {
      ExaminePresence(device),     ExamineWork(device),
      ExamineCanary(device),       ExamineVersions(device, fleet),
      ExamineClock(device),        ExamineHealth(device.info()),
      ExamineNoise(device.info()), ExamineMeasuring(device.info()),
      ExamineLimits(device)};
  const std::vector<std::string> features =
      absl::StrSplit(device.sandbox(), ',', absl::SkipEmpty());
  for (Finding& finding : JudgeSandbox(features)) {
    finding.check = "sandbox " + finding.check;
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace regatta::cli
