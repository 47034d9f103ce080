#include "device_agent/agent_security.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/host_port.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "proto/security/enrolment_client.h"
#include "proto/security/exposure.h"

namespace regatta {
namespace {

// A fleet of agents asks for revocations; the tracker alone heeds them at once.
constexpr absl::Duration kRevocationsEvery = absl::Minutes(5);

absl::StatusOr<std::string> EnrolAddress(const AgentSecurityFlags& flags,
                                         const std::string& tracker) {
  if (!flags.enrol.empty()) return flags.enrol;
  ASSIGN_OR_RETURN(const auto host_port, SplitHostPort(tracker));
  return absl::StrCat(host_port.first, ":", host_port.second + 1);
}

}  // namespace

absl::StatusOr<std::shared_ptr<TlsIdentity>> OpenAgentIdentity(
    const AgentSecurityFlags& flags, const std::string& tracker,
    std::string* id) {
  const std::string& dir = flags.shared.tls;
  RETURN_IF_ERROR(
      CheckExposure(tracker, !dir.empty(), flags.shared.insecure_plaintext));
  if (dir.empty()) {
    if (flags.join.empty()) return std::shared_ptr<TlsIdentity>();
    return absl::InvalidArgumentError(
        "--join: give --tls DIR too, the folder for the certificate");
  }
  if (!flags.join.empty() && HasNoIdentity(dir)) {
    ASSIGN_OR_RETURN(const std::string enrol, EnrolAddress(flags, tracker));
    ASSIGN_OR_RETURN(
        const Identity joined,
        JoinLab(
            {.dir = dir, .address = enrol, .token = flags.join, .name = *id},
            RealClock()));
    LOG(kInfo) << "joined as " << IdentityUri(joined);
  }
  ASSIGN_OR_RETURN(std::shared_ptr<TlsIdentity> tls,
                   OpenIdentity(flags.shared, {Role::kAgent}, RealClock()));
  const std::string& name = tls->self().name;
  if (id->empty()) *id = name;
  if (*id != name) {
    return absl::InvalidArgumentError(
        absl::StrCat("--id: ", *id, ", but the certificate in ", dir,
                     " is of agent ", name, "; leave --id out"));
  }
  return tls;
}

std::unique_ptr<CredentialKeeper> KeepAgentIdentity(
    const std::shared_ptr<TlsIdentity>& tls, const std::string& tracker) {
  return KeepThroughTracker(tls, tracker, kRevocationsEvery);
}

}  // namespace regatta
