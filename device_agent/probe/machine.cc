#include "device_agent/probe/machine.h"

#include <sched.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "device_agent/spawner/cgroup_places.h"
#include "device_agent/spawner/cpu_list.h"
#include "device_agent/spawner/file_text.h"

namespace regatta {
namespace {

constexpr size_t kMaxCpuInfoBytes = 16 << 10;

// The value of the first "key : value" line of a /proc file.
std::string ProcValue(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    if (absl::StripAsciiWhitespace(line.substr(0, colon)) == key) {
      return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    }
  }
  return "";
}

std::string MarketingName(const std::string& root) {
  const std::string cpuinfo = root + "/proc/cpuinfo";
  std::string name = ProcValue(cpuinfo, "model name");
  if (name.empty()) name = ProcValue(cpuinfo, "Model");  // Raspberry Pi
  if (name.empty()) {
    // ARM boards name themselves here, with a zero byte at the end.
    name = FirstLine(root + "/proc/device-tree/model");
    name.erase(std::find(name.begin(), name.end(), '\0'), name.end());
  }
  return name;
}

// Host names are for people; keep what reads well in an id.
std::string IdPart(const std::string& hostname) {
  std::string part;
  for (const char c : hostname.substr(0, hostname.find('.'))) {
    const bool fine = std::isalnum(static_cast<unsigned char>(c)) || c == '-';
    part.push_back(
        fine ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
             : '-');
  }
  return part.empty() ? "board" : part.substr(0, 40);
}

}  // namespace

int64_t MachineMemoryBytes(const std::string& root) {
  const std::string total = ProcValue(root + "/proc/meminfo", "MemTotal");
  int64_t kib = 0;
  if (!absl::SimpleAtoi(total.substr(0, total.find(' ')), &kib)) return 0;
  int64_t bytes = kib * 1024;
  for (const auto& [controller, file] :
       {std::pair("", "/memory.max"),
        std::pair("memory", "/memory.limit_in_bytes")}) {
    for (const std::string& place : CgroupPlaces(controller, root)) {
      int64_t limit = 0;
      if (absl::SimpleAtoi(FirstLine(place + file), &limit) && limit > 0) {
        bytes = std::min(bytes, limit);
      }
    }
  }
  return bytes;
}

Machine ReadMachine(const std::string& root) {
  Machine machine;
  utsname names;
  if (root.empty() && uname(&names) == 0) machine.hostname = names.nodename;
  if (!root.empty()) machine.hostname = FirstLine(root + "/etc/hostname");
  machine.machine_id = FirstLine(root + "/etc/machine-id");
  machine.boot_id = ReadBootId(root);
  if (machine.boot_id.empty()) machine.boot_id = RandomId();
  machine.marketing_name = MarketingName(root);
  machine.memory_bytes = MachineMemoryBytes(root);
  return machine;
}

v1::BoardProcessor ReadProcessor(const std::string& root,
                                 const std::vector<int>& cpus) {
  v1::BoardProcessor processor;
  utsname names;
  if (uname(&names) == 0) processor.set_architecture(names.machine);
  std::ifstream file(root + "/proc/cpuinfo");
  std::stringstream text;
  text << file.rdbuf();
  // A block for each processor; what stands after the last is of all of them.
  for (const std::string& block :
       std::vector<std::string>(absl::StrSplit(text.str(), "\n\n"))) {
    std::istringstream lines(block);
    std::string line;
    std::getline(lines, line);
    const std::pair<std::string, std::string> field =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    int cpu = 0;
    if (absl::StripAsciiWhitespace(field.first) == "processor" &&
        absl::SimpleAtoi(field.second, &cpu) &&
        std::find(cpus.begin(), cpus.end(), cpu) == cpus.end()) {
      continue;
    }
    if (processor.cpuinfo().size() + block.size() > kMaxCpuInfoBytes) break;
    absl::StrAppend(processor.mutable_cpuinfo(), block, "\n\n");
  }
  return processor;
}

std::string ReadBootId(const std::string& root) {
  return FirstLine(root + "/proc/sys/kernel/random/boot_id");
}

std::string ReadGovernor(const std::string& root, int cpu) {
  return FirstLine(absl::StrCat(root, "/sys/devices/system/cpu/cpu", cpu,
                                "/cpufreq/scaling_governor"));
}

std::vector<int> AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

absl::StatusOr<std::vector<int>> ChooseCpus(const std::string& text,
                                            const std::vector<int>& allowed) {
  if (text.empty()) return allowed;
  absl::StatusOr<std::vector<int>> cpus = ParseCpuList(text);
  if (!cpus.ok()) return Annotate(cpus.status(), "--cores");
  if (cpus->empty()) {
    return absl::InvalidArgumentError("--cores: no processor is named");
  }
  for (const int cpu : *cpus) {
    if (!std::binary_search(allowed.begin(), allowed.end(), cpu)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--cores: processor ", cpu, " is not one that this process may use (",
          FormatCpuList(allowed), ")"));
    }
  }
  return *std::move(cpus);
}

absl::StatusOr<std::string> StableDeviceId(const Machine& machine,
                                           const std::string& cpu_list,
                                           const std::string& state_dir) {
  std::string seed = machine.machine_id;
  if (seed.empty()) {
    const std::string path = absl::StrCat(state_dir, "/machine-id");
    seed = FirstLine(path);
    if (seed.empty()) {
      seed = RandomId();
      std::ofstream file(path, std::ios::trunc);
      file << seed << "\n";
      if (!file.flush()) {
        return absl::PermissionDeniedError(
            absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
      }
    }
  }
  const std::string digest =
      Sha256Hex(absl::StrCat(seed, "\n", machine.hostname, "\n", cpu_list));
  return absl::StrCat(IdPart(machine.hostname), "-", digest.substr(0, 8));
}

std::string RandomId() {
  unsigned char bytes[16];
  size_t done = 0;
  while (done < sizeof(bytes)) {
    const ssize_t n = getrandom(bytes + done, sizeof(bytes) - done, 0);
    if (n < 0 && errno == EINTR) continue;
    CHECK(n > 0) << "getrandom: " << std::strerror(errno);
    done += static_cast<size_t>(n);
  }
  std::string text;
  for (const unsigned char byte : bytes) {
    absl::StrAppend(&text, absl::Hex(byte, absl::kZeroPad2));
  }
  return text;
}

}  // namespace regatta
