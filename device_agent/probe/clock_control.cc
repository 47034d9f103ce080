#include "device_agent/probe/clock_control.h"

#include <cstdint>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "device_agent/probe/machine.h"
#include "device_agent/spawner/cpu_list.h"
#include "device_agent/spawner/file_text.h"

namespace regatta {
namespace {

constexpr char kHighest[] = "performance";
// Between findings, and between one and what mends it, which begins so.
constexpr char kBetween[] = "; ";
constexpr char kRun[] = "run: ";
constexpr char kGive[] = "give it ";

using Findings = std::vector<std::string>;

void CheckGovernors(const std::string& root, const std::vector<int>& cpus,
                    const ClockPolicy& policy, Findings* findings) {
  std::map<std::string, std::vector<int>> others;  // governor: processors
  for (const int cpu : cpus) {
    const std::string governor = ReadGovernor(root, cpu);
    if (governor.empty()) {
      findings->push_back("no cpufreq governor");
      return;
    }
    if (governor != policy.governor) others[governor].push_back(cpu);
  }
  Findings found;
  for (const auto& [governor, where] : others) {
    found.push_back(
        absl::StrCat("governor ", governor, " on cpu", FormatCpuList(where)));
  }
  if (found.empty()) return;
  findings->push_back(absl::StrCat(absl::StrJoin(found, " and "), kBetween,
                                   kRun, "cpupower frequency-set -g ",
                                   policy.governor));
}

// Laptops and many small boards with ACPI.
void CheckPlatformProfile(const std::string& root, Findings* findings) {
  const std::string file = "/sys/firmware/acpi/platform_profile";
  const std::string profile = FirstLine(root + file);
  const std::vector<std::string> choices =
      absl::StrSplit(FirstLine(root + file + "_choices"), ' ');
  if (profile.empty() || profile == kHighest) return;
  for (const std::string& choice : choices) {
    if (choice != kHighest) continue;
    findings->push_back(absl::StrCat("platform profile ", profile, kBetween,
                                     kRun, "echo ", kHighest, " > ", file));
  }
}

// NVIDIA's Jetson boards: "pmode:0002 fmode:quiet"; mode 0 is the highest.
void CheckJetsonMode(const std::string& root, Findings* findings) {
  const std::string status = FirstLine(root + "/var/lib/nvpmodel/status");
  absl::string_view text = status;
  if (!absl::ConsumePrefix(&text, "pmode:")) return;
  int mode = 0;
  if (!absl::SimpleAtoi(text.substr(0, text.find(' ')), &mode) || mode == 0) {
    return;
  }
  findings->push_back(absl::StrCat("nvpmodel power mode ", mode, kBetween, kRun,
                                   "nvpmodel -m 0"));
}

// Raspberry Pi: the firmware's flags, as hexadecimal text. The lowest four are
// of now; the rest of what has been since the board was switched on.
void CheckRaspberryPower(const std::string& root, Findings* findings) {
  constexpr struct {
    uint32_t bit;
    const char* what;
  } kNow[] = {{1, "under-voltage"},
              {2, "clock capped"},
              {4, "throttled"},
              {8, "soft temperature limit"}};
  const std::string text =
      FirstLine(root + "/sys/devices/platform/soc/soc:firmware/get_throttled");
  uint32_t flags = 0;
  if (!absl::SimpleHexAtoi(text, &flags)) return;
  Findings now;
  for (const auto& flag : kNow) {
    if ((flags & flag.bit) != 0) now.push_back(flag.what);
  }
  if (now.empty()) return;
  findings->push_back(
      absl::StrCat("the firmware limits the clock (", absl::StrJoin(now, ", "),
                   ")", kBetween, kGive,
                   "the board's own power supply and a fan, then run: vcgencmd "
                   "get_throttled"));
}

}  // namespace

std::string UncontrolledClocks(const std::string& root,
                               const std::vector<int>& cpus,
                               const ClockPolicy& policy) {
  Findings findings;
  CheckGovernors(root, cpus, policy, &findings);
  if (policy.governor == kHighest) {
    CheckPlatformProfile(root, &findings);
    CheckJetsonMode(root, &findings);
    CheckRaspberryPower(root, &findings);
  }
  return absl::StrJoin(findings, kBetween);
}

std::vector<ClockFinding> ClockFindings(std::string_view uncontrolled) {
  std::vector<ClockFinding> findings;
  const std::vector<std::string> parts =
      absl::StrSplit(std::string(uncontrolled), kBetween, absl::SkipEmpty());
  for (const std::string& part : parts) {
    absl::string_view text = part;
    const bool command = absl::ConsumePrefix(&text, kRun);
    if ((command || absl::StartsWith(text, kGive)) && !findings.empty()) {
      findings.back().remedy = std::string(text);
    } else {
      findings.push_back({part, ""});
    }
  }
  return findings;
}

std::string HealthOf(const std::string& uncontrolled) {
  return uncontrolled.empty() ? "ok"
                              : absl::StrCat("uncontrolled: ", uncontrolled);
}

}  // namespace regatta
