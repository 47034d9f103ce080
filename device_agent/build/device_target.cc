#include "device_agent/build/device_target.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/compiler_version.h"

namespace regatta {

absl::StatusOr<Target> TargetOfDevice(const v1::BoardDevice& device) {
  // As text, so that the parser's checks are the only ones.
  std::string text = device.kind();
  if (!device.architecture().empty()) {
    absl::StrAppend(&text, ",mcpu=", device.architecture());
  }
  if (device.features_size() > 0) absl::StrAppend(&text, ",features=");
  for (const std::string& feature : device.features()) {
    absl::StrAppend(&text, "+", feature);
  }
  const auto add = [&](const char* field, int64_t value) {
    if (value > 0) absl::StrAppend(&text, ",", field, "=", value);
  };
  add("vector_bits", device.vector_bits());
  add("max_group", device.max_group());
  add("local_bytes", device.local_bytes());
  add("subgroup", device.subgroup());
  add("max_registers", device.max_registers());
  add("image_width", device.image_width());
  add("image_height", device.image_height());
  add("driver", LimitingDriver(device.kind(), device.driver_major()));
  return ParseTarget(text);
}

}  // namespace regatta
