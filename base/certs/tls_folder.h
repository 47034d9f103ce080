// The folder that a daemon or a person keeps its identity in:
//
//   ca.pem    the lab's authorities, one or more while they change
//   cert.pem  its certificate, then its authority's
//   key.pem   its private key, mode 0600
//   crl.pem   revoked certificates, a list of each authority; may be missing.
//             A list of an authority that is not in ca.pem counts for nothing
//
// A new pair is written beside and renamed, the certificate first: between the
// two renames, and after a crash there, key and certificate do not belong
// together, and the reader takes the key that waits beside. A pair that does
// not belong together is never returned.
//
// Free functions.
#ifndef REGATTA_BASE_CERTS_TLS_FOLDER_H_
#define REGATTA_BASE_CERTS_TLS_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/certs/certificate.h"
#include "base/certs/private_key.h"
#include "base/certs/trust.h"

namespace regatta {

struct TlsMaterial {
  PrivateKey key;
  Certificate certificate;
  std::string chain_pem;  // the certificate, then its authority's
  std::string ca_pem;
  Identity identity;
  Trust trust;
};

// All of the folder, checked: the key is its owner's alone, the pair belongs
// together, the certificate counts now. FailedPrecondition names the file, what
// is wrong and what to do.
absl::StatusOr<TlsMaterial> ReadTlsFolder(const std::string& dir,
                                          absl::Time now);

// True where nothing of an identity is in the folder yet.
bool HasNoIdentity(const std::string& dir);

// Why the certificate in the folder will never count again: it has run out, or
// one of the lists beside it revokes it. "": neither, or the folder cannot be
// read, which ReadTlsFolder says more of.
std::string WhySpent(const std::string& dir, absl::Time now);

// Makes the folder (mode 0700) when missing. FailedPrecondition: why not, or
// others may write into the one that is there.
absl::Status MakeTlsFolder(const std::string& dir);

// Copies the pair, where there is one, to cert.pem.old and key.pem.old, in the
// place of those.
absl::Status SetPairAside(const std::string& dir);

// Each is durable when it returns OK; the folder exists. A pair of `key` and
// `chain_pem` replaces the one before as described above.
absl::Status WritePair(const std::string& dir, const PrivateKey& key,
                       const std::string& chain_pem);
absl::Status WriteAuthorities(const std::string& dir, const std::string& pem);
absl::Status WriteRevocations(const std::string& dir, const std::string& pem);

}  // namespace regatta

#endif  // REGATTA_BASE_CERTS_TLS_FOLDER_H_
