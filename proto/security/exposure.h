// Whether plain text would leave this machine.
#ifndef REGATTA_PROTO_SECURITY_EXPOSURE_H_
#define REGATTA_PROTO_SECURITY_EXPOSURE_H_

#include <string>

#include "absl/status/status.h"

namespace regatta {

// InvalidArgument, with what to do, unless what goes over `address` (HOST:PORT,
// listened on or dialled) is protected by TLS, stays on this machine, or need
// not be protected.
absl::Status CheckExposure(const std::string& address, bool has_tls,
                           bool insecure_plaintext);

}  // namespace regatta

#endif  // REGATTA_PROTO_SECURITY_EXPOSURE_H_
