// Whose certificates count: those that an authority of the lab signed, in date,
// and not revoked. Immutable; thread-safe.
#ifndef REGATTA_BASE_CERTS_TRUST_H_
#define REGATTA_BASE_CERTS_TRUST_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/certs/certificate.h"
#include "base/certs/identity.h"
#include "base/certs/revocation_list.h"

typedef struct x509_store_st X509_STORE;

namespace regatta {

class Trust {
 public:
  // Authorities may be several, while one takes over from another. A list that
  // none of them signed: InvalidArgument.
  static absl::StatusOr<Trust> Make(std::vector<Certificate> authorities,
                                    std::optional<RevocationList> revoked);

  // Who it is of. Unauthenticated says why it does not count: unknown
  // authority, out of date (with the dates and this machine's), revoked, no
  // identity.
  absl::StatusOr<Identity> Check(const Certificate& certificate,
                                 absl::Time now) const;

  const std::vector<Certificate>& authorities() const { return authorities_; }
  const std::optional<RevocationList>& revoked() const { return revoked_; }

 private:
  Trust() = default;
  std::vector<Certificate> authorities_;
  std::optional<RevocationList> revoked_;
  std::shared_ptr<X509_STORE> store_;
};

}  // namespace regatta

#endif  // REGATTA_BASE_CERTS_TRUST_H_
