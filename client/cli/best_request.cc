#include "client/cli/best_request.h"

#include "absl/strings/str_cat.h"
#include "client/cli/host_class.h"

namespace regatta::cli {

absl::StatusOr<std::string> ClassOrHost(const std::string& device_class) {
  if (!device_class.empty()) return device_class;
  auto host = DescribeHost();
  if (!host.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot tell this machine's device class (",
                     host.status().message(), "): give --device-class"));
  }
  return host->device_class;
}

absl::Status ExplainClassError(const absl::Status& error,
                               const std::string& given_class) {
  if (!given_class.empty() || !absl::IsNotFound(error)) return error;
  return absl::InvalidArgumentError(
      absl::StrCat("this machine is no known board (", error.message(),
                   "): choose one with --device-class"));
}

}  // namespace regatta::cli
