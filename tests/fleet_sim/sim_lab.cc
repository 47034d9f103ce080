#include "tests/fleet_sim/sim_lab.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/certs/issue.h"
#include "base/certs/tls_folder.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace regatta::fleet_sim {
namespace {

constexpr char kLab[] = "simulated";

}  // namespace

absl::StatusOr<std::unique_ptr<SimLab>> SimLab::Create(const std::string& dir) {
  const std::string place = dir + "/authority";
  RETURN_IF_ERROR(Authority::Init(place, kLab, RealClock().Wall()));
  ASSIGN_OR_RETURN(std::unique_ptr<Authority> authority,
                   Authority::Open(place));
  return std::unique_ptr<SimLab>(new SimLab(dir, std::move(authority)));
}

absl::StatusOr<std::string> SimLab::Folder(Role role, const std::string& name) {
  const std::string folder = absl::StrCat(dir_, "/", name, ".tls");
  const PrivateKey key = PrivateKey::Generate();
  ASSIGN_OR_RETURN(
      const Authority::Issued issued,
      authority_->Issue(
          {.lab = kLab, .role = role, .name = name, .device_class = ""},
          PublicKey::Of(key), RealClock().Wall(), kCertificateLife,
          "fleet_sim"));
  RETURN_IF_ERROR(MakeTlsFolder(folder));
  RETURN_IF_ERROR(WriteAuthorities(folder, authority_->certificate().Pem()));
  RETURN_IF_ERROR(WritePair(folder, key, issued.chain_pem));
  return folder;
}

absl::StatusOr<std::shared_ptr<TlsIdentity>> SimLab::Open(
    Role role, const std::string& name) {
  ASSIGN_OR_RETURN(const std::string folder, Folder(role, name));
  return TlsIdentity::Open(folder, {role}, RealClock());
}

}  // namespace regatta::fleet_sim
