#include "base/ed25519.h"

#include <openssl/evp.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace regatta {
namespace {

using Key = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;
using Context = std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Key PrivateKey(std::string_view bytes) {
  return Key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr,
                                          Bytes(bytes), bytes.size()),
             EVP_PKEY_free);
}

std::string PublicOf(EVP_PKEY* key) {
  std::string bytes(kSigningKeyBytes, '\0');
  size_t size = bytes.size();
  CHECK(EVP_PKEY_get_raw_public_key(
            key, reinterpret_cast<unsigned char*>(bytes.data()), &size) == 1 &&
        size == bytes.size());
  return bytes;
}

}  // namespace

SigningKey SigningKey::Generate() {
  const Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), EVP_PKEY_free);
  CHECK(key != nullptr) << "Ed25519 is not to be had";
  SigningKey made;
  made.private_.resize(kSigningKeyBytes);
  size_t size = made.private_.size();
  CHECK(EVP_PKEY_get_raw_private_key(
            key.get(), reinterpret_cast<unsigned char*>(made.private_.data()),
            &size) == 1 &&
        size == kSigningKeyBytes);
  made.public_ = PublicOf(key.get());
  return made;
}

absl::StatusOr<SigningKey> SigningKey::FromPrivate(std::string_view bytes) {
  if (bytes.size() != kSigningKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a private key has ", kSigningKeyBytes, " bytes, not ", bytes.size()));
  }
  const Key key = PrivateKey(bytes);
  CHECK(key != nullptr) << "Ed25519 is not to be had";
  SigningKey made;
  made.private_ = std::string(bytes);
  made.public_ = PublicOf(key.get());
  return made;
}

std::string SigningKey::Sign(std::string_view message) const {
  const Key key = PrivateKey(private_);
  const Context context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  std::string signature(kSignatureBytes, '\0');
  size_t size = signature.size();
  CHECK(key != nullptr && context != nullptr &&
        EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr,
                           key.get()) == 1 &&
        EVP_DigestSign(context.get(),
                       reinterpret_cast<unsigned char*>(signature.data()),
                       &size, Bytes(message), message.size()) == 1 &&
        size == signature.size());
  return signature;
}

bool VerifySignature(std::string_view public_key, std::string_view message,
                     std::string_view signature) {
  if (public_key.size() != kSigningKeyBytes) return false;
  const Key key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Bytes(public_key),
                                  public_key.size()),
      EVP_PKEY_free);
  const Context context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  return key != nullptr && context != nullptr &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr,
                              key.get()) == 1 &&
         EVP_DigestVerify(context.get(), Bytes(signature), signature.size(),
                          Bytes(message), message.size()) == 1;
}

}  // namespace regatta
