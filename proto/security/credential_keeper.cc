#include "proto/security/credential_keeper.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/certs/issue.h"
#include "base/certs/revocation_list.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

// Half its life is over.
bool WantsRenewal(const Certificate& certificate, absl::Time now) {
  const absl::Duration life = certificate.NotAfter() - certificate.NotBefore();
  return now >= certificate.NotBefore() + life / 2;
}

}  // namespace

absl::Status RenewIdentity(TlsIdentity* tls, const RenewCertificate& renew,
                           absl::Time now) {
  const PrivateKey key = PrivateKey::Generate();
  ASSIGN_OR_RETURN(const v1::NewCertificate fresh,
                   renew(MakeCertificateRequest(key)));
  ASSIGN_OR_RETURN(const std::vector<Certificate> authorities,
                   Certificate::AllFromPem(fresh.ca_pem()));
  ASSIGN_OR_RETURN(const Certificate certificate,
                   Certificate::FromPem(fresh.chain_pem()));
  const Trust trust = Trust::Make(authorities);
  ASSIGN_OR_RETURN(const Identity identity, trust.Check(certificate, now));
  if (!certificate.BelongsTo(key) || identity != tls->self()) {
    return absl::InternalError(absl::StrCat(
        "the answer is of ", IdentityUri(identity), " or of another key"));
  }
  if (fresh.ca_pem() != tls->material()->ca_pem) {
    RETURN_IF_ERROR(WriteAuthorities(tls->dir(), fresh.ca_pem()));
  }
  RETURN_IF_ERROR(WritePair(tls->dir(), key, fresh.chain_pem()));
  return tls->Reload();
}

CredentialKeeper::CredentialKeeper(std::shared_ptr<TlsIdentity> tls,
                                   Options options, const Clock& clock)
    : tls_(std::move(tls)), options_(std::move(options)), clock_(clock) {
  renew_not_before_ = revocations_not_before_ = clock_.Steady();
  if (options_.poll == absl::ZeroDuration()) return;
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      lock.unlock();
      Tick();
      lock.lock();
      wake_.wait_for(lock, absl::ToChronoNanoseconds(options_.poll),
                     [this] { return stopping_; });
    }
  });
}

CredentialKeeper::~CredentialKeeper() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CredentialKeeper::Tick() {
  if (absl::Status status = tls_->Reload(); !status.ok()) {
    LOG(kWarning) << "kept the certificate in use: " << status.message();
  }
  const SteadyTime now = clock_.Steady();
  if (options_.renew && now >= renew_not_before_ &&
      WantsRenewal(tls_->material()->certificate, clock_.Wall())) {
    renew_not_before_ = now + options_.retry_renewal;
    if (absl::Status status =
            RenewIdentity(tls_.get(), options_.renew, clock_.Wall());
        !status.ok()) {
      LOG(kWarning) << "could not renew the certificate in " << tls_->dir()
                    << ", which ends "
                    << absl::FormatTime(
                           tls_->material()->certificate.NotAfter(),
                           absl::UTCTimeZone())
                    << ": " << status.message();
    }
  }
  if (options_.revocations && now >= revocations_not_before_) {
    revocations_not_before_ = now + options_.revocations_every;
    const absl::Status status = TakeRevocations();
    if (!status.ok() && !revocations_failing_) {
      LOG(kWarning) << "no news of revoked certificates: " << status.message();
    }
    revocations_failing_ = !status.ok();
  }
}

absl::Status CredentialKeeper::TakeRevocations() {
  ASSIGN_OR_RETURN(const std::string pem, options_.revocations());
  if (pem.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<RevocationList> news,
                   RevocationList::AllFromPem(pem));
  const auto material = tls_->material();
  std::vector<RevocationList> lists = material->trust.revoked();
  lists.insert(lists.end(), news.begin(), news.end());
  // Of each authority the newest: an older one must not bring anybody back.
  const Trust trust = Trust::Make(material->trust.authorities(), lists);
  const std::string merged = trust.RevokedPem();
  if (merged == material->trust.RevokedPem()) return absl::OkStatus();
  RETURN_IF_ERROR(WriteRevocations(tls_->dir(), merged));
  return tls_->Reload();
}

}  // namespace regatta
