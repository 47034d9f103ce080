#include "proto/security/exposure.h"

#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "base/listening_socket.h"
#include "base/status_macros.h"

namespace regatta {

absl::Status CheckExposure(const std::string& address, bool has_tls,
                           bool insecure_plaintext) {
  ASSIGN_OR_RETURN(const auto host_port, SplitHostPort(address));
  if (has_tls || insecure_plaintext || IsLoopback(host_port.first)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      address,
      " is not on this machine alone, and without TLS everybody on the way may "
      "read, change and do everything: give --tls DIR, a folder made by "
      "`regatta certs` (docs/security.md); or, on a network that you trust "
      "wholly, --insecure-plaintext"));
}

}  // namespace regatta
