// Who calls, and whether it may: asked for every call before it reaches its
// service, by the role table. What is privileged or refused goes to the audit.
// Calls that go on are ended once their caller's certificate counts no longer.
//
// In plain text there is nobody to ask about: every caller may do everything.
//
// Thread-safe.
#ifndef REGATTA_PROTO_SECURITY_ACCESS_SERVICE_H_
#define REGATTA_PROTO_SECURITY_ACCESS_SERVICE_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/support/server_interceptor.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/certs/tls_identity.h"
#include "base/clock.h"
#include "proto/security/audit_log.h"
#include "proto/security/rate_limit.h"
#include "proto/security/role_table.h"

namespace regatta {

// Who the peer of a call is; nullopt in plain text, and on the enrolment port.
std::optional<Identity> PeerOf(const grpc::ServerContextBase& context);
// Its certificate, PEM; "" where it has none.
std::string PeerCertificate(const grpc::ServerContextBase& context);
// The same for people: regatta://LAB/ROLE/NAME or "plain text".
std::string PeerName(const grpc::ServerContextBase& context);

class AccessControl {
 public:
  static constexpr double kCallsPerSecond = 2'000;
  static constexpr double kCallsAtOnce = 4'000;

  struct Options {
    std::shared_ptr<TlsIdentity> tls;  // nullptr: plain text
    bool newcomers = false;            // the enrolment port
    AuditLog* audit = nullptr;
    const Clock* clock = nullptr;
    // A call from this address (as ServerContext::peer gives it) was allowed.
    std::function<void(const std::string& peer)> on_allowed;
  };
  explicit AccessControl(Options options) : options_(std::move(options)) {}

  // Both hold this, which outlives the server.
  std::shared_ptr<grpc::AuthMetadataProcessor> Processor();
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>
  Interceptor();

  // Ends the calls whose caller's certificate has expired or was revoked.
  void EndStale();

 private:
  class CallProcessor;
  class CallInterceptor;
  class CallInterceptorFactory;
  struct LiveCall {
    std::string certificate;
    std::string who;
    std::string from;
  };

  // OK, or why the call is refused.
  grpc::Status Decide(const std::string& path, const std::string& certificate);
  absl::Status CheckRate(const Identity& caller);
  void Began(grpc::ServerContextBase* context);
  void Ended(grpc::ServerContextBase* context);

  const Options options_;
  std::mutex mutex_;
  std::map<std::string, RateLimit> rates_;  // by caller
  std::unordered_map<grpc::ServerContextBase*, LiveCall> live_;
};

}  // namespace regatta

#endif  // REGATTA_PROTO_SECURITY_ACCESS_SERVICE_H_
