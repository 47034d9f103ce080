// The certificates of a simulated lab, in folders of a folder.
#ifndef REGATTA_TESTS_FLEET_SIM_SIM_LAB_H_
#define REGATTA_TESTS_FLEET_SIM_SIM_LAB_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/certs/authority.h"
#include "base/certs/tls_identity.h"

namespace regatta::fleet_sim {

class SimLab {
 public:
  // Makes an authority in `dir`/authority.
  static absl::StatusOr<std::unique_ptr<SimLab>> Create(const std::string& dir);

  // A new folder with a certificate of this name, for --tls.
  absl::StatusOr<std::string> Folder(Role role, const std::string& name);
  // What a program makes of such a folder.
  absl::StatusOr<std::shared_ptr<TlsIdentity>> Open(Role role,
                                                    const std::string& name);

 private:
  SimLab(std::string dir, std::unique_ptr<Authority> authority)
      : dir_(std::move(dir)), authority_(std::move(authority)) {}

  const std::string dir_;
  const std::unique_ptr<Authority> authority_;
};

}  // namespace regatta::fleet_sim

#endif  // REGATTA_TESTS_FLEET_SIM_SIM_LAB_H_
