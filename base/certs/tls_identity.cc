#include "base/certs/tls_identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/memory_file.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace regatta {
namespace {

constexpr size_t kMaxPeers = 8192;

}  // namespace

absl::StatusOr<std::shared_ptr<TlsIdentity>> TlsIdentity::Open(
    const std::string& dir, RoleSet roles, const Clock& clock) {
  ASSIGN_OR_RETURN(TlsMaterial material, ReadTlsFolder(dir, clock.Wall()));
  if (!roles.Has(material.identity.role)) {
    return absl::FailedPreconditionError(
        absl::StrCat(dir, "/cert.pem is of ", IdentityUri(material.identity),
                     ", which may not do this; issue one of another role"));
  }
  std::shared_ptr<TlsIdentity> identity(
      new TlsIdentity(dir, clock, std::move(material)));
  identity->stamp_ = identity->Stamp();
  return identity;
}

std::shared_ptr<const TlsMaterial> TlsIdentity::material() const {
  std::lock_guard lock(mutex_);
  return material_;
}

std::string TlsIdentity::Stamp() const {
  std::string stamp;
  for (const char* name : {"/ca.pem", "/cert.pem", "/key.pem", "/crl.pem"}) {
    struct stat file;
    if (stat((dir_ + name).c_str(), &file) != 0) {
      absl::StrAppend(&stamp, "-;");
      continue;
    }
    absl::StrAppend(&stamp, file.st_ino, ",", file.st_size, ",",
                    file.st_mtim.tv_sec, ".", file.st_mtim.tv_nsec, ",",
                    file.st_mode, ";");
  }
  return stamp;
}

absl::Status TlsIdentity::Reload() {
  const std::string stamp = Stamp();
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
  const absl::Time now = clock_.Wall();
  std::string key(pem);
  std::shared_ptr<const TlsMaterial> material;
  {
    std::lock_guard lock(mutex_);
    material = material_;
    const auto known = peers_.find(key);
    // Nothing that it was judged by has changed.
    if (known != peers_.end() && known->second.by == material &&
        now >= known->second.not_before && now <= known->second.not_after) {
      return known->second.identity;
    }
  }
  auto certificate = Certificate::FromPem(pem);
  if (!certificate.ok()) {
    return absl::UnauthenticatedError(certificate.status().message());
  }
  ASSIGN_OR_RETURN(const Identity identity,
                   material->trust.Check(*certificate, now));
  std::lock_guard lock(mutex_);
  // Only certificates that counted are kept: strangers cannot fill it.
  if (peers_.size() >= kMaxPeers) peers_.clear();
  peers_[std::move(key)] = {identity, certificate->NotBefore(),
                            certificate->NotAfter(), material};
  return identity;
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
