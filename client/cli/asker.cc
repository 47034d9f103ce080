#include "client/cli/asker.h"

#include <pwd.h>
#include <unistd.h>

#include <array>

#include "absl/strings/str_cat.h"

namespace regatta::cli {

std::string AskerName() {
  const passwd* user = getpwuid(geteuid());
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return absl::StrCat(
      user != nullptr ? std::string(user->pw_name) : absl::StrCat(geteuid()),
      "@", host[0] == '\0' ? "unknown" : host.data());
}

}  // namespace regatta::cli
