#include "client/cli/exit_code.h"

#include <iostream>
#include <string>

namespace regatta::cli {

int Fail(const absl::Status& status) {
  const absl::string_view message = status.message();
  PrintError({message.data(), message.size()});
  return absl::IsInvalidArgument(status) ? kExitUsage : kExitFailed;
}

void PrintError(std::string_view message) {
  constexpr size_t kHalf = 2000;
  std::string text(message);
  if (text.size() > 2 * kHalf) {
    text.replace(kHalf, text.size() - 2 * kHalf, " ... ");
  }
  std::cerr << "regatta: " << text << std::endl;
}

}  // namespace regatta::cli
