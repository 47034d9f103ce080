// A private key of the kind that Regatta uses: ECDSA on the curve P-256, which
// every TLS 1.3 stack speaks.
//
// Immutable once made; thread-safe. Shared by copies.
#ifndef REGATTA_BASE_CERTS_PRIVATE_KEY_H_
#define REGATTA_BASE_CERTS_PRIVATE_KEY_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

typedef struct evp_pkey_st EVP_PKEY;

namespace regatta {

class PrivateKey {
 public:
  // Fresh, from the system's entropy.
  static PrivateKey Generate();
  // InvalidArgument: no unencrypted key in PEM, or one of another kind.
  static absl::StatusOr<PrivateKey> FromPem(std::string_view pem);

  std::string Pem() const;
  EVP_PKEY* get() const { return key_.get(); }

 private:
  explicit PrivateKey(std::shared_ptr<EVP_PKEY> key) : key_(std::move(key)) {}
  std::shared_ptr<EVP_PKEY> key_;
};

// Whether it is ECDSA on P-256, private or public.
bool IsP256(EVP_PKEY* key);

// Of a file that is its owner's alone. NotFound: there is none.
// FailedPrecondition names the file and what is wrong: others may read it, it
// is no file, holds no such key.
absl::StatusOr<PrivateKey> ReadPrivateKey(const std::string& path);

}  // namespace regatta

#endif  // REGATTA_BASE_CERTS_PRIVATE_KEY_H_
