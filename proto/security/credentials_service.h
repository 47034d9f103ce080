// The one place that makes gRPC credentials, for both ends of a connection.
//
// TLS 1.3 and nothing older, both sides with certificates; what a peer's
// certificate is worth is decided by base/certs/trust.h alone, and the role in
// it says whether it is the right peer: host names play no part. New handshakes
// use what TlsIdentity holds at the time (on a server within two seconds).
#ifndef REGATTA_PROTO_SECURITY_CREDENTIALS_SERVICE_H_
#define REGATTA_PROTO_SECURITY_CREDENTIALS_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/certs/tls_identity.h"

namespace regatta {

// Fails handshakes with a peer that has none of these roles. With `tls`
// nullptr: plain text.
std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(
    const std::shared_ptr<TlsIdentity>& tls, RoleSet peer_roles);

// For a newcomer without an identity: the peer must be a tracker whose
// certificate an authority with this fingerprint signed. The certificate goes
// along in the handshake.
std::shared_ptr<grpc::ChannelCredentials> MakeNewcomerCredentials(
    const std::string& ca_fingerprint, const Clock& clock);

enum class ClientCertificate { kRequired, kNotAsked };

// `refused` is called for each refused handshake, from any thread: who the peer
// says it is, and why. ResourceExhausted: no descriptor is left.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const std::shared_ptr<TlsIdentity>& tls, ClientCertificate client,
    std::function<void(const std::string& who, const std::string& why)>
        refused);

}  // namespace regatta

#endif  // REGATTA_PROTO_SECURITY_CREDENTIALS_SERVICE_H_
