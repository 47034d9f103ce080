#include "proto/security/enrolment_client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/certs/issue.h"
#include "base/certs/join_token.h"
#include "base/certs/tls_folder.h"
#include "base/status_macros.h"
#include "proto/security/credentials_service.h"
#include "regatta/v1/security_service.grpc.pb.h"

namespace regatta {
namespace {

constexpr std::chrono::seconds kLimit{10};

std::shared_ptr<grpc::Channel> Dial(
    const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  // Else a connection of an earlier identity might be used again.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

absl::Status FromGrpc(const grpc::Status& status, const std::string& address) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  if (code != absl::StatusCode::kUnavailable &&
      code != absl::StatusCode::kDeadlineExceeded) {
    return absl::Status(code, status.error_message());
  }
  return absl::UnavailableError(
      absl::StrCat("the tracker at ", address,
                   " does not answer: ", status.error_message()));
}

template <typename Service, typename Request, typename Response>
absl::StatusOr<Response> Call(
    const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    grpc::Status (Service::Stub::*method)(grpc::ClientContext*, const Request&,
                                          Response*),
    const Request& request) {
  const auto stub = Service::NewStub(Dial(address, credentials));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLimit);
  Response response;
  RETURN_IF_ERROR(
      FromGrpc((stub.get()->*method)(&context, request, &response), address));
  return response;
}

// The authority that the token names, among those that came.
absl::Status CheckJoined(const v1::NewCertificate& joined,
                         const JoinToken& token, const PrivateKey& key,
                         absl::Time now, Identity* identity) {
  ASSIGN_OR_RETURN(const std::vector<Certificate> authorities,
                   Certificate::AllFromPem(joined.ca_pem()));
  bool pinned = false;
  for (const Certificate& authority : authorities) {
    pinned = pinned || authority.Fingerprint() == token.ca_fingerprint;
  }
  ASSIGN_OR_RETURN(const Certificate certificate,
                   Certificate::FromPem(joined.chain_pem()));
  if (!pinned || !certificate.BelongsTo(key)) {
    return absl::UnavailableError(
        "the tracker answered with a certificate of another lab or key");
  }
  const Trust trust = Trust::Make(authorities);
  ASSIGN_OR_RETURN(*identity, trust.Check(certificate, now));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Identity> JoinLab(const JoinOptions& options,
                                 const Clock& clock) {
  if (!options.replace && !HasNoIdentity(options.dir) &&
      WhySpent(options.dir, clock.Wall()).empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        options.dir,
        " has a certificate already, which has neither run out nor, as far as "
        "is known here, been revoked; --force replaces it"));
  }
  ASSIGN_OR_RETURN(const JoinToken token, JoinToken::Read(options.token));
  // Before the token is used up.
  RETURN_IF_ERROR(MakeTlsFolder(options.dir));
  const PrivateKey key = PrivateKey::Generate();
  v1::JoinRequest request;
  request.set_secret(token.secret);
  request.set_name(options.name);
  request.set_request_pem(MakeCertificateRequest(key));
  ASSIGN_OR_RETURN(
      const v1::NewCertificate joined,
      Call<v1::EnrolmentService>(
          options.address, MakeNewcomerCredentials(token.ca_fingerprint, clock),
          &v1::EnrolmentService::Stub::Join, request));
  Identity identity;
  RETURN_IF_ERROR(CheckJoined(joined, token, key, clock.Wall(), &identity));
  RETURN_IF_ERROR(SetPairAside(options.dir));
  RETURN_IF_ERROR(WriteAuthorities(options.dir, joined.ca_pem()));
  RETURN_IF_ERROR(WritePair(options.dir, key, joined.chain_pem()));
  return identity;
}

absl::StatusOr<v1::NewCertificate> CertificateClient::Renew(
    const std::string& request_pem) {
  v1::RenewRequest request;
  request.set_request_pem(request_pem);
  return Call<v1::CertificateService>(
      address_, MakeChannelCredentials(tls_, {Role::kTracker}),
      &v1::CertificateService::Stub::Renew, request);
}

absl::StatusOr<std::string> CertificateClient::GetRevocations() {
  ASSIGN_OR_RETURN(const v1::Revocations revocations,
                   Call<v1::CertificateService>(
                       address_, MakeChannelCredentials(tls_, {Role::kTracker}),
                       &v1::CertificateService::Stub::GetRevocations,
                       v1::GetRevocationsRequest()));
  return revocations.crl_pem();
}

std::unique_ptr<CredentialKeeper> KeepThroughTracker(
    const std::shared_ptr<TlsIdentity>& tls, const std::string& tracker,
    absl::Duration revocations_every) {
  if (tls == nullptr) return nullptr;
  auto client = std::make_shared<CertificateClient>(tracker, tls);
  CredentialKeeper::Options options;
  options.renew = [client](const std::string& request) {
    return client->Renew(request);
  };
  options.revocations = [client] { return client->GetRevocations(); };
  options.revocations_every = revocations_every;
  return std::make_unique<CredentialKeeper>(tls, std::move(options),
                                            RealClock());
}

}  // namespace regatta
