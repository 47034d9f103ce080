#include "device_agent/spawner/cpu_list.h"

#include <sched.h>

#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/strings.h"

namespace regatta {

absl::StatusOr<std::vector<int>> ParseCpuList(std::string_view list) {
  std::set<int> cpus;
  const absl::string_view text = absl::StripAsciiWhitespace(ToAbsl(list));
  if (text.empty()) return std::vector<int>();
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    int first = 0, last = 0;
    const bool is_range = part.find('-') != absl::string_view::npos;
    if (!absl::SimpleAtoi(ends.first, &first) ||
        !absl::SimpleAtoi(is_range ? ends.second : ends.first, &last) ||
        first < 0 || last < first || last >= CPU_SETSIZE) {
      return absl::InvalidArgumentError(absl::StrCat(
          "CPU list \"", text, "\": \"", part,
          "\" is neither a processor number nor a range like 0-3"));
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.insert(cpu);
  }
  return std::vector<int>(cpus.begin(), cpus.end());
}

std::string FormatCpuList(const std::vector<int>& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    absl::StrAppend(&text, i == 0 ? "" : ",", cpus[i]);
    if (end - i > 1) absl::StrAppend(&text, "-", cpus[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace regatta
