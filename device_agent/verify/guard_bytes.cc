#include "device_agent/verify/guard_bytes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace regatta {

int64_t DamagedBytes(const void* from, size_t bytes) {
  const auto* begin = static_cast<const uint8_t*>(from);
  return static_cast<int64_t>(bytes) -
         std::count(begin, begin + bytes, kGuardByte);
}

std::string DamageText(int64_t before, int64_t after, const std::string& name) {
  if (before == 0 && after == 0) return "";
  return absl::StrCat(std::max(before, after), " bytes ",
                      before > 0 ? "before " : "after ", name,
                      " were overwritten");
}

}  // namespace regatta
