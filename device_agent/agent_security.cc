#include "device_agent/agent_security.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/certs/join_token.h"
#include "base/certs/tls_folder.h"
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

// With a token: whatever it takes to have a certificate that counts.
absl::Status UseToken(const AgentSecurityFlags& flags,
                      const std::string& tracker, const std::string& id) {
  const std::string& dir = flags.shared.tls;
  if (flags.join != "-" && !flags.join.starts_with("@")) {
    LOG(kWarning) << "the token of --join shows to everybody on this machine; "
                     "give @FILE";
  }
  JoinOptions options{.dir = dir, .token = flags.join, .name = id};
  ASSIGN_OR_RETURN(options.address, EnrolAddress(flags, tracker));
  const std::string spent = WhySpent(dir, RealClock().Wall());
  if (!HasNoIdentity(dir) && spent.empty()) {
    const auto tls = OpenIdentity(flags.shared, {Role::kAgent}, RealClock());
    // What is wrong is said when it is opened for good.
    if (!tls.ok()) return absl::OkStatus();
    const absl::Status taken =
        CertificateClient(tracker, *tls).GetRevocations().status();
    if (taken.ok()) {
      LOG(kInfo) << "--join is of no use: the certificate in " << dir
                 << " counts";
      return absl::OkStatus();
    }
    // It may have been revoked, which a tracker tells nobody who comes with it.
    options.replace = true;
    const auto joined = JoinLab(options, RealClock());
    if (joined.ok()) {
      LOG(kInfo) << "joined anew as " << IdentityUri(*joined)
                 << "; the certificate before was not taken: "
                 << taken.message();
    } else {
      LOG(kWarning) << "the certificate in " << dir << " is not taken ("
                    << taken.message() << "), and --join was of no use: "
                    << joined.status().message();
    }
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Identity joined, JoinLab(options, RealClock()));
  LOG(kInfo) << "joined as " << IdentityUri(joined)
             << (spent.empty() ? "" : "; before, ") << spent;
  return absl::OkStatus();
}

// Flags that contradict one another.
absl::Status CheckFlags(const AgentSecurityFlags& flags,
                        const std::string& tracker) {
  RETURN_IF_ERROR(CheckExposure(tracker, !flags.shared.tls.empty(),
                                flags.shared.insecure_plaintext));
  if (flags.shared.tls.empty() && !flags.join.empty()) {
    return absl::InvalidArgumentError(
        "--join: give --tls DIR too, the folder for the certificate");
  }
  return absl::OkStatus();
}

// nullptr: plain text.
absl::StatusOr<std::shared_ptr<TlsIdentity>> OpenAsNamed(
    const AgentSecurityFlags& flags, std::string* id) {
  ASSIGN_OR_RETURN(std::shared_ptr<TlsIdentity> tls,
                   OpenIdentity(flags.shared, {Role::kAgent}, RealClock()));
  if (tls == nullptr) return tls;
  const std::string& name = tls->self().name;
  if (id->empty()) *id = name;
  if (*id != name) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--id: ", *id, ", but the certificate in ", flags.shared.tls,
        " is of agent ", name, "; leave --id out"));
  }
  return tls;
}

}  // namespace

absl::StatusOr<std::shared_ptr<TlsIdentity>> OpenAgentIdentity(
    const AgentSecurityFlags& flags, const std::string& tracker,
    std::string* id) {
  RETURN_IF_ERROR(CheckFlags(flags, tracker));
  if (!flags.join.empty()) RETURN_IF_ERROR(UseToken(flags, tracker, *id));
  return OpenAsNamed(flags, id);
}

absl::Status CheckAgentIdentity(const AgentSecurityFlags& flags,
                                const std::string& tracker, std::string* id) {
  RETURN_IF_ERROR(CheckFlags(flags, tracker));
  const std::string& dir = flags.shared.tls;
  if (flags.join.empty() ||
      (!HasNoIdentity(dir) && WhySpent(dir, RealClock().Wall()).empty())) {
    return OpenAsNamed(flags, id).status();
  }
  RETURN_IF_ERROR(EnrolAddress(flags, tracker).status());
  // Of standard input there is one only.
  if (flags.join == "-") return absl::OkStatus();
  return Annotate(JoinToken::Read(flags.join).status(), "--join");
}

std::unique_ptr<CredentialKeeper> KeepAgentIdentity(
    const std::shared_ptr<TlsIdentity>& tls, const std::string& tracker) {
  return KeepThroughTracker(tls, tracker, kRevocationsEvery);
}

}  // namespace regatta
