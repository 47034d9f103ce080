// Asks a tracker for certificates.
#ifndef REGATTA_PROTO_SECURITY_ENROLMENT_CLIENT_H_
#define REGATTA_PROTO_SECURITY_ENROLMENT_CLIENT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/certs/identity.h"
#include "base/certs/tls_identity.h"
#include "base/clock.h"
#include "proto/security/credential_keeper.h"
#include "regatta/v1/security_service.pb.h"

namespace regatta {

struct JoinOptions {
  std::string dir;      // to be filled; made when missing
  std::string address;  // of the tracker's enrolment port, HOST:PORT
  std::string token;    // as JoinToken::Read takes it
  std::string name;     // "": the token's
  // Takes the place of a certificate that counts as far as this machine knows.
  bool replace = false;
};

// Uses the token for a certificate of a key that is made here and stays here,
// and fills the folder; a pair that was there lies beside it as *.old then.
// FailedPrecondition where the folder has an identity already that is not spent
// (WhySpent), unless that is to be replaced; PermissionDenied: what the
// authority said about the token; Unavailable: no tracker of the token's lab
// answers there.
absl::StatusOr<Identity> JoinLab(const JoinOptions& options,
                                 const Clock& clock);

// CertificateService of a tracker. Thread-safe. Each call dials, so that it
// uses the identity of the moment, and gives up after 10 s.
class CertificateClient {
 public:
  CertificateClient(std::string address, std::shared_ptr<TlsIdentity> tls)
      : address_(std::move(address)), tls_(std::move(tls)) {}
  absl::StatusOr<v1::NewCertificate> Renew(const std::string& request_pem);
  // PEM; "": the tracker knows of none.
  absl::StatusOr<std::string> GetRevocations();

 private:
  const std::string address_;
  const std::shared_ptr<TlsIdentity> tls_;
};

// Keeps the identity good by asking the tracker at that address: renews it, and
// takes its revocations so often. Null: no identity, nothing to keep.
std::unique_ptr<CredentialKeeper> KeepThroughTracker(
    const std::shared_ptr<TlsIdentity>& tls, const std::string& tracker,
    absl::Duration revocations_every);

}  // namespace regatta

#endif  // REGATTA_PROTO_SECURITY_ENROLMENT_CLIENT_H_
