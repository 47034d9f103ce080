// Certificates that count no longer: an X.509 revocation list, signed by the
// authority. Immutable; thread-safe. Shared by copies.
#ifndef REGATTA_BASE_CERTS_REVOCATION_LIST_H_
#define REGATTA_BASE_CERTS_REVOCATION_LIST_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/certs/certificate.h"
#include "base/certs/private_key.h"

typedef struct X509_crl_st X509_CRL;

namespace regatta {

class RevocationList {
 public:
  // `serials`: as Certificate::Serial gives them; `number`: more than that of
  // any list of this authority before.
  static RevocationList Make(const Certificate& authority,
                             const PrivateKey& authority_key,
                             const std::vector<std::string>& serials,
                             int64_t number, absl::Time now);
  // InvalidArgument: no such list in PEM.
  static absl::StatusOr<RevocationList> FromPem(std::string_view pem);
  // All of them, at most 100; none is no error. InvalidArgument: one that is
  // damaged.
  static absl::StatusOr<std::vector<RevocationList>> AllFromPem(
      std::string_view pem);

  std::string Pem() const;
  bool SignedBy(const Certificate& authority) const;
  bool Revokes(const Certificate& certificate) const;
  bool Revokes(const std::string& serial) const;
  int64_t Number() const;

 private:
  explicit RevocationList(std::shared_ptr<X509_CRL> list)
      : list_(std::move(list)) {}
  std::shared_ptr<X509_CRL> list_;
};

}  // namespace regatta

#endif  // REGATTA_BASE_CERTS_REVOCATION_LIST_H_
