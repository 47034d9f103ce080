#include "device_agent/spawner/process_tree.h"

#include <dirent.h>
#include <unistd.h>

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "device_agent/spawner/file_text.h"

namespace regatta {
namespace {

// Positions after the command's closing parenthesis in /proc/PID/stat.
constexpr size_t kState = 0, kParent = 1, kThreads = 17, kResidentPages = 21;

bool ReadProcess(pid_t pid, ProcessInfo* info) {
  const std::string text = FileText(absl::StrCat("/proc/", pid, "/stat"));
  const size_t end = text.rfind(')');
  if (end == std::string::npos || end + 2 > text.size()) return false;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(text).substr(end + 2), ' ');
  if (fields.size() <= kResidentPages) return false;
  info->pid = pid;
  info->state = fields[kState].empty() ? '?' : fields[kState][0];
  int64_t pages = 0;
  if (!absl::SimpleAtoi(fields[kParent], &info->parent) ||
      !absl::SimpleAtoi(fields[kThreads], &info->threads) ||
      !absl::SimpleAtoi(fields[kResidentPages], &pages)) {
    return false;
  }
  info->resident_bytes = pages * sysconf(_SC_PAGESIZE);
  return true;
}

}  // namespace

ProcessTree ProcessTree::Read() {
  std::vector<ProcessInfo> processes;
  DIR* directory = opendir("/proc");
  if (directory == nullptr) return ProcessTree({});
  while (const dirent* entry = readdir(directory)) {
    pid_t pid = 0;
    ProcessInfo info;
    if (absl::SimpleAtoi(entry->d_name, &pid) && ReadProcess(pid, &info)) {
      processes.push_back(info);
    }
  }
  closedir(directory);
  return ProcessTree(std::move(processes));
}

ProcessTree::ProcessTree(std::vector<ProcessInfo> processes) {
  for (const ProcessInfo& process : processes) {
    children_.emplace(process.parent, process.pid);
    processes_[process.pid] = process;
  }
}

std::vector<ProcessInfo> ProcessTree::Descendants(pid_t pid) const {
  std::vector<ProcessInfo> found;
  std::vector<pid_t> open = {pid};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    const auto [first, last] = children_.equal_range(parent);
    for (auto child = first; child != last; ++child) {
      // A look that spans a reused number could show a loop.
      if (child->second == pid || found.size() > processes_.size()) continue;
      const ProcessInfo& process = processes_.at(child->second);
      open.push_back(process.pid);
      if (process.state != 'Z' && process.state != 'X') {
        found.push_back(process);
      }
    }
  }
  return found;
}

const ProcessInfo* ProcessTree::Find(pid_t pid) const {
  const auto it = processes_.find(pid);
  if (it == processes_.end() || it->second.state == 'Z') return nullptr;
  return &it->second;
}

}  // namespace regatta
