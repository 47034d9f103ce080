#include "base/certs/tls_identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/memory_file.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace regatta {
namespace {

// More than a daemon has connections.
constexpr size_t kMaxPeers = 32'768;

// Differs when a file of the folder does.
std::string Stamp(const std::string& dir) {
  std::string stamp;
  for (const char* name : {"/ca.pem", "/cert.pem", "/key.pem", "/crl.pem"}) {
    struct stat file;
    if (stat((dir + name).c_str(), &file) != 0) {
      absl::StrAppend(&stamp, "-;");
      continue;
    }
    absl::StrAppend(&stamp, file.st_ino, ",", file.st_size, ",",
                    file.st_mtim.tv_sec, ".", file.st_mtim.tv_nsec, ",",
                    file.st_mode, ";");
  }
  return stamp;
}

}  // namespace

absl::StatusOr<std::shared_ptr<TlsIdentity>> TlsIdentity::Open(
    const std::string& dir, RoleSet roles, const Clock& clock) {
  // First: what changes while it is read is read again.
  std::string stamp = Stamp(dir);
  ASSIGN_OR_RETURN(TlsMaterial material, ReadTlsFolder(dir, clock.Wall()));
  if (!roles.Has(material.identity.role)) {
    return absl::FailedPreconditionError(
        absl::StrCat(dir, "/cert.pem is of ", IdentityUri(material.identity),
                     ", which may not do this; issue one of another role"));
  }
  return std::shared_ptr<TlsIdentity>(
      new TlsIdentity(dir, clock, std::move(material), std::move(stamp)));
}

std::shared_ptr<const TlsMaterial> TlsIdentity::material() const {
  std::lock_guard lock(mutex_);
  return material_;
}

absl::Status TlsIdentity::Reload() {
  const std::string stamp = Stamp(dir_);
  {
    std::lock_guard lock(mutex_);
    if (stamp == stamp_) return absl::OkStatus();
  }
  absl::StatusOr<TlsMaterial> read = ReadTlsFolder(dir_, clock_.Wall());
  if (read.ok() && read->identity != self_) {
    read = absl::FailedPreconditionError(absl::StrCat(
        dir_, "/cert.pem is of ", IdentityUri(read->identity),
        " now; this process is ", IdentityUri(self_), ": restart it"));
  }
  std::lock_guard lock(mutex_);
  stamp_ = stamp;
  if (!read.ok()) return read.status();
  material_ = std::make_shared<const TlsMaterial>(*std::move(read));
  if (pair_.valid()) RETURN_IF_ERROR(FillPair());
  LOG(kInfo) << "took over " << dir_ << ": certificate "
             << material_->certificate.Serial() << " until "
             << absl::FormatTime(material_->certificate.NotAfter(),
                                 absl::UTCTimeZone());
  return absl::OkStatus();
}

absl::StatusOr<Identity> TlsIdentity::CheckPeer(std::string_view pem) {
  ASSIGN_OR_RETURN(Judged judged, JudgePeer(pem));
  return std::move(judged.identity);
}

absl::StatusOr<TlsIdentity::Judged> TlsIdentity::JudgePeer(
    std::string_view pem) {
  const absl::Time now = clock_.Wall();
  std::string key = Sha256({pem});
  std::shared_ptr<const TlsMaterial> material;
  {
    std::lock_guard lock(mutex_);
    material = material_;
    const auto known = peers_.find(key);
    // Nothing that it was judged by has changed.
    if (known != peers_.end() && known->second.by == material &&
        now >= known->second.not_before && now <= known->second.not_after) {
      return known->second;
    }
  }
  auto certificate = Certificate::FromPem(pem);
  if (!certificate.ok()) {
    return absl::UnauthenticatedError(certificate.status().message());
  }
  ASSIGN_OR_RETURN(const Identity identity,
                   material->trust.Check(*certificate, now));
  const Judged judged = {identity, certificate->NotBefore(),
                         certificate->NotAfter(), material};
  std::lock_guard lock(mutex_);
  // Only certificates that counted are kept: strangers cannot fill it.
  if (peers_.size() >= kMaxPeers) MakeRoom();
  peers_[std::move(key)] = judged;
  return judged;
}

void TlsIdentity::MakeRoom() {
  const absl::Time now = clock_.Wall();
  std::erase_if(peers_, [&](const auto& peer) {
    return peer.second.by != material_ || peer.second.not_after < now;
  });
  if (peers_.size() >= kMaxPeers) peers_.erase(peers_.begin());
}

absl::StatusOr<std::string> TlsIdentity::PairPath() {
  std::lock_guard lock(mutex_);
  if (!pair_.valid()) RETURN_IF_ERROR(FillPair());
  return absl::StrCat("/proc/self/fd/", pair_.get());
}

absl::Status TlsIdentity::FillPair() {
  ASSIGN_OR_RETURN(UniqueFd fresh,
                   SealedMemoryFile("tls-pair", material_->key.Pem() +
                                                    material_->chain_pem));
  if (!pair_.valid()) {
    pair_ = std::move(fresh);
    return absl::OkStatus();
  }
  // The path's number stays; who opens it gets the old pair or the new one.
  if (dup3(fresh.get(), pair_.get(), O_CLOEXEC) < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot hand over a pair: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace regatta
