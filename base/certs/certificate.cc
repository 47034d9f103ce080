#include "base/certs/certificate.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <ctime>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/certs/openssl_handle.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

absl::Time ToTime(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

std::string_view Text(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

}  // namespace

Certificate Certificate::Take(X509* certificate) {
  CHECK(certificate != nullptr);
  return Certificate(std::shared_ptr<X509>(certificate, X509_free));
}

absl::StatusOr<Certificate> Certificate::FromPem(std::string_view pem) {
  const BioHandle bytes = ReadBytes(pem);
  X509* found = PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr);
  if (found == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("no certificate in PEM: ", OpenSslReason()));
  }
  return Take(found);
}

absl::StatusOr<std::vector<Certificate>> Certificate::AllFromPem(
    std::string_view pem) {
  const BioHandle bytes = ReadBytes(pem);
  std::vector<Certificate> all;
  while (X509* found =
             PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr)) {
    all.push_back(Take(found));
    if (all.size() > 100) {
      return absl::InvalidArgumentError("more than 100 certificates");
    }
  }
  const std::string reason = OpenSslReason();
  if (all.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no certificate in PEM: ", reason));
  }
  return all;
}

std::string Certificate::Pem() const {
  const BioHandle bytes = MemoryBytes();
  CHECK(PEM_write_bio_X509(bytes.get(), get()) == 1) << OpenSslReason();
  return TakeBytes(bytes);
}

std::string Certificate::Serial() const {
  const OpenSslHandle<BIGNUM, BN_free> number(
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(get()), nullptr));
  char* text = number == nullptr ? nullptr : BN_bn2hex(number.get());
  if (text == nullptr) return "";
  std::string serial = absl::AsciiStrToLower(text);
  OPENSSL_free(text);
  return serial;
}

std::string Certificate::Fingerprint() const {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  CHECK(X509_digest(get(), EVP_sha256(), digest, &size) == 1);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<char*>(digest), size));
}

absl::Time Certificate::NotBefore() const {
  return ToTime(X509_get0_notBefore(get()));
}
absl::Time Certificate::NotAfter() const {
  return ToTime(X509_get0_notAfter(get()));
}

std::string Certificate::Lab() const {
  const X509_NAME* name = X509_get_issuer_name(get());
  const int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  if (at < 0) return "";
  return std::string(
      Text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at))));
}

absl::StatusOr<Identity> Certificate::GetIdentity() const {
  const OpenSslHandle<GENERAL_NAMES, GENERAL_NAMES_free> names(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(get(), NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> uris;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get());
       ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_URI) {
      uris.emplace_back(Text(name->d.uniformResourceIdentifier));
    }
  }
  if (uris.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the certificate has ", uris.size(),
        " URIs as subject alternative names, wanted one that says who it is "
        "of"));
  }
  ASSIGN_OR_RETURN(Identity identity, ParseIdentityUri(uris.front()));
  if (identity.lab != Lab()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the certificate is of lab ", identity.lab,
                     ", its authority of '", Lab(), "'"));
  }
  return identity;
}

bool Certificate::BelongsTo(const PrivateKey& key) const {
  const bool same = X509_check_private_key(get(), key.get()) == 1;
  ERR_clear_error();
  return same;
}

}  // namespace regatta
