// The certificates of a `regatta up --tls`: an authority in DIR/authority, made
// by the first, and a folder each for the daemons and the person who runs it in
// DIR/tls.
#ifndef REGATTA_CLIENT_CLI_UP_IDENTITIES_H_
#define REGATTA_CLIENT_CLI_UP_IDENTITIES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/certs/authority.h"
#include "base/clock.h"

namespace regatta::cli {

class UpIdentities {
 public:
  // Makes what is missing or soon ends.
  static absl::StatusOr<UpIdentities> Prepare(const std::string& dir,
                                              const Clock& clock);

  std::string authority() const { return dir_ + "/authority"; }
  // `who`: "server", "tracker", "agent", "admin".
  std::string Folder(const std::string& who) const {
    return dir_ + "/tls/" + who;
  }
  // To be called often: the daemons renew their own, this the person's.
  void Tend();

 private:
  UpIdentities(std::string dir, std::unique_ptr<Authority> authority,
               const Clock& clock)
      : dir_(std::move(dir)),
        authority_(std::move(authority)),
        clock_(&clock) {}
  absl::Status Ensure(Role role, const std::string& name);

  std::string dir_;
  std::unique_ptr<Authority> authority_;
  const Clock* clock_;
  SteadyTime next_;
};

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_UP_IDENTITIES_H_
