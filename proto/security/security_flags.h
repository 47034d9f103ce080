// The flags by which every daemon is told how its connections are secured.
#ifndef REGATTA_PROTO_SECURITY_SECURITY_FLAGS_H_
#define REGATTA_PROTO_SECURITY_SECURITY_FLAGS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/certs/tls_identity.h"
#include "base/clock.h"

namespace regatta {

struct SecurityFlags {
  std::string tls;  // a folder; "": plain text
  bool insecure_plaintext = false;
};

// `App`: CLI::App.
template <typename App>
void AddSecurityFlags(App* app, SecurityFlags* flags) {
  app->add_option("--tls", flags->tls,
                  "Folder of this process's certificate: ca.pem, cert.pem, "
                  "key.pem, made by `regatta certs`")
      ->type_name("DIR")
      ->default_str("none: plain text, on this machine only");
  app->add_flag("--insecure-plaintext", flags->insecure_plaintext,
                "Without --tls, also talk to other machines: whoever reaches "
                "the port may do everything");
}

// nullptr for plain text.
inline absl::StatusOr<std::shared_ptr<TlsIdentity>> OpenIdentity(
    const SecurityFlags& flags, RoleSet roles, const Clock& clock) {
  if (flags.tls.empty()) return std::shared_ptr<TlsIdentity>();
  return TlsIdentity::Open(flags.tls, roles, clock);
}

}  // namespace regatta

#endif  // REGATTA_PROTO_SECURITY_SECURITY_FLAGS_H_
