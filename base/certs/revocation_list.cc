#include "base/certs/revocation_list.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "absl/strings/str_cat.h"
#include "base/certs/openssl_handle.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

// OpenSSL wants a date; nothing here goes by it: a list counts until a newer
// one comes.
constexpr absl::Duration kNextUpdate = absl::Hours(24 * 365 * 10);

using IntegerHandle = OpenSslHandle<ASN1_INTEGER, ASN1_INTEGER_free>;
using TimeHandle = OpenSslHandle<ASN1_TIME, ASN1_TIME_free>;

IntegerHandle Integer(const std::string& serial) {
  BIGNUM* raw = nullptr;
  Must(BN_hex2bn(&raw, serial.c_str()) > 0);
  const OpenSslHandle<BIGNUM, BN_free> number(raw);
  return IntegerHandle(BN_to_ASN1_INTEGER(number.get(), nullptr));
}

void AddSerial(X509_CRL* list, const std::string& serial, ASN1_TIME* when) {
  const IntegerHandle integer = Integer(serial);
  OpenSslHandle<X509_REVOKED, X509_REVOKED_free> entry(X509_REVOKED_new());
  Must(integer != nullptr && entry != nullptr &&
       X509_REVOKED_set_serialNumber(entry.get(), integer.get()) == 1 &&
       X509_REVOKED_set_revocationDate(entry.get(), when) == 1 &&
       X509_CRL_add0_revoked(list, entry.get()) == 1);
  entry.release();
}

}  // namespace

RevocationList RevocationList::Make(const Certificate& authority,
                                    const PrivateKey& authority_key,
                                    const std::vector<std::string>& serials,
                                    int64_t number, absl::Time now) {
  X509_CRL* list = X509_CRL_new();
  const TimeHandle made(ASN1_TIME_set(nullptr, absl::ToTimeT(now)));
  const TimeHandle next(
      ASN1_TIME_set(nullptr, absl::ToTimeT(now + kNextUpdate)));
  const IntegerHandle count(ASN1_INTEGER_new());
  Must(list != nullptr && X509_CRL_set_version(list, 1) == 1 &&
       X509_CRL_set_issuer_name(list, X509_get_subject_name(authority.get())) ==
           1 &&
       X509_CRL_set1_lastUpdate(list, made.get()) == 1 &&
       X509_CRL_set1_nextUpdate(list, next.get()) == 1 &&
       ASN1_INTEGER_set_int64(count.get(), number) == 1 &&
       X509_CRL_add1_ext_i2d(list, NID_crl_number, count.get(), 0, 0) == 1);
  for (const std::string& serial : serials) AddSerial(list, serial, made.get());
  Must(X509_CRL_sort(list) == 1 &&
       X509_CRL_sign(list, authority_key.get(), EVP_sha256()) != 0);
  return RevocationList(std::shared_ptr<X509_CRL>(list, X509_CRL_free));
}

absl::StatusOr<RevocationList> RevocationList::FromPem(std::string_view pem) {
  ASSIGN_OR_RETURN(const std::vector<RevocationList> all, AllFromPem(pem));
  if (all.empty()) {
    return absl::InvalidArgumentError("no revocation list in PEM");
  }
  return all.front();
}

absl::StatusOr<std::vector<RevocationList>> RevocationList::AllFromPem(
    std::string_view pem) {
  const BioHandle bytes = ReadBytes(pem);
  std::vector<RevocationList> all;
  while (X509_CRL* list =
             PEM_read_bio_X509_CRL(bytes.get(), nullptr, nullptr, nullptr)) {
    // Looking up sorts a list that is not sorted, which is no thread's
    // business.
    X509_CRL_sort(list);
    all.push_back(
        RevocationList(std::shared_ptr<X509_CRL>(list, X509_CRL_free)));
    if (all.size() > 100) {
      return absl::InvalidArgumentError("more than 100 revocation lists");
    }
  }
  const bool ended = PemEnded();
  const std::string reason = OpenSslReason();
  if (!ended) {
    return absl::InvalidArgumentError(
        absl::StrCat("damaged revocation list in PEM: ", reason));
  }
  // Bytes without any list are no empty set of lists.
  if (all.empty() && pem.find_first_not_of(" \t\r\n") != pem.npos) {
    return absl::InvalidArgumentError("no revocation list in PEM");
  }
  return all;
}

std::string RevocationList::Pem() const {
  const BioHandle bytes = MemoryBytes();
  Must(PEM_write_bio_X509_CRL(bytes.get(), list_.get()) == 1);
  return TakeBytes(bytes);
}

bool RevocationList::SignedBy(const Certificate& authority) const {
  const bool is =
      X509_NAME_cmp(X509_CRL_get_issuer(list_.get()),
                    X509_get_subject_name(authority.get())) == 0 &&
      X509_CRL_verify(list_.get(), X509_get0_pubkey(authority.get())) == 1;
  ERR_clear_error();
  return is;
}

bool RevocationList::Revokes(const Certificate& certificate) const {
  X509_REVOKED* entry = nullptr;
  return X509_CRL_get0_by_serial(list_.get(), &entry,
                                 X509_get0_serialNumber(certificate.get())) ==
         1;
}

bool RevocationList::Revokes(const std::string& serial) const {
  X509_REVOKED* entry = nullptr;
  return X509_CRL_get0_by_serial(list_.get(), &entry, Integer(serial).get()) ==
         1;
}

int64_t RevocationList::Number() const {
  const IntegerHandle number(static_cast<ASN1_INTEGER*>(
      X509_CRL_get_ext_d2i(list_.get(), NID_crl_number, nullptr, nullptr)));
  int64_t value = 0;
  if (number != nullptr) ASN1_INTEGER_get_int64(&value, number.get());
  return value;
}

}  // namespace regatta
