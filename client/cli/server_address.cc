#include "client/cli/server_address.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/host_port.h"
#include "base/state_dir.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace regatta::cli {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string DefaultStateDir() {
  return UserStateDir(absl::StrCat("/var/tmp/regatta-", getuid()));
}

std::string AddressFile(std::string_view state_dir) {
  return absl::StrCat(ToAbsl(state_dir), "/address");
}

absl::StatusOr<ServerAddress> FindServer(std::string_view flag) {
  ServerAddress found;
  if (!flag.empty()) {
    found = {std::string(flag), "--server"};
  } else if (std::string env = Environment("REGATTA_SERVER"); !env.empty()) {
    found = {env, "REGATTA_SERVER"};
  } else {
    const std::string file = AddressFile(DefaultStateDir());
    std::ifstream in(file);
    std::string line;
    if (std::getline(in, line) && !line.empty()) {
      found = {line, file};
    } else {
      found = {std::string(kDefaultServer), "the default"};
    }
  }
  auto parts = SplitHostPort(found.address);
  if (!parts.ok()) return Annotate(parts.status(), found.source);
  return found;
}

}  // namespace regatta::cli
