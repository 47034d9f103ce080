#include "base/digest.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <memory>

#include "absl/strings/escaping.h"
#include "base/check.h"

namespace regatta {

std::string Sha256Hex(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         digest);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), sizeof(digest)));
}

std::string Sha256(std::initializer_list<std::string_view> pieces) {
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(
      EVP_MD_CTX_new(), EVP_MD_CTX_free);
  CHECK(context != nullptr &&
        EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1)
      << "SHA-256 is not to be had";
  for (const std::string_view piece : pieces) {
    CHECK(EVP_DigestUpdate(context.get(), piece.data(), piece.size()) == 1);
  }
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  CHECK(EVP_DigestFinal_ex(context.get(),
                           reinterpret_cast<unsigned char*>(digest.data()),
                           nullptr) == 1);
  return digest;
}

}  // namespace regatta
