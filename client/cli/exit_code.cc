#include "client/cli/exit_code.h"

#include <iostream>

namespace regatta::cli {

int Fail(const absl::Status& status) {
  std::cerr << "regatta: " << status.message() << std::endl;
  return absl::IsInvalidArgument(status) ? kExitUsage : kExitFailed;
}

}  // namespace regatta::cli
