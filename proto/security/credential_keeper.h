// Keeps a process's identity valid: renews its certificate once half its life
// is over, takes in new revocations, and what an operator puts into the folder.
//
// Thread-safe; owns one thread.
#ifndef REGATTA_PROTO_SECURITY_CREDENTIAL_KEEPER_H_
#define REGATTA_PROTO_SECURITY_CREDENTIAL_KEEPER_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/certs/tls_identity.h"
#include "base/clock.h"
#include "regatta/v1/security_service.pb.h"

namespace regatta {

// As CertificateClient::Renew.
using RenewCertificate =
    std::function<absl::StatusOr<v1::NewCertificate>(const std::string&)>;

// A new key, its certificate from `renew`, and both into the folder. An answer
// that is no good changes nothing.
absl::Status RenewIdentity(TlsIdentity* tls, const RenewCertificate& renew,
                           absl::Time now);

class CredentialKeeper {
 public:
  struct Options {
    // Empty functions: not done.
    RenewCertificate renew;
    std::function<absl::StatusOr<std::string>()> revocations;
    absl::Duration poll = absl::Seconds(5);
    absl::Duration revocations_every = absl::Seconds(15);
    absl::Duration retry_renewal = absl::Minutes(1);
  };

  // Starts the thread, unless options.poll is zero: then Tick is called by
  // somebody else. `clock` outlives it.
  CredentialKeeper(std::shared_ptr<TlsIdentity> tls, Options options,
                   const Clock& clock);
  ~CredentialKeeper();

  // Does what is due.
  void Tick();

 private:
  absl::Status TakeRevocations();

  const std::shared_ptr<TlsIdentity> tls_;
  const Options options_;
  const Clock& clock_;
  SteadyTime renew_not_before_;
  SteadyTime revocations_not_before_;
  bool revocations_failing_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace regatta

#endif  // REGATTA_PROTO_SECURITY_CREDENTIAL_KEEPER_H_
