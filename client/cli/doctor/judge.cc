#include "client/cli/doctor/judge.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device_agent/probe/clock_control.h"
#include "proto/outcome_names.h"

namespace regatta::cli {
namespace {

constexpr size_t kNamed = 5;

// How the board is out of work until somebody looks after it; "": it is not.
std::string TroubleOf(const v1::DeviceStatus& device) {
  const v1::Trust trust = device.standing().trust();
  if (trust == v1::TRUST_QUARANTINED || trust == v1::TRUST_BROKEN) {
    return TrustName(trust);
  }
  // One that people took out may well be away.
  return device.presence() == v1::PRESENCE_LOST &&
                 device.standing().operator_state() == v1::OPERATOR_STATE_NORMAL
             ? PresenceName(device.presence())
             : "";
}

std::string Named(const std::vector<std::string>& ids) {
  const size_t shown = std::min(ids.size(), kNamed);
  return absl::StrCat(absl::StrJoin(ids.begin(), ids.begin() + shown, ", "),
                      shown < ids.size() ? ", ..." : "");
}

}  // namespace

bool IsSkewed(int64_t offset_ms) { return std::abs(offset_ms) > kSkewMs; }

std::string OffsetText(int64_t offset_ms) {
  return absl::StrCat(std::abs(offset_ms), " ms ",
                      offset_ms >= 0 ? "ahead of" : "behind");
}

std::string_view SourcesOf(std::string_view compiler_version) {
  return compiler_version.substr(0, compiler_version.find('/'));
}

ClockVerdict JudgeClocks(std::string_view uncontrolled) {
  std::vector<std::string> found, remedies;
  for (ClockFinding& finding : ClockFindings(uncontrolled)) {
    found.push_back(std::move(finding.what));
    if (!finding.remedy.empty()) remedies.push_back(std::move(finding.remedy));
  }
  return {absl::StrJoin(found, "; "), absl::StrJoin(remedies, "; ")};
}

Finding JudgeSilence(const std::string& message) {
  const bool tracker = absl::StartsWith(message, "the tracker at ");
  // gRPC's words: of an answer that did not come, and of a connection that was
  // made and on which nothing followed.
  const bool hangs = absl::StrContains(message, "Deadline Exceeded") ||
                     absl::StrContains(message, "SETTINGS frame");
  if (!hangs) {
    return {Level::kFail, "reachable", message,
            tracker ? "start regatta-tracker; on its machine, journalctl -u "
                      "regatta-tracker says why it ended"
                    : "regatta up, or start regatta-tracker and "
                      "regatta-server; journalctl -u 'regatta-*'"};
  }
  const std::string who = tracker ? "tracker" : "server";
  return {Level::kFail, "reachable",
          absl::StrCat("the ", who,
                       " hangs: it is there, but says nothing, or what it says "
                       "is lost on the way (",
                       message, ")"),
          absl::StrCat("on its machine: kill -CONT it if it was stopped, else "
                       "systemctl restart regatta-",
                       who, "; journalctl -u regatta-", who,
                       " says what it did last. A firewall that drops packets "
                       "looks the same")};
}

Finding ExamineBoards(const v1::ListDevicesResponse& fleet) {
  if (fleet.devices().empty()) {
    return {Level::kWarn, "boards", "no board has registered",
            "regatta-agent --tracker HOST:PORT, on a board"};
  }
  std::vector<std::string> others, troubled;
  for (const v1::DeviceStatus& device : fleet.devices()) {
    const std::string& id = device.info().device_id();
    if (const std::string trouble = TroubleOf(device); !trouble.empty()) {
      troubled.push_back(absl::StrCat(id, " ", trouble));
    }
    if (device.agent_version() != fleet.server().version() ||
        // One that no builder has described yet has none. Of other kinds of
        // target the tool differs.
        (!device.compiler_version().empty() &&
         SourcesOf(device.compiler_version()) !=
             SourcesOf(fleet.server().compiler_version()))) {
      others.push_back(id);
    }
  }
  Finding finding{Level::kOk, "boards",
                  absl::StrCat(fleet.devices_size(), " board(s)"), ""};
  std::vector<std::string> remedies;
  if (!troubled.empty()) {
    absl::StrAppend(&finding.what, "; ", troubled.size(),
                    " of no use now: ", Named(troubled));
    remedies.push_back("regatta doctor --device ID");
  }
  if (others.empty()) {
    finding.what += ", one build";
  } else {
    absl::StrAppend(&finding.what, "; ", others.size(),
                    " of another build than the server, which get no work "
                    "while their compiler differs: ",
                    Named(others));
    remedies.push_back(
        "regatta device drain ID --reason upgrade, then deploy/install-agent");
  }
  if (!remedies.empty()) finding.level = Level::kWarn;
  finding.remedy = absl::StrJoin(remedies, "; ");
  return finding;
}

}  // namespace regatta::cli
