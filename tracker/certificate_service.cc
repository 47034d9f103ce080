#include "tracker/certificate_service.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/certs/issue.h"
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

template <typename Response>
grpc::ServerUnaryReactor* Reply(grpc::CallbackServerContext* context,
                                absl::StatusOr<Response> result,
                                Response* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (result.ok()) *response = *std::move(result);
  reactor->Finish(ToGrpc(result.status()));
  return reactor;
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

absl::StatusOr<v1::NewCertificate> AuthorityDesk::Join(
    const v1::JoinRequest& request) {
  {
    std::lock_guard lock(mutex_);
    if (!joins_.Take(1, clock_.Steady())) {
      return absl::ResourceExhaustedError(
          "too many join at once; try again in a few seconds");
    }
  }
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

absl::StatusOr<v1::NewCertificate> AuthorityDesk::Renew(
    const Identity& identity, const std::string& serial,
    const std::string& request_pem) {
  if (authority_ == nullptr) {
    return absl::FailedPreconditionError(
        "this tracker has no authority to renew certificates with; start it "
        "with --authority DIR");
  }
  ASSIGN_OR_RETURN(const PublicKey key, ReadRequest(request_pem));
  ASSIGN_OR_RETURN(const Authority::Issued issued,
                   authority_->Renew(identity, serial, key, clock_.Wall()));
  return Answer(issued);
}

absl::StatusOr<std::string> AuthorityDesk::Revocations() {
  if (authority_ != nullptr) return authority_->Revocations();
  if (tls_ == nullptr) return std::string();
  const auto material = tls_->material();
  const auto& revoked = material->trust.revoked();
  return revoked ? revoked->Pem() : std::string();
}

grpc::ServerUnaryReactor* EnrolmentServiceImpl::Join(
    grpc::CallbackServerContext* context, const v1::JoinRequest* request,
    v1::NewCertificate* response) {
  auto joined = desk_->Join(*request);
  if (!joined.ok()) {
    audit_->Refused("newcomer", context->peer(), "EnrolmentService/Join",
                    std::string(joined.status().message()));
  }
  return Reply(context, std::move(joined), response);
}

grpc::ServerUnaryReactor* CertificateServiceImpl::Renew(
    grpc::CallbackServerContext* context, const v1::RenewRequest* request,
    v1::NewCertificate* response) {
  const auto caller = PeerOf(*context);
  const auto certificate = Certificate::FromPem(PeerCertificate(*context));
  if (!caller || !certificate.ok()) {
    return Reply<v1::NewCertificate>(
        context,
        absl::FailedPreconditionError("in plain text nobody has a certificate "
                                      "that could be renewed"),
        response);
  }
  return Reply(
      context,
      desk_->Renew(*caller, certificate->Serial(), request->request_pem()),
      response);
}

grpc::ServerUnaryReactor* CertificateServiceImpl::GetRevocations(
    grpc::CallbackServerContext* context,
    const v1::GetRevocationsRequest* request, v1::Revocations* response) {
  auto pem = desk_->Revocations();
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (pem.ok()) response->set_crl_pem(*pem);
  reactor->Finish(ToGrpc(pem.status()));
  return reactor;
}

}  // namespace regatta
