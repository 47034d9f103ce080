#include "server/query/workload_info.h"

#include <string_view>

#include "absl/strings/ascii.h"
#include "base/status_macros.h"
#include "compiler/ops/op.h"

namespace regatta {
namespace {

// Characters of the number that starts at `offset`; `fraction` says whether it
// is more than digits.
size_t NumberLength(std::string_view text, size_t offset, bool& fraction) {
  size_t end = offset;
  const auto digits = [&] {
    while (end < text.size() && absl::ascii_isdigit(text[end])) ++end;
  };
  digits();
  fraction = false;
  if (end < text.size() && text[end] == '.') {
    fraction = true;
    ++end;
    digits();
  }
  if (end + 1 < text.size() && text[end] == 'e' &&
      (text[end + 1] == '-' || text[end + 1] == '+')) {
    fraction = true;
    end += 2;
    digits();
  }
  return end - offset;
}

// What follows from the extents as #: numbers of bindings, and fractions in the
// stages (1/columns of a mean). Whole numbers of stages, such as strides, stay:
// they are structure. Digits of a name ("i0", "f32") follow a letter.
std::string WithoutExtents(std::string_view canonical) {
  constexpr std::string_view kWhere = " where ";
  const size_t where = canonical.rfind(kWhere);
  if (where == std::string_view::npos) return std::string(canonical);
  std::string out;
  char before = ' ';  // the last character that is no blank
  bool in_name = false;
  for (size_t i = 0; i < canonical.size();) {
    const char c = canonical[i];
    if (absl::ascii_isdigit(c) && !in_name) {
      bool fraction = false;
      const size_t length = NumberLength(canonical, i, fraction);
      const bool binding =
          i > where && (before == '=' || before == '[' || before == ',');
      out += binding || fraction ? "#" : canonical.substr(i, length);
      before = '#';
      i += length;
      continue;
    }
    in_name = absl::ascii_isalnum(c) || c == '_';
    out += c;
    if (c != ' ') before = c;
    ++i;
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

absl::StatusOr<WorkloadInfo> DescribeWorkloadText(const std::string& text) {
  ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(text));
  return DescribeWorkload(workload);
}

}  // namespace regatta
