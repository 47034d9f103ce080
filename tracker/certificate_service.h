// EnrolmentService and CertificateService over gRPC: a tracker's front to the
// lab's authority.
//
// Thread-safe, as gRPC wants it. Nothing is owned but what is shared.
#ifndef REGATTA_TRACKER_CERTIFICATE_SERVICE_H_
#define REGATTA_TRACKER_CERTIFICATE_SERVICE_H_

#include <memory>
#include <mutex>

#include "absl/status/statusor.h"
#include "base/certs/authority.h"
#include "base/certs/tls_identity.h"
#include "base/clock.h"
#include "proto/security/audit_log.h"
#include "proto/security/rate_limit.h"
#include "regatta/v1/security_service.grpc.pb.h"

namespace regatta {

// What of the authority the tracker uses.
class AuthorityDesk {
 public:
  // `authority` may be nullptr: this tracker has none.
  AuthorityDesk(Authority* authority, std::shared_ptr<TlsIdentity> tls,
                const Clock& clock)
      : authority_(authority),
        tls_(std::move(tls)),
        clock_(clock),
        joins_(kJoinsPerSecond, kJoinsAtOnce, clock.Steady()) {}

  // ResourceExhausted: too many at once.
  absl::StatusOr<v1::NewCertificate> Join(const v1::JoinRequest& request);
  absl::StatusOr<v1::NewCertificate> Renew(const Identity& identity,
                                           const std::string& serial,
                                           const std::string& request_pem);
  // The authority's list, or what the tracker's folder has.
  absl::StatusOr<std::string> Revocations();

 private:
  static constexpr double kJoinsPerSecond = 5;
  static constexpr double kJoinsAtOnce = 20;
  v1::NewCertificate Answer(const Authority::Issued& issued) const;

  Authority* const authority_;
  const std::shared_ptr<TlsIdentity> tls_;
  const Clock& clock_;
  std::mutex mutex_;
  RateLimit joins_;
};

class EnrolmentServiceImpl final
    : public v1::EnrolmentService::CallbackService {
 public:
  EnrolmentServiceImpl(AuthorityDesk* desk, AuditLog* audit)
      : desk_(desk), audit_(audit) {}
  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context,
                                 const v1::JoinRequest* request,
                                 v1::NewCertificate* response) override;

 private:
  AuthorityDesk* const desk_;
  AuditLog* const audit_;
};

class CertificateServiceImpl final
    : public v1::CertificateService::CallbackService {
 public:
  explicit CertificateServiceImpl(AuthorityDesk* desk) : desk_(desk) {}
  grpc::ServerUnaryReactor* Renew(grpc::CallbackServerContext* context,
                                  const v1::RenewRequest* request,
                                  v1::NewCertificate* response) override;
  grpc::ServerUnaryReactor* GetRevocations(
      grpc::CallbackServerContext* context,
      const v1::GetRevocationsRequest* request,
      v1::Revocations* response) override;

 private:
  AuthorityDesk* const desk_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_CERTIFICATE_SERVICE_H_
