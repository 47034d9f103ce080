#include "client/cli/server_address.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/host_port.h"
#include "base/state_dir.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "proto/security/exposure.h"

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
    found.address = flag;
    found.source = "--server";
  } else if (std::string env = Environment("REGATTA_SERVER"); !env.empty()) {
    found.address = env;
    found.source = "REGATTA_SERVER";
  } else {
    const std::string file = AddressFile(DefaultStateDir());
    std::ifstream in(file);
    std::string line;
    if (std::getline(in, line) && !line.empty()) {
      found.address = line;
      found.source = file;
      std::getline(in, found.tls_dir);
    } else {
      found.address = kDefaultServer;
      found.source = "the default";
    }
  }
  auto parts = SplitHostPort(found.address);
  if (!parts.ok()) return Annotate(parts.status(), found.source);
  return found;
}

absl::StatusOr<ServerAddress> ReachServer(const ServerFlags& flags) {
  ASSIGN_OR_RETURN(ServerAddress found, FindServer(flags.server));
  if (!flags.tls.empty()) {
    found.tls_dir = flags.tls;
  } else if (std::string env = Environment("REGATTA_TLS"); !env.empty()) {
    found.tls_dir = env;
  }
  RETURN_IF_ERROR(
      CheckExposure(found.address, !found.tls_dir.empty(),
                    flags.insecure_plaintext ||
                        !Environment("REGATTA_INSECURE_PLAINTEXT").empty()));
  if (found.tls_dir.empty()) return found;
  ASSIGN_OR_RETURN(found.tls,
                   TlsIdentity::Open(found.tls_dir,
                                     {Role::kViewer, Role::kSubmitter,
                                      Role::kOperator, Role::kAdmin},
                                     RealClock()));
  return found;
}

}  // namespace regatta::cli
