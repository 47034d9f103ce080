#include "client/cli/exit_code.h"

#include <iostream>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

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
  std::cerr << "regatta: ";
  // What came from a file or a server must not steer the terminal.
  for (const unsigned char c : text) {
    if (absl::ascii_iscntrl(c) && c != '\n' && c != '\t') {
      std::cerr << "\\x" << absl::StrCat(absl::Hex(c, absl::kZeroPad2));
    } else {
      std::cerr << c;
    }
  }
  std::cerr << std::endl;
}

}  // namespace regatta::cli
