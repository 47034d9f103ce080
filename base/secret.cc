#include "base/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/check.h"

namespace regatta {

std::string RandomSecret(size_t bytes) {
  std::string secret(bytes, '\0');
  CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(secret.data()),
                   static_cast<int>(bytes)) == 1)
      << "the system has no entropy";
  return secret;
}

std::string HmacSha256(std::string_view key, std::string_view message) {
  std::string digest(32, '\0');
  unsigned size = 0;
  CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(message.data()),
             message.size(), reinterpret_cast<unsigned char*>(digest.data()),
             &size) != nullptr);
  return digest;
}

bool SameSecret(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace regatta
