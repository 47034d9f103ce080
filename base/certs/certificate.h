// An X.509 certificate. Immutable; thread-safe. Shared by copies.
#ifndef REGATTA_BASE_CERTS_CERTIFICATE_H_
#define REGATTA_BASE_CERTS_CERTIFICATE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/certs/identity.h"
#include "base/certs/private_key.h"

typedef struct x509_st X509;

namespace regatta {

class Certificate {
 public:
  // The first in the text. InvalidArgument where there is none.
  static absl::StatusOr<Certificate> FromPem(std::string_view pem);
  // All of them, at least one and at most 100.
  static absl::StatusOr<std::vector<Certificate>> AllFromPem(
      std::string_view pem);
  // Takes the reference that the caller holds.
  static Certificate Take(X509* certificate);

  std::string Pem() const;
  // Lower-case hexadecimal.
  std::string Serial() const;
  // SHA-256 of its DER form, 64 lower-case hexadecimal digits.
  std::string Fingerprint() const;
  absl::Time NotBefore() const;
  absl::Time NotAfter() const;
  // Of the authority that it is, or that signed it: its common name.
  std::string Lab() const;
  // InvalidArgument unless exactly one URI stands in it, of an identity of the
  // lab that its authority is of.
  absl::StatusOr<Identity> GetIdentity() const;
  bool BelongsTo(const PrivateKey& key) const;

  X509* get() const { return certificate_.get(); }

 private:
  explicit Certificate(std::shared_ptr<X509> certificate)
      : certificate_(std::move(certificate)) {}
  std::shared_ptr<X509> certificate_;
};

}  // namespace regatta

#endif  // REGATTA_BASE_CERTS_CERTIFICATE_H_
