#include "base/certs/trust.h"

#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/certs/openssl_handle.h"
#include "base/check.h"

namespace regatta {
namespace {

std::string Utc(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

}  // namespace

Trust Trust::Make(std::vector<Certificate> authorities,
                  const std::vector<RevocationList>& lists) {
  Trust trust;
  trust.authorities_ = std::move(authorities);
  trust.store_ = std::shared_ptr<X509_STORE>(X509_STORE_new(), X509_STORE_free);
  for (const Certificate& authority : trust.authorities_) {
    CHECK(X509_STORE_add_cert(trust.store_.get(), authority.get()) == 1);
    const RevocationList* newest = nullptr;
    for (const RevocationList& list : lists) {
      if (list.SignedBy(authority) &&
          (newest == nullptr || list.Number() > newest->Number())) {
        newest = &list;
      }
    }
    if (newest != nullptr) trust.revoked_.push_back(*newest);
  }
  return trust;
}

std::string Trust::RevokedPem() const {
  std::string pem;
  for (const RevocationList& list : revoked_) pem += list.Pem();
  return pem;
}

bool Trust::Revokes(const Certificate& certificate) const {
  // Serials are random: no two authorities give the same.
  return std::any_of(
      revoked_.begin(), revoked_.end(),
      [&](const RevocationList& list) { return list.Revokes(certificate); });
}

absl::StatusOr<Identity> Trust::Check(const Certificate& certificate,
                                      absl::Time now) const {
  const OpenSslHandle<X509_STORE_CTX, X509_STORE_CTX_free> context(
      X509_STORE_CTX_new());
  CHECK(context != nullptr &&
        X509_STORE_CTX_init(context.get(), store_.get(), certificate.get(),
                            nullptr) == 1)
      << OpenSslReason();
  X509_STORE_CTX_set_time(context.get(), 0, absl::ToTimeT(now));
  const bool valid = X509_verify_cert(context.get()) == 1;
  const int error = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  const std::string serial = certificate.Serial();
  if (!valid && (error == X509_V_ERR_CERT_HAS_EXPIRED ||
                 error == X509_V_ERR_CERT_NOT_YET_VALID)) {
    return absl::UnauthenticatedError(absl::StrCat(
        "certificate ", serial, " is valid from ", Utc(certificate.NotBefore()),
        " to ", Utc(certificate.NotAfter()), "; it is ", Utc(now), " here"));
  }
  if (!valid) {
    return absl::UnauthenticatedError(absl::StrCat(
        "certificate ", serial, " is signed by no authority of this lab: ",
        X509_verify_cert_error_string(error)));
  }
  if (Revokes(certificate)) {
    return absl::UnauthenticatedError(
        absl::StrCat("certificate ", serial, " is revoked"));
  }
  auto identity = certificate.GetIdentity();
  if (!identity.ok()) {
    return absl::UnauthenticatedError(absl::StrCat(
        "certificate ", serial, ": ", identity.status().message()));
  }
  return identity;
}

}  // namespace regatta
