// Whether times that are taken here mean something.
#include <sys/timex.h>
#include <time.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "client/cli/doctor/doctor.h"
#include "client/cli/doctor/judge.h"
#include "device_agent/probe/clock_control.h"
#include "device_agent/probe/machine.h"
#include "device_agent/sensors/sensor_list.h"
#include "device_agent/spawner/file_text.h"

namespace regatta::cli {
namespace {

// The smallest step that the clock of timed runs is seen to make.
int64_t SmallestStepNs() {
  int64_t smallest = 1'000'000'000;
  SteadyTime last = RealClock().Steady();
  for (int steps = 0; steps < 200;) {
    const SteadyTime now = RealClock().Steady();
    if (now == last) continue;
    smallest = std::min(smallest, now.ns - last.ns);
    last = now;
    ++steps;
  }
  return smallest;
}

Finding ExamineResolution(const std::string& root) {
  const int64_t step = SmallestStepNs();
  const std::string source = FirstLine(
      root +
      "/sys/devices/system/clocksource/clocksource0/current_clocksource");
  const std::string what =
      absl::StrFormat("steps of %d ns are seen%s", step,
                      source.empty() ? "" : ", clock source " + source);
  // Blocks of timed calls last 1 ms at least: 1 us is a thousandth of them.
  if (step <= 1000) return {Level::kOk, "resolution", what, ""};
  return {Level::kWarn, "resolution",
          what + ": a thousandth of the shortest block of timed calls or more",
          "choose another of /sys/devices/system/clocksource/clocksource0/"
          "available_clocksource (kernel option clocksource=tsc)"};
}

Finding ExamineSynchronised() {
  timex state = {};
  const int result = adjtimex(&state);
  if (result == -1) {
    return {Level::kWarn, "synchronised", "the kernel does not say", ""};
  }
  if (result != TIME_ERROR && (state.status & STA_UNSYNC) == 0) {
    return {Level::kOk, "synchronised",
            absl::StrFormat("to a time server, within %.1f ms by the kernel's "
                            "estimate",
                            static_cast<double>(state.maxerror) / 1e3),
            ""};
  }
  return {Level::kWarn, "synchronised",
          "the wall clock follows no time server: certificates and dates in "
          "the log may be wrong; times of kernels are not concerned",
          "timedatectl set-ntp true"};
}

Finding ExamineGovernor(const std::string& root, const std::vector<int>& cpus) {
  const std::string found = UncontrolledClocks(root, cpus, ClockPolicy());
  if (found.empty()) {
    return {Level::kOk, "governor", "performance on every processor", ""};
  }
  const ClockVerdict verdict = JudgeClocks(found);
  return {Level::kWarn, "governor",
          HealthOf(verdict.what) +
              ": times wander, so that small gains cannot be told from noise",
          verdict.remedy.empty()
              ? "on hardware: modprobe the cpufreq driver; a virtual machine "
                "has none"
              : verdict.remedy};
}

std::vector<Finding> ExamineSensors(const std::string& root,
                                    const std::vector<int>& cpus) {
  std::vector<Finding> findings;
  for (const SensorKind& kind : SensorKinds()) {
    SensorContext context;
    context.root = root;
    context.cpus = cpus;
    auto sensor = kind.create(context);
    Finding finding{Level::kOk, absl::StrCat("sensor ", kind.name), "", ""};
    absl::Status state = sensor.status();
    if (sensor.ok()) {
      const auto value = (*sensor)->Read();
      state = value.status();
      if (value.ok()) {
        finding.what = absl::StrFormat("%g %s", *value, (*sensor)->unit());
        if ((*sensor)->unit() == "1") finding.what = absl::StrCat(*value);
        if ((*sensor)->CountsThrottling()) {
          finding.what += "; runs during which it grows are discarded";
        }
      }
    }
    if (!state.ok()) {
      finding.level = Level::kWarn;
      finding.what = absl::StrCat(std::string(state.message()),
                                  "; records of this machine will not have it");
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

std::vector<Finding> ExamineClocks(const DoctorOptions& options) {
  const std::vector<int> cpus = AllowedCpus();
  std::vector<Finding> findings = {ExamineResolution(options.root),
                                   ExamineSynchronised(),
                                   ExamineGovernor(options.root, cpus)};
  for (Finding& finding : ExamineSensors(options.root, cpus)) {
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace regatta::cli
