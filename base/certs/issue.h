// Makes certificates and the requests for them.
//
// Free functions; thread-safe.
#ifndef REGATTA_BASE_CERTS_ISSUE_H_
#define REGATTA_BASE_CERTS_ISSUE_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/certs/certificate.h"
#include "base/certs/identity.h"
#include "base/certs/private_key.h"

namespace regatta {

// A certificate is valid from this much before it is made: clocks differ.
inline constexpr absl::Duration kClockSlack = absl::Minutes(5);

// Of a lab, signed by itself.
Certificate MakeAuthorityCertificate(const PrivateKey& key,
                                     const std::string& lab, absl::Time now,
                                     absl::Duration life);

// A public key that somebody proved to hold the private half of.
class PublicKey {
 public:
  static PublicKey Of(const PrivateKey& key);
  // From a request for a certificate (PKCS #10, PEM) that its key signed.
  // Whatever else the request says is ignored. InvalidArgument where it is none
  // or the key is not ECDSA on P-256.
  static absl::StatusOr<PublicKey> OfRequest(std::string_view request_pem);
  EVP_PKEY* get() const { return key_.get(); }

 private:
  explicit PublicKey(std::shared_ptr<EVP_PKEY> key) : key_(std::move(key)) {}
  std::shared_ptr<EVP_PKEY> key_;
};

// Signed by the authority, for both ends of a connection. REQUIRES:
// CheckIdentity is OK.
Certificate IssueCertificate(const Certificate& authority,
                             const PrivateKey& authority_key,
                             const PublicKey& key, const Identity& identity,
                             absl::Time now, absl::Duration life);

// What OfRequest reads.
std::string MakeCertificateRequest(const PrivateKey& key);

}  // namespace regatta

#endif  // REGATTA_BASE_CERTS_ISSUE_H_
