#include "proto/security/credentials_service.h"

#include <grpcpp/security/tls_credentials_options.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/certs/trust.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "proto/grpc_status_service.h"

namespace regatta {
namespace {

using grpc::experimental::ExternalCertificateVerifier;
using grpc::experimental::TlsCustomVerificationCheckRequest;

constexpr unsigned kPairRefreshSeconds = 1;

// This release of gRPC cannot be told a least version. It can be told the
// suites of TLS 1.2 and older, which those of 1.3 are apart from: one that
// needs a key agreed on beforehand, of which there is none, leaves 1.3 alone.
// Read by gRPC once, before its first handshake.
void AllowTls13Only() {
  static const bool done = [] {
    setenv("GRPC_SSL_CIPHER_SUITES", "PSK-AES256-GCM-SHA384", /*overwrite=*/1);
    return true;
  }();
  (void)done;
}

std::string_view View(grpc::string_ref text) {
  return {text.data(), text.size()};
}

// Judges the certificate of every handshake's peer.
class PeerVerifier : public ExternalCertificateVerifier {
 public:
  using Judge =
      std::function<absl::Status(const TlsCustomVerificationCheckRequest&)>;
  explicit PeerVerifier(Judge judge) : judge_(std::move(judge)) {}

  bool Verify(TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    *status = ToGrpc(judge_(*request));
    return true;  // judged here and now
  }
  void Cancel(TlsCustomVerificationCheckRequest*) override {}

 private:
  const Judge judge_;
};

std::shared_ptr<grpc::experimental::CertificateVerifier> Verifier(
    PeerVerifier::Judge judge) {
  return ExternalCertificateVerifier::Create<PeerVerifier>(std::move(judge));
}

absl::Status CheckRole(const Identity& peer, RoleSet roles) {
  if (roles.Has(peer.role)) return absl::OkStatus();
  return absl::UnauthenticatedError(absl::StrCat(
      "the peer is ", IdentityUri(peer), ", which is not who is wanted there"));
}

// A certificate by which the peer says who it is without proof, for the audit.
std::string Claimed(const TlsCustomVerificationCheckRequest& request) {
  const std::vector<grpc::string_ref> uris = request.uri_names();
  if (uris.empty()) return "unknown";
  return absl::StrCat("claims to be ",
                      ToAbsl(View(uris.front()).substr(0, 200)));
}

// The authority in a chain that has this fingerprint.
std::optional<Certificate> FindAuthority(std::string_view chain_pem,
                                         const std::string& fingerprint) {
  const auto chain = Certificate::AllFromPem(chain_pem);
  if (!chain.ok()) return std::nullopt;
  for (const Certificate& certificate : *chain) {
    if (certificate.Fingerprint() == fingerprint) return certificate;
  }
  return std::nullopt;
}

absl::Status JudgePinned(const TlsCustomVerificationCheckRequest& request,
                         const std::string& fingerprint, absl::Time now) {
  const auto authority =
      FindAuthority(View(request.peer_cert_full_chain()), fingerprint);
  if (!authority) {
    return absl::UnauthenticatedError(
        "the tracker is not of the lab that the token is for");
  }
  const Trust trust = Trust::Make({*authority});
  ASSIGN_OR_RETURN(const Certificate certificate,
                   Certificate::FromPem(View(request.peer_cert())));
  ASSIGN_OR_RETURN(const Identity peer, trust.Check(certificate, now));
  return CheckRole(peer, {Role::kTracker});
}

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(
    const std::shared_ptr<TlsIdentity>& tls, RoleSet peer_roles) {
  if (tls == nullptr) return grpc::InsecureChannelCredentials();
  AllowTls13Only();
  const auto material = tls->material();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
          material->ca_pem,
          std::vector<grpc::experimental::IdentityKeyCertPair>{
              {material->key.Pem(), material->chain_pem}}));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_check_call_host(false);
  options.set_certificate_verifier(Verifier(
      [tls, peer_roles](const TlsCustomVerificationCheckRequest& request) {
        auto peer = tls->CheckPeer(View(request.peer_cert()));
        return peer.ok() ? CheckRole(*peer, peer_roles) : peer.status();
      }));
  return grpc::experimental::TlsCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> MakeNewcomerCredentials(
    const std::string& ca_fingerprint, const Clock& clock) {
  AllowTls13Only();
  grpc::experimental::TlsChannelCredentialsOptions options;
  // No authority is known yet: the verifier alone decides.
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      Verifier([ca_fingerprint,
                &clock](const TlsCustomVerificationCheckRequest& request) {
        return JudgePinned(request, ca_fingerprint, clock.Wall());
      }));
  return grpc::experimental::TlsCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const std::shared_ptr<TlsIdentity>& tls, ClientCertificate client,
    std::function<void(const std::string& who, const std::string& why)>
        refused) {
  if (tls == nullptr) return grpc::InsecureServerCredentials();
  AllowTls13Only();
  ASSIGN_OR_RETURN(const std::string pair, tls->PairPath());
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          pair, pair, kPairRefreshSeconds));
  options.watch_identity_key_cert_pairs();
  options.set_check_call_host(false);
  if (client == ClientCertificate::kNotAsked) {
    options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
    options.set_certificate_verifier(
        Verifier([](const TlsCustomVerificationCheckRequest&) {
          return absl::OkStatus();
        }));
    return grpc::experimental::TlsServerCredentials(options);
  }
  // The handshake proves that the peer has the certificate's key; whether the
  // certificate counts is the verifier's to say, so that the audit has why not.
  options.set_cert_request_type(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  options.set_certificate_verifier(
      Verifier([tls, refused = std::move(refused)](
                   const TlsCustomVerificationCheckRequest& request) {
        const absl::Status peer =
            tls->CheckPeer(View(request.peer_cert())).status();
        if (!peer.ok()) refused(Claimed(request), std::string(peer.message()));
        return peer;
      }));
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace regatta
