// Who calls, and whether it may: asked for every call before it reaches its
// service, by the role table. What is privileged or refused goes to the audit.
// Calls that go on are ended once their caller's certificate counts no longer;
// one that has merely expired is no reason while the caller has shown its next.
//
// In plain text there is nobody to ask about: every caller may do everything.
//
// Thread-safe.
#ifndef REGATTA_PROTO_SECURITY_ACCESS_SERVICE_H_
#define REGATTA_PROTO_SECURITY_ACCESS_SERVICE_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/support/server_interceptor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
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
    // A call of `who` from this address (as ServerContext::peer gives it) was
    // allowed; of a newcomer: it has joined.
    std::function<void(const std::string& peer, const std::string& who)>
        on_allowed;
    // Where a call of `who` that never came as far as a ServerContext is from.
    std::function<std::string(const std::string& who)> from;
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
  // A certificate, and how it was judged last.
  struct Shown {
    std::string pem;
    absl::Time not_after;
    std::shared_ptr<const TlsMaterial> by;
    bool Holds(const TlsMaterial* material, absl::Time now) const {
      return by.get() == material && now <= not_after;
    }
  };
  struct LiveCall {
    uint64_t number = 0;  // contexts are used again
    Shown certificate;
    std::string who;
    std::string from;
  };
  struct Caller {
    RateLimit rate;
    Shown newest;  // of the certificates that it showed
  };

  // OK, or why the call is refused.
  grpc::Status Decide(const std::string& path, const std::string& certificate);
  // Notes the caller and takes from its rate.
  absl::Status Admit(const TlsIdentity::Judged& caller,
                     const std::string& certificate);
  absl::StatusOr<Shown> Judge(const std::string& pem);
  // Of a live call: a certificate by which it may go on.
  absl::StatusOr<Shown> JudgeAnew(const Shown& shown, const std::string& who);
  // Keeps the verdict on a call that still goes on, or ends the call: true.
  bool Settle(grpc::ServerContextBase* context, uint64_t number,
              const absl::StatusOr<Shown>& verdict);
  void Refused(const std::string& who, const std::string& method,
               const std::string& why);
  void Began(grpc::ServerContextBase* context);
  void Succeeded(grpc::ServerContextBase* context);
  void Ended(grpc::ServerContextBase* context);

  const Options options_;
  std::mutex mutex_;
  std::map<std::string, Caller> callers_;  // by URI
  uint64_t calls_ = 0;
  std::unordered_map<grpc::ServerContextBase*, LiveCall> live_;
};

}  // namespace regatta

#endif  // REGATTA_PROTO_SECURITY_ACCESS_SERVICE_H_
