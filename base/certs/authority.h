// A lab's authority: the key that signs its certificates, and what it has
// signed, in a folder:
//
//   ca.pem, ca.key (0600)  the authority itself
//   authority.jsonl        appended to: certificates issued and revoked, tokens
//                          made and used, by whom and when
//   crl.pem                revoked certificates, derived from it
//   lock                   held while one process changes something
//
// Several processes may use one folder: a tracker that takes joins while a
// person issues and revokes. Every change is durable before it is answered. A
// last line without its newline is a write that a crash cut short; it was never
// promised and is cut off by the next change.
//
// Thread-safe.
#ifndef REGATTA_BASE_CERTS_AUTHORITY_H_
#define REGATTA_BASE_CERTS_AUTHORITY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/certs/certificate.h"
#include "base/certs/identity.h"
#include "base/certs/issue.h"
#include "base/certs/join_token.h"
#include "base/certs/private_key.h"
#include "base/unique_fd.h"

namespace regatta {

inline constexpr absl::Duration kAuthorityLife = absl::Hours(24 * 365 * 10);
inline constexpr absl::Duration kCertificateLife = absl::Hours(24 * 7);
inline constexpr absl::Duration kTokenLife = absl::Minutes(15);

class Authority {
 public:
  struct Issued {
    Certificate certificate;
    std::string chain_pem;  // with the authority's
  };
  struct Entry {
    std::string serial;
    std::string uri;
    absl::Time not_after;
    std::string revoked;  // why; "": it is not
  };
  // Whom a token lets in: a role, and one name, or any name of its own choice
  // that nobody else has. `device_class` as Identity's.
  struct Scope {
    Role role = Role::kAgent;
    std::string name;  // "": any
    std::string device_class;
  };

  // Makes the folder and a new authority in it. AlreadyExists: there is one.
  static absl::Status Init(const std::string& dir, const std::string& lab,
                           absl::Time now);
  // FailedPrecondition names the file that is missing or wrong.
  static absl::StatusOr<std::unique_ptr<Authority>> Open(
      const std::string& dir);

  const std::string& lab() const { return lab_; }
  const Certificate& certificate() const { return certificate_; }

  // `by`: who asked, for the log.
  absl::StatusOr<Issued> Issue(const Identity& identity, const PublicKey& key,
                               absl::Time now, absl::Duration life,
                               const std::string& by);
  absl::StatusOr<JoinToken> MakeToken(const Scope& scope, absl::Time now,
                                      absl::Duration life,
                                      const std::string& by);
  // Uses a token up. PermissionDenied: unknown, used or late, or not for this
  // name, or the name is somebody's; says which.
  absl::StatusOr<Issued> Join(const std::string& secret,
                              const std::string& name, const PublicKey& key,
                              absl::Time now);
  // Another one for the same identity. PermissionDenied: the one that it has,
  // `serial`, is revoked.
  absl::StatusOr<Issued> Renew(const Identity& identity,
                               const std::string& serial, const PublicKey& key,
                               absl::Time now);
  // `what`: a serial, or ROLE/NAME for all of its certificates. Returns how
  // many are revoked by it; NotFound: none is known.
  absl::StatusOr<int> Revoke(std::string_view what, const std::string& why,
                             absl::Time now, const std::string& by);

  // Certificates that have not expired, oldest first.
  absl::StatusOr<std::vector<Entry>> List(absl::Time now);
  // The list of revoked ones, PEM.
  absl::StatusOr<std::string> Revocations() const;

 private:
  struct Token {
    Scope scope;
    absl::Time expires;
    bool used = false;
  };
  class Locked;

  Authority(std::string dir, Certificate certificate, PrivateKey key)
      : dir_(std::move(dir)),
        lab_(certificate.Lab()),
        certificate_(std::move(certificate)),
        key_(std::move(key)) {}
  // Takes in what was appended since. REQUIRES: the lock is held.
  absl::Status CatchUp();
  absl::Status TakeLine(const std::string& line);
  absl::Status Append(const std::string& line);
  absl::StatusOr<Issued> Sign(const Identity& identity, const PublicKey& key,
                              absl::Time now, absl::Duration life,
                              const std::string& by, const std::string& token);
  absl::Status WriteRevocationList(absl::Time now);
  bool NameTaken(const std::string& uri_begin, absl::Time now) const;

  const std::string dir_;
  const std::string lab_;
  const Certificate certificate_;
  const PrivateKey key_;
  std::mutex mutex_;
  int64_t read_ = 0;  // bytes of the log taken in
  std::vector<Entry> entries_;
  std::map<std::string, size_t> by_serial_;
  std::map<std::string, Token> tokens_;  // by id
};

}  // namespace regatta

#endif  // REGATTA_BASE_CERTS_AUTHORITY_H_
