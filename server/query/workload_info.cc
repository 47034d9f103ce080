#include "server/query/workload_info.h"

#include <string_view>

#include "absl/strings/ascii.h"

namespace regatta {
namespace {

// A number of a binding follows '=', '[' or ',' (blanks aside); digits that
// belong to a name ("i0", "f32") follow a letter.
std::string WithoutExtents(std::string_view canonical) {
  constexpr std::string_view kWhere = " where ";
  const size_t where = canonical.rfind(kWhere);
  if (where == std::string_view::npos) return std::string(canonical);
  const size_t bindings = where + kWhere.size();
  std::string out(canonical.substr(0, bindings));
  char before = ' ';
  for (size_t i = bindings; i < canonical.size(); ++i) {
    const char c = canonical[i];
    if (absl::ascii_isdigit(c) &&
        (before == '=' || before == '[' || before == ',')) {
      while (i + 1 < canonical.size() &&
             absl::ascii_isdigit(canonical[i + 1])) {
        ++i;
      }
      out += '#';
      before = '#';
      continue;
    }
    out += c;
    if (c != ' ') before = c;
  }
  return out;
}

}  // namespace

WorkloadInfo DescribeWorkload(const Workload& workload) {
  WorkloadInfo info;
  info.key = workload.key;
  info.text = workload.text;
  info.family = workload.family;
  info.structure = WithoutExtents(workload.canonical);
  for (const IndexVar& index : workload.indices) {
    info.extents.push_back(index.extent);
  }
  return info;
}

}  // namespace regatta
