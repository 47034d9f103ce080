// A lab in a folder of its own: an authority, certificates of every kind, and a
// tracker on loopback that wants them.
#ifndef REGATTA_TESTS_SECURITY_TEST_LAB_H_
#define REGATTA_TESTS_SECURITY_TEST_LAB_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/certs/authority.h"
#include "base/certs/tls_identity.h"
#include "base/clock.h"
#include "base/random.h"
#include "proto/security/audit_log.h"
#include "regatta/v1/fleet_service.grpc.pb.h"
#include "tests/support/process.h"
#include "tests/tracker/core_fixture.h"
#include "tracker/tracker_options.h"
#include "tracker/tracker_service.h"

namespace regatta::testing {

inline RoleSet AnyRole() {
  RoleSet any;
  for (const Role role : kAllRoles) any = any | RoleSet{role};
  return any;
}

class TestLab {
 public:
  explicit TestLab(const std::string& lab = "lab");

  // A folder with a certificate, as it would have been issued at `now`.
  std::string Folder(const Identity& identity,
                     absl::Time now = RealClock().Wall(),
                     absl::Duration life = kCertificateLife);
  std::string Folder(Role role, const std::string& name) {
    return Folder(
        Identity{.lab = lab_, .role = role, .name = name, .device_class = ""});
  }
  std::shared_ptr<TlsIdentity> Open(const std::string& folder,
                                    const Clock& clock = RealClock());
  std::shared_ptr<TlsIdentity> Open(Role role, const std::string& name) {
    return Open(Folder(role, name));
  }

  Authority& authority() { return *authority_; }
  const std::string& dir() const { return temp_.path(); }
  std::string authority_dir() const { return temp_.path() + "/authority"; }

 private:
  const std::string lab_;
  TempDir temp_;
  std::unique_ptr<Authority> authority_;
  int folders_ = 0;
};

// A tracker of the lab, with its enrolment port and its audit.
class LabTracker {
 public:
  explicit LabTracker(TestLab* lab, const GateLimits& gate = {},
                      const TrackerOptions& options = {});
  ~LabTracker();

  const std::string& address() const { return service_->address(); }
  std::string enrol() const { return service_->enrol_address(); }
  const std::string& folder() const { return folder_; }
  AuditLog& audit() { return *audit_; }
  // Whether a line of the audit has all of these in it.
  bool Audited(const std::vector<std::string>& parts) const;
  // The whole of it, for messages.
  std::string AuditText() const;

 private:
  std::string folder_;
  std::shared_ptr<TlsIdentity> tls_;
  std::unique_ptr<AuditLog> audit_;
  Random random_{1};
  MemoryFleetStore store_;
  std::unique_ptr<TrackerService> service_;
};

// A connection of its own for each call.
std::shared_ptr<grpc::Channel> Dial(const std::string& address,
                                    const std::shared_ptr<TlsIdentity>& tls,
                                    RoleSet peers = {Role::kTracker});

// A unary call with an empty request to /regatta.v1.METHOD; streams end at
// once.
grpc::Status CallEmpty(const std::shared_ptr<grpc::Channel>& channel,
                       const std::string& method);

// An agent's session: says Hello under its certificate's name and reads the
// answer; a failure of the test when there is none.
class AgentSession {
 public:
  AgentSession(const std::string& address,
               const std::shared_ptr<TlsIdentity>& tls);
  // Whether a heartbeat is answered.
  bool Answers();
  // Reads to the end of the session.
  grpc::Status End();

  grpc::ClientReaderWriter<v1::AgentMessage, v1::TrackerMessage>& stream() {
    return *stream_;
  }
  grpc::ClientContext& context() { return context_; }

 private:
  std::unique_ptr<v1::FleetService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<
      grpc::ClientReaderWriter<v1::AgentMessage, v1::TrackerMessage>>
      stream_;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_SECURITY_TEST_LAB_H_
