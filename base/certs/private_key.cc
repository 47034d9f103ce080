#include "base/certs/private_key.h"

#include <openssl/pem.h>

#include "absl/strings/str_cat.h"
#include "base/certs/openssl_handle.h"
#include "base/check.h"

namespace regatta {
namespace {

// An encrypted key must be refused, not asked about on the terminal.
int NoPassword(char*, int, int, void*) { return -1; }

}  // namespace

PrivateKey PrivateKey::Generate() {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  CHECK(key != nullptr) << "OpenSSL makes no key: " << OpenSslReason();
  return PrivateKey(std::shared_ptr<EVP_PKEY>(key, EVP_PKEY_free));
}

absl::StatusOr<PrivateKey> PrivateKey::FromPem(std::string_view pem) {
  const BioHandle bytes = ReadBytes(pem);
  EVP_PKEY* key =
      PEM_read_bio_PrivateKey(bytes.get(), nullptr, NoPassword, nullptr);
  if (key == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("no private key in PEM: ", OpenSslReason()));
  }
  return PrivateKey(std::shared_ptr<EVP_PKEY>(key, EVP_PKEY_free));
}

std::string PrivateKey::Pem() const {
  const BioHandle bytes = MemoryBytes();
  CHECK(PEM_write_bio_PrivateKey(bytes.get(), key_.get(), nullptr, nullptr, 0,
                                 nullptr, nullptr) == 1)
      << OpenSslReason();
  return TakeBytes(bytes);
}

}  // namespace regatta
