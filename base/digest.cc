#include "base/digest.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <memory>

#include "absl/strings/escaping.h"
#include "base/check.h"

namespace regatta {

namespace {

// Looked up once: finding it by name takes longer than a short text's digest.
const EVP_MD* Algorithm() {
  static const EVP_MD* const sha256 =
      EVP_MD_fetch(nullptr, "SHA256", /*properties=*/nullptr);
  CHECK(sha256 != nullptr) << "SHA-256 is not to be had";
  return sha256;
}

}  // namespace

std::string Sha256Hex(std::string_view bytes) {
  return absl::BytesToHexString(Sha256({bytes}));
}

std::string Sha256(std::initializer_list<std::string_view> pieces) {
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(
      EVP_MD_CTX_new(), EVP_MD_CTX_free);
  CHECK(context != nullptr &&
        EVP_DigestInit_ex(context.get(), Algorithm(), nullptr) == 1);
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
