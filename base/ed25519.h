// Signatures by Ed25519 (RFC 8032; OpenSSL).
//
// Thread-safe.
#ifndef REGATTA_BASE_ED25519_H_
#define REGATTA_BASE_ED25519_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace regatta {

inline constexpr size_t kSigningKeyBytes = 32;  // private and public alike
inline constexpr size_t kSignatureBytes = 64;

class SigningKey {
 public:
  // A new one, from the system's randomness.
  static SigningKey Generate();
  // InvalidArgument unless `bytes` are the 32 of a private key.
  static absl::StatusOr<SigningKey> FromPrivate(std::string_view bytes);

  const std::string& private_bytes() const { return private_; }
  const std::string& public_key() const { return public_; }
  std::string Sign(std::string_view message) const;

 private:
  SigningKey() = default;
  std::string private_;
  std::string public_;
};

// False for a wrong signature, and for what is no key or no signature.
bool VerifySignature(std::string_view public_key, std::string_view message,
                     std::string_view signature);

}  // namespace regatta

#endif  // REGATTA_BASE_ED25519_H_
