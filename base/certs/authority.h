// A lab's authority: the key that signs its certificates, and what it has
// signed, in a folder:
//
//   ca.pem, ca.key (0600)  the authority itself
//   authority.jsonl        what it has done (authority_log.h)
//   crl.pem                revoked certificates, derived from it
//   lock                   held while one process changes something
//
// Several processes may use one folder: a tracker that takes joins while a
// person issues and revokes. Every change is durable before it is answered.
//
// Thread-safe.
#ifndef REGATTA_BASE_CERTS_AUTHORITY_H_
#define REGATTA_BASE_CERTS_AUTHORITY_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/certs/authority_log.h"
#include "base/certs/certificate.h"
#include "base/certs/identity.h"
#include "base/certs/issue.h"
#include "base/certs/join_token.h"
#include "base/certs/private_key.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace regatta {

inline constexpr absl::Duration kAuthorityLife = absl::Hours(24 * 365 * 10);
inline constexpr absl::Duration kCertificateLife = absl::Hours(24 * 7);
inline constexpr absl::Duration kTokenLife = absl::Minutes(15);
// Between two renewals of one ROLE/NAME.
inline constexpr absl::Duration kRenewalPause = absl::Minutes(1);

class Authority {
 public:
  struct Issued {
    Certificate certificate;
    std::string chain_pem;  // with the authority's
  };
  using Entry = AuthorityLog::Entry;
  using Scope = TokenScope;

  // Makes the folder and a new authority in it. AlreadyExists: there is one.
  static absl::Status Init(const std::string& dir, const std::string& lab,
                           absl::Time now);
  // FailedPrecondition names the file that is missing or wrong.
  static absl::StatusOr<std::unique_ptr<Authority>> Open(
      const std::string& dir, absl::Time now = RealClock().Wall());

  const std::string& lab() const { return lab_; }
  const Certificate& certificate() const { return certificate_; }

  // All of these finish first what a crash left half done: a revocation that
  // the log has and the list lacks.

  // `by`: who asked, for the log. FailedPrecondition: an agent's name that
  // another agent's devices may have, or the other way round (an agent serves
  // devices called NAME and NAME-SOMETHING); says whose.
  absl::StatusOr<Issued> Issue(const Identity& identity, const PublicKey& key,
                               absl::Time now, absl::Duration life,
                               const std::string& by);
  // FailedPrecondition as Issue.
  absl::StatusOr<JoinToken> MakeToken(const Scope& scope, absl::Time now,
                                      absl::Duration life,
                                      const std::string& by);
  // Uses a token up. PermissionDenied: unknown, used or late, or not for this
  // name, or the name is or was somebody's, or clashes as with Issue; says
  // which.
  absl::StatusOr<Issued> Join(const std::string& secret,
                              const std::string& name, const PublicKey& key,
                              absl::Time now);
  // Another one for the same identity, good for as long as `have` was made for.
  // PermissionDenied: `have` is revoked; FailedPrecondition: half of its life
  // is not over; ResourceExhausted: one was renewed within kRenewalPause.
  // REQUIRES: `have` counts.
  absl::StatusOr<Issued> Renew(const Certificate& have, const PublicKey& key,
                               absl::Time now);
  // `what`: a serial, for this certificate and all that were renewed from it,
  // or ROLE/NAME for all of its certificates. Returns how many are revoked by
  // it; NotFound: none is known that is not revoked already.
  absl::StatusOr<int> Revoke(std::string_view what, const std::string& why,
                             absl::Time now, const std::string& by);

  // Certificates that have not expired, oldest first.
  absl::StatusOr<std::vector<Entry>> List(absl::Time now);
  // Agents whose newest certificate is revoked, and why.
  absl::StatusOr<std::map<std::string, std::string>> RevokedAgents(
      absl::Time now);
  // The list of revoked ones, PEM.
  absl::StatusOr<std::string> Revocations(absl::Time now);

 private:
  class Locked;
  // What a line of the log says of where a certificate comes from.
  struct Origin {
    std::string by;
    std::string token = {};
    std::string parent = {};
  };

  Authority(std::string dir, Certificate certificate, PrivateKey key)
      : dir_(std::move(dir)),
        lab_(certificate.Lab()),
        certificate_(std::move(certificate)),
        key_(std::move(key)),
        log_(dir_ + "/authority.jsonl") {}
  // REQUIRES: the lock is held, of all of these.
  absl::StatusOr<Issued> Sign(const Identity& identity, const PublicKey& key,
                              absl::Time now, absl::Duration life,
                              const Origin& origin);
  absl::Status MendRevocationList(absl::Time now);
  absl::Status WriteRevocationList(absl::Time now, int64_t number);
  // `ever`: also names whose certificates all expired or were revoked.
  absl::Status CheckClash(const Identity& identity, absl::Time now,
                          bool ever) const;

  const std::string dir_;
  const std::string lab_;
  const Certificate certificate_;
  const PrivateKey key_;
  std::mutex mutex_;
  AuthorityLog log_;
  // The list was found whole: at so many revocations, and what the file was.
  int64_t listed_ = -1;
  std::string list_stamp_;
};

}  // namespace regatta

#endif  // REGATTA_BASE_CERTS_AUTHORITY_H_
