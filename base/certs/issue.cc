#include "base/certs/issue.h"

#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "absl/strings/str_cat.h"
#include "base/certs/openssl_handle.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

void AddName(X509_NAME* name, const std::string& text) {
  Must(X509_NAME_add_entry_by_txt(
           name, "CN", MBSTRING_UTF8,
           reinterpret_cast<const unsigned char*>(text.data()),
           static_cast<int>(text.size()), -1, 0) == 1);
}

void AddExtension(X509* certificate, X509* issuer, int nid,
                  const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const OpenSslHandle<X509_EXTENSION, X509_EXTENSION_free> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  Must(extension != nullptr &&
       X509_add_ext(certificate, extension.get(), -1) == 1);
}

// 127 random bits, so that no two are alike and none is negative.
void SetSerial(X509* certificate) {
  unsigned char bytes[16];
  Must(RAND_bytes(bytes, sizeof bytes) == 1);
  bytes[0] &= 0x7f;
  bytes[0] |= 0x40;  // all serials have one length
  const OpenSslHandle<BIGNUM, BN_free> number(
      BN_bin2bn(bytes, sizeof bytes, nullptr));
  Must(number != nullptr &&
       BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) !=
           nullptr);
}

X509* NewCertificate(EVP_PKEY* key, absl::Time now, absl::Duration life) {
  X509* certificate = X509_new();
  Must(certificate != nullptr && X509_set_version(certificate, 2) == 1);
  SetSerial(certificate);
  Must(ASN1_TIME_set(X509_getm_notBefore(certificate),
                     absl::ToTimeT(now - kClockSlack)) != nullptr &&
       ASN1_TIME_set(X509_getm_notAfter(certificate),
                     absl::ToTimeT(now + life)) != nullptr &&
       X509_set_pubkey(certificate, key) == 1);
  return certificate;
}

}  // namespace

Certificate MakeAuthorityCertificate(const PrivateKey& key,
                                     const std::string& lab, absl::Time now,
                                     absl::Duration life) {
  X509* certificate = NewCertificate(key.get(), now, life);
  AddName(X509_get_subject_name(certificate), lab);
  Must(X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) ==
       1);
  AddExtension(certificate, certificate, NID_basic_constraints,
               "critical,CA:TRUE,pathlen:0");
  AddExtension(certificate, certificate, NID_key_usage,
               "critical,keyCertSign,cRLSign");
  AddExtension(certificate, certificate, NID_subject_key_identifier, "hash");
  Must(X509_sign(certificate, key.get(), EVP_sha256()) != 0);
  return Certificate::Take(certificate);
}

PublicKey PublicKey::Of(const PrivateKey& key) {
  EVP_PKEY_up_ref(key.get());
  return PublicKey(std::shared_ptr<EVP_PKEY>(key.get(), EVP_PKEY_free));
}

absl::StatusOr<PublicKey> PublicKey::OfRequest(std::string_view request_pem) {
  const BioHandle bytes = ReadBytes(request_pem);
  const OpenSslHandle<X509_REQ, X509_REQ_free> request(
      PEM_read_bio_X509_REQ(bytes.get(), nullptr, nullptr, nullptr));
  if (request == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("no certificate request in PEM: ", OpenSslReason()));
  }
  EVP_PKEY* key = X509_REQ_get_pubkey(request.get());
  if (key == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request has no key: ", OpenSslReason()));
  }
  PublicKey found(std::shared_ptr<EVP_PKEY>(key, EVP_PKEY_free));
  if (!IsP256(key)) {
    return absl::InvalidArgumentError(
        "the request's key is not ECDSA on P-256");
  }
  if (X509_REQ_verify(request.get(), key) != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the request is not signed by its own key: ", OpenSslReason()));
  }
  return found;
}

Certificate IssueCertificate(const Certificate& authority,
                             const PrivateKey& authority_key,
                             const PublicKey& key, const Identity& identity,
                             absl::Time now, absl::Duration life) {
  CHECK(CheckIdentity(identity).ok()) << CheckIdentity(identity).message();
  X509* certificate = NewCertificate(key.get(), now, life);
  // A common name has at most 64 characters; who it is stands in the URI.
  AddName(X509_get_subject_name(certificate), identity.name.substr(0, 64));
  Must(X509_set_issuer_name(certificate,
                            X509_get_subject_name(authority.get())) == 1);
  AddExtension(certificate, authority.get(), NID_basic_constraints,
               "critical,CA:FALSE");
  AddExtension(certificate, authority.get(), NID_key_usage,
               "critical,digitalSignature");
  AddExtension(certificate, authority.get(), NID_ext_key_usage,
               "serverAuth,clientAuth");
  AddExtension(certificate, authority.get(), NID_subject_key_identifier,
               "hash");
  AddExtension(certificate, authority.get(), NID_authority_key_identifier,
               "keyid");
  AddExtension(certificate, authority.get(), NID_subject_alt_name,
               absl::StrCat("URI:", IdentityUri(identity)));
  Must(X509_sign(certificate, authority_key.get(), EVP_sha256()) != 0);
  return Certificate::Take(certificate);
}

std::string MakeCertificateRequest(const PrivateKey& key) {
  const OpenSslHandle<X509_REQ, X509_REQ_free> request(X509_REQ_new());
  Must(request != nullptr &&
       X509_REQ_set_pubkey(request.get(), key.get()) == 1);
  AddName(X509_REQ_get_subject_name(request.get()), "regatta");
  Must(X509_REQ_sign(request.get(), key.get(), EVP_sha256()) != 0);
  const BioHandle bytes = MemoryBytes();
  Must(PEM_write_bio_X509_REQ(bytes.get(), request.get()) == 1);
  return TakeBytes(bytes);
}

}  // namespace regatta
