// How an agent comes by its identity: from its TLS folder, which a join token
// fills the first time.
#ifndef REGATTA_DEVICE_AGENT_AGENT_SECURITY_H_
#define REGATTA_DEVICE_AGENT_AGENT_SECURITY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/certs/tls_identity.h"
#include "proto/security/credential_keeper.h"
#include "proto/security/metrics_flags.h"
#include "proto/security/security_flags.h"

namespace regatta {

struct AgentSecurityFlags {
  SecurityFlags shared;
  MetricsFlags metrics;
  // A token as JoinToken::Read takes it; used where the folder has no identity,
  // one that is spent, or one that the tracker does not take.
  std::string join;
  std::string enrol;  // HOST:PORT; "": the tracker's host and its next port
};

// nullptr: plain text. `id`: of --id; becomes the certificate's name where it
// is "", and must be that otherwise. InvalidArgument for flags that contradict
// one another, or plain text to another machine.
absl::StatusOr<std::shared_ptr<TlsIdentity>> OpenAgentIdentity(
    const AgentSecurityFlags& flags, const std::string& tracker,
    std::string* id);

// The same as far as that shows without the tracker and without using a token
// up; leaves the folder as it is. Of a folder that a token is to fill, that the
// token can be read.
absl::Status CheckAgentIdentity(const AgentSecurityFlags& flags,
                                const std::string& tracker, std::string* id);

// Renews in time and takes in revocations; nullptr in plain text.
std::unique_ptr<CredentialKeeper> KeepAgentIdentity(
    const std::shared_ptr<TlsIdentity>& tls, const std::string& tracker);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_AGENT_SECURITY_H_
