// Listens for gRPC services on one address.
#ifndef REGATTA_SERVER_TUNING_SERVER_H_
#define REGATTA_SERVER_TUNING_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/certs/tls_identity.h"
#include "proto/security/audit_log.h"
#include "proto/security/audit_service.h"
#include "proto/security/connection_gate.h"
#include "proto/security/guarded_server.h"
#include "server/log_service.h"
#include "server/tuning_service.h"

namespace regatta {

// Who is let in, and what is written down. Nothing is owned but what is shared;
// the rest outlives the server.
struct ServerSecurity {
  std::shared_ptr<TlsIdentity> tls;  // nullptr: plain text
  bool insecure_plaintext = false;
  AuditLog* audit = nullptr;  // nullptr: nothing is written down
  // The tracker's audit, which goes before this one's.
  AuditServiceImpl::Others other_audit;
  GateLimits gate;
};

class TuningServer {
 public:
  // The services are not owned and outlive it. `address` is HOST:PORT; port 0
  // picks a free one. InvalidArgument when it is not of that form, or plain
  // text where others can reach it; Unavailable when it cannot be listened on,
  // with the system's reason.
  static absl::StatusOr<std::unique_ptr<TuningServer>> Start(
      const std::string& address, TuningServiceImpl* tuning,
      LogServiceImpl* log, const ServerSecurity& security = {});
  ~TuningServer();

  const std::string& address() const { return server_->address(); }
  // Takes no new calls, gives those that run up to `grace` to end.
  void Stop(absl::Duration grace);

 private:
  TuningServer(TuningServiceImpl* tuning, LogServiceImpl* log);
  TuningServiceImpl* const tuning_;
  LogServiceImpl* const log_;
  std::unique_ptr<AuditLog> no_audit_;
  std::unique_ptr<AuditServiceImpl> audit_;
  std::unique_ptr<GuardedServer> server_;
};

}  // namespace regatta

#endif  // REGATTA_SERVER_TUNING_SERVER_H_
