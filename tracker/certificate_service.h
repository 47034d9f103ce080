// EnrolmentService and CertificateService over gRPC: a tracker's front to the
// lab's authority.
//
// Thread-safe, as gRPC wants it. Nothing is owned but what is shared.
#ifndef REGATTA_TRACKER_CERTIFICATE_SERVICE_H_
#define REGATTA_TRACKER_CERTIFICATE_SERVICE_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "base/certs/authority.h"
#include "base/certs/tls_identity.h"
#include "base/clock.h"
#include "base/serial_queue.h"
#include "proto/security/audit_log.h"
#include "proto/security/rate_limit.h"
#include "regatta/v1/security_service.grpc.pb.h"

namespace regatta {

// What of the authority the tracker uses. Its files are read, locked and synced
// on threads of the desk's own; newcomers have another than those who renew.
class AuthorityDesk {
 public:
  using Done = std::function<void(absl::StatusOr<v1::NewCertificate>)>;

  // `authority` may be nullptr: this tracker has none.
  AuthorityDesk(Authority* authority, std::shared_ptr<TlsIdentity> tls,
                const Clock& clock)
      : authority_(authority), tls_(std::move(tls)), clock_(clock) {}

  // `done` is called once, from any thread; `request` stays until then.
  // ResourceExhausted: too many at once, from `address` or in all.
  void Join(const v1::JoinRequest& request, const std::string& address,
            Done done);
  void Renew(const Certificate& have, const std::string& request_pem,
             Done done);
  // The same, here and now.
  absl::StatusOr<v1::NewCertificate> RenewNow(const Certificate& have,
                                              const std::string& request_pem);
  // The authority's list; the tracker's keeper puts it into its folder.
  absl::StatusOr<std::string> Revocations();
  // Agents whose newest certificate is revoked, and why; none without an
  // authority.
  absl::StatusOr<std::map<std::string, std::string>> RevokedAgents();
  // What the tracker's folder has, of all authorities. Reads no file.
  std::string KnownRevocations() const;

 private:
  static constexpr double kJoinsPerSecond = 5;  // of an address
  static constexpr double kJoinsAtOnce = 20;
  static constexpr size_t kMaxWaiting = 256;
  static constexpr size_t kMaxAddresses = 8192;
  absl::StatusOr<v1::NewCertificate> JoinNow(const v1::JoinRequest& request);
  bool MayJoin(const std::string& address);
  v1::NewCertificate Answer(const Authority::Issued& issued) const;

  Authority* const authority_;
  const std::shared_ptr<TlsIdentity> tls_;
  const Clock& clock_;
  std::mutex mutex_;
  std::map<std::string, RateLimit> joins_;  // by address
  // End first.
  SerialQueue newcomers_{kMaxWaiting};
  SerialQueue renewals_{kMaxWaiting};
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
