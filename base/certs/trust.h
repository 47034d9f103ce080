// Whose certificates count: those that an authority of the lab signed, in date,
// and not revoked. Immutable; thread-safe.
#ifndef REGATTA_BASE_CERTS_TRUST_H_
#define REGATTA_BASE_CERTS_TRUST_H_

#include <memory>
#include <string>
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
  // Authorities may be several, while one takes over from another. Of the
  // lists, in any order, the newest of each authority counts (of two with one
  // number, the first), and none that no authority signed.
  static Trust Make(std::vector<Certificate> authorities,
                    const std::vector<RevocationList>& lists = {});

  // Who it is of. Unauthenticated says why it does not count: unknown
  // authority, out of date (with the dates and this machine's), revoked, no
  // identity.
  absl::StatusOr<Identity> Check(const Certificate& certificate,
                                 absl::Time now) const;

  const std::vector<Certificate>& authorities() const { return authorities_; }
  // The lists that count, at most one of each authority.
  // Whether one of the lists that count has it.
  bool Revokes(const Certificate& certificate) const;
  const std::vector<RevocationList>& revoked() const { return revoked_; }
  std::string RevokedPem() const;

 private:
  Trust() = default;
  std::vector<Certificate> authorities_;
  std::vector<RevocationList> revoked_;
  std::shared_ptr<X509_STORE> store_;
};

}  // namespace regatta

#endif  // REGATTA_BASE_CERTS_TRUST_H_
