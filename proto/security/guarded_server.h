// A gRPC server behind everything that protects it: TLS and the role table
// (or, in plain text, loopback only), bounds on connections, patience with
// addresses that misbehave, the audit. Every daemon's port is one of these.
//
// It accepts connections itself and hands them to gRPC, so that it knows their
// addresses and number.
#ifndef REGATTA_PROTO_SECURITY_GUARDED_SERVER_H_
#define REGATTA_PROTO_SECURITY_GUARDED_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/certs/tls_identity.h"
#include "base/clock.h"
#include "proto/security/audit_log.h"
#include "proto/security/connection_gate.h"

namespace regatta {

struct ServerGuard {
  std::shared_ptr<TlsIdentity> tls;  // nullptr: plain text
  // Plain text where others than this machine can reach it.
  bool insecure_plaintext = false;
  // The enrolment port: no client certificate, and Join only.
  bool newcomers = false;
  AuditLog* audit = nullptr;  // these two outlive the server
  const Clock* clock = nullptr;
  GateLimits gate;
};

class GuardedServer {
 public:
  // Listens on `address`, HOST:PORT; port 0 picks a free one. `builder` has the
  // services and the sizes of messages. InvalidArgument as CheckExposure, or no
  // address; Unavailable: it cannot be listened on, and why.
  static absl::StatusOr<std::unique_ptr<GuardedServer>> Start(
      const std::string& address, grpc::ServerBuilder* builder,
      const ServerGuard& guard);
  ~GuardedServer();  // Stop(0)

  // HOST:PORT with the port in use.
  const std::string& address() const { return address_; }
  // Takes no new connections and calls, gives those that run up to `grace`.
  void Stop(absl::Duration grace);

 private:
  class Listener;
  struct Parts;
  GuardedServer(std::string address, std::unique_ptr<Parts> parts);
  const std::string address_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace regatta

#endif  // REGATTA_PROTO_SECURITY_GUARDED_SERVER_H_
