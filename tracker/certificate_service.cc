#include "tracker/certificate_service.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/certs/issue.h"
#include "base/listening_socket.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "proto/grpc_status_service.h"
#include "proto/security/access_service.h"

namespace regatta {
namespace {

// A request for a key on P-256 has about 400 bytes.
constexpr size_t kMaxRequestBytes = 8 << 10;
constexpr size_t kMaxSecretBytes = 64;

absl::StatusOr<PublicKey> ReadRequest(const std::string& pem) {
  if (pem.size() > kMaxRequestBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "request_pem has ", pem.size(), " bytes, at most ", kMaxRequestBytes));
  }
  return PublicKey::OfRequest(pem);
}

absl::Status TooMany() {
  return absl::ResourceExhaustedError(
      "too many want a certificate at once; try again in a few seconds");
}

}  // namespace

v1::NewCertificate AuthorityDesk::Answer(
    const Authority::Issued& issued) const {
  v1::NewCertificate answer;
  answer.set_chain_pem(issued.chain_pem);
  // While one authority takes over from another, both count.
  answer.set_ca_pem(tls_->material()->ca_pem);
  return answer;
}

bool AuthorityDesk::MayJoin(const std::string& address) {
  const SteadyTime now = clock_.Steady();
  std::lock_guard lock(mutex_);
  if (joins_.size() > kMaxAddresses) joins_.clear();
  return joins_.try_emplace(address, kJoinsPerSecond, kJoinsAtOnce, now)
      .first->second.Take(1, now);
}

void AuthorityDesk::Join(const v1::JoinRequest& request,
                         const std::string& address, Done done) {
  if (!MayJoin(address)) return done(TooMany());
  const bool posted =
      newcomers_.Post([this, &request, done] { done(JoinNow(request)); });
  if (!posted) done(TooMany());
}

void AuthorityDesk::Renew(const Certificate& have,
                          const std::string& request_pem, Done done) {
  const bool posted = renewals_.Post(
      [this, have, request_pem, done] { done(RenewNow(have, request_pem)); });
  if (!posted) done(TooMany());
}

absl::StatusOr<v1::NewCertificate> AuthorityDesk::JoinNow(
    const v1::JoinRequest& request) {
  if (authority_ == nullptr) {
    return absl::FailedPreconditionError("this tracker has no authority");
  }
  if (request.secret().size() > kMaxSecretBytes) {
    return absl::InvalidArgumentError("secret is too long for one");
  }
  ASSIGN_OR_RETURN(const PublicKey key, ReadRequest(request.request_pem()));
  ASSIGN_OR_RETURN(
      const Authority::Issued issued,
      authority_->Join(request.secret(), request.name(), key, clock_.Wall()));
  LOG(kInfo) << IdentityUri(*issued.certificate.GetIdentity())
             << " joined with certificate " << issued.certificate.Serial();
  return Answer(issued);
}

absl::StatusOr<v1::NewCertificate> AuthorityDesk::RenewNow(
    const Certificate& have, const std::string& request_pem) {
  if (authority_ == nullptr) {
    return absl::FailedPreconditionError(
        "this tracker has no authority to renew certificates with; start it "
        "with --authority DIR");
  }
  ASSIGN_OR_RETURN(const PublicKey key, ReadRequest(request_pem));
  ASSIGN_OR_RETURN(const Authority::Issued issued,
                   authority_->Renew(have, key, clock_.Wall()));
  return Answer(issued);
}

absl::StatusOr<std::string> AuthorityDesk::Revocations() {
  if (authority_ != nullptr) return authority_->Revocations(clock_.Wall());
  return KnownRevocations();
}

absl::StatusOr<std::map<std::string, std::string>>
AuthorityDesk::RevokedAgents() {
  if (authority_ == nullptr) return std::map<std::string, std::string>();
  return authority_->RevokedAgents(clock_.Wall());
}

std::string AuthorityDesk::KnownRevocations() const {
  return tls_ == nullptr ? "" : tls_->material()->trust.RevokedPem();
}

grpc::ServerUnaryReactor* EnrolmentServiceImpl::Join(
    grpc::CallbackServerContext* context, const v1::JoinRequest* request,
    v1::NewCertificate* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  desk_->Join(*request, std::string(PeerAddress(context->peer())),
              [this, reactor, response, from = context->peer()](
                  absl::StatusOr<v1::NewCertificate> joined) {
                if (joined.ok()) {
                  *response = *std::move(joined);
                } else {
                  audit_->Refused("newcomer", from, "EnrolmentService/Join",
                                  std::string(joined.status().message()));
                }
                reactor->Finish(ToGrpc(joined.status()));
              });
  return reactor;
}

grpc::ServerUnaryReactor* CertificateServiceImpl::Renew(
    grpc::CallbackServerContext* context, const v1::RenewRequest* request,
    v1::NewCertificate* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto certificate = Certificate::FromPem(PeerCertificate(*context));
  if (!PeerOf(*context) || !certificate.ok()) {
    reactor->Finish(ToGrpc(
        absl::FailedPreconditionError("in plain text nobody has a certificate "
                                      "that could be renewed")));
    return reactor;
  }
  desk_->Renew(*certificate, request->request_pem(),
               [reactor, response](absl::StatusOr<v1::NewCertificate> renewed) {
                 if (renewed.ok()) *response = *std::move(renewed);
                 reactor->Finish(ToGrpc(renewed.status()));
               });
  return reactor;
}

grpc::ServerUnaryReactor* CertificateServiceImpl::GetRevocations(
    grpc::CallbackServerContext* context, const v1::GetRevocationsRequest*,
    v1::Revocations* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  response->set_crl_pem(desk_->KnownRevocations());
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace regatta
