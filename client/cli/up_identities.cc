#include "client/cli/up_identities.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/certs/tls_folder.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "client/cli/issue_folder.h"

namespace regatta::cli {
namespace {

constexpr absl::Duration kTendEvery = absl::Minutes(10);

std::string ThisHost() {
  char name[65] = "";
  gethostname(name, sizeof name - 1);
  return *name == '\0' ? "localhost" : name;
}

}  // namespace

absl::StatusOr<UpIdentities> UpIdentities::Prepare(const std::string& dir,
                                                   const Clock& clock) {
  const std::string folder = dir + "/authority";
  const absl::Status made = Authority::Init(folder, "lab", clock.Wall());
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  ASSIGN_OR_RETURN(std::unique_ptr<Authority> authority,
                   Authority::Open(folder));
  UpIdentities identities(dir, std::move(authority), clock);
  RETURN_IF_ERROR(MakeTlsFolder(dir + "/tls"));
  RETURN_IF_ERROR(identities.Ensure(Role::kTracker, "tracker"));
  RETURN_IF_ERROR(identities.Ensure(Role::kServer, "server"));
  // Its processors and boards are called so.
  RETURN_IF_ERROR(identities.Ensure(Role::kAgent, ThisHost()));
  RETURN_IF_ERROR(
      identities.Ensure(Role::kAdmin, absl::StrCat("user-", getuid())));
  identities.next_ = clock.Steady() + kTendEvery;
  return identities;
}

absl::Status UpIdentities::Ensure(Role role, const std::string& name) {
  const Identity identity{
      .lab = authority_->lab(), .role = role, .name = name, .device_class = ""};
  return EnsureFolder(authority_.get(), Folder(std::string(RoleName(role))),
                      identity, clock_->Wall(), "regatta up");
}

void UpIdentities::Tend() {
  if (clock_->Steady() < next_) return;
  next_ = clock_->Steady() + kTendEvery;
  if (absl::Status status =
          Ensure(Role::kAdmin, absl::StrCat("user-", getuid()));
      !status.ok()) {
    LOG(kWarning) << status.message();
  }
}

}  // namespace regatta::cli
