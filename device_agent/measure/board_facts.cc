#include "device_agent/measure/board_facts.h"

#include <sys/utsname.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "device_agent/measure/trial_timer.h"

namespace regatta {
namespace {

std::string FirstWord(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

}  // namespace

std::string BootId() { return FirstWord("/proc/sys/kernel/random/boot_id"); }

v1::Environment BoardEnvironment(int cpu, const std::string& sandbox) {
  v1::Environment environment;
  environment.set_agent_version(REGATTA_VERSION);
  environment.set_measure_protocol(kMeasureProtocol);
  utsname names;
  if (uname(&names) == 0) environment.set_kernel_release(names.release);
  environment.set_governor(FirstWord(absl::StrCat(
      "/sys/devices/system/cpu/cpu", cpu, "/cpufreq/scaling_governor")));
  environment.set_sandbox(sandbox);
  return environment;
}

}  // namespace regatta
