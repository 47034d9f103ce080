// This process's identity, kept up to date: what is in its TLS folder, read
// again when the files change, and checked before it counts. What is half
// written, expired or of somebody else is ignored, and said once.
//
// Thread-safe.
#ifndef REGATTA_BASE_CERTS_TLS_IDENTITY_H_
#define REGATTA_BASE_CERTS_TLS_IDENTITY_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/certs/certificate.h"
#include "base/certs/tls_folder.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace regatta {

class TlsIdentity {
 public:
  // `roles`: those that this process may have. FailedPrecondition as
  // ReadTlsFolder, or for another role. `clock` outlives it.
  static absl::StatusOr<std::shared_ptr<TlsIdentity>> Open(
      const std::string& dir, RoleSet roles, const Clock& clock);

  // As of the last successful reload.
  std::shared_ptr<const TlsMaterial> material() const;
  const Identity& self() const { return self_; }
  const std::string& dir() const { return dir_; }

  // Takes what is in the folder if it changed and is whole, of the same
  // identity. The error says what is wrong; what was before stays.
  absl::Status Reload();

  // Who a peer's certificate (PEM) is of. Unauthenticated as Trust::Check. What
  // counted is remembered while nothing in the folder changes, but for its
  // dates.
  absl::StatusOr<Identity> CheckPeer(std::string_view pem);
  // The same, with what it was judged by and until when that holds: as long as
  // material() is `by` and it is not later than `not_after`.
  struct Judged {
    Identity identity;
    absl::Time not_before;
    absl::Time not_after;
    std::shared_ptr<const TlsMaterial> by;
  };
  absl::StatusOr<Judged> JudgePeer(std::string_view pem);

  // A path whose bytes are key and chain, always of one pair: a file in memory
  // that Reload replaces at once. For libraries that read files.
  absl::StatusOr<std::string> PairPath();

 private:
  TlsIdentity(std::string dir, const Clock& clock, TlsMaterial material,
              std::string stamp)
      : dir_(std::move(dir)),
        clock_(clock),
        self_(material.identity),
        material_(std::make_shared<const TlsMaterial>(std::move(material))),
        stamp_(std::move(stamp)) {}
  void MakeRoom();          // REQUIRES: mutex_
  absl::Status FillPair();  // REQUIRES: mutex_

  const std::string dir_;
  const Clock& clock_;
  const Identity self_;
  mutable std::mutex mutex_;
  std::shared_ptr<const TlsMaterial> material_;
  std::string stamp_;  // of what was read last, good or bad
  UniqueFd pair_;
  std::unordered_map<std::string, Judged> peers_;  // by SHA-256 of the PEM
};

}  // namespace regatta

#endif  // REGATTA_BASE_CERTS_TLS_IDENTITY_H_
